// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A thousand times operator new throws, for a size that no machine has and for one that is more
 * than the limit of this process, and is caught. In between the same call of operator new, at the
 * same depth of the stack, succeeds; large objects, so that each is sampled at the default rate.
 * build: -std=c++17
 */
#include "truth.h"

#include <new>
#include <sys/resource.h>
#include <sys/wait.h>

#define TURNS 1000
#define LARGE (16UL << 20)

/* Volatile, so that no compiler knows. */
static volatile size_t impossible = PTRDIFF_MAX, beyond_limit = 8UL << 30;

static __attribute__((noinline)) void *get(size_t bytes)
{
	void *p = ::operator new(bytes);

	TRUTH_KEEP(p);
	return p;
}

static __attribute__((noinline)) bool is_thrown(size_t bytes)
{
	try {
		TRUTH_KEEP(get(bytes));
	} catch (const std::bad_alloc &) {
		return true;
	}
	return false;
}

static int caught_cnt()
{
	int caught = 0;

	for (int i = 0; i < TURNS / 2; i++) {
		caught += is_thrown(impossible);
		::operator delete(get(100 + i));
		caught += is_thrown(beyond_limit);
		::operator delete(get(100 + i));
	}
	return caught;
}

SITE(site_throws)
{
	/* The exception objects come and go. */
	self->allocs_open = 1;
	if (caught_cnt() != TURNS)
		_exit(5);
}

/* A child has the breakpoints of its parent, and nobody who follows it. */
static void throw_in_child()
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(caught_cnt() == TURNS ? 0 : 5);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		_exit(6);
}

SITE(site_large)
{
	for (int i = 0; i < 100; i++) {
		void *p = took(self, get(LARGE), LARGE);

		if (i % 10) {
			::operator delete(p);
			gave(self, LARGE);
		}
	}
}

int main()
{
	struct rlimit limit = {4UL << 30, 4UL << 30};

	if (setrlimit(RLIMIT_AS, &limit))
		return 1;
	await("READY");
	RUN(site_large);
	RUN(site_throws);
	throw_in_child();
	RUN(site_large);
	finish();
	return 0;
}
