// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Processes that come of a process. Only the first one's own calls are the truth.
 *   family_tree before    the child is there before anybody watches
 *   family_tree fork      a child is forked, frees its copies and allocates
 *   family_tree vfork     a child borrows the address space and executes /bin/true
 *   family_tree exec      the process itself becomes another program (its second half)
 *   family_tree thread    the same, executed by a thread that is not the main one
 * build: -fno-builtin -pthread
 */
#include "truth.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>

#define OBJECTS 1000

static void *blocks[OBJECTS];

SITE(site_parent)
{
	for (int i = 0; i < OBJECTS; i++)
		blocks[i] = took(self, malloc(100), 100);
}

SITE(site_parent_after)
{
	/* The same addresses as the child's, perhaps. */
	for (int i = 0; i < OBJECTS; i += 2) {
		free(blocks[i]);
		gave(&truth_site_parent, 100);
	}
	for (int i = 0; i < 100; i++)
		took(self, malloc(100), 100);
}

/* What a child does is not counted; its name must not carry anything. */
SITE(site_child)
{
	(void)self;
	for (int i = 0; i < OBJECTS; i++)
		free(blocks[i]);
	for (int i = 0; i < 3 * OBJECTS; i++)
		TRUTH_KEEP(malloc(100));
}

static void collect(pid_t child)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child || status)
		_exit(6);
}

static void run_before(void)
{
	int go[2];
	pid_t child;
	char byte = 0;

	if (pipe(go))
		_exit(6);
	child = fork();
	if (!child) {
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(7);
		RUN(site_child);
		_exit(0);
	}
	await("READY");
	RUN(site_parent);
	if (write(go[1], &byte, 1) != 1)
		_exit(6);
	collect(child);
	RUN(site_parent_after);
	finish();
}

static void run_fork(void)
{
	pid_t child;

	await("READY");
	RUN(site_parent);
	child = fork();
	if (!child) {
		RUN(site_child);
		_exit(0);
	}
	collect(child);
	RUN(site_parent_after);
	finish();
}

static void run_vfork(void)
{
	pid_t child;

	await("READY");
	RUN(site_parent);
	child = vfork();
	if (!child) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(9);
	}
	collect(child);
	RUN(site_parent_after);
	finish();
}

SITE(site_first_image)
{
	for (int i = 0; i < 300; i++)
		took(self, malloc(50), 50);
	free(took(self, malloc(51), 51));
	gave(self, 51);
}

SITE(site_second_image)
{
	for (int i = 0; i < 200; i++)
		took(self, malloc(70), 70);
}

static void *become_second(void *name)
{
	execl("/proc/self/exe", name, "second", (char *)NULL);
	_exit(9);
}

static void run_exec(char **argv, bool by_thread)
{
	pthread_t thread;

	await("READY");
	RUN(site_first_image);
	/* What was in use ends with the image. */
	say("SITE site_first_image %lld %lld 0 0\n",
	    (long long)truth_site_first_image.alloc_objects,
	    (long long)truth_site_first_image.alloc_bytes);
	if (!by_thread)
		become_second(argv[0]);
	pthread_create(&thread, NULL, become_second, argv[0]);
	pthread_join(thread, NULL);
	_exit(9);
}

static void run_second(void)
{
	await("EXECED");
	RUN(site_second_image);
	say("SITE site_second_image %lld %lld %lld %lld\n",
	    (long long)truth_site_second_image.alloc_objects,
	    (long long)truth_site_second_image.alloc_bytes,
	    (long long)truth_site_second_image.inuse_objects,
	    (long long)truth_site_second_image.inuse_bytes);
	await("DONE");
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "before"))
		run_before();
	else if (!strcmp(mode, "fork"))
		run_fork();
	else if (!strcmp(mode, "vfork"))
		run_vfork();
	else if (!strcmp(mode, "exec"))
		run_exec(argv, false);
	else if (!strcmp(mode, "thread"))
		run_exec(argv, true);
	else if (!strcmp(mode, "second"))
		run_second();
	else
		return 64;
	return 0;
}
