// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: nothing. Out: where functions of ours lie in our file, and how long a call takes, with or
 * without a probe. They are written in assembly since the first instruction is the point.
 */
#include "self_probe.h"

#include "../bpf/abi.h"
#include "cleanup.h"
#include "clock.h"
#include "median.h"
#include "procmaps.h"
#include "uprobe_link.h"

#include <errno.h>

/* Few calls, since a stepped one takes over 10 us; many rounds, since any may be disturbed. */
#define ROUNDS		8
#define CALLS_PER_ROUND 25

/* Called like free(address): the argument is no block of anybody. */
void self_probe_emulated(const void *address);
/* See self_probe_emulated(). */
void self_probe_stepped(const void *address);
/* See self_probe_emulated(). */
void self_probe_trial(const void *address);

__asm__(".pushsection .text\n"
	".balign 16\n"
	".type self_probe_emulated, @function\n"
	"self_probe_emulated:\n"
	"	push %rbp\n"
	"	pop %rbp\n"
	"	ret\n"
	".size self_probe_emulated, . - self_probe_emulated\n"
	".balign 16\n"
	".type self_probe_stepped, @function\n"
	"self_probe_stepped:\n"
	"	mov %rdi, %rax\n"
	"	ret\n"
	".size self_probe_stepped, . - self_probe_stepped\n"
	".balign 16\n"
	".type self_probe_trial, @function\n"
	"self_probe_trial:\n"
	"	push %rbp\n"
	"	pop %rbp\n"
	"	ret\n"
	".size self_probe_trial, . - self_probe_trial\n"
	".popsection\n");

static void (*const functions[SELF_PROBE_CNT])(const void *) = {
	[SELF_PROBE_EMULATED] = self_probe_emulated,
	[SELF_PROBE_STEPPED] = self_probe_stepped,
	[SELF_PROBE_TRIAL] = self_probe_trial,
};

int self_probe_point(enum self_probe which, struct uprobe_link_point *out)
{
	struct procmaps maps _cleanup_(procmaps_clear) = {};
	uint64_t pc = (uintptr_t)functions[which];
	const struct procmap *map;
	uint64_t off;
	int err;

	err = procmaps_read(getpid(), &maps);
	if (err)
		return err;
	map = procmaps_find(&maps, pc);
	if (!map)
		return -ENOENT;
	off = pc - map->start + map->off;
	*out = (struct uprobe_link_point){
		.off = off,
		.cookie = HB_COOKIE(HB_FN_FREE, 0, 0, HB_SLOT_SELF, off),
	};
	return 0;
}

double self_probe_time_ns(enum self_probe which)
{
	double best = 0;

	for (int round = 0; round < ROUNDS; round++) {
		double start = (double)clock_ns(CLOCK_MONOTONIC), took;

		for (int i = 0; i < CALLS_PER_ROUND; i++)
			functions[which](&best);
		took = ((double)clock_ns(CLOCK_MONOTONIC) - start) / CALLS_PER_ROUND;
		if (!round || took < best)
			best = took;
	}
	return best;
}

void self_probe_call(void)
{
	functions[SELF_PROBE_TRIAL](functions);
}

double self_probe_typical_ns(enum self_probe which, unsigned calls)
{
	double means[SELF_PROBE_BATCHES];

	for (int batch = 0; batch < SELF_PROBE_BATCHES; batch++) {
		double start = (double)clock_ns(CLOCK_THREAD_CPUTIME_ID);

		for (unsigned i = 0; i < calls; i++)
			functions[which](&start);
		means[batch] = ((double)clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / calls;
	}
	return median(means, SELF_PROBE_BATCHES);
}
