/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files have whole numbers of objects and bytes; estimates are none.
 */
#ifndef ROUNDING_H
#define ROUNDING_H

#include "profile.h"

/* Fills `values` of all samples from their tallies. The sum of many is as exact as that of one. */
void rounding_of_samples(struct profile *profile);

#endif
