// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Maps of JIT code: which line names an address, what makes no sense, and whose file is trusted.
 */
#include "check.h"
#include "cleanup.h"
#include "perf_map.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

/* A descriptor of a file with these bytes. */
static int file_of(const char *bytes, size_t len)
{
	FILE *file;

	scratch_dir();
	file = fopen("map", "w");
	if (!file || fwrite(bytes, 1, len, file) != len || fclose(file))
		abort();
	return open("map", O_RDONLY | O_CLOEXEC);
}

static void codes_clear(struct perf_map_code *codes, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		free(codes[i].name);
		codes[i].name = NULL;
	}
}

/* The name of `pc` in a map with these bytes; "-" if it has none. Static. */
static const char *name_in(const char *bytes, size_t len, uint64_t pc, size_t *malformed)
{
	_cleanup_close_ int fd = file_of(bytes, len);
	struct perf_map_code code = {.pc = pc};
	static char name[256];

	if (perf_map_read(fd, &code, 1, malformed))
		return "(failed)";
	snprintf(name, sizeof(name), "%s", code.name ? code.name : "-");
	codes_clear(&code, 1);
	return name;
}

/* The same of a string. */
static const char *name_at(const char *text, uint64_t pc)
{
	size_t malformed;

	return name_in(text, strlen(text), pc, &malformed);
}

TEST(a_line_names_its_range)
{
	static const char map[] = "1000 20 f\n2000 1 g h;i <j>\n";

	CHECK_STR(name_at(map, 0xfff), "-");
	CHECK_STR(name_at(map, 0x1000), "f");
	CHECK_STR(name_at(map, 0x101f), "f");
	CHECK_STR(name_at(map, 0x1020), "-");
	CHECK_STR(name_at(map, 0x2000), "g h;i <j>");
	CHECK_STR(name_at(map, 0x2001), "-");
	CHECK_STR(name_at("", 0x1000), "-");
	CHECK_STR(name_at("\n", 0x1000), "-");
}

TEST(numbers_are_hexadecimal_in_every_spelling)
{
	CHECK_STR(name_at("7fABcdef0123 aF f\n", 0x7fabcdef0123), "f");
	CHECK_STR(name_at("0x00007fabcdef0123 0x00000000000000af f\n", 0x7fabcdef0123), "f");
	CHECK_STR(name_at("0X10 0X1 f\n", 0x10), "f");
	CHECK_STR(name_at("000000000000000000000000000010  10  f\n", 0x10), "f");
	CHECK_STR(name_at("0 1 f\n", 0), "f");
	CHECK_STR(name_at("fffffffffffffff0 f f\n", 0xfffffffffffffffe), "f");
}

TEST(the_last_line_counts)
{
	static const char moved[] = "1000 100 old\n1000 100 new\n";
	static const char overlap[] = "1000 100 low\n1080 100 high\n";
	static const char inside[] = "1000 100 around\n1040 40 middle\n";
	static const char covered[] = "1040 40 middle\n1000 100 around\n";

	CHECK_STR(name_at(moved, 0x1000), "new");
	CHECK_STR(name_at(overlap, 0x107f), "low");
	CHECK_STR(name_at(overlap, 0x1080), "high");
	CHECK_STR(name_at(overlap, 0x10ff), "high");
	CHECK_STR(name_at(inside, 0x103f), "around");
	CHECK_STR(name_at(inside, 0x1040), "middle");
	CHECK_STR(name_at(inside, 0x1080), "around");
	CHECK_STR(name_at(covered, 0x1040), "around");
	CHECK_STR(name_at("1000 100 f\n1000 0 gone\n", 0x1000), "f");
}

TEST(the_last_line_needs_no_end)
{
	CHECK_STR(name_at("1000 20 f\n2000 20 g", 0x2000), "g");
	CHECK_STR(name_at("2000 20 g", 0x2000), "g");
	CHECK_STR(name_at("1000 20 f\n2000 2", 0x1000), "f");
}

TEST(what_makes_no_sense_is_counted)
{
	static const char *const lines[] = {
		"1000",
		"1000 ",
		"1000 20",
		"1000 20 ",
		"1000 20   ",
		" 1000 20 f",
		"1000  ",
		"xyz 20 f",
		"1000 xyz f",
		"1000 20f",
		"1000\t20\tf",
		"-1000 20 f",
		"0x 20 f",
		"10000000000001000 20 f",
		"1000 10000000000000020 f",
		"1000 ffffffffffffffff f",
		"0 10000001 f",
		"fffffffffffffff0 20 f",
		"nothing like a map",
	};

	for (size_t i = 0; i < ARRAY_CNT(lines); i++) {
		size_t malformed;
		char map[128];
		int len;

		len = snprintf(map, sizeof(map), "2000 20 g\n\n%s\n", lines[i]);
		CHECK_STR(name_in(map, len, 0x1000, &malformed), "-");
		CHECK_EQ(malformed, 1);
		CHECK_STR(name_in(map, len, 0x2000, &malformed), "g");
		CHECK_EQ(malformed, 1);
		len = snprintf(map, sizeof(map), "%s\n2000 20 g", lines[i]);
		CHECK_STR(name_in(map, len, 0x2000, &malformed), "g");
		CHECK_EQ(malformed, 0);
	}
}

TEST(zero_bytes)
{
	static const char within[] = "1000 20 f\n1000 20 g\0h\n\0\0\0\n";
	static const char before[] = "1000 20 f\n\0\0\0\0001000 20 g\n";
	static char hole[300000];
	size_t malformed;

	CHECK_STR(name_in(within, sizeof(within) - 1, 0x1000, &malformed), "f");
	CHECK_EQ(malformed, 2);
	CHECK_STR(name_in(before, sizeof(before) - 1, 0x1000, &malformed), "f");
	CHECK_EQ(malformed, 1);
	CHECK_STR(name_in(hole, sizeof(hole), 0x1000, &malformed), "-");
	CHECK_EQ(malformed, 1);
	memcpy(hole, "1000 20 f\n", 10);
	CHECK_STR(name_in(hole, sizeof(hole), 0x1000, &malformed), "f");
	CHECK_EQ(malformed, 1);
	memcpy(hole + sizeof(hole) - 11, "\n3000 20 g\n", 11);
	CHECK_STR(name_in(hole, sizeof(hole), 0x1000, &malformed), "f");
	CHECK_EQ(malformed, 1);
}

/* Lines of every length around the limit, at every place in the blocks that are read. */
TEST(long_lines)
{
	for (size_t len = PERF_MAP_LINE_MAX - 2; len <= PERF_MAP_LINE_MAX + 2; len++)
		for (size_t behind = 0; behind < 3; behind++) {
			size_t size = 10 + len + 1 + behind * 10, malformed;
			_cleanup_free_ char *map = malloc(size);
			const char *name;

			memset(map, 'x', size);
			memcpy(map, "1000 20 f\n1000 20 ", 18);
			map[10 + len] = '\n';
			for (size_t i = 0; i < behind; i++)
				memcpy(map + size - 10 * (i + 1), "3000 20 h\n", 10);
			name = name_in(map, size, 0x1000, &malformed);
			CHECK_EQ(name[0], len > PERF_MAP_LINE_MAX ? 'f' : 'x');
			CHECK_EQ(malformed, len > PERF_MAP_LINE_MAX);
		}
}

/* Of many lines, against the simplest way to do it. */
TEST(many_lines)
{
	enum { LINES = 20000, CODES = 500 };
	struct perf_map_code codes[CODES] = {};
	static uint64_t starts[LINES], sizes[LINES];
	_cleanup_free_ char *map = malloc(LINES * 128UL);
	_cleanup_close_ int fd = -1;
	size_t len = 0, malformed;

	srand(1);
	for (size_t i = 0; i < LINES; i++) {
		starts[i] = rand() % 100000;
		sizes[i] = rand() % 300;
		len += snprintf(map + len, 128, "%lx %lx %zu%*s\n", (long)starts[i], (long)sizes[i],
				i, rand() % 90, "");
	}
	/* Some addresses are there twice. */
	for (size_t i = 0; i < CODES; i++)
		codes[i].pc = i / 2 * 440;
	fd = file_of(map, len);
	CHECK_EQ(perf_map_read(fd, codes, CODES, &malformed), 0);
	CHECK_EQ(malformed, 0);
	for (size_t i = 0; i < CODES; i++) {
		size_t line = LINES;

		while (line && codes[i].pc - starts[line - 1] >= sizes[line - 1])
			line--;
		CHECK_EQ(codes[i].name ? strtoul(codes[i].name, NULL, 10) + 1 : 0, line);
	}
	codes_clear(codes, CODES);
}

/* However large the file, what is read is limited; and it is the newest. */
TEST(a_huge_file)
{
	_cleanup_close_ int fd = file_of("1000 20 f\n2000 20 g\n", 20);
	struct perf_map_code codes[] = {{.pc = 0x1000}, {.pc = 0x2000}};
	size_t malformed;

	CHECK_EQ(truncate("map", 20 + PERF_MAP_BYTES_MAX), 0);
	CHECK(scratch_run("printf '\\n2000 20 h\\n' >>map"));
	CHECK_EQ(perf_map_read(fd, codes, 2, &malformed), 0);
	CHECK_EQ(codes[0].name, NULL);
	CHECK_STR(codes[1].name, "h");
	codes_clear(codes, 2);
	CHECK_EQ(truncate("map", 20 + PERF_MAP_BYTES_MAX / 8), 0);
	CHECK_EQ(perf_map_read(fd, codes, 2, &malformed), 0);
	CHECK_STR(codes[0].name, "f");
	CHECK_STR(codes[1].name, "g");
	CHECK_EQ(malformed, 1);
	codes_clear(codes, 2);
}

TEST(nothing_is_asked)
{
	_cleanup_close_ int fd = file_of("x\n", 2);
	size_t malformed;

	CHECK_EQ(perf_map_read(fd, NULL, 0, &malformed), 0);
	CHECK_EQ(malformed, 0);
}

TEST(a_descriptor_that_cannot_be_read)
{
	struct perf_map_code code = {.pc = 0x1000};
	size_t malformed;

	CHECK_EQ(perf_map_read(-1, &code, 1, &malformed), -EBADF);
}

/* ---- whose file ---- */

static int64_t clock_now_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* A process with the inner number 7, whose root is `root` in the scratch directory. */
static struct perf_map_owner owner_of(const char *root)
{
	scratch_dir();
	return (struct perf_map_owner){
		.tgid = 1234,
		.comm = "test",
		.inner_tgid = 7,
		.root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC),
		.uid = geteuid(),
		.begun_ns = clock_now_ns(CLOCK_BOOTTIME),
	};
}

/* What perf_map_open() gives for the root `jail`, made by the shell: 0 if it is a file. */
static int opened(const char *commands, int64_t age_ns, bool is_ours)
{
	struct perf_map_owner owner;
	int fd;

	if (!scratch_run("rm -rf jail; mkdir -p jail/tmp && cd jail && %s", commands))
		return -EIO;
	owner = owner_of("jail");
	owner.begun_ns -= age_ns;
	if (!is_ours)
		owner.uid++;
	fd = perf_map_open(&owner);
	close(owner.root_fd);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

#define SECOND_NS 1000000000LL

TEST(only_a_regular_file_is_opened)
{
	CHECK_EQ(opened("echo >tmp/perf-7.map", SECOND_NS, true), 0);
	CHECK_EQ(opened("true", SECOND_NS, true), -ENOENT);
	CHECK_EQ(opened("rmdir tmp", SECOND_NS, true), -ENOENT);
	CHECK_EQ(opened("echo >tmp/perf-1234.map", SECOND_NS, true), -ENOENT);
	CHECK_EQ(opened("mkfifo tmp/perf-7.map", SECOND_NS, true), -ENOENT);
	CHECK_EQ(opened("mkdir tmp/perf-7.map", SECOND_NS, true), -ENOENT);
	CHECK_EQ(opened("echo >tmp/x; ln -s x tmp/perf-7.map", SECOND_NS, true), -ENOENT);
	CHECK_EQ(opened("rmdir tmp; ln -s tmp tmp", SECOND_NS, true), -ENOENT);
}

/* Links on the way are those of the process. */
TEST(paths_are_below_its_root)
{
	CHECK_EQ(opened("mkdir -p var/t; echo >var/t/perf-7.map; rmdir tmp; ln -s /var/t tmp",
			SECOND_NS, true),
		 0);
	CHECK_EQ(opened("mkdir -p ../t; echo >../t/perf-7.map; rmdir tmp; ln -s ../t tmp",
			SECOND_NS, true),
		 -ENOENT);
}

TEST(only_its_users_file_or_roots)
{
	if (geteuid()) {
		CHECK_EQ(opened("echo >tmp/perf-7.map", SECOND_NS, false), -ENOENT);
		return;
	}
	CHECK_EQ(opened("echo >tmp/perf-7.map", SECOND_NS, false), 0);
	CHECK_EQ(opened("echo >tmp/perf-7.map; chown 1 tmp/perf-7.map", SECOND_NS, false), 0);
	CHECK_EQ(opened("echo >tmp/perf-7.map; chown 1 tmp/perf-7.map", SECOND_NS, true), -ENOENT);
	CHECK_EQ(opened("echo >tmp/perf-7.map; chown 2 tmp/perf-7.map", SECOND_NS, false), -ENOENT);
}

TEST(only_what_was_written_since_it_began)
{
	static const char old[] = "touch -d '2 seconds ago' tmp/perf-7.map";

	CHECK_EQ(opened(old, SECOND_NS, true), -ENOENT);
	CHECK_EQ(opened(old, 3 * SECOND_NS, true), 0);
	CHECK_EQ(opened("touch -d '1 day' tmp/perf-7.map", SECOND_NS, true), 0);
	/* When the process began is not known. */
	CHECK_EQ(opened(old, clock_now_ns(CLOCK_BOOTTIME), true), 0);
}

TEST(only_what_was_written_until_it_ended)
{
	static const struct {
		int64_t end_age_ns;
		int opened;
	} cases[] = {{0, 0}, {SECOND_NS, -ENOENT}, {3 * SECOND_NS, -ENOENT}};

	for (size_t i = 0; i < ARRAY_CNT(cases); i++) {
		struct perf_map_owner owner;
		int fd;

		CHECK(scratch_run("rm -rf jail; mkdir -p jail/tmp; echo >jail/tmp/perf-7.map"));
		owner = owner_of("jail");
		owner.begun_ns -= 5 * SECOND_NS;
		owner.ended_ns = clock_now_ns(CLOCK_BOOTTIME) - cases[i].end_age_ns;
		fd = perf_map_open(&owner);
		close(owner.root_fd);
		CHECK_EQ(fd < 0 ? fd : 0, cases[i].opened);
		if (fd >= 0)
			close(fd);
	}
}

TEST(no_root_no_map)
{
	struct perf_map_owner owner = owner_of("nowhere");
	struct perf_map_code code = {.pc = 0x1000};

	CHECK_EQ(owner.root_fd, -1);
	CHECK_EQ(perf_map_open(&owner), -ENOENT);
	CHECK_EQ(perf_map_name(&owner, &code, 1), 0);
	CHECK_EQ(code.name, NULL);
}

TEST(the_map_of_a_process)
{
	struct perf_map_code code = {.pc = 0x1000};
	struct perf_map_owner owner;

	CHECK(scratch_run("rm -rf jail; mkdir -p jail/tmp; "
			  "printf '1000 20 f\\n' >jail/tmp/perf-7.map"));
	owner = owner_of("jail");
	owner.begun_ns -= SECOND_NS;
	CHECK_EQ(perf_map_name(&owner, &code, 1), 0);
	CHECK_STR(code.name, "f");
	codes_clear(&code, 1);
	close(owner.root_fd);
}
