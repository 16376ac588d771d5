/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the user says of allocators that are not found by themselves: prefixes of their names,
 * functions one by one, files to look into.
 */
#ifndef ALLOC_HINTS_H
#define ALLOC_HINTS_H

#include "alloc_names.h"

#include <stdbool.h>
#include <stdint.h>

/* Sets of them are masks of 64 bits. */
#define ALLOC_HINTS_MAX 64

/* One --probe or --alloc-lib. All strings are owned. */
struct alloc_hint {
	char *text;	/* option and value as given, for messages */
	char *path;	/* of the file, absolute, as the process sees it */
	char *place;	/* what comes behind it: the symbol or the offset; NULL: look for names */
	bool is_offset; /* `place` is one, in the file: */
	uint64_t off;
	enum hb_fn fn; /* what is there */
};

/* All of them. Zeroed: none. */
struct alloc_hints {
	struct alloc_prefixes prefixes;
	struct alloc_hint *hints; /* owned; at most ALLOC_HINTS_MAX */
	size_t cnt, cap;
	bool only_libs; /* there is an --alloc-lib: names count in no other file */
	bool frees;	/* there is a --probe free= */
};

/*
 * Adds the value of a --probe, FUNCTION=PATH:SYMBOL or FUNCTION=PATH:0xOFFSET. A path without a
 * slash before it is one in our working directory. 0, or -EINVAL or -ENOMEM after one logged line.
 */
int alloc_hints_add_probe(struct alloc_hints *hints, const char *text);

/* Adds the value of an --alloc-lib, a path. As alloc_hints_add_probe(). */
int alloc_hints_add_lib(struct alloc_hints *hints, const char *text);

/* Frees and empties. */
void alloc_hints_clear(struct alloc_hints *hints);

#endif
