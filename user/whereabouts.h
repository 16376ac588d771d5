/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where and as whom a process runs: what its paths and numbers mean, until after its end.
 */
#ifndef WHEREABOUTS_H
#define WHEREABOUTS_H

#include <stdint.h>
#include <sys/types.h>

/* Of one process, at one time. */
struct whereabouts {
	int root_fd;	  /* owned; its root directory, or -1 */
	int mounts_fd;	  /* owned; its mount namespace, so that mounts stay; -1: none, or ours */
	pid_t inner_tgid; /* its own number, in the innermost pid namespace */
	uid_t uid;	  /* effective, as our user namespace has it */
};

/* Those of nobody. */
#define WHEREABOUTS_NONE ((struct whereabouts){.root_fd = -1, .mounts_fd = -1})

/*
 * Those of the process `tgid`, to be closed with whereabouts_close(). What cannot be had of them is
 * -1. 0, -ESRCH: there is no such process, or -errno of a shortage of ours (shortage.h); *out is
 * untouched then.
 */
int whereabouts_read(pid_t tgid, struct whereabouts *out);

/* Closes what it holds; fine for those of nobody, which it becomes. */
void whereabouts_close(struct whereabouts *whereabouts);

/* When the process began, CLOCK_BOOTTIME; 0 if that cannot be read. */
int64_t whereabouts_begin_ns(pid_t tgid);

#endif
