/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One process that is profiled: its identity, its mappings over time, and what must be fetched
 * while it lives.
 */
#ifndef TARGET_H
#define TARGET_H

#include "../bpf/abi.h"
#include "mappings.h"
#include "procmaps.h"
#include "profile.h"
#include "whereabouts.h"
#include "work.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct elf_cache;
struct elf_file;
struct heap;
struct symbolizer;

/* A file of the process that was looked at for an allocator, once. */
struct target_file {
	const struct elf_file *elf; /* borrowed from the elf cache */
	bool has_allocator;	    /* then it is probed, also in images that come later */
};

/* Where a process is held by SIGSTOP until it may go on. */
enum target_hold {
	TARGET_HOLD_NONE,
	TARGET_HOLD_FORK,     /* at the beginning of a child */
	TARGET_HOLD_EXEC,     /* at the first instruction of an image */
	TARGET_HOLD_LINKER,   /* where its dynamic linker has mapped the libraries */
	TARGET_HOLD_MISTAKEN, /* by itself, as it saw its child held */
	TARGET_HOLD_CNT,
};

/* The process. */
struct target {
	pid_t tgid;
	int pidfd;  /* owned; readable when the process has ended, -1 once that was noted */
	char *comm; /* owned */
	struct whereabouts whereabouts;
	int64_t begun_ns; /* CLOCK_BOOTTIME, when the process or its image began */
	int64_t ended_ns; /* the same, when its end was noted; 0: it was not */
	bool exited;
	bool end_told;	       /* by the last event of all that it caused */
	bool borrows;	       /* it runs in its parent's memory until it executes (vfork) */
	bool joined;	       /* nobody named it: what is wrong with it is no failure */
	bool in_turn;	       /* it is one of those that are recorded now (--share) */
	bool dropped;	       /* its probes are forgotten */
	bool dirty;	       /* an event said that the mappings changed */
	bool renamed;	       /* it executed another program: its name is to be read anew */
	bool ended_images;     /* it executed another program since the last look */
	bool unlinked;	       /* its probes were for a thread that is gone */
	enum target_hold hold; /* news of it, to be dealt with */
	bool hold_runs;	       /* there was no stop */
	int64_t looked_ns;     /* monotonic; when the mappings were read last */
	int unreadable;	       /* errno of the last mapped file that could not be opened, or 0 */
	uint32_t first_epoch;  /* of the image that it had when it joined */
	uint32_t epoch;	       /* of the current image, as of the last event */
	int looks_left;	       /* times that the mappings are read again after an exec */
	struct procmaps maps;  /* owned; the last snapshot */
	struct mappings_state state; /* of the process at the last snapshot */
	struct mappings mappings;    /* owned; all that were ever seen */
	struct target_file *files;   /* owned, in the order they were met */
	size_t file_cnt, file_cap;
	double cpu_ns;	       /* as of the last target_cpu_ns() */
	int64_t opened_ns;     /* of CLOCK_MONOTONIC: when target_open() was called */
	double opened_cpu_ns;  /* what it had used when it was opened, or met a probe */
	struct work_load load; /* what it and its probes used, as of the last look of windows */
	uint64_t costs[HB_COST_CNT];  /* what probes cost it until then, by enum hb_stat */
	struct work work;	      /* in the current period of the budget */
	bool gone;		      /* it had ended when the last window began */
	bool was_there;		      /* it was in the window of this period, */
	uint32_t window_epoch;	      /* with this image */
	struct profile_memory memory; /* as of the last target_read_memory() */
	struct heap *heap;	      /* owned; what was counted in windows that are over */
	struct target *older;	      /* borrowed; had the same number before, or NULL */
};

/*
 * Opens process `tgid`. 0 and *out (target_free()), or not logged -ESRCH (no such process), -EINVAL
 * (a thread), -ENXIO (a kernel thread), -ECHILD (a zombie), -EACCES or -EPERM, or another -errno.
 */
int target_open(pid_t tgid, struct target **out);

/* Logs what target_open() failed for; -errno. */
int target_explain(pid_t tgid, int err);

/*
 * What is known of a process that ended before it could be opened: its number and its name, which
 * is copied. Free with target_free(); NULL if out of memory.
 */
struct target *target_of_ended(pid_t tgid, const char *comm);

/* Takes a copy of `comm` for its name. 0 or -ENOMEM. */
int target_name(struct target *target, const char *comm);

/* Its name and its whereabouts anew: it executed another program. 0 or -errno. */
int target_renew(struct target *target);

/*
 * Its whereabouts anew, which change without notice; of one that has ended, they stay. 0 or -errno
 * of a shortage: they stay, too.
 */
int target_locate(struct target *target);

/* Notes that it executed another program, which begins now. */
void target_begin(struct target *target);

/* Notes that it has ended. */
void target_end(struct target *target);

/*
 * Does it stand still, by a signal or for a tracer? True for one that is gone, or cannot be looked
 * at.
 */
bool target_is_stopped(pid_t tgid);

/* True if the process has ended; its number may then belong to another one. */
bool target_is_gone(const struct target *target);

/* Frees; NULL is fine. */
void target_free(struct target *target);

/*
 * Reads the mappings and attaches the file of each executable one from the cache. `state` is the
 * process's from before the call. 0, -ESRCH (it ended), -errno; not logged.
 */
int target_scan(struct target *target, struct elf_cache *cache, struct mappings_state state);

/*
 * Numbers the mappings of the last scan. `state` is the process's after it: what the scan shows is
 * proven if it did not change. 0 or -ENOMEM.
 */
int target_number(struct target *target, struct mappings_state state);

/* What was found in `elf` before; NULL if nobody looked. */
const struct target_file *target_file_find(const struct target *target, const struct elf_file *elf);

/* Remembers what was found in `elf`. 0 or -ENOMEM. */
int target_file_add(struct target *target, const struct elf_file *elf, bool has_allocator);

/* Forgets all of them: every file is looked at again. */
void target_forget_files(struct target *target);

/* True if a file that is mapped now has a probed allocator. */
bool target_has_allocator(const struct target *target);

/* Opens the debug information of every mapped file while the process still lives. */
void target_prepare_symbols(const struct target *target, struct symbolizer *symbolizer);

/* Processor time of all its threads since opened_cpu_ns, until now or its end; never falls. */
double target_cpu_ns(struct target *target);

/* It has used `used_ns` of processor time in all, until now or its end; 0: unknown. */
void target_note_cpu(struct target *target, uint64_t used_ns);

/*
 * Asks the kernel for the memory figures, `elapsed_ns` into the recording; leaves them as they are
 * when the process has ended. `exact`: those of smaps_rollup, for which the kernel walks the page
 * tables; else what it keeps count of anyway.
 */
void target_read_memory(struct target *target, int64_t elapsed_ns, bool exact);

#endif
