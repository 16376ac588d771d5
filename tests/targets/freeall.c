// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Frees all that it allocates: nothing may look alive.
 * build: -fno-builtin
 */
#include "truth.h"

#define OBJECTS 5000

SITE(site_freed)
{
	static void *p[OBJECTS];

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < OBJECTS; i++)
			p[i] = took(self, malloc(i + 1), i + 1);
		for (int i = 0; i < OBJECTS; i++) {
			free(p[i]);
			gave(self, i + 1);
		}
	}
}

int main(void)
{
	await("READY");
	RUN(site_freed);
	finish();
	return 0;
}
