// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Objects over 4 GiB, of which no byte is touched, and totals that 32 bits do not hold.
 * build: -fno-builtin
 */
#include "truth.h"

#define GIB ((size_t)1 << 30)

SITE(site_large)
{
	void *p = took(self, malloc(5 * GIB + 3), 5 * GIB + 3);

	took(self, calloc(2, 3 * GIB), 6 * GIB);
	p = realloc(p, 7 * GIB);
	gave(self, 5 * GIB + 3);
	took(self, p, 7 * GIB);
}

SITE(site_total)
{
	for (int i = 0; i < 20; i++) {
		free(took(self, malloc(GIB), GIB));
		gave(self, GIB);
	}
	took(self, malloc(GIB + 1), GIB + 1);
}

int main(void)
{
	await("READY");
	RUN(site_large);
	RUN(site_total);
	finish();
	return 0;
}
