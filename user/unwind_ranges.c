// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * First fit over a sorted list of what is in use. The lists are short (a run per process, a run
 * per file with odd rules), so nothing cleverer pays.
 */
#include "unwind_ranges.h"
#include "vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int unwind_ranges_take(struct unwind_ranges *ranges, uint32_t cnt, uint32_t *first)
{
	uint32_t start = 0;
	size_t i;

	if (!cnt) {
		*first = 0;
		return 0;
	}
	for (i = 0; i < ranges->busy_cnt && ranges->busy[i].first - start < cnt; i++)
		start = ranges->busy[i].first + ranges->busy[i].cnt;
	if (ranges->total - start < cnt)
		return -ENOSPC;
	if (vec_reserve(&ranges->busy, &ranges->busy_cap, ranges->busy_cnt + 1))
		return -ENOMEM;
	memmove(&ranges->busy[i + 1], &ranges->busy[i],
		(ranges->busy_cnt - i) * sizeof(*ranges->busy));
	ranges->busy[i] = (struct unwind_range){.first = start, .cnt = cnt};
	ranges->busy_cnt++;
	*first = start;
	return 0;
}

void unwind_ranges_give(struct unwind_ranges *ranges, uint32_t first, uint32_t cnt)
{
	for (size_t i = 0; cnt && i < ranges->busy_cnt; i++) {
		if (ranges->busy[i].first != first)
			continue;
		ranges->busy_cnt--;
		memmove(&ranges->busy[i], &ranges->busy[i + 1],
			(ranges->busy_cnt - i) * sizeof(*ranges->busy));
		return;
	}
}

void unwind_ranges_clear(struct unwind_ranges *ranges)
{
	free(ranges->busy);
	*ranges = (struct unwind_ranges){.total = ranges->total};
}
