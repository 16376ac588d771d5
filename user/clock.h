/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What time it is. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* Nanoseconds of a clock that exists, like CLOCK_MONOTONIC. */
static inline int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Nanoseconds of processor time that process `tgid` has used; -1: there is no such process. */
static inline int64_t clock_process_ns(pid_t tgid)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(tgid, &clock) || clock_gettime(clock, &used))
		return -1;
	return used.tv_sec * 1000000000LL + used.tv_nsec;
}

#endif
