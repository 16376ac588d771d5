// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A library in a namespace of the dynamic linker of its own, with a libc of its own: a second
 * mapping of the same file, whose allocator shares nothing with the first. It is loaded when the
 * target goes on, allocates by turns with the program, and is unloaded in the end.
 * build: -fno-builtin -ldl -D_GNU_SOURCE
 * library: namespaces_library -DLIBRARY -fno-builtin
 * library: namespaces_own -DLIBRARY -DOWN -fno-builtin -Wl,-Bsymbolic
 */
#include <stdlib.h>

#ifdef LIBRARY

#ifdef OWN

/* An allocator that the library brings along: it gives from a piece of its own, and takes the last
 * block back. */
static char pool[1 << 20];
static size_t used;
static void *last;

__attribute__((noinline)) void *malloc(size_t bytes)
{
	size_t rounded = (bytes + 15) & ~(size_t)15;

	if (rounded > sizeof(pool) - used)
		return NULL;
	last = pool + used;
	used += rounded;
	return last;
}

__attribute__((noinline)) void free(void *p)
{
	if (p && p == last)
		used = (size_t)((char *)p - pool);
}

#endif

void *library_alloc(size_t bytes)
{
	void *p = malloc(bytes);

	__asm__ volatile("" : : "r"(p) : "memory");
	return p;
}

void library_free(void *p)
{
	free(p);
	__asm__ volatile("" : : : "memory");
}

#else

#include "truth.h"

#include <dlfcn.h>

static void *(*library_alloc)(size_t bytes);
static void (*library_free)(void *p);

SITE(site_own)
{
	for (int i = 0; i < 500; i++) {
		void *p = took(self, malloc(100), 100);

		if (i % 5)
			continue;
		free(p);
		gave(self, 100);
	}
}

SITE(site_library)
{
	for (int i = 0; i < 500; i++) {
		void *p = took(self, library_alloc(200), 200);

		if (i % 2)
			continue;
		library_free(p);
		gave(self, 200);
	}
}

int main(int argc, char **argv)
{
	void *library;

	await("READY");
	library = argc > 1 ? dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW) : NULL;
	if (!library)
		return 7;
	library_alloc = (void *(*)(size_t))dlsym(library, "library_alloc");
	library_free = (void (*)(void *))dlsym(library, "library_free");
	await("LOADED");
	RUN(site_own);
	RUN(site_library);
	RUN(site_own);
	finish();
	return argc < 1 || !argv[0];
}

#endif
