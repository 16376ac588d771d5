// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One hot stack among 4,000 cold ones, which come in between.
 *   hot [CALLS]   of the hot one, default 400000
 * build: -fno-builtin -fno-ipa-icf
 */
#include "truth.h"

#define COLD 4000
#define BITS 12

SITE(site_hot)
{
	free(took(self, malloc(32), 32));
	gave(self, 32);
}

static int64_t cold_bytes;

static void cold_a(unsigned code, int left);
static void cold_b(unsigned code, int left);

static inline __attribute__((always_inline)) void cold_step(unsigned code, int left)
{
	if (left == 0)
		TRUTH_KEEP(malloc(100));
	else if (code & 1)
		cold_b(code >> 1, left - 1);
	else
		cold_a(code >> 1, left - 1);
	TRUTH_KEEP(&code);
}

__attribute__((noinline, noclone)) static void cold_a(unsigned code, int left)
{
	cold_step(code, left);
}

__attribute__((noinline, noclone)) static void cold_b(unsigned code, int left)
{
	cold_step(code, left);
}

/* One frame for both kinds, so that its sums are the program's. */
__attribute__((noinline, noclone)) static void work(long calls)
{
	long between = calls / COLD;

	for (unsigned code = 0; code < COLD; code++) {
		for (long i = 0; i < between; i++)
			RUN(site_hot);
		cold_a(code, BITS);
		cold_bytes += 100;
	}
}

int main(int argc, char **argv)
{
	await("READY");
	work(argc > 1 ? atol(argv[1]) : 400000);
	say("COLD %d %lld\n", COLD, (long long)cold_bytes);
	finish();
	return 0;
}
