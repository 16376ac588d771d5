/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compiles call frame information (.eh_frame, else .debug_frame) of one file into the sorted rows
 * of bpf/cfi_row.h. The input is foreign: a malformed FDE is dropped and counted, never trusted.
 */
#ifndef CFI_H
#define CFI_H

#include "../bpf/cfi_row.h"

#include <stddef.h>
#include <stdint.h>

struct elf_file;

/* The table of one file. */
struct cfi_table {
	struct hb_cfi_row *rows; /* owned; sorted by off, no two equal offs, neighbours differ */
	size_t row_cnt;
	struct hb_cfi_big *bigs; /* owned; rules that do not fit a row, indexed by it */
	size_t big_cnt;
	uint32_t flags;		   /* HB_CFI_TABLE_* */
	uint64_t fde_cnt;	   /* FDEs read */
	uint64_t fde_dropped;	   /* FDEs left out as malformed */
	uint64_t rows_unsupported; /* rows whose rule cannot be expressed */
};

/*
 * Builds the table of `file`. 0 and *out (clear with cfi_clear()), -ENODATA (no unwind
 * information at all), -EBADMSG (nothing but malformed entries), -E2BIG (over the row limit),
 * -ENOMEM. *out untouched on failure.
 */
int cfi_build(const struct elf_file *file, struct cfi_table *out);

/* Frees and empties the table; a zeroed struct is empty. */
void cfi_clear(struct cfi_table *table);

#endif
