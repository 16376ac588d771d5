// SPDX-License-Identifier: GPL-2.0-or-later
/* In: who meets probes and is not recorded. Out: their processor time. */
#include "bystanders.h"

#include "clock.h"

#include <math.h>
#include <stdlib.h>

/* Out of memory: the item stays out (hh.tbl NULL) instead of ending the program. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct bystander {
	UT_hash_handle hh;
	pid_t tgid;
	double before_ns; /* processor time until it was added */
	double cpu_ns;	  /* since then, as of the last look */
};

void bystanders_clear(struct bystanders *bystanders)
{
	struct bystander *bystander, *next;

	HASH_ITER(hh, bystanders->all, bystander, next)
	{
		HASH_DEL(bystanders->all, bystander);
		free(bystander);
	}
	*bystanders = (struct bystanders){};
}

void bystanders_add(struct bystanders *bystanders, pid_t tgid, uint64_t used_ns)
{
	struct bystander *bystander;

	/* Its number is used again, and nobody told of its end. */
	bystanders_end(bystanders, tgid, 0);
	bystander = calloc(1, sizeof(*bystander));
	if (!bystander)
		return;
	bystander->tgid = tgid;
	bystander->before_ns = used_ns ? (double)used_ns : fmax((double)clock_process_ns(tgid), 0);
	HASH_ADD_INT(bystanders->all, tgid, bystander);
	if (!bystander->hh.tbl)
		free(bystander);
}

void bystanders_end(struct bystanders *bystanders, pid_t tgid, uint64_t used_ns)
{
	struct bystander *bystander;

	HASH_FIND_INT(bystanders->all, &tgid, bystander);
	if (!bystander)
		return;
	bystanders->ended_ns += fmax(bystander->cpu_ns,
				     (double)(used_ns ? (int64_t)used_ns : clock_process_ns(tgid)) -
					     bystander->before_ns);
	HASH_DEL(bystanders->all, bystander);
	free(bystander);
}

double bystanders_cpu_ns(struct bystanders *bystanders)
{
	double sum_ns = bystanders->ended_ns;

	for (struct bystander *it = bystanders->all; it; it = it->hh.next) {
		it->cpu_ns = fmax(it->cpu_ns, (double)clock_process_ns(it->tgid) - it->before_ns);
		sum_ns += it->cpu_ns;
	}
	return sum_ns;
}
