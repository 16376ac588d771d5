// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every C entry point of the malloc family, in its usual, its zero-sized and its failing forms.
 * build: -fno-builtin -Wno-unused-result -Wno-alloc-size-larger-than -Wno-use-after-free -ldl
 */
#define _GNU_SOURCE
#include "truth.h"

#include <dlfcn.h>
#include <malloc.h>

/* No allocator grants it; volatile, so that no compiler knows. */
static volatile size_t too_much = PTRDIFF_MAX;
static volatile size_t nothing = 0;

/* Made before anybody watches. */
static void *old_blocks[3];

/* Not in every libc; looked up beforehand, since a look-up that fails allocates. */
static void (*cfree_old)(void *);
static void (*freed_sized)(void *, size_t);
static void (*freed_aligned)(void *, size_t, size_t);

static void look_up(void)
{
	cfree_old = (void (*)(void *))dlvsym(RTLD_DEFAULT, "cfree", "GLIBC_2.2.5");
	if (!cfree_old)
		cfree_old = free;
	freed_sized = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
	freed_aligned = (void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
}

SITE(site_malloc)
{
	for (size_t size = 1; size <= 2000000; size = size * 3 + 1) {
		took(self, malloc(size), size);
		free(took(self, malloc(size), size));
		gave(self, size);
	}
	took(self, malloc(too_much), too_much);
}

SITE(site_malloc_zero)
{
	took(self, malloc(nothing), 0);
	free(took(self, malloc(nothing), 0));
	gave(self, 0);
}

SITE(site_calloc)
{
	took(self, calloc(10, 10), 100);
	took(self, calloc(1, 300000), 300000);
	took(self, calloc(nothing, 8), 0);
	took(self, calloc(8, nothing), 0);
	took(self, calloc(too_much, 16), 1);
	took(self, calloc(too_much, 1), 1);
	for (int i = 0; i < 500; i++) {
		void *p = took(self, calloc(10, 10), 100);

		if (i % 2) {
			free(p);
			gave(self, 100);
		}
	}
}

SITE(site_realloc_grow)
{
	size_t size = 24;
	void *p = took(self, malloc(size), size);

	while (size < 4000000) {
		p = realloc(p, size * 2);
		gave(self, size);
		size *= 2;
		took(self, p, size);
	}
}

SITE(site_realloc_shrink)
{
	size_t size = 1 << 20;
	void *p = took(self, malloc(size), size);

	while (size > 16) {
		p = realloc(p, size / 2);
		gave(self, size);
		size /= 2;
		took(self, p, size);
	}
}

SITE(site_realloc_same)
{
	void *p = took(self, malloc(100), 100);

	p = realloc(p, 100);
	gave(self, 100);
	took(self, p, 100);
}

SITE(site_realloc_null)
{
	took(self, realloc(NULL, 77), 77);
	took(self, realloc(NULL, nothing), 0);
	took(self, realloc(NULL, too_much), 1);
}

SITE(site_realloc_to_zero)
{
	void *p = took(self, malloc(88), 88);

	if (realloc(p, nothing))
		_exit(5);
	gave(self, 88);
}

SITE(site_realloc_fails)
{
	void *p = took(self, malloc(99), 99);

	if (realloc(p, too_much))
		_exit(5);
	/* Still there, and freed as what it was. */
	took(self, malloc(9), 9);
	free(p);
	gave(self, 99);
	p = took(self, malloc(111), 111);
	if (realloc(p, too_much))
		_exit(5);
}

static void *handed_over;

SITE(site_realloc_from)
{
	handed_over = took(self, malloc(1000), 1000);
}

SITE(site_realloc_to)
{
	void *p = realloc(handed_over, 2000);

	gave(&truth_site_realloc_from, 1000);
	took(self, p, 2000);
}

SITE(site_realloc_old)
{
	took(self, realloc(old_blocks[0], 500), 500);
	/* Nobody saw the second one begin, so its end is nobody's. */
	if (realloc(old_blocks[1], nothing))
		_exit(5);
	free(old_blocks[2]);
}

SITE(site_reallocarray)
{
	void *p = took(self, reallocarray(NULL, 3, 50), 150);

	p = reallocarray(p, 6, 50);
	gave(self, 150);
	took(self, p, 300);
	if (reallocarray(p, too_much, 16) || reallocarray(p, too_much, 1))
		_exit(5);
	took(self, reallocarray(NULL, too_much, 16), 1);
	took(self, reallocarray(NULL, nothing, 8), 0);
	for (int i = 0; i < 500; i++) {
		p = took(self, reallocarray(NULL, 10, 10), 100);
		if (i % 2) {
			free(p);
			gave(self, 100);
		}
	}
}

SITE(site_reallocarray_to_zero)
{
	void *p = took(self, malloc(60), 60);

	if (reallocarray(p, nothing, 8))
		_exit(5);
	gave(self, 60);
}

SITE(site_posix_memalign)
{
	static const size_t alignments[] = {8, 16, 64, 4096};
	void *p;

	for (size_t i = 0; i < sizeof(alignments) / sizeof(*alignments); i++) {
		for (int j = 0; j < 100; j++) {
			if (posix_memalign(&p, alignments[i], 100 + i))
				_exit(5);
			took(self, p, 100 + i);
			if (j % 2) {
				free(p);
				gave(self, 100 + i);
			}
		}
		if (posix_memalign(&p, alignments[i], nothing))
			_exit(5);
		took(self, p, 0);
		if (posix_memalign(&p, alignments[i], too_much) != ENOMEM)
			_exit(5);
	}
	if (posix_memalign(&p, 3, 100) != EINVAL || posix_memalign(&p, 4, 100) != EINVAL)
		_exit(5);
}

SITE(site_memalign)
{
	for (size_t alignment = 8; alignment <= 4096; alignment *= 2) {
		took(self, memalign(alignment, 200), 200);
		free(took(self, memalign(alignment, 1000), 1000));
		gave(self, 1000);
		took(self, memalign(alignment, nothing), 0);
		took(self, memalign(alignment, too_much), 1);
	}
}

SITE(site_aligned_alloc)
{
	for (size_t alignment = 8; alignment <= 4096; alignment *= 2) {
		took(self, aligned_alloc(alignment, alignment * 3), alignment * 3);
		free(took(self, aligned_alloc(alignment, alignment), alignment));
		gave(self, alignment);
		took(self, aligned_alloc(alignment, too_much), 1);
	}
}

SITE(site_valloc)
{
	took(self, valloc(100), 100);
	free(took(self, valloc(10000), 10000));
	gave(self, 10000);
	took(self, valloc(too_much), 1);
}

SITE(site_pvalloc)
{
	/* Gives whole pages; the request is what counts. */
	took(self, pvalloc(100), 100);
	free(took(self, pvalloc(5000), 5000));
	gave(self, 5000);
	took(self, pvalloc(too_much), 1);
}

SITE(site_cfree)
{
	void *p = took(self, malloc(44), 44);

	cfree_old(p);
	gave(self, 44);
	took(self, malloc(45), 45);
}

SITE(site_free_sized)
{
	void *p = took(self, malloc(46), 46);
	void *q = took(self, aligned_alloc(64, 64), 64);

	if (freed_sized)
		freed_sized(p, 46);
	else
		free(p);
	if (freed_aligned)
		freed_aligned(q, 64, 64);
	else
		free(q);
	gave(self, 46);
	gave(self, 64);
	took(self, malloc(47), 47);
}

SITE(site_free_null)
{
	free(NULL);
	took(self, malloc(48), 48);
	free(NULL);
}

SITE(site_strdup)
{
	took(self, strdup("twelve chars"), 13);
	took(self, strndup("twelve chars", 6), 7);
	free(took(self, strdup(""), 1));
	gave(self, 1);
}

static FILE *text;
static char text_buffer[8192];

/* A file with a line of 100 and one of 1,000 characters, opened and buffered beforehand. */
static void text_open(void)
{
	text = tmpfile();
	if (!text)
		_exit(5);
	setvbuf(text, text_buffer, _IOFBF, sizeof(text_buffer));
	for (int i = 0; i < 99; i++)
		fputc('a', text);
	fputc('\n', text);
	for (int i = 0; i < 999; i++)
		fputc('b', text);
	fputc('\n', text);
	rewind(text);
	ungetc(fgetc(text), text);
}

SITE(site_getline)
{
	char *line = NULL;
	size_t cap = 0;

	/* 120 bytes at first; then what the line needs, if that is more than twice as much. */
	if (getline(&line, &cap, text) != 100)
		_exit(5);
	took(self, line, 120);
	if (getline(&line, &cap, text) != 1000)
		_exit(5);
	gave(self, 120);
	took(self, line, 1001);
	if (cap != 1001)
		_exit(5);
}

SITE(site_asprintf)
{
	char *out;
	int len = asprintf(&out, "%d and %s", 12345, "some more");

	self->allocs_open = 1;
	took(self, out, len + 1);
	len = asprintf(&out, "%300d", 7);
	took(self, out, len + 1);
}

SITE(site_open_memstream)
{
	char *out;
	size_t size;
	FILE *stream = open_memstream(&out, &size);

	self->allocs_open = 1;
	for (int i = 0; i < 20000; i++)
		fputc('x', stream);
	fclose(stream);
	took(self, out, size + 1);
}

static void run_plain(void)
{
	RUN(site_malloc);
	RUN(site_malloc_zero);
	RUN(site_calloc);
	RUN(site_cfree);
	RUN(site_free_sized);
	RUN(site_free_null);
}

static void run_realloc(void)
{
	RUN(site_realloc_grow);
	RUN(site_realloc_shrink);
	RUN(site_realloc_same);
	RUN(site_realloc_null);
	RUN(site_realloc_to_zero);
	RUN(site_realloc_fails);
	RUN(site_realloc_from);
	RUN(site_realloc_to);
	RUN(site_realloc_old);
	RUN(site_reallocarray);
	RUN(site_reallocarray_to_zero);
}

static void run_aligned(void)
{
	RUN(site_posix_memalign);
	RUN(site_memalign);
	RUN(site_aligned_alloc);
	RUN(site_valloc);
	RUN(site_pvalloc);
}

static void run_library(void)
{
	RUN(site_strdup);
	RUN(site_getline);
	RUN(site_asprintf);
	RUN(site_open_memstream);
}

int main(void)
{
	for (int i = 0; i < 3; i++)
		old_blocks[i] = malloc(300 + i);
	look_up();
	text_open();
	await("READY");
	run_plain();
	run_realloc();
	run_aligned();
	run_library();
	finish();
	return 0;
}
