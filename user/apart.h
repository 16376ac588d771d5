/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work that must not be cut in the middle, not even by SIGKILL.
 */
#ifndef APART_H
#define APART_H

/*
 * Calls fn(data) in a process of its own that has our memory and our descriptors, and waits for it;
 * returns what fn returned. What kills us does not kill it: it goes on to the end of fn, and then
 * closes what we held. If no process can be made, fn is called as it is. fn must not exit, change
 * signal masks or start threads; getpid() in it is not ours.
 */
int apart_call(int (*fn)(void *data), void *data);

#endif
