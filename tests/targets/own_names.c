// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program with an allocator whose names say nothing, some of them local: pool_get and so on. Its
 * large blocks, and the pool itself, come from malloc.
 */
#include "truth.h"

static char arena[1 << 20];
static size_t used;

/* noipa: the program calls these as it would those of a library. */
#define API __attribute__((noipa))

#define POOL_MAX 1000
#define HEADER	 16

API void *pool_get(size_t bytes)
{
	size_t whole = HEADER + ((bytes + 15) & ~15UL);
	char *p = bytes > POOL_MAX ? malloc(HEADER + bytes)
				   : arena + __atomic_fetch_add(&used, whole, __ATOMIC_RELAXED);

	if (!p || (bytes <= POOL_MAX && p + whole > arena + sizeof(arena)))
		return NULL;
	*(size_t *)p = bytes;
	return p + HEADER;
}

API static void *pool_table(size_t cnt, size_t bytes)
{
	void *p = pool_get(cnt * bytes);

	if (p)
		memset(p, 0, cnt * bytes);
	return p;
}

API void pool_put(void *p)
{
	char *block = (char *)p - HEADER;

	if (p && *(size_t *)block > POOL_MAX)
		free(block);
	TRUTH_KEEP(p);
}

API static void *pool_resize(void *old, size_t bytes)
{
	void *p = pool_get(bytes);
	size_t had = old ? *(size_t *)((char *)old - HEADER) : 0;

	if (!p)
		return NULL;
	memcpy(p, old, had < bytes ? had : bytes);
	pool_put(old);
	return p;
}

SITE(site_pool)
{
	void *p = took(self, pool_get(100), 100);

	took(self, pool_table(3, 100), 300);
	pool_put(took(self, pool_get(200), 200));
	gave(self, 200);
	took(self, pool_resize(p, 400), 400);
	gave(self, 100);
}

/* One object each, though malloc makes it. */
SITE(site_pool_large)
{
	void *p = took(self, pool_get(5000), 5000);

	took(self, pool_get(5001), 5001);
	took(self, pool_resize(p, 6000), 6000);
	gave(self, 5000);
	for (int i = 0; i < 10; i++) {
		pool_put(took(self, pool_get(7000), 7000));
		gave(self, 7000);
	}
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
	RUN(site_pool);
	RUN(site_pool_large);
	RUN(site_malloc);
	finish();
	return 0;
}
