/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probes in all processes: the files that hold an allocator, whoever maps them.
 */
#ifndef EVERYBODY_H
#define EVERYBODY_H

#include <sys/types.h>

struct everybody;
struct session;

/*
 * Probes the allocators of all processes that exist, everywhere. 0 and *out (everybody_free()), or
 * -errno, logged. The session is borrowed.
 */
int everybody_open(struct session *session, struct everybody **out);

/* NULL is fine. The probes stay. */
void everybody_free(struct everybody *everybody);

/* Process `tgid` executed a program: its files will be looked at once it has mapped them. */
void everybody_seen(struct everybody *everybody, pid_t tgid);

/* Milliseconds until everybody_look() is to be called, -1: no need. */
int everybody_wait_ms(const struct everybody *everybody);

/* Looks at the files of those that are due. */
void everybody_look(struct everybody *everybody);

#endif
