// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: the sampling rate. Out: a fixed-point probability for the first size of each class, between
 * which BPF and we interpolate alike.
 */
#include "sampling.h"

#include <math.h>

#define ALWAYS (1ULL << 32)

/* The first size of `class`. */
static double class_first_bytes(uint32_t class)
{
	uint32_t steps = 1 << HB_CLASS_BITS;

	if (class < steps)
		return class;
	return ldexp(steps + (class & (steps - 1)), (int)(class >> HB_CLASS_BITS) - 1);
}

void sampling_fill(uint64_t rate_bytes, __u64 threshold[static HB_CLASS_CNT])
{
	for (uint32_t class = 0; class < HB_CLASS_CNT; class ++) {
		/* expm1() keeps the digits of p where s is a small part of R. */
		double p = -expm1(-class_first_bytes(class) / (double)rate_bytes);

		threshold[class] = (__u64)llround(p * ALWAYS);
		if (rate_bytes <= 1)
			threshold[class] = ALWAYS;
		else if (class > 0 && threshold[class] == 0)
			threshold[class] = 1;
	}
}

__u64 sampling_per_byte(uint64_t rate_bytes)
{
	/* p(s) <= s / R, a chord of it lies below, and rounding adds less than one. */
	return ALWAYS / rate_bytes + 2;
}

double sampling_p(const __u64 threshold[static HB_CLASS_CNT], uint64_t size_bytes)
{
	return (double)hb_threshold(threshold, size_bytes) / ALWAYS;
}
