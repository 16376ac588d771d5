/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where in a file the functions lie that the user names by hand.
 */
#ifndef ALLOC_POINTS_H
#define ALLOC_POINTS_H

#include "allocators.h"

struct alloc_hints;

/* Of one file. */
struct alloc_points {
	struct allocators_point *points; /* owned; no two at one address */
	size_t cnt, cap;
	bool search; /* it is an --alloc-lib */
};

/*
 * Resolves those of `hints` that are in the mask `wanted` (1 << index) in `file`: symbols by its
 * tables and those of its separate debug file (below `root_fd`, as for debug_file_find()), offsets
 * by its code. Names borrow from `hints`. 0 and *out (alloc_points_clear()); -EINVAL after one
 * logged line: no such symbol, or several; not code, or not where a function begins; two meanings
 * for one address. -ENOMEM, not logged.
 */
int alloc_points_find(const struct alloc_hints *hints, uint64_t wanted, const struct elf_file *file,
		      int root_fd, struct alloc_points *out);

/* Frees and empties; a zeroed struct is empty. */
void alloc_points_clear(struct alloc_points *points);

#endif
