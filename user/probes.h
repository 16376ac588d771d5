/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a process to the places that get probes: every mapped file with an allocator, its entry
 * points, and the instruction chosen for each.
 */
#ifndef PROBES_H
#define PROBES_H

#include "allocators.h"
#include "probe_plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct alloc_hints;
struct elf_file;
struct loader;
struct procmap;
struct procmaps;
struct target;

/* What is probed in one file, in whichever process. */
struct probes_file {
	const struct elf_file *elf; /* borrowed from an elf cache */
	struct allocators_set set;  /* owned; empty: nothing to probe */
	struct probe_plan *plans;   /* owned; one per set.fns; zero where that is silent */
	int slot;		    /* in map `wrappers`; -1: not attached anywhere yet */
	bool everywhere;	    /* attached in all processes */
};

/* Every file that was looked at, once. */
struct probes {
	bool track_live;		 /* frees and results are followed */
	const struct alloc_hints *hints; /* borrowed */
	uint64_t met_hints;		 /* mask of those that are about a file so far */
	struct probes_file **files;	 /* owned, with what they hold */
	size_t cnt, cap;
	uint32_t slot_cnt;
};

/*
 * What is to be probed in the file of `map`, a mapping of `tgid` with its elf: planned at the first
 * call for that, known from then on. 0 and *out (lives as long as `probes`; an empty set: nothing),
 * or -errno, logged at the first call.
 */
int probes_of(struct probes *probes, pid_t tgid, const struct procmap *map,
	      struct probes_file **out);

/* Says why the last scan of `target` found no allocator and what to do; -errno. */
int probes_explain_none(const struct probes *probes, const struct target *target);

/* Are all hints about files that were mapped somewhere? 0 or -EINVAL after one logged line. */
int probes_check_hints(const struct probes *probes);

/* Frees and empties. */
void probes_clear(struct probes *probes);

/* True if the function gets a probe in this mode. */
bool probes_wanted(const struct allocators_fn *fn, bool track_live);

/* Tells mappings which slot their file has; one that is not attached yet gets its slot then. */
void probes_mark(const struct probes *probes, struct procmaps *maps);

/*
 * Attaches in `target` the files of its last scan that were not looked at before, and remembers
 * them there; *any: there were some. 0, -ESRCH (the process ended; not logged), or -errno, logged.
 */
int probes_attach(struct probes *probes, struct target *target, struct loader *loader, bool *any);

/* Attaches the files that `tgid` maps in all processes, those that are new. 0 or -errno, logged. */
int probes_attach_everywhere(struct probes *probes, pid_t tgid, const struct procmaps *maps,
			     struct loader *loader);

#endif
