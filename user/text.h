/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A profile as the legacy text form that Go writes with debug=1 and google-pprof reads:
 *
 *   heap profile: <inuse objects>: <bytes> [<alloc objects>: <bytes>] @ heap_v2/<rate>
 *   1: 64 [2: 128] @ 0x401136 0x401180
 *   #	0x401135	leaf	/src/a.c:12
 *
 * a line per (stack, size) with the counts as sampled, which the reader scales by 1 - exp(-size /
 * rate); then the notes of profile_notes() and MAPPED_LIBRARIES in the form of /proc/PID/maps.
 *
 * Go names the sampling heap/<2 * rate>. To go tool pprof that is the same, but google-pprof takes
 * it for an older law, is up to 37 % off, and dies on the first site that has nothing in use. Both
 * read heap_v2 as we mean it. At rate 1 it is heapprofile: nothing to scale, zero sizes included.
 * So it is for what was recorded in windows, where the counts are the estimates: readers know
 * nothing of the time that was not recorded.
 *
 * The addresses of a line are return addresses, because readers subtract 1. Locations
 * without an address ("[truncated]") have one that no process can have. Values that a view does not
 * show are 0.
 */
#ifndef TEXT_H
#define TEXT_H

#include "profile.h"

#include <stdio.h>

/* Writes the view `type` and flushes. 0, -ENOMEM, or the write's error (-ENOSPC, -EPIPE, -EIO). */
int text_write(const struct profile *profile, enum profile_type type, FILE *out);

#endif
