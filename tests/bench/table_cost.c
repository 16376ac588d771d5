// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How long it takes to build the unwind table of a file and to put it into the kernel, and how much
 * memory.
 *   table_cost FILE    prints rows, milliseconds to build and to upload (processor time, the least
 *                      of five turns), peak resident kilobytes
 */
#include "cfi.h"
#include "elf_file.h"
#include "unwind_upload.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define TURNS 5

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

struct cost {
	size_t rows;
	double build_ms, upload_ms;
};

/* One turn, from opening the file on. 0, or -1 if it has no table or the kernel takes none. */
static int take_turn(const char *path, struct cost *out)
{
	double start = now_ms(), built;
	struct elf_file *file;
	struct cfi_table table;
	int rows, index, err;

	if (elf_file_open(open(path, O_RDONLY | O_CLOEXEC), path, &file))
		return -1;
	err = cfi_build(file, &table);
	built = now_ms();
	elf_file_free(file);
	if (err)
		return -1;
	*out = (struct cost){.rows = table.row_cnt, .build_ms = built - start};
	built = now_ms();
	err = unwind_upload(&table, unwind_pages_of(table.rows, table.row_cnt), &rows, &index);
	out->upload_ms = now_ms() - built;
	cfi_clear(&table);
	if (err)
		return -1;
	close(rows);
	close(index);
	return 0;
}

int main(int argc, char **argv)
{
	struct cost least = {.build_ms = 1e9, .upload_ms = 1e9};
	struct rusage usage;

	for (int i = 0; i < TURNS; i++) {
		struct cost cost;

		if (argc < 2 || take_turn(argv[1], &cost))
			return 1;
		least.rows = cost.rows;
		if (cost.build_ms < least.build_ms)
			least.build_ms = cost.build_ms;
		if (cost.upload_ms < least.upload_ms)
			least.upload_ms = cost.upload_ms;
	}
	if (getrusage(RUSAGE_SELF, &usage))
		return 1;
	printf("%zu %.1f %.1f %ld\n", least.rows, least.build_ms, least.upload_ms, usage.ru_maxrss);
	return 0;
}
