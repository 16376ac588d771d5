/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Many addresses at once, before anybody asks for them: where there is much debug information to
 * read, copies of this process read it, unit by unit and several at a time.
 */
#ifndef DEBUG_AHEAD_H
#define DEBUG_AHEAD_H

#include <stddef.h>
#include <stdint.h>

struct debug_frame;
struct debug_index;

/* An address to look up. */
struct debug_ahead_item {
	struct debug_index *index;
	uint64_t vma;
};

/* How much of it is done at a time. */
struct debug_ahead_share {
	unsigned at_once;     /* copies, 1 to COPIES_MAX */
	uint64_t piece_bytes; /* of .debug_info that a copy reads before it ends, about; not 0 */
};

/* As it pays: as many copies as processors, each for part of a second. */
struct debug_ahead_share debug_ahead_default(void);

/*
 * Calls take(item's number, frames, their number, data) with what debug_index_lookup() says of
 * items, in any order; the frames are borrowed. Not of all: of none if a single piece has all that
 * there is to read, which is done sooner without; not of those in no unit; and not where memory,
 * processes or a library failed. The indexes are as before, but for the steps that it took.
 */
void debug_ahead(const struct debug_ahead_item *items, size_t cnt, struct debug_ahead_share share,
		 void (*take)(size_t item, const struct debug_frame *frames, int cnt, void *data),
		 void *data);

#endif
