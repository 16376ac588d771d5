// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A process with many short-lived children: `litter N` makes N, in turn forked (which free and
 * allocate on their own account) and spawned (which are another program at once), and allocates
 * between them.
 *
 * build: -fno-builtin
 */
#include "truth.h"

#include <spawn.h>
#include <sys/wait.h>

static void *last;

SITE(site_parent)
{
	void *before = last;

	last = took(self, malloc(64), 64);
	if (before) {
		free(before);
		gave(self, 64);
	}
}

static void collect(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child || status)
		_exit(6);
}

static void fork_one(void)
{
	pid_t child = fork();

	if (child < 0)
		_exit(7);
	if (child) {
		collect(child);
		return;
	}
	free(last);
	for (int i = 0; i < 20; i++)
		TRUTH_KEEP(malloc(64));
	_exit(0);
}

/* posix_spawn() allocates nothing in the parent. */
static void spawn_one(void)
{
	char *argv[] = {(char *)"true", NULL}, *envp[] = {NULL};
	pid_t child;

	if (posix_spawn(&child, "/bin/true", NULL, NULL, argv, envp))
		_exit(8);
	collect(child);
}

int main(int argc, char **argv)
{
	int children = argc > 1 ? atoi(argv[1]) : 10;

	await("READY");
	for (int i = 0; i < children; i++) {
		RUN(site_parent);
		if (i % 2)
			spawn_one();
		else
			fork_one();
	}
	finish();
	return 0;
}
