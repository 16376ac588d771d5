// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The searches that BPF does, on the index that user space writes, against a look at every entry;
 * and the bookkeeping of entries that processes share.
 */
#include "check.h"

#include "cfi.h"
#include "elf_file.h"
#include "unwind_ranges.h"
#include "unwind_upload.h"

#include <errno.h>
#include <fcntl.h>

static const struct hb_uw_map *maps;
static size_t map_cnt, row_cnt, look_ups;

static const struct hb_uw_map *map_entry(uint32_t index)
{
	return index < map_cnt ? &maps[index] : NULL;
}

static const struct hb_cfi_chunk *chunk_entry(const struct hb_cfi_row *rows, uint32_t index)
{
	size_t first = (size_t)index * HB_CFI_CHUNK_ROWS;

	look_ups++;
	return first < row_cnt ? (const struct hb_cfi_chunk *)&rows[first] : NULL;
}

#define HB_UNWIND_MAP(index)	     map_entry(index)
#define HB_UNWIND_CHUNK(rows, index) chunk_entry(rows, index)
#include "unwind_find.h"

static uint64_t state = 88172645463325252;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state >> 11;
}

/* Then one look-up must do. */
static int is_in_one_chunk(const struct hb_uw_page *page)
{
	return page->first / HB_CFI_CHUNK_ROWS == page->last / HB_CFI_CHUNK_ROWS;
}

/* What the kernel's side finds for `off`: the same three steps as find_rule(). */
static uint32_t find_rule(struct hb_cfi_row *rows, struct unwind_pages pages,
			  const struct hb_uw_page *index, uint32_t off)
{
	uint32_t page = (off >> HB_UW_PAGE_SHIFT) - pages.first;
	const struct hb_cfi_row *row;

	if (page >= pages.cnt)
		return HB_CFI_RULE(HB_CFI_GAP, 0, 0);
	look_ups = 0;
	row = hb_unwind_find_row(rows, &index[page], off);
	/* What chunks are there for; else a rule that no row has. */
	if (is_in_one_chunk(&index[page]) && look_ups != 1)
		return ~0u;
	return row ? row->rule : HB_CFI_RULE(HB_CFI_GAP, 0, 0);
}

/* The answer without any search; offsets must come in ascending order. */
static uint32_t scan_rule(const struct hb_cfi_row *rows, size_t *hint, uint32_t off)
{
	if (rows[*hint].off > off)
		return HB_CFI_RULE(HB_CFI_GAP, 0, 0);
	while (*hint + 1 < row_cnt && rows[*hint + 1].off <= off)
		++*hint;
	return rows[*hint].rule;
}

static size_t differences(struct hb_cfi_row *rows, size_t cnt, uint32_t limit, uint32_t step)
{
	struct unwind_pages pages = unwind_pages_of(rows, cnt);
	struct hb_uw_page *index = calloc(pages.cnt, sizeof(*index));
	size_t hint = 0, found = 0;

	row_cnt = cnt;
	unwind_pages_fill(rows, cnt, pages, index);
	for (uint32_t off = 0; off < limit; off += 1 + (step > 1 ? next_random() % step : 0))
		found += find_rule(rows, pages, index, off) != scan_rule(rows, &hint, off);
	free(index);
	return found;
}

TEST(index_of_made_up_rows)
{
	/* Rows as dense as one a byte and as far apart as three pages without any. */
	static const uint32_t spread[] = {1, 2, 40, 4096, 12288};
	static struct hb_cfi_row rows[20000];

	for (size_t i = 0; i < 5; i++) {
		for (int round = 0; round < 20; round++) {
			size_t cnt = 1 + next_random() % (spread[i] > 1000 ? 200 : 20000);
			uint32_t off = next_random() % 3 ? next_random() % 20000 : 0;

			for (size_t row = 0; row < cnt; row++) {
				rows[row] =
					(struct hb_cfi_row){off, HB_CFI_RULE(HB_CFI_RSP, 0, row)};
				off += 1 + next_random() % spread[i];
			}
			/* A real table ends, and mostly begins, with a gap. */
			rows[cnt - 1].rule = HB_CFI_RULE(HB_CFI_GAP, 0, 0);
			CHECK_EQ(differences(rows, cnt, off + 10000, spread[i]), 0);
		}
	}
}

TEST(index_of_page_borders)
{
	const uint32_t page = 1 << HB_UW_PAGE_SHIFT;
	struct hb_cfi_row rows[] = {
		{0, HB_CFI_RULE(HB_CFI_GAP, 0, 0)},
		{page, HB_CFI_RULE(HB_CFI_RSP, 0, 1)},
		{2 * page - 1, HB_CFI_RULE(HB_CFI_RSP, 0, 2)},
		{2 * page, HB_CFI_RULE(HB_CFI_RSP, 0, 3)},
		{5 * page, HB_CFI_RULE(HB_CFI_RSP, 0, 4)},
		{5 * page + 1, HB_CFI_RULE(HB_CFI_RSP, 0, 5)},
		{8 * page - 1, HB_CFI_RULE(HB_CFI_GAP, 0, 0)},
	};
	struct unwind_pages pages = unwind_pages_of(rows, 7);

	CHECK_EQ(pages.first, 1);
	CHECK_EQ(pages.cnt, 7);
	CHECK_EQ(differences(rows, 7, 9 * page, 1), 0);
	/* Without the gap at its end a table answers as far as its last row's page. */
	for (size_t cnt = 1; cnt < 7; cnt++)
		CHECK_EQ(differences(rows, cnt, (rows[cnt - 1].off / page + 1) * page, 1), 0);
}

TEST(index_of_libc)
{
	struct cfi_table table;
	struct elf_file *file;
	int fd = open("/lib/x86_64-linux-gnu/libc.so.6", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	CHECK_EQ(elf_file_open(fd, "libc.so.6", &file), 0);
	CHECK_EQ(cfi_build(file, &table), 0);
	CHECK_EQ(differences(table.rows, table.row_cnt, 0x200000, 1), 0);
	cfi_clear(&table);
	elf_file_free(file);
}

/* The mapping by looking at each. */
static const struct hb_uw_map *scan_map(uint32_t first, uint32_t cnt, uint64_t pc)
{
	for (uint32_t i = first; i < first + cnt; i++)
		if (pc >= maps[i].start && pc < maps[i].end)
			return &maps[i];
	return NULL;
}

TEST(mapping_search)
{
	static struct hb_uw_map entries[HB_UW_PROC_MAP_MAX + 100];
	static const uint32_t sizes[] = {0, 1, 2, 3, 17, 1000, HB_UW_PROC_MAP_MAX};

	maps = entries;
	map_cnt = sizeof(entries) / sizeof(entries[0]);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t pc = 0x400000;
		uint32_t first = next_random() % 100, cnt = sizes[i];

		for (uint32_t map = 0; map < map_cnt; map++) {
			pc += next_random() % 3 * 0x1000;
			entries[map].start = pc;
			pc += (1 + next_random() % 5) * 0x1000;
			entries[map].end = pc;
		}
		for (int round = 0; round < 2000; round++) {
			/* Around the run's own entries, borders included. */
			uint32_t near = first + (cnt ? next_random() % (cnt + 1) : 0);

			pc = entries[near < map_cnt ? near : map_cnt - 1].start +
			     next_random() % 0x3000 - 0x1000;
			if (round % 3 == 0)
				pc &= ~(uint64_t)0xfff;
			CHECK(hb_unwind_find_map(first, cnt, pc) == scan_map(first, cnt, pc));
		}
	}
}

TEST(ranges_do_not_overlap)
{
	struct unwind_ranges ranges = {.total = 1000};
	uint32_t first[50], cnt[50] = {0}, full;
	uint8_t owner[1000] = {0};

	for (int round = 0; round < 20000; round++) {
		size_t i = next_random() % 50;

		if (cnt[i]) {
			for (uint32_t n = 0; n < cnt[i]; n++)
				owner[first[i] + n] = 0;
			unwind_ranges_give(&ranges, first[i], cnt[i]);
			cnt[i] = 0;
			continue;
		}
		cnt[i] = 1 + next_random() % 60;
		if (unwind_ranges_take(&ranges, cnt[i], &first[i])) {
			cnt[i] = 0;
			continue;
		}
		CHECK(first[i] + cnt[i] <= ranges.total);
		for (uint32_t n = 0; n < cnt[i]; n++) {
			CHECK_EQ(owner[first[i] + n], 0);
			owner[first[i] + n] = 1;
		}
	}
	for (size_t i = 0; i < 50; i++)
		unwind_ranges_give(&ranges, first[i], cnt[i]);
	CHECK_EQ(unwind_ranges_take(&ranges, 1000, &full), 0);
	CHECK_EQ(full, 0);
	CHECK_EQ(unwind_ranges_take(&ranges, 1, &full), -ENOSPC);
	CHECK_EQ(unwind_ranges_take(&ranges, 0, &full), 0);
	unwind_ranges_clear(&ranges);
}
