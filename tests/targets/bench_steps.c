// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Somebody who must answer in time: steps of about 10 microseconds, a few blocks of memory each,
 * for SECONDS (default 10). Says how long they took, in microseconds: "STEP
 * median 99.9th-percentile longest".
 * build: -fno-builtin
 */
#include "truth.h"

#include <time.h>

#define BUCKETS 100000 /* of a tenth of a microsecond; the last one holds the rest */

static unsigned buckets[BUCKETS];

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

__attribute__((noinline, noclone)) static void step(double *end)
{
	double start = now_us();

	for (int i = 0; i < 3; i++) {
		void *p = malloc(200);

		TRUTH_KEEP(p);
		free(p);
	}
	do
		*end = now_us();
	while (*end - start < 10);
}

static double percentile(unsigned long cnt, double part)
{
	unsigned long sum = 0;
	int i;

	for (i = 0; i < BUCKETS - 1 && sum <= cnt * part; i++)
		sum += buckets[i];
	return i / 10.0;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 10, begin, before, now, longest = 0;
	unsigned long cnt = 0;

	await("READY");
	begin = before = now_us();
	while (before - begin < seconds * 1e6) {
		unsigned bucket;

		step(&now);
		bucket = (now - before) * 10;
		buckets[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
		if (now - before > longest)
			longest = now - before;
		before = now;
		cnt++;
	}
	say("STEP %.1f %.1f %.0f\n", percentile(cnt, 0.5), percentile(cnt, 0.999), longest);
	await("DONE");
	return 0;
}
