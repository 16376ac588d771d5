// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a stack costs by its depth: nothing but malloc and free below so many frames. Says how much
 * processor time a pair took, the least of many short turns: one of them is undisturbed.
 *   bench_deep DEPTH [PAIRS]   pairs per turn, default 100
 * build: -fno-builtin
 */
#include "truth.h"

#include <time.h>

#define TURNS 1000

__attribute__((noinline, noclone)) static void pairs(long count)
{
	for (long i = 0; i < count; i++) {
		void *p = malloc(64);

		TRUTH_KEEP(p);
		free(p);
	}
}

__attribute__((noinline, noclone)) static double turn(long count)
{
	struct timespec start, end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	pairs(count);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	return ((end.tv_sec - start.tv_sec) * 1e9 + end.tv_nsec - start.tv_nsec) / count;
}

__attribute__((noinline, noclone)) static void descend(long depth, long count)
{
	if (depth) {
		descend(depth - 1, count);
	} else {
		double least = turn(count);

		for (int i = 1; i < TURNS; i++) {
			double ns = turn(count);

			least = ns < least ? ns : least;
		}
		say("NS %.1f\n", least);
	}
	TRUTH_KEEP(&depth);
}

int main(int argc, char **argv)
{
	long depth = argc > 1 ? atol(argv[1]) : 0, count = argc > 2 ? atol(argv[2]) : 100;

	pairs(1000);
	await("READY");
	descend(depth, count);
	await("DONE");
	return 0;
}
