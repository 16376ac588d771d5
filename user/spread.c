// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: estimates by period. Out: their replicates. Must not know what is estimated, or when windows are.
 */
#include "spread.h"

#include "xorshift.h"

#include <math.h>
#include <stddef.h>

/* Lengths of two periods that are compared differ by at most this part. */
#define ALIKE 0.1

#define SEED 0x9e3779b97f4a7c15ULL

/* Adds `value` to each replicate, by the period's signs. */
static void add_signed(const struct spread_periods *periods, struct spread *spread, double value)
{
	for (int i = 0; i < SPREAD_CNT; i++)
		spread->replicate[i] += (float)(periods->signs >> i & 1 ? -value : value);
}

void spread_period(struct spread_periods *periods, double length_ns, bool is_partial)
{
	bool are_alike = fabs(length_ns - periods->length_ns) <= ALIKE * periods->length_ns;
	struct spread *spread, *next;

	if (!periods->random)
		periods->random = SEED;
	periods->signs = (uint32_t)xorshift_next(&periods->random);
	periods->follows = is_partial && periods->is_partial && are_alike;
	for (spread = periods->added; spread; spread = next) {
		next = spread->next;
		if (periods->follows)
			add_signed(periods, spread, -spread->last);
		spread->last = 0;
		spread->next = NULL;
	}
	periods->added = NULL;
	periods->is_partial = is_partial;
	periods->length_ns = length_ns;
	periods->cnt += is_partial;
	periods->difference_cnt += periods->follows;
}

void spread_add(struct spread_periods *periods, struct spread *spread, double estimate)
{
	if (!periods->is_partial || estimate <= 0)
		return;
	if (periods->follows)
		add_signed(periods, spread, estimate);
	if (spread->last <= 0) {
		spread->next = periods->added;
		periods->added = spread;
	}
	spread->last += estimate;
}

double spread_factor(const struct spread_periods *periods)
{
	if (!periods->difference_cnt)
		return 0;
	return sqrt((double)periods->cnt / periods->difference_cnt / 2);
}
