// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: samples with what was estimated of them. Out: their values, whole numbers. Order matters,
 * since what one loses the next one gets.
 */
#include "rounding.h"

#include <math.h>

/* The whole part of *carry + value, never past the end of the type; *carry keeps the rest. */
static int64_t take_whole(double value, double *carry)
{
	double sum = value + *carry;

	if (sum >= 0x1p63)
		return INT64_MAX;
	*carry = sum - floor(sum);
	return (int64_t)floor(sum);
}

/*
 * A tally of objects of `size_bytes`, as objects and bytes; exact where it is what was seen.
 * The fraction that an estimate loses as an integer goes on to the next sample: 1 / p is 1.6 where
 * the size is the rate, and a site with a thousand such sizes would lose a third of its objects.
 */
static void round_tally(const struct profile_tally *tally, uint64_t size_bytes,
			double carry[static 2], int64_t values[static 2])
{
	if (tally->estimate != (double)tally->raw) {
		values[0] = take_whole(tally->estimate, &carry[0]);
		values[1] = take_whole(tally->estimate * (double)size_bytes, &carry[1]);
		return;
	}
	values[0] = tally->raw > INT64_MAX ? INT64_MAX : (int64_t)tally->raw;
	if (__builtin_mul_overflow(tally->raw, size_bytes, &values[1]))
		values[1] = INT64_MAX;
}

void rounding_of_samples(struct profile *profile)
{
	double alloc_carry[2] = {0}, inuse_carry[2] = {0};

	for (size_t i = 0; i < profile->sample_cnt; i++) {
		struct profile_sample *sample = &profile->samples[i];
		int64_t *allocs = &sample->values[PROFILE_ALLOC_OBJECTS];
		int64_t *inuse = &sample->values[PROFILE_INUSE_OBJECTS];

		round_tally(&sample->allocs, sample->size_bytes, alloc_carry, allocs);
		if (!sample->inuse.raw)
			continue;
		round_tally(&sample->inuse, sample->size_bytes, inuse_carry, inuse);
		/* Two carries differ by less than one; nothing is in use that was not allocated. */
		for (int n = 0; n < 2; n++)
			if (inuse[n] > allocs[n])
				inuse[n] = allocs[n];
	}
}
