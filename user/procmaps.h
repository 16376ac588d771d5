/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is mapped where in a process, from /proc/PID/maps, and the files behind it, opened so
 * that they are the files the process runs: through map_files, or through the process's root with
 * device and inode compared. Never by a bare path.
 */
#ifndef PROCMAPS_H
#define PROCMAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct elf_file;

/* One line of the maps file. */
struct procmap {
	uint64_t start; /* address of the first byte */
	uint64_t end;	/* exclusive */
	uint64_t off;	/* file offset of `start`; 0 for anonymous memory */
	uint64_t inode; /* 0: no file (anonymous, [heap], [vdso]) */
	uint32_t dev_major, dev_minor;
	bool exec;	/* x permission */
	bool deleted;	/* the file has no name any more; the suffix is not part of `path` */
	char *path;	/* owned; unescaped; "" for anonymous memory, "[vdso]" and the like as is */
	bool remapped;	/* copied to memory without a file; set by remapped_restore() */
	bool permanent; /* never unmapped in this image; set by needed_mark() */
	uint16_t number;      /* in struct mappings; 0 until mappings_note() gives it one */
	uint8_t probed;	      /* its file's slot of struct probes_slots + 1; 0: none, or not told */
	struct elf_file *elf; /* borrowed from an elf cache; NULL until someone attaches it */
};

/* A snapshot, sorted by start, not overlapping. */
struct procmaps {
	struct procmap *maps; /* owned */
	size_t cnt;
};

/*
 * Reads the mappings of `tgid` into *out (replaced, not merged; free with procmaps_clear()). A
 * file whose very name ends in " (deleted)" is told from a deleted one by looking at its inode.
 * 0, -ESRCH (gone, zombie, kernel thread: no mappings), -EACCES/-EPERM, -ENOMEM, -EBADMSG.
 * *out is untouched on failure.
 */
int procmaps_read(pid_t tgid, struct procmaps *out);

/*
 * Parses maps text of `len` bytes (need not be terminated). Takes a " (deleted)" suffix of a
 * file's path at its word. 0 and *out, -ESRCH (no line), -EBADMSG (not maps text), -ENOMEM;
 * *out is untouched on failure.
 */
int procmaps_parse(const char *text, size_t len, struct procmaps *out);

/* Frees what the snapshot owns and empties it; a zeroed struct is empty. */
void procmaps_clear(struct procmaps *maps);

/*
 * True for memory that somebody writes code into at run time: no file, or one that exists only in
 * memory. The kernel's own pages are not that.
 */
bool procmap_is_made_at_run_time(const struct procmap *map);

/* The mapping that holds `pc`, or NULL; valid as long as the snapshot. */
const struct procmap *procmaps_find(const struct procmaps *maps, uint64_t pc);

/*
 * Opens the file behind `map` of the running process `tgid` read-only: map_files first, else
 * /proc/TGID/root/PATH when its device and inode are the mapped ones. Only regular files are
 * opened; a mapped device or pipe is not even touched. Returns a descriptor that the caller
 * closes, -ENOENT (no regular file behind it, or only another file of that name), -EACCES, -EPERM
 * (no right to look), -errno of open(2).
 */
int procmaps_open(pid_t tgid, const struct procmap *map);

/*
 * True if the file behind `map` of the running process `tgid` is the one at `path`, absolute, as
 * the process would resolve it; by device and inode.
 */
bool procmaps_is_at(pid_t tgid, const struct procmap *map, const char *path);

#endif
