/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which functions of a mapped file get probes: the entry points of an allocator, found by name, one
 * per address, with who is nested in whom; and what a dynamic linker calls for debuggers.
 */
#ifndef ALLOCATORS_H
#define ALLOCATORS_H

#include "../bpf/abi.h"
#include "known_regs.h"

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
	uint64_t size_bytes;	    /* extent in the file; at least 1 */
	uint32_t flags;		    /* HB_COOKIE_DEFER_*, _AT_RETS, _NO_RESULT, _FORWARDS */
	struct known_value forward; /* with _FORWARDS: as in struct tail_calls_result */
	const char *silent; /* not NULL: not probed, because it... ("jumps to realloc"); static */
	bool prefixed;	    /* its name has a prefix */
	bool asked_for;	    /* one of allocators_request.points */
	bool holds_calls;   /* calls made from inside are nested */
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
	bool is_allocator; /* something in it is to be probed beside HB_FN_LINKER */
};

/* A function that is one whatever its name. */
struct allocators_point {
	enum hb_fn fn;
	const char *name;    /* lives longer than the file */
	uint64_t vma;	     /* in an executable segment */
	uint64_t size_bytes; /* 0: up to the next function */
};

/* When names say something. */
enum allocators_names {
	ALLOCATORS_NAMES_WHOLE, /* if there are malloc and free, with the same prefix */
	ALLOCATORS_NAMES_ANY,	/* always */
	ALLOCATORS_NAMES_NONE,	/* never */
	ALLOCATORS_NAMES_CNT,
};

/* What is known of a file beforehand. Zeroed: nothing. */
struct allocators_request {
	const struct alloc_prefixes *prefixes; /* NULL: none but the known ones */
	enum allocators_names names;	       /* the dynamic linker's hook counts anyway */
	const struct allocators_point *points; /* they win over names at their addresses */
	size_t point_cnt;
};

/*
 * Finds the malloc family and operator new and delete in `file`: a library, a program that brings
 * its own, or a static one that still has its symbols; their names plain or with a prefix, a known
 * one or one of the request's; what the request adds; and the hook of the dynamic linker, whose
 * private malloc is none of it unless names count always. 0 and *out, not empty (clear with
 * allocators_clear()), -ENOENT (nothing of that in there), -ENOMEM. *out untouched on failure.
 */
int allocators_find(const struct elf_file *file, const struct allocators_request *request,
		    struct allocators_set *out);

/* True if the set has a function that frees (`frees`), or one that allocates. */
bool allocators_has(const struct allocators_set *set, bool frees);

/* Frees and empties the set; a zeroed struct is empty. */
void allocators_clear(struct allocators_set *set);

#endif
