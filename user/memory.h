/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How large a process is.
 */
#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>
#include <sys/types.h>

struct profile_memory;

/*
 * Reads the sizes of the process `tgid` into *out; what cannot be had stays as it is there.
 * `exact`: those of smaps_rollup, for which the kernel walks the page tables; else what it keeps
 * count of. 0, -ENOENT or -ESRCH: the process has ended, or -errno: something is missing.
 */
int memory_read(pid_t tgid, bool exact, struct profile_memory *out);

#endif
