/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which functions of a mapped file are entry points of an allocator: finds them by name, one per
 * address, and tells who is nested in whom.
 */
#ifndef ALLOCATORS_H
#define ALLOCATORS_H

#include "../bpf/abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;

/* One entry point: one address, whatever the number of names. */
struct allocators_fn {
	enum hb_fn fn;
	const char *name; /* its best known name; static or living as long as the file */
	uint64_t vma;
	uint64_t off;
	uint64_t size_bytes; /* extent in the file; at least 1 */
	uint32_t flags;	     /* HB_COOKIE_DEFER_* */
	const char *silent;  /* not NULL: not probed, because... ("jumps to realloc"); static */
};

/*
 * The entry points of one file, sorted by off, at most HB_WRAPPER_MAX; `silent` ones included.
 * Calls made from inside any of them are nested. That is why there may also be pieces of an entry
 * point that lie elsewhere, silent ("is part of realloc"); a silent one that only jumps calls none.
 */
struct allocators_set {
	struct allocators_fn *fns; /* owned */
	size_t cnt;
};

/*
 * Finds the malloc family in `file`: a library, a program that brings its own, or a static one
 * that still has its symbols. 0 with at least malloc and free in *out (clear with
 * allocators_clear()), -ENOENT (no allocator in there, or the dynamic linker's private one),
 * -ENOMEM. *out untouched on failure.
 */
int allocators_find(const struct elf_file *file, struct allocators_set *out);

/* Frees and empties the set; a zeroed struct is empty. */
void allocators_clear(struct allocators_set *set);

/*
 * Regular expression (RE2, anchored as pprof's drop_frames) of the function names that belong to
 * an allocator, operator new and delete included. Static.
 */
const char *allocators_drop_frames(void);

#endif
