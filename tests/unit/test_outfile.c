// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files are whole or absent, whatever goes wrong: missing directories, full disks, closed pipes;
 * and nobody else's file is written through a link.
 */
#include "check.h"
#include "outfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/heapbpf-outfile.XXXXXX";

/* Tests begin in an empty directory; failures are logged to /dev/null. */
__attribute__((constructor)) static void set_up(void)
{
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	signal(SIGPIPE, SIG_IGN);
	if (!mkdtemp(dir) || chdir(dir))
		abort();
}

__attribute__((destructor)) static void tear_down(void)
{
	char command[64];

	umount2("tmpfs", MNT_DETACH);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	if (chdir("/") || system(command))
		perror(dir);
}

/* Calls to outfile log their reason; a passing test keeps it to itself. */
static int quiet_begin(void)
{
	int saved = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);

	dup2(null, STDERR_FILENO);
	close(null);
	return saved;
}

static int quiet_end(int saved, int result)
{
	dup2(saved, STDERR_FILENO);
	close(saved);
	return result;
}

static int check_quietly(const char *path)
{
	int saved = quiet_begin();

	return quiet_end(saved, outfile_check(path));
}

/* Opens, writes `len` bytes of `fill` and commits; the first error. */
static int put(const char *path, int fill, size_t len)
{
	int saved = quiet_begin(), err;
	struct outfile *file;

	err = outfile_open(path, &file);
	if (err)
		return quiet_end(saved, err);
	for (size_t i = 0; i < len; i++)
		fputc(fill, outfile_stream(file));
	return quiet_end(saved, outfile_commit(file));
}

/* Names in `path`, "." and ".." aside. */
static int count_names(const char *path)
{
	DIR *names = opendir(path);
	int cnt = 0;

	if (!names)
		return -1;
	while (readdir(names))
		cnt++;
	closedir(names);
	return cnt - 2;
}

static long long size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? -1 : (long long)st.st_size;
}

static int mode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? -1 : (int)(st.st_mode & 07777);
}

TEST(a_committed_file_is_there_and_nothing_else)
{
	CHECK_EQ(mkdir("a", 0700), 0);
	CHECK_EQ(put("a/file", 'x', 100000), 0);
	CHECK_EQ(size_of("a/file"), 100000);
	CHECK_EQ(count_names("a"), 1);
}

TEST(mode_is_0600_under_any_umask)
{
	mode_t umask_before = umask(0);
	int err = put("open", 'x', 1);

	umask(umask_before);
	CHECK_EQ(err, 0);
	CHECK_EQ(mode_of("open"), 0600);
}

TEST(name_without_directory)
{
	CHECK_EQ(check_quietly("plain"), 0);
	CHECK_EQ(put("plain", 'x', 1), 0);
	CHECK_EQ(size_of("plain"), 1);
}

TEST(replaces_at_once_and_not_before_commit)
{
	struct outfile *file;

	CHECK_EQ(put("old", 'o', 10), 0);
	CHECK_EQ(outfile_open("old", &file), 0);
	fputs("new", outfile_stream(file));
	fflush(outfile_stream(file));
	CHECK_EQ(size_of("old"), 10);
	CHECK_EQ(outfile_commit(file), 0);
	CHECK_EQ(size_of("old"), 3);
}

TEST(abort_leaves_nothing)
{
	struct outfile *file;

	CHECK_EQ(mkdir("b", 0700), 0);
	CHECK_EQ(outfile_open("b/file", &file), 0);
	fputs("half", outfile_stream(file));
	fflush(outfile_stream(file));
	outfile_abort(file);
	CHECK_EQ(count_names("b"), 0);
	outfile_abort(NULL);
}

TEST(check_leaves_nothing_and_keeps_what_is_there)
{
	CHECK_EQ(mkdir("c", 0700), 0);
	CHECK_EQ(check_quietly("c/file"), 0);
	CHECK_EQ(count_names("c"), 0);
	CHECK_EQ(put("c/file", 'x', 5), 0);
	CHECK_EQ(check_quietly("c/file"), 0);
	CHECK_EQ(size_of("c/file"), 5);
	CHECK_EQ(count_names("c"), 1);
}

TEST(impossible_places_are_refused_by_check_and_open)
{
	static char long_name[300];
	static const struct {
		const char *path;
		int err;
	} cases[] = {
		{"missing/file", -ENOENT}, {"a/file/below", -ENOTDIR}, {"a", -EISDIR},
		{"a/", -EISDIR},	   {"missing/", -EISDIR},      {"", -ENOENT},
		{"/proc/file", -ENOENT},   {long_name, -ENAMETOOLONG},
	};

	memset(long_name, 'n', sizeof(long_name) - 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CHECK_EQ(check_quietly(cases[i].path), cases[i].err);
		CHECK_EQ(put(cases[i].path, 'x', 1), cases[i].err);
	}
}

TEST(a_name_of_full_length_is_fine)
{
	char name[256];

	memset(name, 'n', 255);
	name[255] = '\0';
	CHECK_EQ(put(name, 'x', 1), 0);
	CHECK_EQ(size_of(name), 1);
}

TEST(read_only_directory)
{
	pid_t child;
	int status;

	CHECK_EQ(mkdir("ro", 0555), 0);
	/* Root may write anywhere, so somebody else tries. */
	child = fork();
	if (!child) {
		if (geteuid() == 0 && (chmod(dir, 0755) || setgid(65534) || setuid(65534)))
			_exit(1);
		_exit(check_quietly("ro/file") == -EACCES && put("ro/file", 'x', 1) == -EACCES ? 0
											       : 2);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

TEST(full_device)
{
	CHECK_EQ(check_quietly("/dev/full"), 0);
	CHECK_EQ(put("/dev/full", 'x', 10), -ENOSPC);
	CHECK_EQ(put("/dev/full", 'x', 1000000), -ENOSPC);
}

TEST(full_disk_leaves_nothing_and_keeps_the_old)
{
	CHECK_EQ(mkdir("tmpfs", 0700), 0);
	if (mount("none", "tmpfs", "tmpfs", 0, "size=64k")) {
		check_skip("cannot mount a tmpfs");
		return;
	}
	CHECK_EQ(put("tmpfs/file", 'o', 10), 0);
	CHECK_EQ(put("tmpfs/file", 'x', 1000000), -ENOSPC);
	CHECK_EQ(count_names("tmpfs"), 1);
	CHECK_EQ(size_of("tmpfs/file"), 10);
	CHECK_EQ(umount("tmpfs"), 0);
}

TEST(fifo_is_written_directly)
{
	char bytes[8] = "";
	int reader;

	CHECK_EQ(mkfifo("fifo", 0600), 0);
	reader = open("fifo", O_RDONLY | O_NONBLOCK);
	CHECK(reader >= 0);
	CHECK_EQ(check_quietly("fifo"), 0);
	CHECK_EQ(put("fifo", 'x', 3), 0);
	CHECK_EQ(read(reader, bytes, sizeof(bytes)), 3);
	CHECK_STR(bytes, "xxx");
	close(reader);
}

TEST(closed_pipe)
{
	int pipe_fds[2], saved = dup(STDOUT_FILENO), err;

	fflush(stdout);
	CHECK_EQ(pipe(pipe_fds), 0);
	dup2(pipe_fds[1], STDOUT_FILENO);
	close(pipe_fds[1]);
	close(pipe_fds[0]);
	err = put("-", 'x', 10);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	CHECK_EQ(err, -EPIPE);
}

/* Names of our own descriptors append to what they are open on, file or not. */
TEST(names_of_descriptors)
{
	static const char *const names[] = {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
	int saved = dup(STDOUT_FILENO), errs[4];
	int fd = open("stdout", O_CREAT | O_RDWR | O_APPEND, 0644);

	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	close(fd);
	for (size_t i = 0; i < 4; i++)
		errs[i] = check_quietly(names[i]) ?: put(names[i], 'a' + (int)i, 1);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	for (size_t i = 0; i < 4; i++)
		CHECK_EQ(errs[i], 0);
	CHECK_EQ(size_of("stdout"), 4);
	CHECK_EQ(mode_of("stdout"), 0644);
	for (size_t i = 0; i < 4; i++)
		CHECK(outfile_is_stdout(names[i]));
	CHECK(!outfile_is_stdout("/dev/stderr"));
	CHECK(!outfile_is_stdout("stdout"));
	CHECK_EQ(check_quietly("/dev/fd/777"), -EBADF);
}

TEST(abort_writes_nothing_to_a_pipe)
{
	struct outfile *file;
	char byte;
	int reader;

	CHECK_EQ(mkfifo("aborted", 0600), 0);
	reader = open("aborted", O_RDONLY | O_NONBLOCK);
	CHECK_EQ(outfile_open("aborted", &file), 0);
	fputs("half", outfile_stream(file));
	outfile_abort(file);
	CHECK_EQ(read(reader, &byte, 1), 0);
	close(reader);
}

TEST(a_link_is_replaced_and_not_followed)
{
	struct stat st;

	CHECK_EQ(put("victim", 'v', 7), 0);
	CHECK_EQ(symlink("victim", "link"), 0);
	CHECK_EQ(symlink("nowhere", "dangling"), 0);
	CHECK_EQ(put("link", 'x', 3), 0);
	CHECK_EQ(put("dangling", 'x', 3), 0);
	CHECK_EQ(size_of("victim"), 7);
	CHECK_EQ(access("nowhere", F_OK), -1);
	CHECK_EQ(lstat("link", &st), 0);
	CHECK(S_ISREG(st.st_mode));
	CHECK_EQ(st.st_size, 3);
}

TEST(block_devices_are_refused)
{
	if (mknod("disk", S_IFBLK | 0600, 0)) {
		check_skip("cannot make a block device");
		return;
	}
	CHECK_EQ(check_quietly("disk"), -EINVAL);
	CHECK_EQ(put("disk", 'x', 1), -EINVAL);
}

TEST(sudo_user_owns_the_file)
{
	static const struct {
		const char *uid, *gid;
		uid_t owner;
		gid_t group;
	} cases[] = {
		{"65534", "65533", 65534, 65533}, {"65534", NULL, 65534, 0}, {NULL, "65533", 0, 0},
		{"nobody", "65533", 0, 0},	  {"-1", "1", 0, 0},	     {"1x", "1", 0, 0},
	};
	struct stat st;

	if (geteuid() != 0) {
		check_skip("not root");
		return;
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int err;

		unsetenv("SUDO_UID");
		unsetenv("SUDO_GID");
		if (cases[i].uid)
			setenv("SUDO_UID", cases[i].uid, 1);
		if (cases[i].gid)
			setenv("SUDO_GID", cases[i].gid, 1);
		err = put("given", 'x', 1);
		unsetenv("SUDO_UID");
		unsetenv("SUDO_GID");
		CHECK_EQ(err, 0);
		CHECK_EQ(stat("given", &st), 0);
		CHECK_EQ(st.st_uid, cases[i].owner);
		CHECK_EQ(st.st_gid, cases[i].group);
		CHECK_EQ(mode_of("given"), 0600);
	}
}
