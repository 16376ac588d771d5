/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How it is decided whether an allocation is sampled: the same code in BPF, which draws, and in
 * user space, which divides by the probability and tests it. The law itself is in user/sampling.h.
 */
#ifndef HB_DRAW_H
#define HB_DRAW_H

#include "abi.h"

#ifndef __VMLINUX_H__
#include <stdbool.h>
#endif

/*
 * Size classes of the sampler: below 2^HB_CLASS_BITS a class per size, above it 2^HB_CLASS_BITS
 * classes per power of two. A class of 2^shift sizes begins at
 *   ((class mod 2^HB_CLASS_BITS) + 2^HB_CLASS_BITS) << shift.
 */
#define HB_CLASS_BITS 4
#define HB_CLASS_CNT  1024

/*
 * The position of the highest bit of `value` (1 or more), by counting the ones once it is spread
 * over all bits below: BPF has no such instruction, and a search has branches, each of which the
 * verifier would follow with all that comes after it.
 */
HB_INLINE __u32 hb_log2(__u64 value)
{
	for (__u32 spread = 1; spread < 64; spread *= 2)
		value |= value >> spread;
	return __builtin_popcountll(value) - 1;
}

/*
 * The number that a random 32-bit number must stay below for an allocation of `size` bytes to be
 * sampled, so that its probability is this / 2^32. `table` holds it for the first size of each
 * class; in between it is interpolated. BPF draws against it and user space divides by it, so the
 * estimate is unbiased whatever the resolution; how near it is to the law matters to those who
 * scale a text profile by the law itself.
 */
HB_INLINE __u64 hb_threshold(const volatile __u64 *table, __u64 size)
{
	__u32 steps = 1 << HB_CLASS_BITS, shift, class;
	__u64 low, high, rest;

	/* The masks change nothing (asserted below); they show the verifier the bound. */
	if (size < steps)
		return table[size & (HB_CLASS_CNT - 1)];
	shift = hb_log2(size) - HB_CLASS_BITS;
	class = ((shift + 1) << HB_CLASS_BITS) + ((__u32)(size >> shift) & (steps - 1));
	low = table[class & (HB_CLASS_CNT - 1)];
	high = table[(class + 1) & (HB_CLASS_CNT - 1)];
	rest = size & ((1ULL << shift) - 1);
	/* Keeps the product within 64 bits; 2^20 parts of a class are enough. */
	if (shift > 20) {
		rest >>= shift - 20;
		shift = 20;
	}
	return low + ((high - low) * rest >> shift);
}

/*
 * Is an allocation of `size` bytes sampled for which 0 <= `drawn` < 2^32 was drawn? Most are not,
 * and most of these are below a bound that needs no table: no threshold of a size s is above
 * (s + 1) * per_byte.
 */
HB_INLINE bool hb_takes(__u64 per_byte, const volatile __u64 *table, __u64 size, __u64 drawn)
{
	/* Else the product might not fit. */
	if (!(size >> 31) && drawn >= (size + 1) * per_byte)
		return false;
	return drawn < hb_threshold(table, size);
}

_Static_assert(HB_CLASS_CNT > ((64 - HB_CLASS_BITS + 1) << HB_CLASS_BITS),
	       "every 64-bit size has a class, and the last one a successor");
_Static_assert((HB_CLASS_CNT & (HB_CLASS_CNT - 1)) == 0, "the class index is masked in BPF");

#endif
