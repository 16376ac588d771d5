// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tables of real files against libdw: the same answer at every row and at the byte before it. With
 * HB_CFI_ALL=1 every ELF file below /usr/bin and /usr/lib, else a few.
 */
#include "check.h"
#include "cfi_oracle.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <time.h>
#include <unistd.h>

static size_t files, rows, differences, dropped, no_data;
static double build_ms;

/* Sorted, no two equal offsets, neighbours differ. */
static bool is_normal(const struct cfi_table *table)
{
	for (size_t i = 1; i < table->row_cnt; i++)
		if (table->rows[i].off <= table->rows[i - 1].off ||
		    table->rows[i].rule == table->rows[i - 1].rule)
			return false;
	return table->row_cnt > 0;
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

/* Builds and compares one file; false if it is none of ours. */
static bool compare_file(const char *path)
{
	struct cfi_table table;
	struct elf_file *file;
	Dwarf_CFI *cfi;
	double start;
	int err, fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || elf_file_open(fd, path, &file))
		return false;
	start = now_ms();
	err = cfi_build(file, &table);
	build_ms += now_ms() - start;
	cfi = dwarf_getcfi_elf(elf_file_elf(file));
	if (err) {
		no_data++;
		if (err != -ENODATA) {
			fprintf(stderr, "%s: %s\n", path, strerror(-err));
			differences++;
		}
	} else {
		files++;
		rows += table.row_cnt;
		dropped += table.fde_dropped;
		if (!is_normal(&table)) {
			fprintf(stderr, "%s: rows out of order\n", path);
			differences++;
		}
		if (cfi)
			differences += oracle_compare(file, &table, cfi);
		cfi_clear(&table);
	}
	dwarf_cfi_end(cfi);
	elf_file_free(file);
	return true;
}

static int visit(const char *path, const struct stat *info, int type, struct FTW *where)
{
	(void)where;
	if (type == FTW_F && S_ISREG(info->st_mode) && info->st_size > 64)
		compare_file(path);
	return 0;
}

TEST(real_files_match_libdw)
{
	static const char *const some[] = {
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/lib64/ld-linux-x86-64.so.2",
		"/lib/x86_64-linux-gnu/libm.so.6",
		"/lib/x86_64-linux-gnu/libgcc_s.so.1",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/usr/lib/x86_64-linux-gnu/libsqlite3.so.0",
		"/usr/bin/sqlite3",
		"/usr/bin/git",
		"/usr/bin/redis-server",
		"/lib/ld-musl-x86_64.so.1",
		"/proc/self/exe",
	};
	const char *all = getenv("HB_CFI_ALL");

	files = rows = differences = dropped = 0;
	if (all && *all == '1') {
		nftw("/usr/bin", visit, 32, FTW_PHYS);
		nftw("/usr/lib", visit, 32, FTW_PHYS);
		fprintf(stderr,
			"%zu files, %zu rows, built in %.0f ms; %zu without CFI, %zu FDEs dropped, "
			"%zu differences\n",
			files, rows, build_ms, no_data, dropped, differences);
	} else {
		for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++)
			compare_file(some[i]);
	}
	CHECK(files >= 1);
	CHECK(rows > 1000);
	CHECK_EQ(differences, 0);
}

TEST(kinds_of_libc)
{
	size_t kinds[HB_CFI_KIND_CNT] = {0};
	struct cfi_table table;
	struct elf_file *file;
	int fd = open("/lib/x86_64-linux-gnu/libc.so.6", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	CHECK_EQ(elf_file_open(fd, "libc.so.6", &file), 0);
	CHECK_EQ(cfi_build(file, &table), 0);
	for (size_t i = 0; i < table.row_cnt; i++)
		kinds[HB_CFI_KIND(table.rows[i].rule)]++;
	CHECK(kinds[HB_CFI_RSP] > 10000);
	CHECK(kinds[HB_CFI_RBP] > 10);
	CHECK_EQ(kinds[HB_CFI_SIGNAL], 1);
	/* clone, clone3, and where coroutines begin */
	CHECK(kinds[HB_CFI_STOP] >= 3);
	CHECK(kinds[HB_CFI_UNSUPPORTED] < 50);
	CHECK_EQ(table.fde_dropped, 0);
	CHECK_EQ(table.flags, 0);
	cfi_clear(&table);
	elf_file_free(file);
}
