// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Children that allocate. The truth of each is in the file truth.PID, that of the parent is said as
 * always.
 *   children now fork    they allocate at once
 *   children now exec    the same in another image of this program
 *   children wait fork   the parent says their numbers and FORKED, and they wait until it goes on
 *   children wait exec
 * build: -fno-builtin
 */
#include "truth.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/wait.h>

#define CHILDREN 3
#define OBJECTS	 1000

static int go[2];

SITE(site_parent)
{
	for (int i = 0; i < OBJECTS; i++)
		took(self, malloc(100), 100);
}

SITE(site_child)
{
	for (int i = 0; i < 2 * OBJECTS; i++) {
		void *p = took(self, malloc(100), 100);

		if (i % 2)
			continue;
		free(p);
		gave(self, 100);
	}
}

SITE(site_image)
{
	for (int i = 0; i < OBJECTS; i++)
		took(self, calloc(3, 50), 150);
}

static void tell_one(const struct truth *truth)
{
	say("SITE %s %lld %lld %lld %lld\n", truth->name, (long long)truth->alloc_objects,
	    (long long)truth->alloc_bytes, (long long)truth->inuse_objects,
	    (long long)truth->inuse_bytes);
}

/* What is said from now on goes to truth.PID. */
static void tell_in_file(void)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "truth.%d", (int)getpid());
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
		_exit(7);
}

static void be_child(bool waits, char *name)
{
	char byte;

	tell_in_file();
	if (waits && read(go[0], &byte, 1) != 1)
		_exit(7);
	if (name) {
		execl("/proc/self/exe", name, "image", (char *)NULL);
		_exit(9);
	}
	RUN(site_child);
	tell_one(&truth_site_child);
	_exit(0);
}

static void be_image(void)
{
	RUN(site_image);
	tell_one(&truth_site_image);
}

static void be_parent(bool waits, char *name)
{
	pid_t children[CHILDREN];

	if (pipe(go))
		_exit(6);
	await("READY");
	RUN(site_parent);
	for (int i = 0; i < CHILDREN; i++) {
		children[i] = fork();
		if (!children[i])
			be_child(waits, name);
		say("CHILD %d\n", (int)children[i]);
	}
	if (waits)
		await("FORKED");
	if (write(go[1], "ggg", CHILDREN) != CHILDREN)
		_exit(6);
	for (int i = 0; i < CHILDREN; i++) {
		int status;

		if (waitpid(children[i], &status, 0) != children[i] || status)
			_exit(8);
	}
	finish();
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "image")) {
		be_image();
		return 0;
	}
	if (argc < 3)
		return 64;
	be_parent(!strcmp(argv[1], "wait"), strcmp(argv[2], "exec") ? NULL : argv[0]);
	return 0;
}
