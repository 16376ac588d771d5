/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code of a file that a process has copied to memory without a file and moved over its place, as
 * programs do that want their code in huge pages.
 */
#ifndef REMAPPED_H
#define REMAPPED_H

#include <sys/types.h>

struct elf_cache;
struct procmaps;

/*
 * Attaches their file to such mappings of the snapshot, and marks them (procmap.remapped): those
 * that lie where the segments of the file before them say that its code is. 0, or -errno of a
 * shortage of ours.
 */
int remapped_restore(struct procmaps *maps, pid_t tgid, struct elf_cache *cache);

#endif
