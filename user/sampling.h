/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of sampling probabilities that BPF draws against and that estimates are scaled by.
 *
 *   p(s) = 1 - exp(-s / R)      s: size in bytes, R: rate in bytes
 *
 * is the chance that an exponential countdown of mean R, as in Go's and tcmalloc's profilers,
 * ends within s bytes. R = 1 means every allocation, p = 1, zero sizes too. The table holds
 * t = p * 2^32, rounded, at least 1 (0 for size 0 unless R = 1), for the first size of each class;
 * hb_threshold() interpolates, and both sides use its result / 2^32 as p. The second derivative of
 * the law bounds the difference: less than 1 part in 2^(2 * HB_CLASS_BITS + 1) while s < R.
 */
#ifndef SAMPLING_H
#define SAMPLING_H

#include "../bpf/draw.h"

#include <stdint.h>

/* Fills the table for `rate_bytes` >= 1. */
void sampling_fill(uint64_t rate_bytes, __u64 threshold[static HB_CLASS_CNT]);

/* For hb_takes(), by the same rate as the table. */
__u64 sampling_per_byte(uint64_t rate_bytes);

/*
 * The probability with which BPF samples an allocation of `size_bytes`, by the table it was given;
 * 0 only for size 0 at a rate above 1.
 */
double sampling_p(const __u64 threshold[static HB_CLASS_CNT], uint64_t size_bytes);

#endif
