/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The windows of a recording: does what budget says, and collects what was counted in each in the
 * heaps of the targets.
 */
#ifndef WINDOWS_H
#define WINDOWS_H

#include "profile.h"

#include <stdint.h>

struct session;
struct target;
struct windows;

/*
 * Begins to record, for `duration_ns` (0: nobody knows for how long). The first window is open when
 * this returns. 0 and *out (windows_free()), or -errno, logged. The session is borrowed.
 */
int windows_start(struct session *session, int64_t duration_ns, struct windows **out);

/* NULL is fine. */
void windows_free(struct windows *windows);

/* Milliseconds until windows_step() is to be called, -1: never. */
int windows_wait_ms(const struct windows *windows);

/* Does what is due. 0 or -errno, logged. */
int windows_step(struct windows *windows);

/* Ends the last window, takes every probe out, and collects the rest. 0 or -errno, logged. */
int windows_end(struct windows *windows);

/* What the probes cost from windows_start() until windows_end(). */
struct windows_cost {
	uint64_t hits, stepped_hits;
	double emulated_ns, stepped_ns; /* of a hit, as measured; 0: unknown */
	double probe_ns;		/* of all */
	double cpu_ns; /* processor time of those that were probed, probes included */
};

/* That; after windows_end(). */
struct windows_cost windows_cost(const struct windows *windows);

/* How much of the time was recorded, and what that means for `target`; NULL: for all of them. */
struct profile_coverage windows_coverage(const struct windows *windows,
					 const struct target *target);

#endif
