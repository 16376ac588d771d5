/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work that must not be cut in the middle, not even by SIGKILL.
 *
 * It is done by a process of its own, that has our descriptors: what it opens and closes is opened
 * and closed here. (Whatever else our threads open or close meanwhile: the kernel keeps the table
 * of threads and of such a process in the same way.) It has no memory of ours, but a copy: for want
 * of memory the kernel kills a process with all that share its memory.
 *
 * What kills us does not kill it: it goes on to the end, and then its end closes what we held.
 */
#ifndef APART_H
#define APART_H

#include <stddef.h>
#include <sys/types.h>

struct apart_area;

/* One piece of work under way. */
struct apart {
	void *data; /* borrowed */
	size_t bytes;
	struct apart_area *area; /* owned; NULL: no process could be made, all is done */
	pid_t pid;
	int result;
};

/*
 * Begins fn on a copy of the `bytes` bytes at `data`; several may be under way. If no process can
 * be made, fn is done at once, by us. fn must make system calls only (we have threads, and any of
 * their locks may be held in the copy); what it leaves in the copy comes back, nothing else of what
 * it writes. It must not exit, change signal masks or start threads; getpid() in it is not ours.
 */
void apart_begin(struct apart *apart, int (*fn)(void *data), void *data, size_t bytes);

/*
 * Waits for the end and copies the data back. What fn returned, or -EINTR if somebody killed the
 * process before its end; the data is then as fn had it at that moment.
 */
int apart_end(struct apart *apart);

/* Both. */
int apart_call(int (*fn)(void *data), void *data, size_t bytes);

#endif
