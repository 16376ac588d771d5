/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which functions of a mapped file get probes: the entry points of an allocator, found by name, one
 * per address, with who is nested in whom; and what a dynamic linker calls for debuggers.
 */
#ifndef ALLOCATORS_H
#define ALLOCATORS_H

#include "../bpf/abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct alloc_prefixes;
struct elf_file;

/* One entry point: one address, whatever the number of names. */
struct allocators_fn {
	enum hb_fn fn;
	const char *name; /* its best known name; static or living as long as the file */
	uint64_t vma;
	uint64_t off;
	uint64_t size_bytes; /* extent in the file; at least 1 */
	uint32_t flags;	     /* HB_COOKIE_DEFER_*, HB_COOKIE_AT_RETS, HB_COOKIE_NO_RESULT */
	const char *silent;  /* not NULL: not probed, because it... ("jumps to realloc"); static */
	bool prefixed;	     /* its name has a prefix */
	bool holds_calls;    /* calls made from inside are nested */
};

/* A return instruction of functions that may throw, where their results are taken. */
struct allocators_ret {
	uint64_t vma;
	uint64_t off;
};

/* Twice what the allocator with the most names (mimalloc) has, pieces included. */
#define ALLOCATORS_FN_MAX 192

/*
 * The functions of one file, sorted by off, at most ALLOCATORS_FN_MAX; `silent` ones included.
 * There may also be pieces of an entry point that lie elsewhere, silent ("is part of realloc").
 */
struct allocators_set {
	struct allocators_fn *fns; /* owned */
	size_t cnt;
	struct allocators_ret *rets; /* owned; sorted by off, none twice; of all with AT_RETS */
	size_t ret_cnt, ret_cap;
	bool is_allocator; /* has at least malloc and free, by one prefix; else only HB_FN_LINKER */
};

/*
 * Finds the malloc family and operator new and delete in `file`: a library, a program that brings
 * its own, or a static one that still has its symbols; their names plain or with a prefix, a known
 * one or one of `prefixes` (NULL: none); and the hook of the dynamic linker, whose private malloc
 * is none of it. 0 and *out, not empty (clear with allocators_clear()), -ENOENT (nothing of that in
 * there), -ENOMEM. *out untouched on failure.
 */
int allocators_find(const struct elf_file *file, const struct alloc_prefixes *prefixes,
		    struct allocators_set *out);

/* Frees and empties the set; a zeroed struct is empty. */
void allocators_clear(struct allocators_set *set);

#endif
