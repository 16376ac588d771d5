/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of sampling probabilities that BPF draws against and that estimates are scaled by.
 *
 *   p(s) = 1 - exp(-s / R)      s: size in bytes, R: rate in bytes
 *
 * is the chance that an exponential countdown of mean R, as in Go's and tcmalloc's profilers,
 * ends within s bytes. R = 1 means every allocation, p = 1, zero sizes too. Each size class has one
 * fixed-point entry t = p * 2^32 for the middle of the class, rounded, at least 1 (0 for size 0
 * unless R = 1); both sides use t / 2^32 as p. Within a class, p differs from the formula by less
 * than one part in 2^(HB_CLASS_BITS + 1).
 */
#ifndef SAMPLING_H
#define SAMPLING_H

#include "../bpf/abi.h"

#include <stdint.h>

/* Fills the table for `rate_bytes` >= 1. */
void sampling_fill(uint64_t rate_bytes, uint64_t threshold[static HB_CLASS_CNT]);

/*
 * The probability with which BPF samples an allocation of `size_bytes`, by the table it was given;
 * 0 only for size 0 at a rate above 1.
 */
double sampling_p(const uint64_t threshold[static HB_CLASS_CNT], uint64_t size_bytes);

#endif
