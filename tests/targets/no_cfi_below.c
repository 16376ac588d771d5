// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Stacks for a C library without call frame information, as musl's: as far as the program's own
 * frames go, and marked there. With glibc they are complete.
 * build: -fno-builtin -pthread
 */
#include "frames.h"

#include <pthread.h>
#include <signal.h>

#ifdef __GLIBC__
#define END_MAIN   MAIN
#define END_THREAD THREAD
#define END_SORT   "*;sort;main;*;_start"
#define END_SIGNAL "*;interrupted;main;*;_start"
#else
/* The library may have left rbp alone, which is 0 at the start. */
#define END_MAIN   "main;*;[no_row]|[guessed_end]"
#define END_THREAD "*;[no_row]"
#define END_SORT   "*;[no_row]"
/* Through the handler's return stub to where raise was interrupted. */
#define END_SIGNAL "*;[no_row]"
#endif

FRAME void middle(size_t size)
{
	take(size);
	AFTER_CALL();
}

FRAME void *thread_main(void *size)
{
	middle((size_t)size);
	return size;
}

FRAME void on_signal(int signal)
{
	take(SITE_SIZE(2));
	TRUTH_KEEP(&signal);
}

FRAME void interrupted(void)
{
	raise(SIGUSR1);
	AFTER_CALL();
}

FRAME int compare(const void *a, const void *b)
{
	static int calls;

	if (!calls++)
		take(SITE_SIZE(3));
	return *(const int *)a - *(const int *)b;
}

FRAME void sort(void)
{
	int numbers[] = {3, 1, 2};

	qsort(numbers, 3, sizeof(int), compare);
	TRUTH_KEEP(numbers);
}

int main(void)
{
	pthread_t thread;

	/* An allocator is one that can free. */
	free(malloc(1));
	await("READY");
	middle(SITE_SIZE(0));
	chain_of(SITE_SIZE(0), 1, "take;middle", END_MAIN);
	if (pthread_create(&thread, NULL, thread_main, (void *)SITE_SIZE(1)) ||
	    pthread_join(thread, NULL))
		_exit(5);
	chain_of(SITE_SIZE(1), 1, "take;middle;thread_main", END_THREAD);
	signal(SIGUSR1, on_signal);
	interrupted();
	chain_of(SITE_SIZE(2), 1, "take;on_signal", END_SIGNAL);
	sort();
	chain_of(SITE_SIZE(3), 1, "take;compare", END_SORT);
	await("DONE");
	return 0;
}
