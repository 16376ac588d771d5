/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What we lack, as opposed to what is not there. A file that cannot be opened for want of a
 * descriptor has an allocator and names all the same; to go on without it would be to lie.
 */
#ifndef SHORTAGE_H
#define SHORTAGE_H

#include <errno.h>
#include <stdbool.h>

/* True if -errno `err` speaks of our memory or descriptors, not of the thing asked for. */
static inline bool shortage_is(int err)
{
	return err == -ENOMEM || err == -EMFILE || err == -ENFILE;
}

/*
 * libelf and libdw say "there is none" when they run out of memory, too. malloc() leaves the truth
 * in errno: clear it with this before a piece of work with such a library.
 */
static inline void shortage_watch(void)
{
	errno = 0;
}

/* After the work: the shortage that errno tells since shortage_watch(), as -errno, or 0. */
static inline int shortage_seen(void)
{
	return shortage_is(-errno) ? -errno : 0;
}

#endif
