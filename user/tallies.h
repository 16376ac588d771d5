/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where BPF counts: maps, read and emptied in large pieces, and counters in its mapped .bss.
 */
#ifndef TALLIES_H
#define TALLIES_H

#include "../bpf/abi.h"
#include "../bpf/draw.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Counters (HB_COUNTERS_CNT of them), hints at what is in `live` (HB_LIVE_HINT_CNT), and
 * descriptors of maps, borrowed from the skeleton.
 */
struct tallies {
	struct hb_counters *counters;
	__u32 *live_hints;
	int sites, live, stacks;
	size_t stack_bytes; /* of a value of `stacks` */
};

/* Sums the counters over CPUs. */
void tallies_counters(const struct tallies *tallies, uint64_t counters[static HB_COUNTER_CNT]);

/* Sets them to zero. */
void tallies_zero_counters(const struct tallies *tallies);

/* Gets an entry of `sites` or of `stacks`; not 0 ends the walk. Both live until it returns. */
typedef int tallies_fn(const void *key, const void *value, void *data);

/* Calls fn for each site. 0, what fn returned, or -errno. Nobody may count meanwhile. */
int tallies_each_site(const struct tallies *tallies, tallies_fn *fn, void *data);

/* The same, and takes it out of the map. What fn refused is gone, too. */
int tallies_take_sites(const struct tallies *tallies, tallies_fn *fn, void *data);

/* Calls fn for each stack, an hb_stack as far as its `cnt` says. 0, what fn returned, or -errno. */
int tallies_each_stack(const struct tallies *tallies, tallies_fn *fn, void *data);

/* Takes the objects of images of `tgid` before `epoch` out of `live`, as far as that goes well. */
void tallies_forget_live(const struct tallies *tallies, uint32_t tgid, uint32_t epoch);

/*
 * Bytes in use, estimated from the sites with the threshold of each class (sampling.h); low if they
 * cannot all be read.
 */
double tallies_live_bytes(const struct tallies *tallies,
			  const __u64 threshold[static HB_CLASS_CNT]);

/* Empties `live`, between windows. 0 or -errno. */
int tallies_clear_live(const struct tallies *tallies);

#endif
