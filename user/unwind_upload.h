/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's side of one file's table: an array of rows and an array of pages that index them.
 */
#ifndef UNWIND_UPLOAD_H
#define UNWIND_UPLOAD_H

#include "../bpf/cfi_row.h"

#include <stddef.h>
#include <stdint.h>

struct cfi_table;

/* The pages that have rows of their own: first page of the file, and how many. */
struct unwind_pages {
	uint32_t first;
	uint32_t cnt;
};

/* The pages from the first to the last of `rows` (sorted, at least one). */
struct unwind_pages unwind_pages_of(const struct hb_cfi_row *rows, size_t row_cnt);

/* Writes the index (struct hb_uw_page) of `pages` to out[0..pages.cnt-1]. */
void unwind_pages_fill(const struct hb_cfi_row *rows, size_t row_cnt, struct unwind_pages pages,
		       struct hb_uw_page *out);

/*
 * Makes the array of rows (struct hb_cfi_chunk) and the array of pages of `cfi`. 0 with two
 * descriptors that the caller closes, or -errno with neither.
 */
int unwind_upload(const struct cfi_table *cfi, struct unwind_pages pages, int *rows_fd,
		  int *index_fd);

/*
 * Puts fds[i] into the outer map `outer` under ids[i], in one call where the kernel can: single
 * updates each wait for a grace period, about 10 ms. 0 or -errno.
 */
int unwind_upload_link(int outer, const uint32_t *ids, const int *fds, size_t cnt);

#endif
