// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program at work that must not notice: allocates, fills, checks and frees without end, says
 * BEAT every so often, and ends when a byte comes. Any byte that is not as it was written ends it
 * at once.
 *
 * build: -fno-builtin -pthread
 */
#include "truth.h"

#include <poll.h>
#include <pthread.h>

#define KEPT 500

static volatile int stop;

static void check(const unsigned char *p, size_t size, unsigned char value)
{
	for (size_t i = 0; i < size; i++)
		if (p[i] != value)
			_exit(8);
}

__attribute__((noinline, noclone)) void *steady_alloc(size_t size, unsigned char value)
{
	void *p = malloc(size);

	TRUTH_KEEP(p);
	return memset(p, value, size);
}

static void turn(unsigned char **kept, size_t *sizes, unsigned *seed)
{
	unsigned slot, draw;

	*seed = *seed * 1103515245 + 12345;
	draw = *seed >> 8;
	slot = draw % KEPT;
	if (kept[slot]) {
		check(kept[slot], sizes[slot], slot & 0xff);
		free(kept[slot]);
	}
	sizes[slot] = 1 + draw % 700;
	kept[slot] = steady_alloc(sizes[slot], slot & 0xff);
}

static void *second_thread(void *arg)
{
	static unsigned char *kept[KEPT];
	static size_t sizes[KEPT];
	unsigned seed = 2;

	while (!stop)
		turn(kept, sizes, &seed);
	return arg;
}

int main(void)
{
	static unsigned char *kept[KEPT];
	static size_t sizes[KEPT];
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	pthread_t thread;
	unsigned seed = 1;

	await("READY");
	pthread_create(&thread, NULL, second_thread, NULL);
	for (long i = 0; poll(&in, 1, 0) == 0; i++) {
		for (int j = 0; j < 1000; j++)
			turn(kept, sizes, &seed);
		if (i % 100 == 0)
			say("BEAT\n");
	}
	stop = 1;
	pthread_join(thread, NULL);
	for (unsigned slot = 0; slot < KEPT; slot++)
		if (kept[slot])
			check(kept[slot], sizes[slot], slot & 0xff);
	say("SOUND\n");
	return 0;
}
