// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Work that comes by the clock: every millisecond a hundred blocks of 1000 bytes, each freed at
 * once, and some computing, about a fifth of the millisecond; what was missed is made up for,
 * unless it is more than LATE_NS: who runs before all others must not do so for long.
 * Between the two bytes of the handshake; says "TICKS number" and "SECONDS time" at its end.
 * build: -fno-builtin
 */
#include "truth.h"

#include <poll.h>
#include <time.h>

#define TICK_NS 1000000LL
#define BLOCKS	100
#define LATE_NS 20000000LL

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

__attribute__((noinline, noclone)) void paced_site(void)
{
	void *p = malloc(1000);

	TRUTH_KEEP(p);
	free(p);
}

/* Computes for so long, whatever else takes our time. */
static void work(void)
{
	for (volatile int i = 0; i < 100000; i++)
		;
}

int main(void)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	int64_t start, next, ticks = 0;

	await("READY");
	start = next = now_ns(CLOCK_MONOTONIC);
	while (poll(&in, 1, 0) == 0) {
		struct timespec until;

		for (int i = 0; i < BLOCKS; i++)
			paced_site();
		work();
		ticks++;
		next += TICK_NS;
		if (now_ns(CLOCK_MONOTONIC) > next + LATE_NS)
			next = now_ns(CLOCK_MONOTONIC);
		until = (struct timespec){next / 1000000000, next % 1000000000};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
	say("TICKS %lld\n", (long long)ticks);
	say("SECONDS %.3f\n", (double)(now_ns(CLOCK_MONOTONIC) - start) / 1e9);
	await("DONE");
	return 0;
}
