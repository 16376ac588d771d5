// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program that allocates from its first instruction to its last, and tells the truth shortly
 * before its end. It reads nothing, but for `wait`.
 *   begin return                ends by return from main, after handlers and destructors that free
 *   begin signal                ends by SIGSEGV
 *   begin thread                ends by _exit in a thread
 *   begin exec WORD...          executes WORD..., with all that it allocated still in use
 *   begin thread-exec WORD...   the same from a thread
 *   begin signals               says "GOT n" for each signal, and ends at SIGTERM
 *   begin wait                  says READY and waits for a byte
 * With -DLIBRARY the source is a library with a constructor of its own; with -DWITH_LIBRARY it is
 * told to say its truth as well.
 * build: -fno-builtin -pthread
 * library: libbegin -DLIBRARY -fno-builtin
 */
#include "truth.h"

#include <pthread.h>
#include <signal.h>

void library_tell(int goes_on);

/* What is in use ends with an image; what was allocated stays. */
static void tell_image(int goes_on)
{
	for (struct truth *t = truth_first; goes_on && t; t = t->next)
		t->inuse_objects = t->inuse_bytes = 0;
	tell();
}

#ifdef LIBRARY

SITE(site_library)
{
	for (int i = 0; i < 70; i++)
		took(self, malloc(33), 33);
	free(took(self, malloc(34), 34));
	gave(self, 34);
}

__attribute__((constructor)) static void begin_library(void)
{
	RUN(site_library);
}

void library_tell(int goes_on)
{
	tell_image(goes_on);
}

#else

#define OBJECTS 200

static void *blocks[OBJECTS];

/* The first code of the program itself. */
SITE(site_first)
{
	for (int i = 0; i < 300; i++)
		took(self, malloc(40), 40);
	free(took(self, calloc(3, 40), 120));
	gave(self, 120);
}

__attribute__((constructor(101))) static void begin(void)
{
	RUN(site_first);
}

SITE(site_main)
{
	for (int i = 0; i < OBJECTS; i++)
		blocks[i] = took(self, malloc(100), 100);
}

SITE(site_last)
{
	took(self, realloc(NULL, 500), 500);
}

static void tell_all(int goes_on)
{
#ifdef WITH_LIBRARY
	library_tell(goes_on);
#endif
	tell_image(goes_on);
}

static void free_half(void)
{
	for (int i = 0; i < OBJECTS; i += 2) {
		free(blocks[i]);
		gave(&truth_site_main, 100);
	}
}

static int returns;

/* After everything else of the program. */
__attribute__((destructor(101))) static void end(void)
{
	if (!returns)
		return;
	RUN(site_last);
	tell_all(0);
}

static void *end_in_thread(void *unused)
{
	RUN(site_last);
	tell_all(0);
	_exit(0);
	return unused;
}

static void *become(void *argv)
{
	tell_all(1);
	execv(((char **)argv)[0], (char **)argv);
	_exit(9);
}

static void in_thread(void *(*fn)(void *), void *data)
{
	pthread_t thread;

	pthread_create(&thread, NULL, fn, data);
	pthread_join(thread, NULL);
	_exit(9);
}

static void count_signals(void)
{
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	say("READY\n");
	do {
		if (sigwait(&set, &number))
			_exit(9);
		say("GOT %d\n", number);
	} while (number != SIGTERM);
	tell_all(0);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	RUN(site_main);
	if (!strcmp(mode, "return")) {
		returns = 1;
		atexit(free_half);
	} else if (!strcmp(mode, "signal")) {
		tell_all(0);
		raise(SIGSEGV);
	} else if (!strcmp(mode, "thread")) {
		in_thread(end_in_thread, NULL);
	} else if (!strcmp(mode, "exec")) {
		become(argv + 2);
	} else if (!strcmp(mode, "thread-exec")) {
		in_thread(become, argv + 2);
	} else if (!strcmp(mode, "signals")) {
		count_signals();
	} else if (!strcmp(mode, "wait")) {
		await("READY");
		tell_all(0);
	} else {
		return 64;
	}
	return 0;
}

#endif
