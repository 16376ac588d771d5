// SPDX-License-Identifier: GPL-2.0-only
/*
 * In: the size of an allocation. Out: is it sampled.
 *
 * Stateless: each call draws one number and compares it with the probability of its size,
 * p(s) = 1 - exp(-s/R), the law of an exponential countdown in bytes. No counter is shared between
 * threads or lost with them; what user space divides by is the very number compared here.
 *
 * The draw itself is sampler_takes() in rooms.bpf.h: a call less for each allocation. Here is what
 * user space writes.
 */
#include "rooms.bpf.h"

const volatile struct hb_config hb_config = {};

__u64 hb_thresholds[HB_CLASS_CNT];
