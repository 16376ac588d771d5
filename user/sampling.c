// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: the sampling rate. Out: one fixed-point probability per size class, for BPF to draw against
 * and for estimates to be divided by. A class has the probability of its middle; that is a matter
 * of how many samples a size gets, not of the estimate, which uses the entry that was drawn with.
 */
#include "sampling.h"

#include <math.h>

#define ALWAYS (1ULL << 32)

/* The middle of the sizes in `class`, the inverse of hb_size_class(). */
static double class_middle_bytes(uint32_t class)
{
	uint32_t steps = 1 << HB_CLASS_BITS;
	uint32_t mantissa, shift;

	if (class < steps)
		return class;
	shift = (class >> HB_CLASS_BITS) - 1;
	mantissa = steps + (class & (steps - 1));
	return ldexp(mantissa, (int)shift) + (ldexp(1, (int)shift) - 1) / 2;
}

void sampling_fill(uint64_t rate_bytes, uint64_t threshold[static HB_CLASS_CNT])
{
	for (uint32_t class = 0; class < HB_CLASS_CNT; class ++) {
		/* expm1() keeps the digits of p where s is a small part of R. */
		double p = -expm1(-class_middle_bytes(class) / (double)rate_bytes);

		threshold[class] = (uint64_t)llround(p * ALWAYS);
		if (rate_bytes <= 1)
			threshold[class] = ALWAYS;
		else if (class > 0 && threshold[class] == 0)
			threshold[class] = 1;
	}
}

double sampling_p(const uint64_t threshold[static HB_CLASS_CNT], uint64_t size_bytes)
{
	return (double)threshold[hb_size_class(size_bytes)] / ALWAYS;
}
