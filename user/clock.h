/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What time it is. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds of a clock that exists, like CLOCK_MONOTONIC. */
static inline int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

#endif
