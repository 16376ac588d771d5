// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Addresses that wander between threads: one allocates, another frees, a third one gets the
 * address next; and threads that churn side by side.
 *   threads [OBJECTS]   handed over per pair, default 10000
 * build: -fno-builtin -pthread
 */
#include "truth.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define PAIRS 2
#define SLOTS 64
#define KEPT  1000

static long objects = 10000;

/* One producer, one consumer. */
struct ring {
	_Atomic long head, tail;
	void *slot[SLOTS];
	size_t size[SLOTS];
};

static struct ring rings[PAIRS];
static atomic_int running;

static struct truth *truth_of_produce;

SITE(site_produce)
{
	struct ring *ring = &rings[atomic_fetch_add(&running, 1) % PAIRS];

	for (long i = 0; i < objects; i++) {
		size_t size = 16 + i % 500;
		void *p = took(self, malloc(size), size);

		while (ring->head - ring->tail == SLOTS)
			sched_yield();
		ring->slot[ring->head % SLOTS] = p;
		ring->size[ring->head % SLOTS] = size;
		ring->head++;
	}
}

static void consume(struct ring *ring)
{
	for (long i = 0; i < objects; i++) {
		while (ring->head == ring->tail)
			sched_yield();
		/* Every tenth is kept. */
		if (i % 10) {
			size_t size = ring->size[ring->tail % SLOTS];

			free(ring->slot[ring->tail % SLOTS]);
			gave(truth_of_produce, size);
		}
		ring->tail++;
	}
}

SITE(site_churn)
{
	static __thread void *kept[KEPT];
	unsigned seed = 1;

	for (long i = 0; i < objects; i++) {
		void **p = &kept[(seed = seed * 1103515245 + 12345) / 65536 % KEPT];

		if (*p) {
			free(*p);
			gave(self, 200);
		}
		*p = took(self, malloc(200), 200);
	}
}

static pthread_barrier_t start, done;

static void *producer(void *arg)
{
	pthread_barrier_wait(&start);
	RUN(site_produce);
	RUN(site_churn);
	pthread_barrier_wait(&done);
	return arg;
}

static void *consumer(void *arg)
{
	pthread_barrier_wait(&start);
	consume(arg);
	RUN(site_churn);
	pthread_barrier_wait(&done);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc > 1)
		objects = atol(argv[1]);
	truth_of_produce = &truth_site_produce;
	pthread_barrier_init(&start, NULL, 2 * PAIRS + 1);
	pthread_barrier_init(&done, NULL, 2 * PAIRS + 1);
	for (int i = 0; i < PAIRS; i++) {
		pthread_create(&thread, NULL, producer, NULL);
		pthread_create(&thread, NULL, consumer, &rings[i]);
	}
	await("READY");
	pthread_barrier_wait(&start);
	pthread_barrier_wait(&done);
	finish();
	return 0;
}
