// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * jemalloc's non-standard family, for a process that jemalloc is preloaded into; ends with 77 where
 * it is not.
 */
#include "truth.h"

/* Flags of jemalloc/jemalloc.h. */
#define LG_ALIGN(lg) ((int)(lg))
#define ZERO	     0x40

#define WEAK __attribute__((weak))
WEAK void *mallocx(size_t size, int flags);
WEAK void *rallocx(void *p, size_t size, int flags);
WEAK size_t xallocx(void *p, size_t size, size_t extra, int flags);
WEAK size_t nallocx(size_t size, int flags);
WEAK void dallocx(void *p, int flags);
WEAK void sdallocx(void *p, size_t size, int flags);

static const int flags[] = {0, ZERO, LG_ALIGN(6), LG_ALIGN(12) | ZERO};
#define FLAGS_CNT (sizeof(flags) / sizeof(flags[0]))

SITE(site_mallocx)
{
	for (size_t i = 0; i < FLAGS_CNT; i++)
		for (size_t size = 1; size <= (16 << 20); size = size * 2 + 1)
			took(self, mallocx(size, flags[i]), size);
}

SITE(site_dallocx)
{
	for (size_t i = 0; i < FLAGS_CNT; i++)
		for (size_t size = 1; size <= (16 << 20); size = size * 2 + 1) {
			dallocx(took(self, mallocx(size, flags[i]), size), flags[i] & ~ZERO);
			gave(self, size);
			sdallocx(took(self, mallocx(size, flags[i]), size), size, flags[i] & ~ZERO);
			gave(self, size);
		}
}

SITE(site_rallocx)
{
	for (size_t i = 0; i < FLAGS_CNT; i++) {
		size_t size = 10;
		void *p = took(self, mallocx(size, flags[i]), size);

		for (; size <= (16 << 20); size *= 3) {
			p = rallocx(p, size * 3, flags[i]);
			gave(self, size);
			took(self, p, size * 3);
		}
	}
}

/* The same block, made in one place and resized in another. */
static void *passed;

SITE(site_made)
{
	passed = took(self, mallocx(100, 0), 100);
}

SITE(site_resized)
{
	passed = took(self, rallocx(passed, 5000, 0), 5000);
	gave(&truth_site_made, 100);
	/* In place: it stays an object of 5000 bytes from here. */
	TRUTH_KEEP(xallocx(passed, 6000, 0, 0));
	TRUTH_KEEP(xallocx(passed, 4000, 0, 0));
	TRUTH_KEEP(nallocx(4000, 0));
}

/* Both families, one block. */
SITE(site_mixed)
{
	free(took(self, mallocx(70, 0), 70));
	gave(self, 70);
	dallocx(took(self, malloc(71), 71), 0);
	gave(self, 71);
	took(self, realloc(took(self, mallocx(72, 0), 72), 720), 720);
	gave(self, 72);
	took(self, rallocx(took(self, calloc(1, 73), 73), 730, 0), 730);
	gave(self, 73);
}

int main(void)
{
	if (!mallocx || !rallocx || !xallocx || !nallocx || !dallocx || !sdallocx)
		return 77;
	await("READY");
	RUN(site_mallocx);
	RUN(site_dallocx);
	RUN(site_rallocx);
	RUN(site_made);
	RUN(site_resized);
	RUN(site_mixed);
	finish();
	return 0;
}
