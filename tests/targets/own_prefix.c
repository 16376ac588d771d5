// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program with an allocator under names of its own beside malloc, mine_malloc and so on; and with
 * an mi_malloc that is not mimalloc's but made of malloc.
 */
#include "truth.h"

static char arena[1 << 20];
static size_t used;

/* noipa: the program calls these as it would those of a library. */
#define API __attribute__((noipa))

API void *mine_malloc(size_t bytes)
{
	char *p = arena + __atomic_fetch_add(&used, (bytes + 15) & ~15UL, __ATOMIC_RELAXED);

	return p + bytes <= arena + sizeof(arena) ? p : NULL;
}

API void *mine_calloc(size_t cnt, size_t bytes)
{
	void *p = mine_malloc(cnt * bytes);

	TRUTH_KEEP(p);
	return p;
}

API void mine_free(void *p)
{
	TRUTH_KEEP(p);
}

API void *mi_malloc(size_t bytes)
{
	void *p = malloc(bytes + 1);

	TRUTH_KEEP(p);
	return p;
}

API void mi_free(void *p)
{
	free(p);
	/* No jump. */
	__asm__ volatile("" : : : "memory");
}

SITE(site_mine)
{
	took(self, mine_malloc(100), 100);
	took(self, mine_calloc(3, 100), 300);
	mine_free(took(self, mine_malloc(200), 200));
	gave(self, 200);
}

SITE(site_wrapped)
{
	took(self, mi_malloc(100), 101);
	mi_free(took(self, mi_malloc(200), 201));
	gave(self, 201);
}

SITE(site_malloc)
{
	free(took(self, malloc(300), 300));
	gave(self, 300);
	took(self, malloc(301), 301);
}

int main(void)
{
	await("READY");
	RUN(site_mine);
	RUN(site_wrapped);
	RUN(site_malloc);
	finish();
	return 0;
}
