// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * procmaps: what the kernel's text means, and that the opened file is the mapped one however its
 * name has changed since. Files live in a directory of their own; the mappings are this process's.
 */
#include "procmaps.h"

#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int parse(const char *text, struct procmaps *out)
{
	return procmaps_parse(text, strlen(text), out);
}

TEST(parses_a_mapped_file)
{
	struct procmaps maps = {};

	CHECK_EQ(parse("55d0c0a2b000-55d0c0a30000 r-xp 00003000 fd:01 1055432"
		       "                    /usr/bin/my cat\n",
		       &maps),
		 0);
	CHECK_EQ(maps.cnt, 1);
	CHECK_EQ(maps.maps[0].start, 0x55d0c0a2b000);
	CHECK_EQ(maps.maps[0].end, 0x55d0c0a30000);
	CHECK_EQ(maps.maps[0].off, 0x3000);
	CHECK_EQ(maps.maps[0].dev_major, 0xfd);
	CHECK_EQ(maps.maps[0].dev_minor, 1);
	CHECK_EQ(maps.maps[0].inode, 1055432);
	CHECK(maps.maps[0].exec);
	CHECK(!maps.maps[0].deleted);
	CHECK(!maps.maps[0].elf);
	CHECK_STR(maps.maps[0].path, "/usr/bin/my cat");
	procmaps_clear(&maps);
	CHECK_EQ(maps.cnt, 0);
}

TEST(parses_memory_without_a_file)
{
	struct procmaps maps = {};

	CHECK_EQ(parse("1000-2000 rw-p 00000000 00:00 0 \n"
		       "2000-3000 rw-p 00000000 00:00 0                          [heap]\n"
		       "3000-4000 rw-p 00000000 00:00 0  [anon:x (deleted)]\n"
		       "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]",
		       &maps),
		 0);
	CHECK_EQ(maps.cnt, 4);
	CHECK_STR(maps.maps[0].path, "");
	CHECK_STR(maps.maps[1].path, "[heap]");
	CHECK(!maps.maps[1].exec);
	CHECK_STR(maps.maps[2].path, "[anon:x (deleted)]");
	CHECK(!maps.maps[2].deleted);
	CHECK_EQ(maps.maps[3].end, 0xffffffffff601000);
	CHECK_STR(maps.maps[3].path, "[vsyscall]");
	procmaps_clear(&maps);
}

TEST(unescapes_newlines_and_nothing_else)
{
	struct procmaps maps = {};

	CHECK_EQ(parse("1000-2000 r-xp 0 00:01 7 /a\\012b\\040c\\01\n", &maps), 0);
	CHECK_STR(maps.maps[0].path, "/a\nb\\040c\\01");
	procmaps_clear(&maps);
}

TEST(cuts_the_deleted_suffix)
{
	struct procmaps maps = {};

	CHECK_EQ(parse("1000-2000 r-xp 0 00:01 7 /tmp/x (deleted)\n"
		       "2000-3000 r-xp 0 00:01 8 /tmp/x (deleted) (deleted)\n"
		       "3000-4000 r-xp 0 00:01 9 /tmp/x(deleted)\n",
		       &maps),
		 0);
	CHECK(maps.maps[0].deleted);
	CHECK_STR(maps.maps[0].path, "/tmp/x");
	CHECK(maps.maps[1].deleted);
	CHECK_STR(maps.maps[1].path, "/tmp/x (deleted)");
	CHECK(!maps.maps[2].deleted);
	procmaps_clear(&maps);
}

TEST(refuses_what_is_no_maps_text)
{
	static const char *const bad[] = {
		"hello\n",
		"1000 2000 r-xp 0 00:01 7 /x\n",
		"2000-1000 r-xp 0 00:01 7 /x\n",
		"1000-2000 r-\n",
		"1000-2000 r-xp 0 00:01\n",
		"1000-2000 r-xp 0 00:01 7/x\n",
		"1ffffffffffffffff-2 r-xp 0 00:01 7 /x\n",
		"1000-2000 r-xp 0 00:01 7 /x\n\n",
	};
	struct procmaps maps = {.cnt = 42};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_EQ(parse(bad[i], &maps), -EBADMSG);
	CHECK_EQ(parse("", &maps), -ESRCH);
	CHECK_EQ(maps.cnt, 42);
}

TEST(mappings_that_changed_while_read_do_not_overlap)
{
	struct procmaps maps;

	CHECK_EQ(parse("1000-3000 r-xp 00000 00:01 7 /x\n"
		       "2000-4000 r-xp 01000 00:01 7 /x\n"
		       "2000-3000 r--p 01000 00:01 7 /x\n"
		       "5000-6000 r-xp 00000 00:01 8 /y\n",
		       &maps),
		 0);
	CHECK_EQ(maps.cnt, 3);
	CHECK_EQ(maps.maps[1].start, 0x3000);
	CHECK_EQ(maps.maps[1].end, 0x4000);
	CHECK_EQ(maps.maps[1].off, 0x2000);
	CHECK_STR(maps.maps[2].path, "/y");
	procmaps_clear(&maps);
}

TEST(every_cut_of_a_line_is_survived)
{
	static const char text[] = "1000-2000 r-xp 00001000 fd:01 7 /a\\012b (deleted)\n";

	for (size_t len = 0; len < sizeof(text); len++) {
		char *copy = malloc(len + 1); /* exact, so that a read beyond is seen */
		struct procmaps maps = {};
		int ret;

		memcpy(copy, text, len);
		ret = procmaps_parse(copy, len, &maps);
		free(copy);
		procmaps_clear(&maps);
		CHECK(ret == 0 || ret == -EBADMSG || ret == -ESRCH);
	}
}

TEST(finds_by_address)
{
	struct procmaps maps = {};

	CHECK_EQ(parse("1000-2000 r-xp 0 00:01 7 /a\n"
		       "2000-3000 r-xp 0 00:01 8 /b\n"
		       "5000-6000 r-xp 0 00:01 9 /c\n",
		       &maps),
		 0);
	CHECK(!procmaps_find(&maps, 0xfff));
	CHECK_STR(procmaps_find(&maps, 0x1000)->path, "/a");
	CHECK_STR(procmaps_find(&maps, 0x1fff)->path, "/a");
	CHECK_STR(procmaps_find(&maps, 0x2000)->path, "/b");
	CHECK(!procmaps_find(&maps, 0x3000));
	CHECK(!procmaps_find(&maps, 0x4fff));
	CHECK_STR(procmaps_find(&maps, 0x5fff)->path, "/c");
	CHECK(!procmaps_find(&maps, 0x6000));
	CHECK(!procmaps_find(&maps, UINT64_MAX));
	procmaps_clear(&maps);
	CHECK(!procmaps_find(&maps, 0x1000));
}

TEST(reads_this_process)
{
	struct procmaps maps = {};
	const struct procmap *map;
	char exe[4096] = "";

	CHECK(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	CHECK_EQ(procmaps_read(getpid(), &maps), 0);
	map = procmaps_find(&maps, (uint64_t)(uintptr_t)procmaps_read);
	CHECK(map && map->exec);
	CHECK_STR(map->path, exe);
	procmaps_clear(&maps);
}

TEST(no_process_no_mappings)
{
	struct procmaps maps = {};
	pid_t child = fork();
	siginfo_t info;

	if (!child)
		_exit(0);
	CHECK_EQ(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	CHECK_EQ(procmaps_read(child, &maps), -ESRCH); /* zombie */
	CHECK_EQ(waitpid(child, NULL, 0), child);
	CHECK_EQ(procmaps_read(child, &maps), -ESRCH); /* gone */
}

/* A file of one page with `fill` in it, mapped. */
struct fixture {
	char dir[32];
	char path[64];
	void *page;
	ino_t inode;
};

static int write_page(const char *path, char fill)
{
	char bytes[4096];
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0700);

	memset(bytes, fill, sizeof(bytes));
	if (fd >= 0 && write(fd, bytes, sizeof(bytes)) != sizeof(bytes)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int setup(struct fixture *fix, const char *name)
{
	struct stat st;
	int fd;

	snprintf(fix->dir, sizeof(fix->dir), "/tmp/procmaps.XXXXXX");
	if (!mkdtemp(fix->dir))
		return -1;
	snprintf(fix->path, sizeof(fix->path), "%s/%s", fix->dir, name);
	fd = write_page(fix->path, 'a');
	if (fd < 0 || fstat(fd, &st))
		return -1;
	fix->inode = st.st_ino;
	fix->page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	return fix->page == MAP_FAILED ? -1 : 0;
}

static void teardown(struct fixture *fix)
{
	munmap(fix->page, 4096);
	unlink(fix->path);
	rmdir(fix->dir);
}

/* What procmaps says of the fixture's page, and the inode it opens for it. */
struct seen {
	char path[128];
	bool deleted;
	int open_result; /* 0 or -errno */
	ino_t inode;
};

static int look(const struct fixture *fix, struct seen *seen)
{
	struct procmaps maps = {};
	const struct procmap *map;
	struct stat st = {};
	int fd;

	if (procmaps_read(getpid(), &maps))
		return -1;
	map = procmaps_find(&maps, (uint64_t)(uintptr_t)fix->page);
	if (!map)
		return -1;
	fd = procmaps_open(getpid(), map);
	snprintf(seen->path, sizeof(seen->path), "%s", map->path);
	seen->deleted = map->deleted;
	seen->open_result = fd < 0 ? fd : 0;
	if (fd >= 0) {
		fstat(fd, &st);
		close(fd);
	}
	seen->inode = st.st_ino;
	procmaps_clear(&maps);
	return 0;
}

TEST(opens_the_mapped_file)
{
	struct fixture fix;
	struct seen seen;

	CHECK_EQ(setup(&fix, "with space\nand newline"), 0);
	CHECK_EQ(look(&fix, &seen), 0);
	teardown(&fix);
	CHECK_STR(seen.path, fix.path);
	CHECK(!seen.deleted);
	CHECK_EQ(seen.open_result, 0);
	CHECK_EQ(seen.inode, fix.inode);
}

TEST(opens_a_deleted_file_only_by_its_mapping)
{
	struct fixture fix;
	struct seen seen;

	CHECK_EQ(setup(&fix, "gone"), 0);
	CHECK_EQ(unlink(fix.path), 0);
	CHECK_EQ(look(&fix, &seen), 0);
	teardown(&fix);
	CHECK_STR(seen.path, fix.path);
	CHECK(seen.deleted);
	/* Without capabilities there is no way to it, and that is said. */
	if (geteuid()) {
		CHECK(seen.open_result < 0);
		return;
	}
	CHECK_EQ(seen.open_result, 0);
	CHECK_EQ(seen.inode, fix.inode);
}

TEST(never_opens_a_replacement)
{
	struct fixture fix;
	struct seen seen;
	int fd;

	CHECK_EQ(setup(&fix, "replaced"), 0);
	CHECK_EQ(unlink(fix.path), 0);
	fd = write_page(fix.path, 'b');
	CHECK(fd >= 0);
	close(fd);
	CHECK_EQ(look(&fix, &seen), 0);
	teardown(&fix);
	CHECK(seen.deleted);
	if (seen.open_result == 0)
		CHECK_EQ(seen.inode, fix.inode);
}

TEST(a_name_that_ends_in_deleted_is_a_name)
{
	struct fixture fix;
	struct seen seen;

	CHECK_EQ(setup(&fix, "file (deleted)"), 0);
	CHECK_EQ(look(&fix, &seen), 0);
	teardown(&fix);
	CHECK(!seen.deleted);
	CHECK_STR(seen.path, fix.path);
	CHECK_EQ(seen.open_result, 0);
	CHECK_EQ(seen.inode, fix.inode);
}

TEST(the_path_alone_proves_nothing)
{
	struct fixture fix;
	struct procmap map = {.start = 0x1000, .end = 0x2000, .path = fix.path};
	struct stat st;
	int fd;

	/* No such range in map_files: only device and inode decide. */
	CHECK_EQ(setup(&fix, "file"), 0);
	CHECK_EQ(stat(fix.path, &st), 0);
	map.inode = st.st_ino + 1;
	CHECK_EQ(procmaps_open(getpid(), &map), -ENOENT);
	map.inode = 0;
	CHECK_EQ(procmaps_open(getpid(), &map), -ENOENT);
	map.inode = st.st_ino;
	map.dev_major = (uint32_t)(st.st_dev >> 8 & 0xfff);
	map.dev_minor = (uint32_t)(st.st_dev & 0xff);
	fd = procmaps_open(getpid(), &map);
	CHECK(fd >= 0);
	close(fd);
	map.deleted = true;
	CHECK_EQ(procmaps_open(getpid(), &map), -ENOENT);
	teardown(&fix);
}

TEST(does_not_wait_for_a_pipe)
{
	struct fixture fix;
	struct procmap map = {.start = 0x1000, .end = 0x2000, .path = fix.path};
	struct stat st;

	CHECK_EQ(setup(&fix, "pipe"), 0);
	CHECK_EQ(unlink(fix.path), 0);
	CHECK_EQ(mkfifo(fix.path, 0600), 0);
	CHECK_EQ(stat(fix.path, &st), 0);
	map.inode = st.st_ino;
	CHECK_EQ(procmaps_open(getpid(), &map), -ENOENT);
	teardown(&fix);
}
