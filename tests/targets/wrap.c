// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program, and allocators for LD_PRELOAD that are made of the next one:
 *   wrap_jump      hands each call over by a jump through a pointer that dlsym() gave
 *   wrap_jump_got  the same with pointers that other files may see
 *   wrap_plt       jumps to the C library's __libc_malloc and so on
 *   wrap_count     calls, and counts what it got
 *   wrap_header    calls for more, and hides a header before each block
 * build: -fno-builtin
 * library: wrap_jump -DJUMP -DPOINTER=static -fno-builtin
 * library: wrap_jump_got -DJUMP -DPOINTER= -fno-builtin
 * library: wrap_plt -DPLT -fno-builtin
 * library: wrap_count -DCOUNT -DPOINTER=static -fno-builtin
 * library: wrap_header -DHEADER -DPOINTER=static -fno-builtin
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef POINTER

POINTER void *(*real_malloc)(size_t);
POINTER void *(*real_calloc)(size_t, size_t);
POINTER void *(*real_realloc)(void *, size_t);
POINTER void (*real_free)(void *);
POINTER int (*real_posix_memalign)(void **, size_t, size_t);

__attribute__((noinline, cold)) static void look_up(void)
{
	real_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
	real_calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
	real_realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
	real_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
	real_posix_memalign = (int (*)(void **, size_t, size_t))dlsym(RTLD_NEXT, "posix_memalign");
}

#endif

#ifdef JUMP

/* Before the others are known: what dlsym() itself asks for. */
static char early[4096];
static size_t early_used;

static void *take_early(size_t bytes)
{
	early_used += (bytes + 15) & ~15UL;
	return early_used <= sizeof(early) ? early + early_used - ((bytes + 15) & ~15UL) : NULL;
}

void *malloc(size_t bytes)
{
	if (!real_malloc)
		look_up();
	return real_malloc(bytes);
}

void *calloc(size_t cnt, size_t bytes)
{
	if (!real_calloc)
		return take_early(cnt * bytes);
	return real_calloc(cnt, bytes);
}

void *realloc(void *p, size_t bytes)
{
	if (!real_realloc)
		look_up();
	return real_realloc(p, bytes);
}

void free(void *p)
{
	if (!p)
		return;
	if (!real_free)
		look_up();
	real_free(p);
}

int posix_memalign(void **p, size_t align, size_t bytes)
{
	if (!real_posix_memalign)
		look_up();
	return real_posix_memalign(p, align, bytes);
}

#elif defined(PLT)

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t cnt, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void __libc_free(void *p);

void *malloc(size_t bytes)
{
	return __libc_malloc(bytes);
}

void *calloc(size_t cnt, size_t bytes)
{
	return __libc_calloc(cnt, bytes);
}

void *realloc(void *p, size_t bytes)
{
	return __libc_realloc(p, bytes);
}

void free(void *p)
{
	__libc_free(p);
}

#elif defined(COUNT)

static size_t calls, bytes_now;

static void *count(void *p, size_t bytes)
{
	__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
	if (p)
		__atomic_fetch_add(&bytes_now, bytes, __ATOMIC_RELAXED);
	return p;
}

void *malloc(size_t bytes)
{
	if (!real_malloc)
		look_up();
	return count(real_malloc(bytes), bytes);
}

void *calloc(size_t cnt, size_t bytes)
{
	if (!real_calloc)
		look_up();
	return count(real_calloc(cnt, bytes), cnt * bytes);
}

void *realloc(void *p, size_t bytes)
{
	if (!real_realloc)
		look_up();
	return count(real_realloc(p, bytes), bytes);
}

void free(void *p)
{
	if (!real_free)
		look_up();
	real_free(p);
	__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
}

int posix_memalign(void **p, size_t align, size_t bytes)
{
	int err;

	if (!real_posix_memalign)
		look_up();
	err = real_posix_memalign(p, align, bytes);
	count(err ? NULL : *p, bytes);
	return err;
}

#elif defined(HEADER)

#define HEADER_BYTES 16

/* The header has the distance to the block's start and the size. */
static void *hide(char *block, size_t distance, size_t bytes)
{
	size_t *header = (size_t *)(block + distance - HEADER_BYTES);

	if (!block)
		return NULL;
	header[0] = distance;
	header[1] = bytes;
	return block + distance;
}

void *malloc(size_t bytes)
{
	if (!real_malloc)
		look_up();
	if (bytes > PTRDIFF_MAX - HEADER_BYTES)
		return NULL;
	return hide(real_malloc(bytes + HEADER_BYTES), HEADER_BYTES, bytes);
}

void *calloc(size_t cnt, size_t bytes)
{
	void *p;

	if (!real_malloc)
		look_up();
	if (bytes && cnt > PTRDIFF_MAX / bytes)
		return NULL;
	p = hide(real_malloc(cnt * bytes + HEADER_BYTES), HEADER_BYTES, cnt * bytes);
	return p ? memset(p, 0, cnt * bytes) : NULL;
}

void free(void *p)
{
	if (!real_free)
		look_up();
	if (p)
		real_free((char *)p - ((size_t *)p)[-2]);
	__asm__ volatile("" : : : "memory");
}

void *realloc(void *p, size_t bytes)
{
	void *moved;

	if (!p)
		return malloc(bytes);
	if (!bytes) {
		free(p);
		return NULL;
	}
	if (!real_realloc)
		look_up();
	if (bytes > PTRDIFF_MAX - HEADER_BYTES)
		return NULL;
	if (((size_t *)p)[-2] == HEADER_BYTES)
		return hide(real_realloc((char *)p - HEADER_BYTES, bytes + HEADER_BYTES),
			    HEADER_BYTES, bytes);
	moved = malloc(bytes);
	if (moved) {
		memcpy(moved, p, ((size_t *)p)[-1] < bytes ? ((size_t *)p)[-1] : bytes);
		free(p);
	}
	return moved;
}

int posix_memalign(void **p, size_t align, size_t bytes)
{
	size_t distance = align > HEADER_BYTES ? align : HEADER_BYTES;
	void *block;
	int err;

	if (!real_posix_memalign)
		look_up();
	err = real_posix_memalign(&block, align, bytes + distance);
	if (!err)
		*p = hide(block, distance, bytes);
	return err;
}

#else

#include "truth.h"

static volatile size_t too_much = PTRDIFF_MAX;

static void *old_block;

SITE(site_malloc)
{
	for (size_t size = 1; size <= 2000000; size = size * 3 + 1) {
		took(self, malloc(size), size);
		free(took(self, malloc(size), size));
		gave(self, size);
	}
	took(self, malloc(too_much), 1);
}

SITE(site_calloc)
{
	took(self, calloc(3, 100), 300);
	free(took(self, calloc(3, 200), 600));
	gave(self, 600);
	took(self, calloc(too_much, 16), 1);
}

SITE(site_realloc)
{
	void *p = NULL;

	for (size_t size = 10; size < 1000000; size *= 4) {
		p = took(self, realloc(p, size), size);
		if (size > 10)
			gave(self, size / 4);
	}
	took(self, realloc(p, too_much), 1);
}

SITE(site_realloc_away)
{
	void *p = took(self, malloc(100), 100);

	p = realloc(p, 0);
	TRUTH_KEEP(p);
	gave(self, 100);
	free(NULL);
}

SITE(site_aligned)
{
	for (size_t align = 8; align <= 4096; align *= 2) {
		void *p;

		if (!posix_memalign(&p, align, 500))
			took(self, p, 500);
		if (!posix_memalign(&p, align, 600)) {
			took(self, p, 600);
			free(p);
			gave(self, 600);
		}
	}
}

/* wrap NAME: as if started with the library wrap_NAME.so beside it in LD_PRELOAD. */
int main(int argc, char **argv)
{
	char library[4096];

	if (argc > 1) {
		snprintf(library, sizeof(library), "%s_%s.so", argv[0], argv[1]);
		setenv("LD_PRELOAD", library, 1);
		argv[1] = NULL;
		execv(argv[0], argv);
		return 5;
	}
	old_block = malloc(100);
	free(realloc(malloc(100), 200));
	free(calloc(1, 1));
	await("READY");
	RUN(site_malloc);
	RUN(site_calloc);
	RUN(site_realloc);
	RUN(site_realloc_away);
	RUN(site_aligned);
	/* Nobody saw it being made. */
	free(old_block);
	finish();
	return 0;
}

#endif
