// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A process whose memory map is always locked for milliseconds: threads change the protection of
 * large pieces until a byte comes. Whoever has to look at the map of each process that uses a
 * library (the kernel, when it puts breakpoints there) waits here.
 *
 * build: -fno-builtin -pthread
 */
#include "truth.h"

#include <pthread.h>
#include <sys/mman.h>

#define THREADS 1
#define PIECE	(64 << 20)

static volatile int stop;

static void *change(void *piece)
{
	for (int i = 0; !stop; i++)
		mprotect(piece, PIECE, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE);
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++) {
		void *piece = mmap(NULL, PIECE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		if (piece == MAP_FAILED)
			return 1;
		madvise(piece, PIECE, MADV_NOHUGEPAGE);
		pthread_create(&threads[i], NULL, change, piece);
	}
	await("READY");
	stop = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
