/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One process that is profiled: its identity, its mappings over time, and what must be fetched
 * while it lives.
 */
#ifndef TARGET_H
#define TARGET_H

#include "procmaps.h"
#include "profile.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct elf_cache;
struct elf_file;
struct symbolizer;

/* Mappings of one image of the process; a new one begins at each exec. */
struct target_space {
	uint32_t epoch;
	struct procmaps maps; /* everything seen in this epoch, the newest where it overlaps */
};

/* A file of the process that was looked at for an allocator, once. */
struct target_file {
	const struct elf_file *elf; /* borrowed from the elf cache */
	bool has_allocator;	    /* then it is probed, also in images that come later */
};

/* The process. */
struct target {
	pid_t tgid;
	int pidfd;   /* owned; readable when the process has ended */
	int root_fd; /* owned; its root directory, or -1 */
	char *comm;  /* owned */
	bool exited;
	bool dirty;	/* an event said that the mappings changed */
	int unreadable; /* errno of the last mapped file that could not be opened, or 0 */
	int looks_left; /* times that the mappings are read again after an exec */
	uint32_t epoch; /* of the current image */
	struct target_space *spaces; /* owned, by epoch */
	size_t space_cnt, space_cap;
	struct target_file *files; /* owned, in the order they were met */
	size_t file_cnt, file_cap;
	struct profile_memory memory; /* as of the last target_read_memory() */
};

/*
 * Opens process `tgid`. 0 and *out (target_free()), or -errno after one logged line: no such
 * process, a thread, a kernel thread, a zombie, not permitted.
 */
int target_open(pid_t tgid, struct target **out);

/* True if the process has ended; its number may then belong to another one. */
bool target_is_gone(const struct target *target);

/* Frees; NULL is fine. */
void target_free(struct target *target);

/*
 * Reads the mappings and attaches the file of each executable one from the cache. Starts a new
 * space if the epoch is new. 0, -ESRCH (it ended), -errno; not logged.
 */
int target_scan(struct target *target, struct elf_cache *cache);

/* The mappings of the current epoch; empty before the first scan. */
const struct procmaps *target_maps(const struct target *target);

/* What was found in `elf` before; NULL if nobody looked. */
const struct target_file *target_file_find(const struct target *target, const struct elf_file *elf);

/* Remembers what was found in `elf`. 0 or -ENOMEM. */
int target_file_add(struct target *target, const struct elf_file *elf, bool has_allocator);

/* True if a file that is mapped now has a probed allocator. */
bool target_has_allocator(const struct target *target);

/* Opens the debug information of every mapped file while the process still lives. */
void target_prepare_symbols(const struct target *target, struct symbolizer *symbolizer);

/* Asks the kernel for the memory figures; leaves them as they are when the process has ended. */
void target_read_memory(struct target *target);

#endif
