// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: ranges of addresses, in any order. Out: which of them has an address.
 *
 * An array sorted by start and searched by bisection. As ranges may enclose others, each knows the
 * furthest end of all up to it, which says when looking further back is in vain.
 */
#include "ranges.h"

#include "vec.h"

#include <stdlib.h>

/* How many ranges to look back at; enough for real files, a bound for made-up ones. */
#define LOOK_BACK_MAX 4096

struct range {
	uint64_t low, high;
	uint64_t max_high; /* of the ranges up to here, inclusive */
	size_t item;
};

void ranges_clear(struct ranges *ranges)
{
	free(ranges->ranges);
	*ranges = (struct ranges){0};
}

int ranges_add(struct ranges *ranges, uint64_t low, uint64_t high, size_t item)
{
	int err = vec_reserve(&ranges->ranges, &ranges->cap, ranges->cnt + 1);

	if (err)
		return err;
	ranges->ranges[ranges->cnt++] = (struct range){.low = low, .high = high, .item = item};
	return 0;
}

/* What is to be found first stands last, since a search goes backwards. */
static int compare(const void *left, const void *right)
{
	const struct range *a = left, *b = right;

	if (a->low != b->low)
		return a->low < b->low ? -1 : 1;
	if (a->high != b->high)
		return a->high > b->high ? -1 : 1;
	return a->item > b->item ? -1 : a->item < b->item;
}

void ranges_finish(struct ranges *ranges)
{
	uint64_t max_high = 0;

	if (ranges->cnt)
		qsort(ranges->ranges, ranges->cnt, sizeof(*ranges->ranges), compare);
	for (size_t i = 0; i < ranges->cnt; i++) {
		if (ranges->ranges[i].high > max_high)
			max_high = ranges->ranges[i].high;
		ranges->ranges[i].max_high = max_high;
	}
}

bool ranges_find(const struct ranges *ranges, uint64_t vma, size_t *item)
{
	size_t low = 0, high = ranges->cnt;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->ranges[middle].low <= vma)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low; i-- > 0 && low - i <= LOOK_BACK_MAX;) {
		const struct range *range = &ranges->ranges[i];

		if (vma < range->high) {
			*item = range->item;
			return true;
		}
		if (range->max_high <= vma)
			return false;
	}
	return false;
}
