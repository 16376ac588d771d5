// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The functions of the malloc family that every C library and every allocator for LD_PRELOAD has,
 * each many times; a half of what they give is freed.
 * build: -fno-builtin
 */
#define _GNU_SOURCE
#include "truth.h"

#include <malloc.h>

#define OBJECTS 500

/* Every second one is freed. */
static void drop_half(struct truth *self, int i, void *p, size_t bytes)
{
	if (i % 2)
		return;
	free(p);
	gave(self, bytes);
}

SITE(site_malloc)
{
	for (int i = 0; i < OBJECTS; i++)
		drop_half(self, i, took(self, malloc(100), 100), 100);
}

SITE(site_calloc)
{
	for (int i = 0; i < OBJECTS; i++)
		drop_half(self, i, took(self, calloc(10, 10), 100), 100);
}

SITE(site_realloc)
{
	for (int i = 0; i < OBJECTS; i++) {
		void *p = took(self, malloc(50), 50);

		p = realloc(p, 5000);
		gave(self, 50);
		drop_half(self, i, took(self, p, 5000), 5000);
	}
}

SITE(site_realloc_null)
{
	for (int i = 0; i < OBJECTS; i++)
		drop_half(self, i, took(self, realloc(NULL, 70), 70), 70);
}

SITE(site_reallocarray)
{
	for (int i = 0; i < OBJECTS; i++) {
		void *p = took(self, reallocarray(NULL, 3, 10), 30);

		p = reallocarray(p, 300, 10);
		gave(self, 30);
		drop_half(self, i, took(self, p, 3000), 3000);
	}
}

SITE(site_posix_memalign)
{
	for (int i = 0; i < OBJECTS; i++) {
		void *p;

		if (posix_memalign(&p, 64, 100))
			_exit(5);
		took(self, p, 100);
	}
}

SITE(site_posix_memalign_freed)
{
	for (int i = 0; i < OBJECTS; i++) {
		void *p;

		if (posix_memalign(&p, 4096, 200))
			_exit(5);
		drop_half(self, i, took(self, p, 200), 200);
	}
}

SITE(site_aligned_alloc)
{
	for (int i = 0; i < OBJECTS; i++)
		drop_half(self, i, took(self, aligned_alloc(64, 128), 128), 128);
}

SITE(site_memalign)
{
	for (int i = 0; i < OBJECTS; i++)
		drop_half(self, i, took(self, memalign(256, 90), 90), 90);
}

int main(void)
{
	await("READY");
	RUN(site_malloc);
	RUN(site_calloc);
	RUN(site_realloc);
	RUN(site_realloc_null);
	RUN(site_reallocarray);
	RUN(site_posix_memalign);
	RUN(site_posix_memalign_freed);
	RUN(site_aligned_alloc);
	RUN(site_memalign);
	finish();
	return 0;
}
