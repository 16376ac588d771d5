// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What runs apart shares descriptors with its caller, but no memory, and outlives it.
 */
#include "apart.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct job {
	pid_t caller;
	pid_t runner;
	int fd;
	bool same_memory;
};

static int elsewhere;

static int open_null(void *data)
{
	struct job *job = data;

	elsewhere = 1;
	job->runner = getpid();
	job->same_memory = syscall(SYS_kcmp, job->caller, job->runner, KCMP_VM, 0, 0) == 0;
	job->fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return -ENOSPC;
}

TEST(data_and_descriptors_come_back)
{
	struct job job = {.caller = getpid(), .fd = -1};

	CHECK_EQ(apart_call(open_null, &job, sizeof(job)), -ENOSPC);
	CHECK(job.runner != getpid());
	CHECK(fcntl(job.fd, F_GETFD) >= 0);
	close(job.fd);
}

/* The kernel kills for memory all that share it. */
TEST(memory_is_not_shared)
{
	struct job job = {.caller = getpid(), .fd = -1};

	CHECK_EQ(apart_call(open_null, &job, sizeof(job)), -ENOSPC);
	CHECK(!job.same_memory);
	CHECK_EQ(elsewhere, 0);
	close(job.fd);
}

TEST(closed_apart_is_closed_here)
{
	int fds[APART_CLOSE_MAX];

	for (int i = 0; i < APART_CLOSE_MAX; i++)
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	apart_close(fds, APART_CLOSE_MAX);
	for (int i = 0; i < APART_CLOSE_MAX; i++)
		CHECK_EQ(fcntl(fds[i], F_GETFD), -1);
	CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
}

/* Nobody else has them when the call is over, or the ends of the pipes would be open. */
TEST(closed_apart_is_closed_for_good)
{
	int ends[3][2], fds[3];
	char byte;

	for (int i = 0; i < 3; i++) {
		CHECK_EQ(pipe2(ends[i], O_CLOEXEC | O_NONBLOCK), 0);
		fds[i] = ends[i][1];
	}
	apart_close(fds, 3);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(read(ends[i][0], &byte, 1), 0);
		close(ends[i][0]);
	}
}

static int open_and_die(void *data)
{
	open_null(data);
	kill(getpid(), SIGKILL);
	return 0;
}

TEST(killed_is_no_success_and_what_was_opened_is_known)
{
	struct job job = {.caller = getpid(), .fd = -1};

	CHECK_EQ(apart_call(open_and_die, &job, sizeof(job)), -EINTR);
	CHECK(job.runner != getpid());
	CHECK(fcntl(job.fd, F_GETFD) >= 0);
	close(job.fd);
}

static int say_who(void *data)
{
	*(pid_t *)data = getpid();
	return 7;
}

/* Runs as somebody who may have no more processes; root may always. */
static void be_without_processes(void)
{
	struct rlimit none = {0, 0};
	pid_t who = 0;

	if (setrlimit(RLIMIT_NPROC, &none) || setresuid(65534, 65534, 65534))
		_exit(77);
	if (apart_call(say_who, &who, sizeof(who)) != 7 || who != getpid())
		_exit(1);
	who = open("/dev/null", O_RDONLY | O_CLOEXEC);
	apart_close(&who, 1);
	_exit(fcntl(who, F_GETFD) != -1);
}

TEST(without_a_process_it_is_done_here)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		be_without_processes();
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		check_skip("cannot become somebody else");
		return;
	}
	CHECK_EQ(WEXITSTATUS(status), 0);
}

static int tell_group(void *data)
{
	*(pid_t *)data = getpgrp();
	return 0;
}

TEST(signals_to_our_group_do_not_reach_it)
{
	pid_t group = 0;

	CHECK_EQ(apart_call(tell_group, &group, sizeof(group)), 0);
	CHECK(group > 0 && group != getpgrp());
}

static int tell_score(void *data)
{
	char text[16] = "";
	int fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
	ssize_t len = read(fd, text, sizeof(text) - 1);

	close(fd);
	*(long *)data = len > 0 ? strtol(text, NULL, 10) : 0;
	return 0;
}

/* Lowers the score of a process that then ends. */
static bool may_lower_scores(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

		_exit(write(fd, "-1000", 5) != 5);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

TEST(want_of_memory_does_not_kill_it)
{
	long score = 0, ours = 0;

	if (!may_lower_scores()) {
		check_skip("needs CAP_SYS_RESOURCE");
		return;
	}
	CHECK_EQ(apart_call(tell_score, &score, sizeof(score)), 0);
	CHECK_EQ(score, -1000);
	tell_score(&ours);
	CHECK(ours > -1000);
}

static int kill_caller(void *data)
{
	const struct job *job = data;

	kill(job->caller, SIGKILL);
	/* Dead, it is not our parent any more. */
	while (getppid() == job->caller)
		;
	return write(job->fd, "x", 1) != 1;
}

TEST(killed_caller_does_not_end_it)
{
	int ends[2], status;
	char byte;
	pid_t pid;

	CHECK_EQ(pipe(ends), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		struct job job = {.caller = getpid(), .fd = ends[1]};

		close(ends[0]);
		apart_call(kill_caller, &job, sizeof(job));
		_exit(1);
	}
	close(ends[1]);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK_EQ(read(ends[0], &byte, 1), 1);
	/* And then it ends, too. */
	CHECK_EQ(read(ends[0], &byte, 1), 0);
	close(ends[0]);
}
