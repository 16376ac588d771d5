/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The two searches of a step: a PC among the mappings of a process, a file offset among the rows
 * of a page. Pure C, so that the same text runs in BPF and in host tests.
 *
 * The includer defines before the include, each giving a pointer or NULL,
 *   HB_UNWIND_MAP(index)          const struct hb_uw_map *, entry of uw_maps
 *   HB_UNWIND_CHUNK(rows, index)  const struct hb_cfi_chunk *, entry of one file's rows
 * where index is the name of a __u32 variable.
 */
#ifndef HB_UNWIND_FIND_H
#define HB_UNWIND_FIND_H

#include "abi.h"
#include "cfi_row.h"

#if !defined(HB_UNWIND_MAP) || !defined(HB_UNWIND_CHUNK)
#error "define HB_UNWIND_MAP(index) and HB_UNWIND_CHUNK(rows, index) first"
#endif

/*
 * The mapping of `pc` among the `cnt` entries from `first` on (sorted, not overlapping, at most
 * HB_UW_PROC_MAP_MAX), or NULL.
 */
HB_INLINE const struct hb_uw_map *hb_unwind_find_map(__u32 first, __u32 cnt, __u64 pc)
{
	__u32 low = first, high = first + cnt - 1;
	const struct hb_uw_map *map;

	if (!cnt)
		return 0;
	/* Ends at the last mapping that starts at or before pc, or at the first one of all. */
	for (int i = 0; i < HB_UW_MAP_STEPS && low < high; i++) {
		__u32 middle = low + (high - low + 1) / 2;

		map = HB_UNWIND_MAP(middle);
		if (!map)
			return 0;
		if (map->start <= pc)
			low = middle;
		else
			high = middle - 1;
	}
	map = HB_UNWIND_MAP(low);
	return map && pc >= map->start && pc < map->end ? map : 0;
}

/* Where the search among rows is: the chunk that it saw last, which is mostly the next one too. */
struct hb_unwind_cursor {
	const struct hb_cfi_chunk *chunk; /* NULL: none yet, or a look-up failed */
	__u32 number;			  /* of the chunk */
};

/* Row `index` of one file, or NULL if a look-up failed. */
HB_INLINE const struct hb_cfi_row *hb_unwind_row(struct hb_unwind_cursor *cursor, void *rows,
						 __u32 index)
{
	__u32 number = index >> HB_CFI_CHUNK_SHIFT;

	if (!cursor->chunk || number != cursor->number)
		cursor->chunk = HB_UNWIND_CHUNK(rows, number);
	cursor->number = number;
	return cursor->chunk ? &cursor->chunk->row[index & (HB_CFI_CHUNK_ROWS - 1)] : 0;
}

/*
 * The row that rules `off`, given the index entry of its page: the last one at or before it. NULL
 * if there is none, which means a gap, or if a look-up failed.
 */
HB_INLINE const struct hb_cfi_row *hb_unwind_find_row(void *rows, const struct hb_uw_page *page,
						      __u32 off)
{
	__u32 low = page->first, high = page->last;
	struct hb_unwind_cursor cursor = {0};
	const struct hb_cfi_row *row;

	for (int i = 0; i < HB_UW_ROW_STEPS && low < high; i++) {
		__u32 middle = low + (high - low + 1) / 2;

		row = hb_unwind_row(&cursor, rows, middle);
		if (!row)
			return 0;
		if (row->off <= off)
			low = middle;
		else
			high = middle - 1;
	}
	row = hb_unwind_row(&cursor, rows, low);
	return row && row->off <= off ? row : 0;
}

#endif
