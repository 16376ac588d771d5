/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What every table must be, whatever it was made of.
 */
#ifndef TABLE_CHECK_H
#define TABLE_CHECK_H

#include "cfi.h"
#include "cfi_exec.h"
#include "elf_file.h"
#include "unwind_upload.h"

#include <stdio.h>
#include <stdlib.h>

/* Says which promise is broken and ends the program, as a sanitizer does. */
#define TABLE_CHECK(promise)                                                                       \
	do {                                                                                       \
		if (!(promise)) {                                                                  \
			fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #promise);      \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* Rows are sorted and differ; each rule is one that BPF knows and refers to what is there. */
static inline void table_check_rows(const struct cfi_table *table)
{
	TABLE_CHECK(table->row_cnt > 0 && table->row_cnt <= CFI_ROW_MAX + 1);
	TABLE_CHECK(table->big_cnt <= CFI_BIG_MAX);
	for (size_t i = 0; i < table->row_cnt; i++) {
		uint32_t rule = table->rows[i].rule;

		TABLE_CHECK(HB_CFI_KIND(rule) < HB_CFI_KIND_CNT);
		TABLE_CHECK(HB_CFI_KIND(rule) != HB_CFI_BIG || HB_CFI_INDEX(rule) < table->big_cnt);
		TABLE_CHECK(HB_CFI_KIND(rule) != HB_CFI_PLT || HB_CFI_N(rule) < 16);
		TABLE_CHECK(!i || (table->rows[i].off > table->rows[i - 1].off &&
				   rule != table->rows[i - 1].rule));
	}
	for (size_t i = 0; i < table->big_cnt; i++)
		TABLE_CHECK(table->bigs[i].base == HB_CFI_RSP || table->bigs[i].base == HB_CFI_RBP);
}

/* The index covers all rows and no more. */
static inline void table_check_index(const struct cfi_table *table)
{
	struct unwind_pages pages = unwind_pages_of(table->rows, table->row_cnt);
	struct hb_uw_page *index;

	TABLE_CHECK(pages.cnt > 0 && pages.cnt <= (1u << (32 - HB_UW_PAGE_SHIFT)));
	index = calloc(pages.cnt, sizeof(*index));
	if (!index)
		return;
	unwind_pages_fill(table->rows, table->row_cnt, pages, index);
	for (uint32_t i = 0; i < pages.cnt; i++) {
		TABLE_CHECK(index[i].first <= index[i].last && index[i].last < table->row_cnt);
		/* What the search in BPF can do. */
		TABLE_CHECK(index[i].last - index[i].first < 1u << HB_UW_ROW_STEPS);
	}
	TABLE_CHECK(index[pages.cnt - 1].last == table->row_cnt - 1);
	free(index);
}

/* Builds the table of an image and checks it, if there is one. */
static inline void table_check_image(const void *image, size_t len)
{
	struct cfi_table table;
	struct elf_file *file;

	if (elf_file_open_memory(image, len, "fuzz", &file))
		return;
	if (!cfi_build(file, &table)) {
		table_check_rows(&table);
		table_check_index(&table);
		cfi_clear(&table);
	}
	elf_file_free(file);
}

#endif
