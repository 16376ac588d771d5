/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Gives out runs of numbers from 0..total-1: entries of an ARRAY map that several owners share.
 */
#ifndef UNWIND_RANGES_H
#define UNWIND_RANGES_H

#include <stddef.h>
#include <stdint.h>

/* One run in use. */
struct unwind_range {
	uint32_t first;
	uint32_t cnt;
};

/* Zeroed but for `total`, it is all free. */
struct unwind_ranges {
	struct unwind_range *busy; /* owned; sorted by first */
	size_t busy_cnt, busy_cap;
	uint32_t total;
};

/* Takes `cnt` numbers in a row; 0 of them always succeeds. 0 and *first, -ENOSPC, -ENOMEM. */
int unwind_ranges_take(struct unwind_ranges *ranges, uint32_t cnt, uint32_t *first);

/* Gives back the run that begins at `first`, if any does. */
void unwind_ranges_give(struct unwind_ranges *ranges, uint32_t first, uint32_t cnt);

/* Frees the bookkeeping; everything is free again. */
void unwind_ranges_clear(struct unwind_ranges *ranges);

#endif
