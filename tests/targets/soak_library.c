// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The library that the target `soak` loads under ever new names.
 *
 * build: -fPIC -shared -fno-builtin
 */
#include <stdlib.h>

/* Its frame must be there when malloc() is called. */
void *soak_library_alloc(size_t size);

void *soak_library_alloc(size_t size)
{
	void *p = malloc(size);

	__asm__ volatile("" : : "r"(p) : "memory");
	return p;
}
