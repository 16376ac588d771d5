/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tiny functions of our own that probes are tried and timed on.
 */
#ifndef SELF_PROBE_H
#define SELF_PROBE_H

struct uprobe_link_point;

/* The function: what its first instruction costs under a probe. */
enum self_probe {
	SELF_PROBE_EMULATED, /* push: the kernel emulates it */
	SELF_PROBE_STEPPED,  /* mov: the kernel single-steps it */
	SELF_PROBE_TIMED_CNT,
	SELF_PROBE_TRIAL = SELF_PROBE_TIMED_CNT, /* for trials alone: those stay for a while */
	SELF_PROBE_CNT,
};

/*
 * The place of the function in /proc/self/exe, as a probe of free(NULL-like) that no accounting
 * follows. 0, or -ENOENT if our own mappings cannot be read.
 */
int self_probe_point(enum self_probe which, struct uprobe_link_point *out);

/* Calls the function for trials, once; needs no system call. */
void self_probe_call(void);

/* Nanoseconds per call of the function, the smallest of several rounds. */
double self_probe_time_ns(enum self_probe which);

#define SELF_PROBE_BATCHES 5

/*
 * Processor time of a call as things are now; nanoseconds. The median of SELF_PROBE_BATCHES times
 * `calls` calls: what a hypervisor takes counts as ours, and may hit one of them.
 */
double self_probe_typical_ns(enum self_probe which, unsigned calls);

#endif
