/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the kernel's raw counts to a profile: collects sites and stacks of one process, scales
 * each (stack, size) by the table it was drawn with, and names every address.
 */
#ifndef HEAP_H
#define HEAP_H

#include "../bpf/draw.h"
#include "profile.h"

struct heap;
struct mappings;
struct perf_map_owner;

/* What heap needs to know besides the counts; borrowed during heap_profile(). */
struct heap_source {
	pid_t tgid;
	const char *comm;
	uint64_t rate_bytes;
	int64_t time_ns, duration_ns;
	bool tracks_inuse;
	uint32_t epoch; /* the current image; in use of older ones ended with their exec */
	const struct perf_map_owner *owner; /* whose map names its JIT code; NULL: none does */
	const uint64_t *counters;	    /* HB_COUNTER_CNT sums over CPUs of map `counters` */
	struct profile_memory memory;
	struct profile_coverage coverage;
};

/* NULL if out of memory. */
struct heap *heap_new(void);

/* Frees the collection; NULL is fine. */
void heap_free(struct heap *heap);

/* A part of the recording, with one window in it, of one process. */
struct heap_period {
	double coverage;  /* share of its work that was seen, 0..1 */
	double length_ns; /* of any length if all of it was */
	uint32_t epoch;	  /* the image that the process had at its end */
	double window_ns; /* how long the window was, above 0 */
	bool was_there;	  /* in the window, though it may have allocated nothing */
	bool was_look;	  /* so short that what is in use at its end means nothing */
};

/*
 * The period ended: what is added from now on was counted in it. Before the first one nothing is.
 * What is in use is the mean of what is in use at the ends of the windows that it was in, each by
 * its length.
 */
void heap_period(struct heap *heap, const struct heap_period *period);

/*
 * Adds one entry of map `sites` at the end of a window, when what is alive is in use. Objects of a
 * size were seen with the probability p(size) * coverage, those in use with p(size); p is that of
 * `threshold`, as given to BPF at that time. Equal keys add up, each entry by its own scale. What
 * was counted in a period with a coverage of 0 is dropped. 0 or -ENOMEM.
 */
int heap_add_site(struct heap *heap, const struct hb_site_key *key, const struct hb_site *site,
		  const __u64 threshold[static HB_CLASS_CNT]);

/* What was counted in all, estimated as in the profile; bytes and objects. */
struct heap_totals {
	uint64_t samples; /* sampled allocations */
	double allocs, alloc_bytes;
	double inuse, inuse_bytes; /* of the image `epoch` that was asked for */
};

/* Sums up the sites. */
struct heap_totals heap_totals(const struct heap *heap, uint32_t epoch);

/* True if what was scaled from windows says how far it may be off for that: spread.h. */
bool heap_knows_spread(const struct heap *heap);

/* Adds one entry of map `stacks`; 0 or -ENOMEM. Copied. */
int heap_add_stack(struct heap *heap, uint64_t id, const struct hb_stack *stack);

/*
 * Makes the profile of what was added; `mappings` are those of the process. A site without a stack
 * (id 0 or unknown) is kept under one location named "[no stack]"; a cut stack gets a root location
 * "[short name of the loss]". 0 and *out (profile_clear()), or -ENOMEM, -EMFILE, -ENFILE.
 */
int heap_profile(const struct heap *heap, const struct heap_source *source,
		 const struct mappings *mappings, struct symbolizer *symbolizer,
		 struct profile *out);

#endif
