/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What probes cost. */
#ifndef HIT_COST_H
#define HIT_COST_H

#include "../bpf/abi.h"

#include <stdint.h>

/* Cost of one probe hit on this machine, in nanoseconds; 0: not known. */
struct hit_cost {
	double emulated_ns, stepped_ns, return_ns;
};

/* What probes took while the counters (by enum hb_stat) grew by as much; nanoseconds. */
static inline double hit_cost_of(const struct hit_cost *cost,
				 const uint64_t counters[static HB_COST_CNT],
				 const uint64_t before[static HB_COST_CNT])
{
	uint64_t n[HB_COST_CNT];

	for (int i = 0; i < HB_COST_CNT; i++)
		n[i] = counters[i] - before[i];
	return (double)n[HB_STAT_HITS] * cost->emulated_ns +
	       (double)n[HB_STAT_STEPPED_HITS] * cost->stepped_ns +
	       (double)n[HB_STAT_RETURNS] * cost->return_ns + (double)n[HB_STAT_SAMPLE_NS];
}

#endif
