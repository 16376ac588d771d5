/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The verb check: what this kernel and a process allow, and what would be probed. Changes nothing.
 */
#ifndef CHECK_VERB_H
#define CHECK_VERB_H

#include "opts.h"

/* Prints the report to stdout. */
enum opts_exit check_run(const struct opts *opts);

#endif
