// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The families of tcmalloc and mimalloc under their own names, beside malloc, for a process that
 * one of them is preloaded into. What is not there is not called; ends with 77 without either.
 */
#include "truth.h"

#define WEAK __attribute__((weak))

/* gperftools/tcmalloc.h; alignments are std::align_val_t there. */
WEAK void *tc_malloc(size_t size);
WEAK void *tc_malloc_skip_new_handler(size_t size);
WEAK void tc_free(void *p);
WEAK void *tc_calloc(size_t cnt, size_t size);
WEAK void *tc_realloc(void *p, size_t size);
WEAK void *tc_memalign(size_t align, size_t size);
WEAK int tc_posix_memalign(void **p, size_t align, size_t size);
WEAK void *tc_valloc(size_t size);
WEAK void *tc_new(size_t size);
WEAK void *tc_newarray(size_t size);
WEAK void *tc_new_aligned(size_t size, size_t align);
WEAK void tc_delete(void *p);
WEAK void tc_delete_sized(void *p, size_t size);
WEAK void tc_deletearray(void *p);

/* mimalloc.h */
WEAK void *mi_malloc(size_t size);
WEAK void *mi_zalloc(size_t size);
WEAK void *mi_malloc_small(size_t size);
WEAK void *mi_mallocn(size_t cnt, size_t size);
WEAK void *mi_malloc_aligned(size_t size, size_t align);
WEAK void *mi_zalloc_aligned(size_t size, size_t align);
WEAK void *mi_calloc_aligned(size_t cnt, size_t size, size_t align);
WEAK void mi_free(void *p);
WEAK void mi_free_size(void *p, size_t size);
WEAK void *mi_calloc(size_t cnt, size_t size);
WEAK void *mi_realloc(void *p, size_t size);
WEAK void *mi_rezalloc(void *p, size_t size);
WEAK void *mi_reallocn(void *p, size_t cnt, size_t size);
WEAK void *mi_recalloc(void *p, size_t cnt, size_t size);
WEAK void *mi_reallocf(void *p, size_t size);
WEAK void *mi_realloc_aligned(void *p, size_t size, size_t align);
WEAK int mi_posix_memalign(void **p, size_t align, size_t size);
WEAK void *mi_aligned_alloc(size_t align, size_t size);
WEAK void *mi_reallocarray(void *p, size_t cnt, size_t size);
WEAK void *mi_expand(void *p, size_t size);
WEAK void *mi_new(size_t size);
WEAK void *mi_new_n(size_t cnt, size_t size);
WEAK void *mi_new_nothrow(size_t size);
WEAK void *mi_new_aligned(size_t size, size_t align);
WEAK void *mi_new_realloc(void *p, size_t size);
WEAK void *mi_new_reallocn(void *p, size_t cnt, size_t size);

/* Below and above what allocators take the fast way for, and where they map. */
static const size_t sizes[] = {1, 100, 1000, 5000, 300000, 20 << 20};
#define EACH(size)                                                                                 \
	for (size_t i = 0, size; i < sizeof(sizes) / sizeof(sizes[0]) && (size = sizes[i]); i++)

SITE(site_tc)
{
	void *p;

	EACH(size)
	{
		took(self, tc_malloc(size), size);
		took(self, tc_malloc_skip_new_handler(size), size);
		took(self, tc_calloc(3, size), 3 * size);
		took(self, tc_memalign(64, size), size);
		took(self, tc_valloc(size), size);
		took(self, tc_posix_memalign(&p, 64, size) ? NULL : p, size);
		p = took(self, tc_realloc(NULL, size), size);
		p = took(self, tc_realloc(p, 2 * size), 2 * size);
		gave(self, size);
		tc_free(p);
		gave(self, 2 * size);
	}
}

SITE(site_tc_new)
{
	EACH(size)
	{
		took(self, tc_new(size), size);
		took(self, tc_newarray(size), size);
		took(self, tc_new_aligned(size, 64), size);
		tc_delete(took(self, tc_new(size), size));
		gave(self, size);
		tc_delete_sized(took(self, tc_new(size), size), size);
		gave(self, size);
		tc_deletearray(took(self, tc_newarray(size), size));
		gave(self, size);
	}
}

/* It frees the block when it fails, at once or after trying. */
SITE(site_mi_reallocf_fails)
{
	static volatile size_t too_much[] = {PTRDIFF_MAX, (1UL << 47) - (1UL << 30)};

	/* Nobody looks at results for allocs. */
	self->allocs_open = 1;

	for (size_t i = 0; i < sizeof(too_much) / sizeof(too_much[0]); i++) {
		void *p = took(self, mi_malloc(1234), 1234);

		if (mi_reallocf(p, too_much[i]))
			_exit(5);
		gave(self, 1234);
	}
}

SITE(site_mi)
{
	void *p;

	EACH(size)
	{
		took(self, mi_malloc(size), size);
		took(self, mi_zalloc(size), size);
		took(self, mi_mallocn(3, size), 3 * size);
		took(self, mi_malloc_aligned(size, 64), size);
		took(self, mi_zalloc_aligned(size, 4096), size);
		took(self, mi_calloc_aligned(3, size, 64), 3 * size);
		took(self, mi_calloc(3, size), 3 * size);
		took(self, mi_posix_memalign(&p, 64, size) ? NULL : p, size);
		took(self, mi_aligned_alloc(64, 64 * size), 64 * size);
		mi_free(took(self, mi_malloc(size), size));
		gave(self, size);
		mi_free_size(took(self, mi_malloc(size), size), size);
		gave(self, size);
	}
	took(self, mi_malloc_small(64), 64);
}

/* p, of `old` bytes, has become `now`. */
static void *moved(struct truth *self, size_t old, void *p, size_t now)
{
	gave(self, old);
	return took(self, p, now);
}

SITE(site_mi_realloc)
{
	EACH(n)
	{
		void *p = took(self, mi_malloc(n), n);

		p = moved(self, n, mi_realloc(p, 2 * n), 2 * n);
		TRUTH_KEEP(mi_expand(p, 2 * n));
		p = moved(self, 2 * n, mi_rezalloc(p, 3 * n), 3 * n);
		p = moved(self, 3 * n, mi_reallocn(p, 4, n), 4 * n);
		p = moved(self, 4 * n, mi_recalloc(p, 5, n), 5 * n);
		p = moved(self, 5 * n, mi_reallocf(p, 6 * n), 6 * n);
		p = moved(self, 6 * n, mi_reallocarray(p, 7, n), 7 * n);
		p = moved(self, 7 * n, mi_realloc_aligned(p, 8 * n, 64), 8 * n);
		p = moved(self, 8 * n, mi_new_realloc(p, 9 * n), 9 * n);
		p = moved(self, 9 * n, mi_new_reallocn(p, 10, n), 10 * n);
		TRUTH_KEEP(p);
	}
}

SITE(site_mi_new)
{
	EACH(size)
	{
		took(self, mi_new(size), size);
		took(self, mi_new_n(3, size), 3 * size);
		took(self, mi_new_nothrow(size), size);
		took(self, mi_new_aligned(size, 64), size);
		mi_free(took(self, mi_new(size), size));
		gave(self, size);
	}
}

/* Each call once, whichever name, and one end for it. */
SITE(site_beside)
{
	void (*give)(void *) = mi_free ? mi_free : tc_free;
	void *(*get)(size_t) = mi_malloc ? mi_malloc : tc_malloc;

	for (int i = 0; i < 10; i++) {
		give(took(self, malloc(40), 40));
		gave(self, 40);
		free(took(self, get(41), 41));
		gave(self, 41);
		took(self, malloc(42), 42);
		took(self, get(43), 43);
	}
}

int main(void)
{
	if (!tc_malloc && !mi_malloc)
		return 77;
	await("READY");
	if (tc_malloc) {
		RUN(site_tc);
		RUN(site_tc_new);
	}
	if (mi_malloc) {
		RUN(site_mi);
		RUN(site_mi_realloc);
		if (mi_reallocf)
			RUN(site_mi_reallocf_fails);
		RUN(site_mi_new);
	}
	RUN(site_beside);
	finish();
	return 0;
}
