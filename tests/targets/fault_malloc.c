// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A library to preload: an allocation of the program fails, wherever it is made, in the program or
 * in a library. Allocations are counted by the path of calls that leads to them: thousands of them
 * are few hundred paths. Those before main() do not count.
 *
 *   FAULT_NTH=N    the first allocation on the N-th path fails, from 1; 0 or absent: none
 *   FAULT_ON=1     and so does everything after it
 *   FAULT_COUNT=F  writes to the file F, at the end, how many paths there were
 *
 * Processes that it forks count with it.
 *
 * The real allocator is the next one in the order of loading, so that a sanitizer's may be it.
 *
 * build: -fPIC -shared
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEPTH	  24
#define PATHS_MAX (1 << 16) /* a power of two, for the table of those seen */

static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void *(*real_aligned_alloc)(size_t, size_t);
static int (*real_posix_memalign)(void **, size_t, size_t);
static void (*real_free)(void *);

/* dlsym() allocates before there is an allocator. Never freed, and zero. */
static char early[4096];
static size_t early_used;

static bool counting, all_after;
static __thread bool inside;
static pid_t first_pid;
static long nth;

/* What forked processes share. */
static struct shared {
	atomic_flag busy;
	bool failed;
	long path_cnt;
	uint64_t seen[PATHS_MAX]; /* by hash; 0: free */
} * shared;

static void *take_early(size_t size)
{
	char *p = early + early_used;

	if (size > sizeof(early) - early_used)
		return NULL;
	early_used += (size + 15) & ~(size_t)15;
	return p;
}

static bool is_early(const void *p)
{
	return (const char *)p >= early && (const char *)p < early + sizeof(early);
}

/* Resolves everything at the first call; false while that is under way. */
static bool ready(void)
{
	static bool resolving;

	if (real_free)
		return true;
	if (resolving)
		return false;
	resolving = true;
	real_malloc = dlsym(RTLD_NEXT, "malloc");
	real_calloc = dlsym(RTLD_NEXT, "calloc");
	real_realloc = dlsym(RTLD_NEXT, "realloc");
	real_aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
	real_posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
	real_free = dlsym(RTLD_NEXT, "free");
	resolving = false;
	return true;
}

/* Notes the path that leads here; true if it is new. */
static bool is_new_path(void)
{
	void *frames[DEPTH];
	int cnt = backtrace(frames, DEPTH);
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
	size_t slot;

	for (int i = 0; i < cnt; i++)
		hash = (hash ^ (uintptr_t)frames[i]) * 0x100000001b3;
	hash |= 1;
	for (slot = hash % PATHS_MAX; shared->seen[slot] && shared->seen[slot] != hash;)
		slot = (slot + 1) % PATHS_MAX;
	if (shared->seen[slot] || shared->path_cnt == PATHS_MAX / 2)
		return false;
	shared->seen[slot] = hash;
	return true;
}

/* Is this the one? */
static bool fails(void)
{
	bool fail;

	if (!counting || inside)
		return false;
	inside = true;
	while (atomic_flag_test_and_set(&shared->busy))
		;
	fail = is_new_path() && ++shared->path_cnt == nth;
	fail |= shared->failed && all_after;
	shared->failed |= fail;
	atomic_flag_clear(&shared->busy);
	inside = false;
	if (!fail)
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	if (!ready())
		return take_early(size);
	return fails() ? NULL : real_malloc(size);
}

void *calloc(size_t cnt, size_t size)
{
	if (!ready())
		return take_early(cnt * size);
	return fails() ? NULL : real_calloc(cnt, size);
}

void *realloc(void *p, size_t size)
{
	if (!ready())
		return take_early(size);
	return fails() ? NULL : real_realloc(p, size);
}

void *aligned_alloc(size_t align, size_t size)
{
	if (!ready())
		return NULL;
	return fails() ? NULL : real_aligned_alloc(align, size);
}

int posix_memalign(void **out, size_t align, size_t size)
{
	if (!ready())
		return ENOMEM;
	return fails() ? ENOMEM : real_posix_memalign(out, align, size);
}

void free(void *p)
{
	if (!is_early(p) && ready())
		real_free(p);
}

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("FAULT_NTH");
	void *frame;

	/* The first call loads a library. */
	backtrace(&frame, 1);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		_exit(98);
	first_pid = getpid();
	nth = text ? atol(text) : 0;
	all_after = getenv("FAULT_ON") != NULL;
	counting = true;
}

__attribute__((destructor)) static void end(void)
{
	const char *path = getenv("FAULT_COUNT");
	char text[32];
	int fd, len;

	counting = false;
	if (!path || getpid() != first_pid)
		return;
	len = snprintf(text, sizeof(text), "%ld\n", shared->path_cnt);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, len) != len)
		_exit(98);
	close(fd);
}
