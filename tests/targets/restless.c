// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A process whose mappings never rest: threads map, split, move the borders of, and unmap their
 * pieces, and load and drop a library, until a byte comes.
 * build: -fno-builtin -pthread -ldl
 */
#define _GNU_SOURCE
#include "truth.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>

#define PIECES 64
#define PIECE  (64 * 4096)

static volatile int stop;

/* Borders move: each page in turn becomes writable, and the pieces come and go. */
static void *move_borders(void *arg)
{
	char *pieces[PIECES];

	while (!stop) {
		for (int i = 0; i < PIECES; i++)
			pieces[i] =
				mmap(NULL, PIECE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (int end = 4096; end <= PIECE; end += 4096)
			for (int i = 0; i < PIECES; i++)
				mprotect(pieces[i], end, PROT_READ | PROT_WRITE);
		for (int i = 0; i < PIECES; i++)
			munmap(pieces[i], PIECE);
	}
	return arg;
}

static void *load_and_drop(void *arg)
{
	while (!stop) {
		void *library = dlopen("libutil.so.1", RTLD_NOW);

		TRUTH_KEEP(malloc(100));
		if (library)
			dlclose(library);
	}
	return arg;
}

int main(void)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	pthread_t threads[3];

	await("READY");
	pthread_create(&threads[0], NULL, move_borders, NULL);
	pthread_create(&threads[1], NULL, move_borders, NULL);
	pthread_create(&threads[2], NULL, load_and_drop, NULL);
	poll(&in, 1, -1);
	stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
