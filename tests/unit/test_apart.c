// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What runs apart shares memory and descriptors with its caller, and outlives it.
 */
#include "apart.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

struct job {
	pid_t caller;
	pid_t runner;
	int fd;
};

static int open_null(void *data)
{
	struct job *job = data;

	job->runner = getpid();
	job->fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return -ENOSPC;
}

TEST(memory_and_descriptors_are_shared)
{
	struct job job = {.fd = -1};

	CHECK_EQ(apart_call(open_null, &job), -ENOSPC);
	CHECK(job.runner != getpid());
	CHECK(fcntl(job.fd, F_GETFD) >= 0);
	close(job.fd);
}

static int close_it(void *data)
{
	return close(*(int *)data);
}

TEST(closed_apart_is_closed_here)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	CHECK_EQ(apart_call(close_it, &fd), 0);
	CHECK_EQ(fcntl(fd, F_GETFD), -1);
}

static int kill_caller(void *data)
{
	const struct job *job = data;

	kill(job->caller, SIGKILL);
	/* The caller is asleep in the kernel; dead, it is not our parent any more. */
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
		apart_call(kill_caller, &job);
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
