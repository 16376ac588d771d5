/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the functions of allocators are called.
 */
#ifndef ALLOC_NAMES_H
#define ALLOC_NAMES_H

#include "../bpf/abi.h"

#include <stdbool.h>
#include <stddef.h>

#define ALLOC_PREFIX_MAX 64

/* What a name says. */
struct alloc_name {
	enum hb_fn fn;
	/*
	 * Of two names at one address the lower one gives the meaning; equal for a name and its
	 * fallback, which counts only where the name is not defined.
	 */
	unsigned rank;
	bool fallback;
	unsigned prefix;	 /* number of its prefix, below ALLOC_PREFIX_MAX; 0: none */
	bool asked_for;		 /* the prefix is one of alloc_prefixes */
	bool is_malloc, is_free; /* what makes a file an allocator, if one prefix has both */
};

/* Prefixes beside those that are known (je_ and so on). Zeroed: none. */
struct alloc_prefixes {
	char **names; /* owned, and each of them */
	size_t cnt, cap;
};

/*
 * Adds those in `text`, a list with commas. 0, -EINVAL (one that is empty or has characters that no
 * C name has), -E2BIG (over ALLOC_PREFIX_MAX), -ENOMEM; what was added before such a one stays.
 */
int alloc_prefixes_add(struct alloc_prefixes *prefixes, const char *text);

/* Frees and empties. */
void alloc_prefixes_clear(struct alloc_prefixes *prefixes);

/*
 * Looks up the name of a symbol, without a version: plain, with a known prefix, or with one of
 * `prefixes` (NULL: none). False: it is no allocator's.
 */
bool alloc_names_find(const char *symbol, const struct alloc_prefixes *prefixes,
		      struct alloc_name *out);

/*
 * The enum hb_fn of a function that is called by its name: with no or a known prefix, or one of
 * glibc's for itself (__libc_malloc), which is at the address of a plain one; -1: none.
 */
int alloc_names_fn(const char *symbol);

/*
 * Regular expression (RE2, anchored as pprof's drop_frames) of the function names that belong to
 * an allocator, operator new and delete included. Static.
 */
const char *alloc_names_drop_frames(void);

#endif
