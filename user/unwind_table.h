/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Brings unwind tables and mappings down to the maps of bpf/unwind.bpf.c: one table per file
 * shared by all processes, one sorted segment of mappings per process.
 */
#ifndef UNWIND_TABLE_H
#define UNWIND_TABLE_H

#include "mappings.h"

struct elf_file;
struct unwind_table;

/* Descriptors of the unwinder's maps, borrowed from the skeleton for the whole life. */
struct unwind_table_maps {
	int rows;   /* uw_rows */
	int index;  /* uw_index */
	int tables; /* uw_tables */
	int bigs;   /* uw_big */
	int maps;   /* uw_maps */
	int procs;  /* uw_procs */
};

/* What was built and what was not, for the summary. */
struct unwind_table_stats {
	uint64_t tables, failed;
	uint64_t rows, fde_dropped, rows_unsupported;
};

/* 0 and *out, -ENOMEM. Free with unwind_table_free(). */
int unwind_table_new(const struct unwind_table_maps *maps, struct unwind_table **out);

/* Frees the user-space side; the kernel's maps go with their descriptors. NULL is fine. */
void unwind_table_free(struct unwind_table *table);

/*
 * Replaces what the unwinder knows of `tgid` in `state` by the executable mappings in `maps` (those
 * with an elf attached get that file's table, built once per file and then reused). Safe while
 * the process runs: the new segment is written beside the old one and then switched to.
 * 0, or -errno, not logged; a file without a table is no error but counted in the stats and logged
 * once.
 */
int unwind_table_set(struct unwind_table *table, pid_t tgid, struct mappings_state state,
		     const struct procmaps *maps);

/* Forgets the process. */
void unwind_table_drop(struct unwind_table *table, pid_t tgid);

/* Totals since unwind_table_new(); borrowed. */
const struct unwind_table_stats *unwind_table_stats(const struct unwind_table *table);

#endif
