/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What must not be cut in the middle, not even by SIGKILL.
 */
#ifndef APART_H
#define APART_H

#include <stddef.h>

/*
 * Does fn on a copy of the `bytes` bytes at `data` in a process of its own, waits, and copies the
 * data back. What fn returned; -EINTR if somebody killed the process before its end, with the data
 * as fn had it at that moment. If no process can be made, fn is done by us.
 *
 * What kills us does not kill it: it goes on to the end, and then its end closes what we held. It
 * has no memory of ours, but a copy: for want of memory the kernel kills a process with all that
 * share its memory. It has our descriptors: what it opens is open here. (Whatever our threads open
 * or close meanwhile: the kernel keeps the table of threads and of such a process in the same way.)
 *
 * fn must make system calls only (any lock of our threads may be held in the copy); what it writes
 * elsewhere is lost. It must not exit, change signal masks or start threads; getpid() in it is not
 * ours.
 */
int apart_call(int (*fn)(void *data), void *data, size_t bytes);

/* Each is a process for as long as the kernel waits. */
#define APART_CLOSE_MAX 16

/*
 * Closes up to APART_CLOSE_MAX descriptors, each by the end of a process that has nothing else, and
 * waits: a process that ends cannot be interrupted any more, so whoever is killed meanwhile, all is
 * done to its end. For which no process can be made is closed by us. All at once: what waits for
 * grace periods of the kernel waits for the same ones.
 */
void apart_close(const int *fds, size_t cnt);

#endif
