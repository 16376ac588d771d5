/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes that meet probes and are not recorded: not chosen, or out of reach. The probes cost
 * them what they cost the others, so the budget needs to know of their processor time, and of
 * nothing else.
 */
#ifndef BYSTANDERS_H
#define BYSTANDERS_H

#include <stdint.h>
#include <sys/types.h>

struct bystander;

/* Zeroed, there are none. */
struct bystanders {
	struct bystander *all; /* owned; those that live */
	double ended_ns;       /* processor time of those that have ended */
};

/* Frees them all. */
void bystanders_clear(struct bystanders *bystanders);

/*
 * Process `tgid` counts from when it had used `used_ns` of processor time (0: from now on). For
 * want of memory it does not count.
 */
void bystanders_add(struct bystanders *bystanders, pid_t tgid, uint64_t used_ns);

/* It has ended, having used `used_ns` in all (0: unknown), or is somebody now who is recorded. */
void bystanders_end(struct bystanders *bystanders, pid_t tgid, uint64_t used_ns);

/* Nanoseconds of processor time that all of them have used since they were added. */
double bystanders_cpu_ns(struct bystanders *bystanders);

#endif
