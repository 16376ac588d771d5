/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A profile as a gzipped profile.proto (proto/profile.proto).
 */
#ifndef PPROF_H
#define PPROF_H

#include "profile.h"

#include <stdio.h>

/*
 * Writes the view `type` of `profile` to `out`, gzipped, the same bytes for the same profile.
 * Comments carry cuts, losses and statistics. 0, -ENOMEM, -EIO and the like.
 */
int pprof_write(const struct profile *profile, enum profile_type type, FILE *out);

#endif
