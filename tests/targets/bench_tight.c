// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The worst case: nothing but malloc and free. Says how much processor time a pair took.
 *   bench_tight [PAIRS]   default 2000000
 * build: -fno-builtin
 */
#include "truth.h"

#include <time.h>

__attribute__((noinline, noclone)) static void pairs(long count)
{
	for (long i = 0; i < count; i++) {
		void *p = malloc(64);

		TRUTH_KEEP(p);
		free(p);
	}
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 2000000;
	struct timespec start, end;

	pairs(1000);
	await("READY");
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	pairs(count);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	say("NS %.1f\n", ((end.tv_sec - start.tv_sec) * 1e9 + end.tv_nsec - start.tv_nsec) / count);
	await("DONE");
	return 0;
}
