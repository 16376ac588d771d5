/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A profile as the legacy text form that Go writes with debug=1 and google-pprof reads.
 */
#ifndef TEXT_H
#define TEXT_H

#include "profile.h"

#include <stdio.h>

/* Writes the view `type`; raw sampled counts, heap/<2R> in the header. 0 or -EIO. */
int text_write(const struct profile *profile, enum profile_type type, FILE *out);

#endif
