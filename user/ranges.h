/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ranges of addresses that may overlap, each with a number of the caller's, searched by address.
 */
#ifndef RANGES_H
#define RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range;

/* A set of ranges; a zeroed struct is empty. */
struct ranges {
	struct range *ranges; /* owned */
	size_t cnt, cap;
};

/* Frees and empties the set. */
void ranges_clear(struct ranges *ranges);

/* Adds [low, high) with `item`; 0 or -ENOMEM. Searches need ranges_finish() first. */
int ranges_add(struct ranges *ranges, uint64_t low, uint64_t high, size_t item);

/* Sorts what was added. */
void ranges_finish(struct ranges *ranges);

/*
 * Puts the item of the range that has `vma` in *item; of several the last to start, then the
 * shortest, then the lowest item. False if none has it, *item untouched.
 */
bool ranges_find(const struct ranges *ranges, uint64_t vma, size_t *item);

#endif
