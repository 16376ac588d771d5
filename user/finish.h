/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What comes after a recording: its profiles, and what people are told.
 */
#ifndef FINISH_H
#define FINISH_H

#include "opts.h"

#include <stdint.h>

struct session;
struct windows;

/* Times of a recording. */
struct finish_clock {
	int64_t wall_ns;     /* since 1970, at the start */
	int64_t start_ns;    /* monotonic */
	int64_t duration_ns; /* once it ended */
};

/*
 * Reads the maps, which nobody changes any more, and writes and shows everything. What went wrong
 * is logged.
 */
enum opts_exit finish(const struct session *session, const struct windows *windows,
		      const struct finish_clock *clock);

#endif
