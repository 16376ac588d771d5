// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: an array and how many items it must hold. Out: the array, moved if it had to grow.
 */
#include "vec.h"

#include <errno.h>
#include <stdlib.h>

int vec_reserve_bytes(void **items, size_t *cap, size_t cnt, size_t item_bytes)
{
	size_t want = *cap ? *cap : 8;
	void *grown;

	if (cnt <= *cap)
		return 0;
	while (want < cnt)
		if (__builtin_mul_overflow(want, (size_t)2, &want))
			return -ENOMEM;
	grown = reallocarray(*items, want, item_bytes);
	if (!grown)
		return -ENOMEM;
	*items = grown;
	*cap = want;
	return 0;
}
