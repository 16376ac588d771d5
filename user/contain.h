/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work that foreign bytes may bring down: libdw runs on files that anybody wrote, and it and others
 * do not survive a failed allocation everywhere. What we have recorded must not go down with them.
 */
#ifndef CONTAIN_H
#define CONTAIN_H

#include <stdbool.h>
#include <sys/types.h>

/* What fn of contain_call() may return. */
#define CONTAIN_RESULT_MAX 100

/*
 * Calls fn(data) in a copy of this process and waits for it. True, and *result what fn returned (0
 * to CONTAIN_RESULT_MAX), if it came to its end; false if it crashed or left by itself. What it
 * changes in memory is lost; what it wrote through stdio is out. If no process can be made, fn is
 * called as it is. It dies with us.
 */
bool contain_call(int (*fn)(void *data), void *data, int *result);

/*
 * fork() of a copy that dies with us, by whatever signal: no handler of ours is called. It ends by
 * _exit(), and has what stdio had still to write: it must leave that alone.
 */
pid_t contain_fork(void);

/* Waits for a copy: its exit status, or -ECHILD if it has none; -errno of waitpid(2). */
int contain_wait(pid_t pid);

/*
 * From now on a crash of this process is one line and the status of a failure, instead of a word
 * from the shell. Not so in a copy made by the functions above.
 */
void contain_crashes(void);

#endif
