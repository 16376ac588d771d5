/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the functions of allocators are called.
 */
#ifndef ALLOC_NAMES_H
#define ALLOC_NAMES_H

#include "../bpf/abi.h"

#include <stdbool.h>
#include <stddef.h>

/* What a name says. */
struct alloc_name {
	enum hb_fn fn;
	/*
	 * Of two names at one address the lower one gives the meaning; equal for a name and its
	 * fallback, which counts only where the name is not defined.
	 */
	unsigned rank;
	bool fallback;
	bool is_malloc, is_free; /* what makes a file an allocator */
};

/* Looks up the name of a symbol, without a version. False: it is no allocator's. */
bool alloc_names_find(const char *symbol, struct alloc_name *out);

/* The enum hb_fn of a name, -1: none. */
int alloc_names_fn(const char *symbol);

/*
 * Regular expression (RE2, anchored as pprof's drop_frames) of the function names that belong to
 * an allocator, operator new and delete included. Static.
 */
const char *alloc_names_drop_frames(void);

#endif
