// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The same round again for each byte, so that one process serves many recordings: it frees what the
 * last round kept, allocates, and tells the truth about this round. One site allocates below a
 * function of libc, so that a stack that is cut there shows.
 *
 * build: -fno-builtin
 */
#include "truth.h"

#define OBJECTS 16

static void *kept[4 * OBJECTS];
static size_t kept_cnt;
static struct truth *sorting;

static void keep(void *p)
{
	kept[kept_cnt++] = p;
}

SITE(site_malloc)
{
	for (int i = 0; i < OBJECTS; i++)
		keep(took(self, malloc(100), 100));
}

SITE(site_freed)
{
	for (int i = 0; i < OBJECTS; i++) {
		void *p = took(self, malloc(300), 300);

		free(p);
		gave(self, 300);
	}
}

SITE(site_calloc)
{
	for (int i = 0; i < OBJECTS; i++)
		keep(took(self, calloc(3, 50), 150));
}

SITE(site_realloc)
{
	for (int i = 0; i < OBJECTS; i++) {
		void *p = took(self, malloc(40), 40);

		gave(self, 40);
		keep(took(self, realloc(p, 400), 400));
	}
}

static int compare(const void *a, const void *b)
{
	keep(took(sorting, malloc(77), 77));
	return *(const int *)a - *(const int *)b;
}

SITE(site_sorted)
{
	int pair[] = {2, 1};

	sorting = self;
	qsort(pair, 2, sizeof(pair[0]), compare);
	TRUTH_KEEP(pair);
}

int main(void)
{
	await("READY");
	for (;;) {
		while (kept_cnt)
			free(kept[--kept_cnt]);
		for (struct truth *t = truth_first; t; t = t->next)
			t->alloc_objects = t->alloc_bytes = t->inuse_objects = t->inuse_bytes = 0;
		RUN(site_malloc);
		RUN(site_freed);
		RUN(site_calloc);
		RUN(site_realloc);
		RUN(site_sorted);
		finish();
	}
}
