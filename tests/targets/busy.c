// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Children that are in full swing when somebody comes to watch: from their first moment on they
 * allocate, resize and free until they are told to stop, and then hold nothing any more. Sizes
 * grow, so that addresses do not come again at once.
 * build: -fno-builtin
 */
#include "truth.h"

#include <poll.h>
#include <sys/wait.h>

#define CHILDREN 3
#define OBJECTS	 200

static int go[2];

__attribute__((noinline, noclone)) void *busy_alloc(size_t size)
{
	void *p = malloc(size);

	TRUTH_KEEP(p);
	return p;
}

__attribute__((noinline, noclone)) void *busy_resize(void *p, size_t size)
{
	p = realloc(p, size);
	TRUTH_KEEP(p);
	return p;
}

static void round_of(size_t size)
{
	void *p[OBJECTS];

	for (int i = 0; i < OBJECTS; i++)
		p[i] = busy_alloc(size);
	for (int i = 0; i < OBJECTS; i++)
		p[i] = busy_resize(p[i], size * 2);
	for (int i = 0; i < OBJECTS; i++)
		free(p[i]);
}

static void be_child(void)
{
	struct pollfd in = {.fd = go[0]};

	close(go[1]);
	for (size_t round = 0; poll(&in, 1, 0) == 0; round++)
		round_of(24 + round % 100 * 16);
	_exit(0);
}

int main(void)
{
	if (pipe(go))
		return 6;
	await("READY");
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();

		if (!child)
			be_child();
		say("CHILD %d\n", (int)child);
	}
	await("FORKED");
	close(go[1]);
	for (int i = 0; i < CHILDREN; i++) {
		int status;

		if (wait(&status) < 0 || status)
			return 8;
	}
	await("DONE");
	return 0;
}
