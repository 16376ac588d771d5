// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a process's mappings with their ELF files. Out: the uw_ maps of bpf/unwind.bpf.c.
 *
 * A table belongs to a file, a segment (a run of uw_maps) to a process. A segment is never changed:
 * a new one is written beside it, uw_procs is switched, and the old one retires. BPF programs may
 * be asleep in the middle of a walk, so what retires is given out again only after RETIRE_NS, and
 * holds on to its tables until then. Tables without a segment are kept for the next process that
 * maps the file, within limits.
 */
#include "unwind_table.h"
#include "cfi.h"
#include "cleanup.h"
#include "clock.h"
#include "elf_file.h"
#include "log.h"
#include "procmaps.h"
#include "shortage.h"
#include "unwind_ranges.h"
#include "unwind_upload.h"
#include "vec.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>

/* How long a walk may take; a second is ages even for one that waits for a page from a disk. */
#define RETIRE_NS 1000000000

/* Rows of all tables: the kernel's memory is 8 bytes times this. */
#define ROW_TOTAL_MAX (32u << 20)

/* Unused tables are thrown away while there are more rows than this. */
#define ROW_TOTAL_KEEP (4u << 20)

/* The table of one file. */
struct table {
	const struct elf_file *elf; /* NULL: number not in use */
	int err;		    /* why there is none; 0: there is one */
	uint32_t refs;		    /* mappings in segments that use it */
	uint32_t big_first, big_cnt;
	uint64_t row_cnt;
	int rows_fd, index_fd; /* -1 once linked into the outer maps */
};

/* A run of uw_maps and its content. `maps` is owned, and refers to the tables in it. */
struct segment {
	uint32_t first;
	uint32_t cnt;
	struct hb_uw_map *maps;
	size_t cap;
	bool is_placed; /* `first` is taken from the ranges */
	uint64_t retired_ns;
};

struct process {
	pid_t tgid;
	uint32_t epoch;
	struct segment segment;
};

struct unwind_table {
	struct unwind_table_maps fds;
	struct table *tables; /* by number; tables[0] stays unused */
	size_t table_cnt, table_cap;
	uint64_t row_total;
	struct process *processes;
	size_t process_cnt, process_cap;
	struct segment *retired; /* oldest first */
	size_t retired_cnt, retired_cap;
	struct unwind_ranges map_ranges, big_ranges;
	bool warned_of_maps, warned_of_tables; /* said once that there are too many */
	struct unwind_table_stats stats;
};

int unwind_table_new(const struct unwind_table_maps *maps, struct unwind_table **out)
{
	struct unwind_table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	table->fds = *maps;
	table->map_ranges.total = HB_UW_MAP_MAX;
	table->big_ranges.total = HB_UW_BIG_MAX;
	*out = table;
	return 0;
}

/* Releases the segment's entries and its hold on the tables. */
static void segment_clear(struct unwind_table *table, struct segment *segment)
{
	for (uint32_t i = 0; i < segment->cnt; i++)
		if (segment->maps[i].table)
			table->tables[segment->maps[i].table].refs--;
	if (segment->is_placed)
		unwind_ranges_give(&table->map_ranges, segment->first, segment->cnt);
	free(segment->maps);
	*segment = (struct segment){0};
}

/* Closes what was not linked into the outer maps, or is now. */
static void table_close(struct table *table)
{
	if (table->rows_fd < 0)
		return;
	close(table->rows_fd);
	close(table->index_fd);
	table->rows_fd = table->index_fd = -1;
}

void unwind_table_free(struct unwind_table *table)
{
	if (!table)
		return;
	for (size_t id = 1; id < table->table_cnt; id++)
		table_close(&table->tables[id]);
	for (size_t i = 0; i < table->process_cnt; i++)
		free(table->processes[i].segment.maps);
	for (size_t i = 0; i < table->retired_cnt; i++)
		free(table->retired[i].maps);
	free(table->processes);
	free(table->retired);
	free(table->tables);
	unwind_ranges_clear(&table->map_ranges);
	unwind_ranges_clear(&table->big_ranges);
	free(table);
}

/* Takes a table out of the kernel. No segment, not even a retired one, may refer to it. */
static void table_discard(struct unwind_table *table, uint32_t id)
{
	static const struct hb_uw_table none;
	struct table *old = &table->tables[id];

	bpf_map_update_elem(table->fds.tables, &id, &none, BPF_ANY);
	bpf_map_delete_elem(table->fds.rows, &id);
	bpf_map_delete_elem(table->fds.index, &id);
	unwind_ranges_give(&table->big_ranges, old->big_first, old->big_cnt);
	table->row_total -= old->row_cnt;
	table_close(old);
	old->elf = NULL;
}

/* Gives back what has been retired for long enough, and tables that are too many. */
static void sweep(struct unwind_table *table)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	size_t done = 0;

	while (done < table->retired_cnt && now - table->retired[done].retired_ns >= RETIRE_NS)
		segment_clear(table, &table->retired[done++]);
	table->retired_cnt -= done;
	if (done)
		memmove(table->retired, table->retired + done,
			table->retired_cnt * sizeof(*table->retired));
	for (size_t id = 1; id < table->table_cnt && table->row_total > ROW_TOTAL_KEEP; id++)
		if (table->tables[id].elf && !table->tables[id].err && !table->tables[id].refs)
			table_discard(table, id);
}

/* Uploads the rules that do not fit rows; no row refers to them before uw_tables does. */
static int upload_bigs(struct unwind_table *table, const struct cfi_table *cfi, uint32_t first)
{
	for (uint32_t i = 0; i < cfi->big_cnt; i++) {
		uint32_t index = first + i;

		if (bpf_map_update_elem(table->fds.bigs, &index, &cfi->bigs[i], BPF_ANY))
			return -errno;
	}
	return 0;
}

/* Makes everything of a table but the links in the outer maps. */
static int table_upload(struct unwind_table *table, const struct cfi_table *cfi, uint32_t id,
			struct table *fresh)
{
	struct unwind_pages pages = unwind_pages_of(cfi->rows, cfi->row_cnt);
	struct hb_uw_table entry = {
		.first_page = pages.first, .page_cnt = pages.cnt, .flags = cfi->flags};
	int err;

	if (table->row_total + cfi->row_cnt > ROW_TOTAL_MAX)
		return -ENOSPC;
	err = unwind_ranges_take(&table->big_ranges, cfi->big_cnt, &entry.big_first);
	if (err)
		return err;
	err = upload_bigs(table, cfi, entry.big_first);
	if (!err)
		err = unwind_upload(cfi, pages, &fresh->rows_fd, &fresh->index_fd);
	if (!err && bpf_map_update_elem(table->fds.tables, &id, &entry, BPF_ANY))
		err = -errno;
	if (err) {
		table_close(fresh);
		unwind_ranges_give(&table->big_ranges, entry.big_first, cfi->big_cnt);
		return err;
	}
	fresh->big_first = entry.big_first;
	fresh->big_cnt = cfi->big_cnt;
	fresh->row_cnt = cfi->row_cnt;
	table->row_total += cfi->row_cnt;
	return 0;
}

/* Counts and tells that a file has no table, which is part of the answer. */
static void note_failure(struct unwind_table *table, const struct table *failed)
{
	table->stats.failed++;
	/* Mostly data in the shape of a library: no call ever comes from there. */
	if (failed->err == -ENODATA)
		log_debug("%s: no call frame information", elf_file_name(failed->elf));
	else
		log_warn("%s: no unwind table, stacks will end there: %s",
			 elf_file_name(failed->elf), strerror(-failed->err));
}

static void note_success(struct unwind_table *table, const struct elf_file *elf,
			 const struct cfi_table *cfi)
{
	if (cfi->fde_dropped)
		log_warn("%s: %llu malformed unwind entries left out", elf_file_name(elf),
			 (unsigned long long)cfi->fde_dropped);
	table->stats.tables++;
	table->stats.rows += cfi->row_cnt;
	table->stats.fde_dropped += cfi->fde_dropped;
	table->stats.rows_unsupported += cfi->rows_unsupported;
}

/*
 * Builds and uploads the table of a file. 0 and *out, whose err tells what is wrong with the file,
 * or that our tables have no room for it. -errno: we lack something, or the kernel refuses.
 */
static int table_build(struct unwind_table *table, const struct elf_file *elf, uint32_t id,
		       struct table *out)
{
	struct table fresh = {.elf = elf, .rows_fd = -1, .index_fd = -1};
	_cleanup_(cfi_clear) struct cfi_table cfi = {0};

	fresh.err = cfi_build(elf, &cfi);
	if (shortage_is(fresh.err))
		return fresh.err;
	if (!fresh.err) {
		fresh.err = table_upload(table, &cfi, id, &fresh);
		if (fresh.err && fresh.err != -ENOSPC)
			return fresh.err;
	}
	if (fresh.err)
		note_failure(table, &fresh);
	else
		note_success(table, elf, &cfi);
	*out = fresh;
	return 0;
}

/* No number is left, not even to remember the file by: said of the first one. */
static void note_too_many(struct unwind_table *table, const struct elf_file *elf)
{
	if (!table->warned_of_tables)
		log_warn("%s: the first file of many without an unwind table: %d have one",
			 elf_file_name(elf), HB_UW_TABLE_MAX - 1);
	table->warned_of_tables = true;
}

/* The number of the table of `elf`, built if new; 0: there is none. Or -errno, see table_build().
 */
static int table_get(struct unwind_table *table, const struct elf_file *elf)
{
	size_t free_id = 0;
	int err;

	for (size_t id = 1; id < table->table_cnt; id++) {
		if (table->tables[id].elf == elf)
			return table->tables[id].err ? 0 : (int)id;
		if (!table->tables[id].elf && !free_id)
			free_id = id;
	}
	if (!free_id) {
		free_id = table->table_cnt ? table->table_cnt : 1;
		if (free_id >= HB_UW_TABLE_MAX)
			return note_too_many(table, elf), 0;
		if (vec_reserve(&table->tables, &table->table_cap, free_id + 1))
			return -ENOMEM;
		table->tables[0] = (struct table){0};
		table->tables[free_id] = (struct table){.rows_fd = -1, .index_fd = -1};
		table->table_cnt = free_id + 1;
	}
	err = table_build(table, elf, free_id, &table->tables[free_id]);
	if (err)
		return err;
	return table->tables[free_id].err ? 0 : (int)free_id;
}

/* Puts the new tables' arrays into the outer maps, all at once. */
static int link_tables(struct unwind_table *table)
{
	_cleanup_free_ uint32_t *ids = calloc(table->table_cnt + 1, sizeof(*ids));
	_cleanup_free_ int *rows = calloc(table->table_cnt + 1, sizeof(*rows));
	_cleanup_free_ int *indexes = calloc(table->table_cnt + 1, sizeof(*indexes));
	size_t cnt = 0;
	int err;

	if (!ids || !rows || !indexes)
		return -ENOMEM;
	for (size_t id = 1; id < table->table_cnt; id++) {
		if (!table->tables[id].elf || table->tables[id].rows_fd < 0)
			continue;
		ids[cnt] = id;
		rows[cnt] = table->tables[id].rows_fd;
		indexes[cnt++] = table->tables[id].index_fd;
	}
	err = unwind_upload_link(table->fds.rows, ids, rows, cnt);
	if (!err)
		err = unwind_upload_link(table->fds.index, ids, indexes, cnt);
	if (err)
		return err;
	for (size_t i = 0; i < cnt; i++)
		table_close(&table->tables[ids[i]]);
	return 0;
}

/* Appends one mapping, or extends the last one if this is its continuation. */
static int segment_add(struct unwind_table *table, struct segment *segment,
		       const struct procmap *map)
{
	struct hb_uw_map entry = {.start = map->start, .end = map->end, .number = map->number};
	struct hb_uw_map *last = segment->cnt ? &segment->maps[segment->cnt - 1] : NULL;
	int id = 0;

	if (map->elf) {
		id = table_get(table, map->elf);
		if (id < 0)
			return id;
		entry.table = id;
		entry.bias = map->start - map->off;
	} else if (procmap_is_made_at_run_time(map)) {
		entry.flags = HB_UW_MAP_ANON;
	}
	entry.probed = map->probed;
	if (map->permanent)
		entry.flags |= HB_UW_MAP_PERMANENT;
	if (last && last->end == entry.start && last->table == entry.table &&
	    last->bias == entry.bias && last->flags == entry.flags &&
	    last->probed == entry.probed && last->number == entry.number) {
		last->end = entry.end;
		return 0;
	}
	if (segment->cnt >= HB_UW_PROC_MAP_MAX) {
		if (!table->warned_of_maps)
			log_warn("%s: beyond the %d executable mappings of a process; stacks end "
				 "there and in those behind",
				 *map->path ? map->path : "[anon]", HB_UW_PROC_MAP_MAX);
		table->warned_of_maps = true;
		return 0;
	}
	if (vec_reserve(&segment->maps, &segment->cap, segment->cnt + 1))
		return -ENOMEM;
	segment->maps[segment->cnt++] = entry;
	if (id)
		table->tables[id].refs++;
	return 0;
}

/* The executable mappings. */
static int segment_fill(struct unwind_table *table, struct segment *segment,
			const struct procmaps *maps)
{
	for (size_t i = 0; i < maps->cnt; i++) {
		int err;

		if (!maps->maps[i].exec)
			continue;
		err = segment_add(table, segment, &maps->maps[i]);
		if (err)
			return err;
	}
	return link_tables(table);
}

/* Writes the segment at a free place of uw_maps. */
static int segment_place(struct unwind_table *table, struct segment *segment)
{
	int err = unwind_ranges_take(&table->map_ranges, segment->cnt, &segment->first);

	if (err)
		return err;
	segment->is_placed = true;
	for (uint32_t i = 0; i < segment->cnt; i++) {
		uint32_t index = segment->first + i;

		if (bpf_map_update_elem(table->fds.maps, &index, &segment->maps[i], BPF_ANY))
			return -errno;
	}
	return 0;
}

static void retire(struct unwind_table *table, struct segment *segment)
{
	segment->retired_ns = clock_ns(CLOCK_MONOTONIC);
	/* No memory to remember it: its place is lost, but nobody reads a changed one. */
	if (vec_reserve(&table->retired, &table->retired_cap, table->retired_cnt + 1)) {
		free(segment->maps);
		return;
	}
	table->retired[table->retired_cnt++] = *segment;
}

static struct process *process_find(struct unwind_table *table, pid_t tgid)
{
	for (size_t i = 0; i < table->process_cnt; i++)
		if (table->processes[i].tgid == tgid)
			return &table->processes[i];
	return NULL;
}

/* Tells BPF which segment is the process's, and in which state it was read. */
static int process_write(struct unwind_table *table, pid_t tgid, struct mappings_state state,
			 const struct segment *segment)
{
	struct hb_uw_proc entry = {
		.first = segment->first,
		.cnt = segment->cnt,
		.tgid = tgid,
		.epoch = state.epoch,
		.libraries = state.libraries,
	};

	return bpf_map_update_elem(table->fds.procs, &tgid, &entry, BPF_ANY) ? -errno : 0;
}

/* Makes `segment` the process's own; takes it on success. */
static int process_switch(struct unwind_table *table, pid_t tgid, struct mappings_state state,
			  struct segment *segment)
{
	struct process *process = process_find(table, tgid);
	int err;

	if (!process && vec_reserve(&table->processes, &table->process_cap, table->process_cnt + 1))
		return -ENOMEM;
	err = segment_place(table, segment);
	if (!err)
		err = process_write(table, tgid, state, segment);
	if (err)
		return err;
	if (process) {
		retire(table, &process->segment);
	} else {
		process = &table->processes[table->process_cnt++];
		process->tgid = tgid;
	}
	process->epoch = state.epoch;
	process->segment = *segment;
	return 0;
}

static bool is_current(const struct process *process, uint32_t epoch, const struct segment *segment)
{
	return process && process->epoch == epoch && process->segment.cnt == segment->cnt &&
	       (!segment->cnt || !memcmp(process->segment.maps, segment->maps,
					 segment->cnt * sizeof(*segment->maps)));
}

int unwind_table_set(struct unwind_table *table, pid_t tgid, struct mappings_state state,
		     const struct procmaps *maps)
{
	const struct process *process = process_find(table, tgid);
	struct segment segment = {0};
	int err;

	sweep(table);
	err = segment_fill(table, &segment, maps);
	if (!err && is_current(process, state.epoch, &segment)) {
		err = process_write(table, tgid, state, &process->segment);
		segment_clear(table, &segment);
	} else if (!err) {
		err = process_switch(table, tgid, state, &segment);
	}
	if (err) {
		segment_clear(table, &segment);
		return err;
	}
	return 0;
}

void unwind_table_drop(struct unwind_table *table, pid_t tgid)
{
	struct process *process = process_find(table, tgid);

	if (!process)
		return;
	bpf_map_delete_elem(table->fds.procs, &tgid);
	retire(table, &process->segment);
	*process = table->processes[--table->process_cnt];
	sweep(table);
}

const struct unwind_table_stats *unwind_table_stats(const struct unwind_table *table)
{
	return &table->stats;
}
