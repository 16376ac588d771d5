// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: the rows of a file. Out: two BPF arrays, filled through a shared mapping, and their place in
 * the outer maps. The arrays are as large as they must be, that of rows in whole chunks, whose rest
 * no index refers to; the kernel pads elements to 8 bytes, which is why the structs are that large.
 */
#include "unwind_upload.h"
#include "cfi.h"
#include "cleanup.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>

static uint32_t page_of(uint32_t off)
{
	return off >> HB_UW_PAGE_SHIFT;
}

struct unwind_pages unwind_pages_of(const struct hb_cfi_row *rows, size_t row_cnt)
{
	/* A gap row at offset 0 only says that the table begins later. */
	size_t first = row_cnt > 1 && HB_CFI_KIND(rows[0].rule) == HB_CFI_GAP;
	struct unwind_pages pages = {.first = page_of(rows[first].off)};

	pages.cnt = page_of(rows[row_cnt - 1].off) - pages.first + 1;
	return pages;
}

void unwind_pages_fill(const struct hb_cfi_row *rows, size_t row_cnt, struct unwind_pages pages,
		       struct hb_uw_page *out)
{
	size_t row = 0;

	for (uint32_t i = 0; i < pages.cnt; i++) {
		uint64_t start = (uint64_t)(pages.first + i) << HB_UW_PAGE_SHIFT;
		uint64_t last = start + (1 << HB_UW_PAGE_SHIFT) - 1;

		while (row + 1 < row_cnt && rows[row + 1].off <= start)
			row++;
		out[i].first = row;
		while (row + 1 < row_cnt && rows[row + 1].off <= last)
			row++;
		out[i].last = row;
	}
}

/* A new array of `cnt` elements of `size` bytes and its memory; *out is its descriptor. */
static int make_array(const char *name, size_t size, size_t cnt, int *out, void **memory)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	_cleanup_close_ int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, name, 4, size, cnt, &opts);
	void *mapped;

	if (fd < 0)
		return fd;
	mapped = mmap(NULL, cnt * size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED)
		return -errno;
	*out = take_fd(&fd);
	*memory = mapped;
	return 0;
}

int unwind_upload(const struct cfi_table *cfi, struct unwind_pages pages, int *rows_fd,
		  int *index_fd)
{
	_cleanup_close_ int rows = -1, index = -1;
	void *memory;
	size_t chunks = (cfi->row_cnt + HB_CFI_CHUNK_ROWS - 1) >> HB_CFI_CHUNK_SHIFT;
	int err = make_array("uw_row_array", sizeof(struct hb_cfi_chunk), chunks, &rows, &memory);

	if (err)
		return err;
	memcpy(memory, cfi->rows, cfi->row_cnt * sizeof(*cfi->rows));
	munmap(memory, chunks * sizeof(struct hb_cfi_chunk));

	err = make_array("uw_page_array", sizeof(struct hb_uw_page), pages.cnt, &index, &memory);
	if (err)
		return err;
	unwind_pages_fill(cfi->rows, cfi->row_cnt, pages, memory);
	munmap(memory, pages.cnt * sizeof(struct hb_uw_page));

	*rows_fd = take_fd(&rows);
	*index_fd = take_fd(&index);
	return 0;
}

int unwind_upload_link(int outer, const uint32_t *ids, const int *fds, size_t cnt)
{
	LIBBPF_OPTS(bpf_map_batch_opts, opts);
	uint32_t done = cnt;

	if (!cnt || !bpf_map_update_batch(outer, ids, fds, &done, &opts))
		return 0;
	for (size_t i = 0; i < cnt; i++)
		if (bpf_map_update_elem(outer, &ids[i], &fds[i], BPF_ANY))
			return -errno;
	return 0;
}
