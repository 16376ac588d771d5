/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every mapping of a file's code that a process was seen to have, by number: frames of stacks carry
 * the number, so what is mapped at the same place later never lends them its name.
 */
#ifndef MAPPINGS_H
#define MAPPINGS_H

#include "procmaps.h"

/* A state of the process: both as in struct hb_proc. Ascends, epoch first. */
struct mappings_state {
	uint32_t epoch;
	uint32_t libraries;
};

/* Snapshots in a row, by index, that showed a mapping. */
struct mappings_span {
	uint32_t first, last;
};

/* One mapping: the same file, path and distance between address and offset. */
struct mapping {
	struct procmap map;	     /* start..end holds all of it that was ever seen; path owned */
	struct mappings_span *spans; /* owned; ascending */
	size_t span_cnt, span_cap;
};

/* All of a process; zeroed, it is empty. */
struct mappings {
	struct mapping *all; /* owned; number n is all[n - 1] */
	size_t cnt, cap;
	struct mappings_state *states; /* owned; of each snapshot, only where it differs */
	size_t state_cnt, state_cap;
	bool full; /* numbers ran out: the rest has none */
};

/*
 * Takes note of a snapshot: gives each executable mapping with a file in it its number. `state` is
 * the state from before to after it was read, NULL if that changed meanwhile; states must ascend.
 * 0 or -ENOMEM.
 */
int mappings_note(struct mappings *mappings, const struct mappings_state *state,
		  struct procmaps *now);

/*
 * A forked process has the mappings of its parent, under the same numbers: makes `child`, which is
 * empty, know those of `parent`. 0 or -ENOMEM.
 */
int mappings_inherit(struct mappings *child, const struct mappings *parent);

/* The mapping of a number, or NULL: HB_MAPPING_NONE, HB_MAPPING_UNKNOWN or garbage. */
const struct procmap *mappings_get(const struct mappings *mappings, uint32_t number);

/*
 * The only mapping of a file at `pc` that a snapshot in exactly this state showed, or NULL: then
 * nobody can tell what was there.
 */
const struct procmap *mappings_find(const struct mappings *mappings, struct mappings_state state,
				    uint64_t pc);

/* Frees and empties. */
void mappings_clear(struct mappings *mappings);

#endif
