/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The maps that user/unwind_table.c keeps and the unwinder reads: the unwind tables of files, and
 * the mappings of processes. Their values are those of cfi_row.h.
 */
#ifndef HB_UNWIND_TABLES_BPF_H
#define HB_UNWIND_TABLES_BPF_H

#include "rooms.bpf.h"
#include "cfi_row.h"

/*
 * One array of chunks of rows and one of index pages per file, as large as it must be. Sizes and
 * not types: clang 14 leaves a type that only an inner map mentions out of the BTF.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, HB_UW_TABLE_MAX);
	__type(key, __u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(map_flags, BPF_F_INNER_MAP | BPF_F_MMAPABLE);
			__uint(max_entries, 1);
			__uint(key_size, sizeof(__u32));
			__uint(value_size, sizeof(struct hb_cfi_chunk));
		});
} uw_rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, HB_UW_TABLE_MAX);
	__type(key, __u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(map_flags, BPF_F_INNER_MAP | BPF_F_MMAPABLE);
			__uint(max_entries, 1);
			__uint(key_size, sizeof(__u32));
			__uint(value_size, sizeof(struct hb_uw_page));
		});
} uw_index SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HB_UW_TABLE_MAX);
	__type(key, __u32);
	__type(value, struct hb_uw_table);
} uw_tables SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HB_UW_BIG_MAX);
	__type(key, __u32);
	__type(value, struct hb_cfi_big);
} uw_big SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HB_UW_MAP_MAX);
	__type(key, __u32);
	__type(value, struct hb_uw_map);
} uw_maps SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct hb_uw_proc);
} uw_procs SEC(".maps");

#endif
