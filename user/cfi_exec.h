/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs the program of one FDE and writes the rows that it describes.
 */
#ifndef CFI_EXEC_H
#define CFI_EXEC_H

#include "../bpf/cfi_row.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rows and big rules so far. A zeroed struct is empty; the owner frees both arrays. */
struct cfi_rows {
	struct hb_cfi_row *rows;
	size_t cnt, cap;
	size_t merge_from; /* cfi_rows_push() leaves rows before this one alone */
	struct hb_cfi_big *bigs;
	size_t big_cnt, big_cap;
	uint64_t unsupported; /* rows that got HB_CFI_UNSUPPORTED */
};

/* Limits of one file: hostile input must not cost more memory than this. */
#define CFI_ROW_MAX (8u << 20)
#define CFI_BIG_MAX 256

/* What an FDE and its CIE say, decoded but for the programs. Pointers borrow from the section. */
struct cfi_frame {
	uint64_t vma;	  /* first address */
	uint64_t vma_end; /* exclusive, greater than vma */
	uint64_t code_align;
	int64_t data_align;
	bool is_signal;	       /* augmentation 'S' */
	bool ra_is_rip;	       /* the return address column is 16, the only one we know */
	uint8_t encoding;      /* DW_EH_PE_* of addresses */
	uint64_t section_bias; /* vma of a byte of the section minus its address in memory */
	const uint8_t *initial, *initial_end; /* program of the CIE */
	const uint8_t *program, *program_end; /* program of the FDE */
};

/*
 * Appends the rows of `frame`, whose first address lies at file offset `off`. 0, -EBADMSG
 * (malformed), -E2BIG (over CFI_ROW_MAX), -ENOMEM; no rows are added on failure.
 */
int cfi_exec(const struct cfi_frame *frame, uint32_t off, struct cfi_rows *rows);

/* Appends one row; neighbours that say the same become one. Errors as above. */
int cfi_rows_push(struct cfi_rows *rows, uint32_t off, uint32_t rule);

#endif
