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

struct elf_file;
struct loader;
struct procmap;
struct target;

/* One allocator in one process. */
struct probes_file {
	const struct procmap *map; /* its code; valid until the next target_scan() */
	const struct elf_file *elf;
	struct allocators_set set;
	struct probe_plan *plans; /* one per set.fns; zero where that is silent */
};

/* Slots of the map `wrappers`: slot n is of the file elfs[n], whoever maps it. Zeroed, empty. */
struct probes_slots {
	const struct elf_file **elfs; /* owned */
	size_t cnt, cap;
};

/* All of a process; owned arrays. */
struct probes {
	struct probes_file *files;
	size_t cnt;
};

/*
 * Plans the probes of the files in the last scan of `target` that were not looked at before, and
 * remembers them there. `track_live`: frees and results are followed; `prefixes`: as for
 * allocators_find(). 0 with *out, perhaps empty
 * (probes_clear()), or -errno, logged.
 */
int probes_plan(struct target *target, bool track_live, const struct alloc_prefixes *prefixes,
		struct probes *out);

/* Says why the last scan of `target` found no allocator and what to do; -errno. */
int probes_explain_none(const struct target *target);

/* Frees and empties; a zeroed struct is empty. */
void probes_clear(struct probes *probes);

/* True if the function gets a probe in this mode. */
bool probes_wanted(const struct allocators_fn *fn, bool track_live);

/*
 * Attaches all of them, with the slots of their files. 0, -ESRCH (the process ended; not logged),
 * or -errno after one logged line.
 */
int probes_attach(const struct probes *probes, const struct target *target, bool track_live,
		  struct loader *loader, struct probes_slots *slots);

#endif
