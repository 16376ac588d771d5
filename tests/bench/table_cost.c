// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How long it takes to build the unwind table of a file, and how much memory.
 *   table_cost FILE    prints rows, milliseconds (the least of five turns), peak resident kilobytes
 */
#include "cfi.h"
#include "elf_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#define TURNS 5

/* One turn, from opening the file on; a negative number if it has no table. */
static double build_ms(const char *path, size_t *rows)
{
	struct timespec start, end;
	struct cfi_table table;
	struct elf_file *file;
	int err;

	clock_gettime(CLOCK_MONOTONIC, &start);
	if (elf_file_open(open(path, O_RDONLY | O_CLOEXEC), path, &file))
		return -1;
	err = cfi_build(file, &table);
	clock_gettime(CLOCK_MONOTONIC, &end);
	elf_file_free(file);
	if (err)
		return -1;
	*rows = table.row_cnt;
	cfi_clear(&table);
	return (end.tv_sec - start.tv_sec) * 1e3 + (end.tv_nsec - start.tv_nsec) / 1e6;
}

int main(int argc, char **argv)
{
	double least = -1;
	struct rusage usage;
	size_t rows = 0;

	for (int i = 0; argc > 1 && i < TURNS; i++) {
		double ms = build_ms(argv[1], &rows);

		if (ms < 0)
			return 1;
		least = i && least < ms ? least : ms;
	}
	if (least < 0 || getrusage(RUSAGE_SELF, &usage))
		return 1;
	printf("%zu %.1f %ld\n", rows, least, usage.ru_maxrss);
	return 0;
}
