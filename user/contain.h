/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work that foreign bytes may bring down: libdw runs on files that anybody wrote, and it and others
 * do not survive a failed allocation everywhere. What we have recorded must not go down with them.
 */
#ifndef CONTAIN_H
#define CONTAIN_H

#include <stdbool.h>

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
 * From now on a crash of this process is one line and the status of a failure, instead of a word
 * from the shell. Not so in a copy made by contain_call().
 */
void contain_crashes(void);

#endif
