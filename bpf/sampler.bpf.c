// SPDX-License-Identifier: GPL-2.0-only
/*
 * In: the size of an allocation. Out: is it sampled.
 *
 * Stateless: each call draws one number and compares it with the probability of its size,
 * p(s) = 1 - exp(-s/R), the law of an exponential countdown in bytes. No counter is shared between
 * threads or lost with them; what user space divides by is the very number compared here.
 */
#include "rooms.bpf.h"

const volatile struct hb_config hb_config = {};

/*
 * For hb_threshold(): by class, not falling, 2^32 is always. Through the mapped .bss, as the rate
 * may change from one window to the next.
 */
__u64 hb_thresholds[HB_CLASS_CNT];

__hidden bool sampler_takes(__u64 size)
{
	return bpf_get_prandom_u32() < hb_threshold(hb_thresholds, size);
}
