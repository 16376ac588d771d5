// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: estimates by period. Out: their replicates. Must not know what is estimated, or when windows
 * are.
 */
#include "spread.h"

#include "xorshift.h"

#include <math.h>
#include <stddef.h>

/* A period is compared with one that is at most so many times longer or shorter. */
#define UNLIKE 2.5

#define SEED 0x9e3779b97f4a7c15ULL

/* Adds the part `value` of this period's difference to each replicate. */
static void add_signed(const struct spread_periods *periods, struct spread *spread, double value)
{
	value *= periods->weight;
	for (int i = 0; i < SPREAD_CNT; i++)
		spread->replicate[i] += (float)(periods->signs >> i & 1 ? -value : value);
}

/*
 * Signs of the next difference: a row of the Hadamard matrix (Sylvester's: the parity of row and
 * column) other than the first, all of it plus or minus at random. Two rows differ in half of the
 * columns, and what comes again after all rows is as often added as taken away.
 */
static uint32_t next_signs(struct spread_periods *periods)
{
	unsigned row = 1 + periods->number++ % (SPREAD_CNT - 1);
	uint32_t signs = 0;

	if (!periods->random)
		periods->random = SEED;
	for (unsigned column = 0; column < SPREAD_CNT; column++)
		signs |= (uint32_t)__builtin_parity(row & column) << column;
	return xorshift_next(&periods->random) & 1 ? ~signs : signs;
}

void spread_period(struct spread_periods *periods, double coverage, double length_ns)
{
	bool is_partial = coverage < 1 && length_ns > 0;
	/* What the last period would have been, had it been as long. */
	double longer = periods->length_ns > 0 ? length_ns / periods->length_ns : 0;
	struct spread *spread, *next;

	periods->is_compared =
		is_partial && periods->is_partial && longer <= UNLIKE && longer >= 1 / UNLIKE;
	periods->weight = sqrt(fmax(1 - coverage, 0));
	if (periods->is_compared)
		periods->signs = next_signs(periods);
	for (spread = periods->added; spread; spread = next) {
		next = spread->next;
		if (periods->is_compared)
			add_signed(periods, spread, -longer * spread->last);
		spread->last = 0;
		spread->next = NULL;
	}
	periods->added = NULL;
	periods->is_partial = is_partial;
	periods->length_ns = length_ns;
	periods->partial_ns += is_partial ? length_ns : 0;
	periods->compared_ns += periods->is_compared ? length_ns : 0;
}

void spread_add(struct spread_periods *periods, struct spread *spread, double estimate)
{
	if (!periods->is_partial || estimate <= 0)
		return;
	if (periods->is_compared)
		add_signed(periods, spread, estimate);
	if (spread->last <= 0) {
		spread->next = periods->added;
		periods->added = spread;
	}
	spread->last += estimate;
}

double spread_factor(const struct spread_periods *periods)
{
	if (periods->compared_ns <= 0)
		return 0;
	return sqrt(periods->partial_ns / periods->compared_ns / 2);
}
