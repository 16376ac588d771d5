// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A process that never rests, for hours, and knows what it did:
 *   soak LIBRARY DIRECTORY COPIES
 * threads come, allocate and go; copies of LIBRARY are loaded from DIRECTORY, used and dropped
 * (with COPIES 0 a new one each time, else so many in turn); children live for a moment; the main
 * thread replaces blocks. A byte ends it: the truth, and a line "SIZE bytes alloc_objects
 * inuse_objects" for what was allocated through the libraries, whose frames may be gone when
 * somebody looks.
 *
 * build: -fno-builtin -pthread -ldl
 */
#define _GNU_SOURCE
#include "truth.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define SLOTS	      1000
#define BATCH	      100
#define LIBRARY_BYTES 7919 /* no other block has this size */

static volatile int stop;
static const char *library, *directory;
static long copies;
static int64_t library_allocs, library_inuse;

static void die(const char *what)
{
	perror(what);
	_exit(9);
}

static void rest(int ms)
{
	poll(NULL, 0, ms);
}

/* Replaces a batch of blocks in the slots, of a few sizes. */
static void churn(struct truth *self, void **slots, size_t *sizes, unsigned *seed)
{
	for (int i = 0; i < BATCH; i++) {
		unsigned slot = (*seed = *seed * 1103515245 + 12345) / 65536 % SLOTS;
		size_t size = 16 + slot % 32 * 16;

		if (slots[slot]) {
			free(slots[slot]);
			gave(self, sizes[slot]);
		}
		slots[slot] = took(self, malloc(size), size);
		sizes[slot] = size;
	}
}

SITE(site_main)
{
	static void *slots[SLOTS];
	static size_t sizes[SLOTS];
	static unsigned seed = 1;

	churn(self, slots, sizes, &seed);
}

/* What a thread leaves behind is half of what it made; the last thread's is kept. */
SITE(site_thread)
{
	static void *left[BATCH];

	for (int i = 0; i < BATCH; i++) {
		free(took(self, malloc(320), 320));
		gave(self, 320);
		if (left[i]) {
			free(left[i]);
			gave(self, 48);
		}
		left[i] = took(self, malloc(48), 48);
	}
}

static void *short_thread(void *arg)
{
	RUN(site_thread);
	return arg;
}

static void *make_threads(void *arg)
{
	pthread_t thread;

	while (!stop) {
		if (pthread_create(&thread, NULL, short_thread, NULL))
			die("pthread_create");
		pthread_join(thread, NULL);
		rest(5);
	}
	return arg;
}

static void copy_library(const char *to)
{
	int in = open(library, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	struct stat st;

	if (in < 0 || out < 0 || fstat(in, &st) ||
	    sendfile(out, in, NULL, st.st_size) != st.st_size)
		die(to);
	close(in);
	close(out);
}

static void use_library(const char *path)
{
	static void *kept;
	void *handle = dlopen(path, RTLD_NOW);
	void *(*alloc)(size_t) =
		handle ? (void *(*)(size_t))dlsym(handle, "soak_library_alloc") : NULL;

	if (!alloc)
		die(path);
	for (int i = 0; i < 10; i++) {
		if (kept)
			free(kept);
		library_inuse += !kept;
		kept = alloc(LIBRARY_BYTES);
		library_allocs++;
		TRUTH_KEEP(kept);
	}
	dlclose(handle);
}

static void *load_libraries(void *arg)
{
	char path[512];

	for (long i = 0; !stop; i++) {
		snprintf(path, sizeof(path), "%s/lib%ld.so", directory, copies ? i % copies : i);
		if (i < copies || !copies)
			copy_library(path);
		use_library(path);
		if (!copies)
			unlink(path);
		rest(100);
	}
	return arg;
}

static void collect(pid_t child)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child || status)
		die("child");
}

static void *make_children(void *arg)
{
	char *argv[] = {(char *)"true", NULL}, *envp[] = {NULL};
	pid_t child;

	while (!stop) {
		if (posix_spawn(&child, "/bin/true", NULL, NULL, argv, envp))
			die("posix_spawn");
		collect(child);
		/* Its copies of our blocks are its own affair. */
		child = fork();
		if (!child) {
			for (int i = 0; i < 10; i++)
				TRUTH_KEEP(malloc(96));
			_exit(0);
		}
		collect(child);
		rest(100);
	}
	return arg;
}

int main(int argc, char **argv)
{
	void *(*const jobs[])(void *) = {make_threads, load_libraries, make_children};
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	pthread_t threads[3];

	if (argc != 4)
		return 64;
	library = argv[1];
	directory = argv[2];
	copies = atol(argv[3]);
	await("READY");
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, jobs[i], NULL);
	while (poll(&in, 1, 2) == 0)
		RUN(site_main);
	stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	say("SIZE %d %lld %lld\n", LIBRARY_BYTES, (long long)library_allocs,
	    (long long)library_inuse);
	if (read(STDIN_FILENO, &(char){0}, 1) != 1)
		return 4;
	finish();
	return 0;
}
