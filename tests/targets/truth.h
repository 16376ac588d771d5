/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What every target shares: counting its own allocations per function, and the handshake.
 *
 * A target says READY and waits for a byte on stdin; allocates through named functions; prints
 *   SITE function alloc_objects alloc_bytes inuse_objects inuse_bytes
 * for each of them, says DONE and waits again. Nothing in here allocates, so a profile of the
 * time between holds the target's own calls and no more.
 */
#ifndef TRUTH_H
#define TRUTH_H

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The counts of one function. Threads may share it. */
struct truth {
	const char *name;
	int64_t alloc_objects, alloc_bytes, inuse_objects, inuse_bytes;
	int allocs_open; /* how often the library allocates inside is its own affair */
	struct truth *next;
};

static struct truth *truth_first;

/* Keeps the compiler from removing or moving an allocation. */
#define TRUTH_KEEP(p) __asm__ volatile("" : : "r"(p) : "memory")

/*
 * SITE(name) { ... } defines a function that allocates; it is never inlined, and its last act is
 * to count, so that no call of an allocator becomes a jump. `self` are its counts.
 */
#ifdef __cplusplus
#define TRUTH_C extern "C"
#else
#define TRUTH_C
#endif
#define SITE(fn)                                                                                   \
	static struct truth truth_##fn = {#fn, 0, 0, 0, 0, 0, NULL};                               \
	__attribute__((constructor)) static void register_##fn(void)                               \
	{                                                                                          \
		truth_##fn.next = truth_first;                                                     \
		truth_first = &truth_##fn;                                                         \
	}                                                                                          \
	TRUTH_C __attribute__((noinline, noclone)) void fn(struct truth *self);                    \
	TRUTH_C void fn(struct truth *self)

/* Calls a site. */
#define RUN(fn)                                                                                    \
	do {                                                                                       \
		fn(&truth_##fn);                                                                   \
		TRUTH_KEEP(&truth_##fn);                                                           \
	} while (0)

/* p was just allocated with `bytes`; NULL counts nothing. Returns p. */
static inline void *took(struct truth *self, void *p, size_t bytes)
{
	TRUTH_KEEP(p);
	if (p) {
		__atomic_fetch_add(&self->alloc_objects, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&self->alloc_bytes, bytes, __ATOMIC_RELAXED);
		__atomic_fetch_add(&self->inuse_objects, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&self->inuse_bytes, bytes, __ATOMIC_RELAXED);
	}
	return p;
}

/* An object of `self` with `bytes` has just been freed. */
static inline void gave(struct truth *self, size_t bytes)
{
	__atomic_fetch_sub(&self->inuse_objects, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&self->inuse_bytes, bytes, __ATOMIC_RELAXED);
}

/* One line on stdout, written at once and without stdio's buffer. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	char line[512];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (write(STDOUT_FILENO, line, len) != len)
		_exit(3);
}

/* Says `word` and waits for a byte. A closed stdin means that nobody listens any more. */
static inline void await(const char *word)
{
	char byte;
	ssize_t got;

	say("%s\n", word);
	do
		got = read(STDIN_FILENO, &byte, 1);
	while (got < 0 && errno == EINTR);
	if (got != 1)
		_exit(4);
}

/* Prints the counts of every site. */
static inline void tell(void)
{
	for (struct truth *t = truth_first; t; t = t->next) {
		if (t->allocs_open)
			say("SITE %s - - %lld %lld\n", t->name, (long long)t->inuse_objects,
			    (long long)t->inuse_bytes);
		else
			say("SITE %s %lld %lld %lld %lld\n", t->name, (long long)t->alloc_objects,
			    (long long)t->alloc_bytes, (long long)t->inuse_objects,
			    (long long)t->inuse_bytes);
	}
}

/* The end of the allocating part: truth, DONE, and a byte to go on. */
static inline void finish(void)
{
	tell();
	await("DONE");
}

#endif
