// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A process that allocates a block and executes itself again, all the time: `exec_storm N` does so
 * N times and then waits for the end. Each image has one block of 100 bytes, and it is the last one
 * whose block is in use.
 * build: -fno-builtin
 */
#include "truth.h"

#include <unistd.h>

__attribute__((noinline, noclone)) static void storm_site(void)
{
	TRUTH_KEEP(malloc(100));
}

int main(int argc, char **argv)
{
	int left = argc > 1 ? atoi(argv[1]) : 0;
	char text[16];

	if (argc <= 2)
		await("READY");
	storm_site();
	if (left) {
		snprintf(text, sizeof(text), "%d", left - 1);
		execl("/proc/self/exe", argv[0], text, "again", NULL);
		return 1;
	}
	await("DONE");
	return 0;
}
