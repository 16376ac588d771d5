// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where this very process runs, and one of its children in namespaces of its own.
 */
#include "check.h"
#include "whereabouts.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

TEST(ours)
{
	struct whereabouts here;
	struct stat root, seen;

	CHECK_EQ(whereabouts_read(getpid(), &here), 0);
	CHECK_EQ(here.uid, geteuid());
	CHECK_EQ(here.inner_tgid, getpid());
	CHECK_EQ(here.mounts_fd, -1);
	CHECK_EQ(stat("/", &root), 0);
	CHECK_EQ(fstat(here.root_fd, &seen), 0);
	CHECK_EQ(root.st_ino, seen.st_ino);
	whereabouts_close(&here);
	CHECK_EQ(here.root_fd, -1);
	whereabouts_close(&here);
}

TEST(nobodys)
{
	struct whereabouts nowhere;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK_EQ(whereabouts_read(pid, &nowhere), -ESRCH);
	CHECK_EQ(whereabouts_begin_ns(pid), 0);
}

/* That we have no descriptor left says nothing of a process. */
TEST(without_descriptors)
{
	struct rlimit few, limit;
	struct whereabouts here;
	int next = dup(0), err;

	CHECK(next >= 0);
	close(next);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	/* The root and the mounts take one each. */
	for (int left = 0; left <= 2; left++) {
		few = limit;
		few.rlim_cur = (rlim_t)(next + left);
		CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
		err = whereabouts_read(getpid(), &here);
		CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
		CHECK_EQ(err, left == 2 ? 0 : -EMFILE);
	}
	whereabouts_close(&here);
}

static int64_t boottime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* To a tick; whatever the name. */
TEST(begin)
{
	const int64_t tick_ns = 1000000000 / sysconf(_SC_CLK_TCK);
	int64_t before_ns = boottime_ns(), begun_ns;
	int hold[2];
	pid_t pid;

	CHECK_EQ(pipe(hold), 0);
	pid = fork();
	if (!pid) {
		FILE *comm = fopen("/proc/self/comm", "w");
		char byte;

		if (!comm || fputs("a) b\n(c d", comm) < 0 || fclose(comm))
			_exit(1);
		close(hold[1]);
		_exit(read(hold[0], &byte, 1) != 0);
	}
	begun_ns = whereabouts_begin_ns(pid);
	close(hold[0]);
	close(hold[1]);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK(begun_ns > before_ns - 2 * tick_ns);
	CHECK(begun_ns <= boottime_ns());
}

/* In the child: another user of many groups, with other mounts, says so and waits. */
static void be_elsewhere(int ready_fd, int hold_fd)
{
	static gid_t groups[1000];
	char byte;

	for (size_t i = 0; i < 1000; i++)
		groups[i] = 1000000 + i;
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/tmp", "tmpfs", 0, NULL) || mkdir("/tmp/only here", 0700) ||
	    setgroups(1000, groups) || seteuid(12345) || write(ready_fd, "r", 1) != 1)
		_exit(1);
	_exit(read(hold_fd, &byte, 1) != 0);
}

/* Its mounts are seen below its root after its end. */
TEST(elsewhere)
{
	int ready[2], hold[2], status;
	struct whereabouts there;
	bool is_there;
	int err;
	pid_t pid;
	char byte;

	if (geteuid()) {
		check_skip("needs root");
		return;
	}
	CHECK(!pipe(ready) && !pipe(hold));
	pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		close(hold[1]);
		be_elsewhere(ready[1], hold[0]);
	}
	close(ready[1]);
	close(hold[0]);
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	err = whereabouts_read(pid, &there);
	close(ready[0]);
	close(hold[1]);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(err, 0);
	CHECK_EQ(there.uid, 12345);
	CHECK_EQ(there.inner_tgid, 1);
	CHECK(there.mounts_fd >= 0);
	is_there = !faccessat(there.root_fd, "tmp/only here", F_OK, 0);
	whereabouts_close(&there);
	CHECK(is_there);
}
