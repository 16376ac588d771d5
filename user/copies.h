/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work in pieces, each done in a copy of this process, several at a time. What a piece takes of
 * memory is gone when it is done, and what it breaks is not ours. The work finds the memory as it
 * was when its piece was begun, and needs no locks.
 */
#ifndef COPIES_H
#define COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* More at a time are of no use to the work that we have, and are noticed by others. */
#define COPIES_MAX 4

/* A longer answer is none: who writes that has gone astray. */
#define COPIES_ANSWER_MAX_BYTES (64UL << 20)

struct copies_work {
	/* In a copy: does piece `piece` and writes the answer to `out`; false: there is none. */
	bool (*work)(size_t piece, FILE *out, void *data);
	/* Here, whenever a piece is done, one at a time: its answer, borrowed. */
	void (*take)(size_t piece, const char *answer, size_t bytes, void *data);
	void *data;	  /* for both */
	size_t piece_cnt; /* pieces are numbered from 0 */
};

/* Processors that we may use, at most COPIES_MAX. */
unsigned copies_useful(void);

/*
 * Does the pieces in order, up to `at_once` (1 to COPIES_MAX) at the same time. Of a piece whose
 * copy crashed, left by itself or could not be made nothing is taken: the caller knows what it got.
 */
void copies_run(const struct copies_work *work, unsigned at_once);

#endif
