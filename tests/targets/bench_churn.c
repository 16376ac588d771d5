// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two threads that replace random ones of 50,000 objects each, of sizes up to 1 KiB, and write to
 * them: 100,000 objects are alive all the time. Says how much processor
 * time one replacement took.
 *   bench_churn [REPLACEMENTS]   of each thread, default 1000000
 * build: -fno-builtin -pthread
 */
#include "truth.h"

#include <pthread.h>
#include <time.h>

#define OBJECTS 50000

static long replacements = 1000000;
static pthread_barrier_t filled, start, done;

struct worker {
	unsigned seed;
	void *objects[OBJECTS];
};

static struct worker workers[2];

static void replace(struct worker *worker)
{
	unsigned draw = worker->seed = worker->seed * 1103515245 + 12345;
	void **slot = &worker->objects[(draw >> 8) % OBJECTS];
	size_t size = 16 + (draw >> 4) % 1000;

	free(*slot);
	*slot = malloc(size);
	TRUTH_KEEP(*slot);
	memset(*slot, 1, size);
}

static void *work(void *arg)
{
	for (int i = 0; i < OBJECTS; i++)
		((struct worker *)arg)->objects[i] = malloc(500);
	pthread_barrier_wait(&filled);
	pthread_barrier_wait(&start);
	for (long i = 0; i < replacements; i++)
		replace(arg);
	pthread_barrier_wait(&done);
	return arg;
}

int main(int argc, char **argv)
{
	struct timespec from, to;
	pthread_t thread;

	if (argc > 1)
		replacements = atol(argv[1]);
	pthread_barrier_init(&filled, NULL, 3);
	pthread_barrier_init(&start, NULL, 3);
	pthread_barrier_init(&done, NULL, 3);
	for (int i = 0; i < 2; i++) {
		workers[i].seed = i + 1;
		pthread_create(&thread, NULL, work, &workers[i]);
	}
	pthread_barrier_wait(&filled);
	await("READY");
	pthread_barrier_wait(&start);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	pthread_barrier_wait(&done);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	say("NS %.1f\n",
	    ((to.tv_sec - from.tv_sec) * 1e9 + to.tv_nsec - from.tv_nsec) / (2 * replacements));
	await("DONE");
	return 0;
}
