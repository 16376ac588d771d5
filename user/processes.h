/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of the processes of a recording, for people and for programs.
 */
#ifndef PROCESSES_H
#define PROCESSES_H

#include "heap.h"

#include <stdio.h>

struct opts;
struct session;
struct target;

/* A process that was recorded. */
struct processes_row {
	const struct target *target; /* borrowed */
	struct heap_totals totals;
};

/* All of them. Zeroed, it is empty. */
struct processes {
	struct processes_row *rows; /* owned; the largest first, by what it has in use */
	size_t cnt;
};

/*
 * Makes the table: targets that were named, and others of which something was sampled. 0 or
 * -ENOMEM.
 */
int processes_make(const struct session *session, struct processes *out);

/*
 * Writes the `rows` largest, what the others have, and how many were chosen but not profiled, and
 * why.
 */
void processes_show(const struct processes *processes, const struct session *session, size_t rows,
		    FILE *out);

/*
 * Writes all of them to heapbpf.processes.tsv in the directory of the output, beside their
 * profiles: a line with the names of the columns, then a line for each. 0 or -errno, logged.
 */
int processes_write(const struct processes *processes, const struct session *session);

/* Checks before a run that the file of processes_write() can be written. 0 or -errno, logged. */
int processes_check(const struct opts *opts);

/* Frees and empties. */
void processes_clear(struct processes *processes);

#endif
