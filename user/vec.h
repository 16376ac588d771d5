/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Growth of arrays in one place: doubling, overflow checked, capacity updated last.
 */
#ifndef VEC_H
#define VEC_H

#include <stddef.h>

/*
 * Makes room for `cnt` items of `item_bytes` in *items, which has room for *cap (NULL and 0 at
 * first; owned by the caller, free()d by it). Returns 0, or -ENOMEM with both unchanged.
 */
int vec_reserve_bytes(void **items, size_t *cap, size_t cnt, size_t item_bytes);

/* vec_reserve_bytes() for a typed array: vec_reserve(&items, &cap, cnt). */
#define vec_reserve(items, cap, cnt)                                                               \
	vec_reserve_bytes((void **)(items), (cap), (cnt), sizeof(**(items)))

#endif
