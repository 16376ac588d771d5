// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a function and its data. Out: its result and what it made of the data, from a process that
 * lives and dies by itself. That is a fork that shares descriptors, and a piece of memory for what
 * comes back.
 * Or, in: descriptors. Out: nothing, when they are closed. Here the fork has a table of its own.
 */
#include "apart.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Shared with the process apart. */
struct area {
	int result;
	_Alignas(max_align_t) unsigned char data[];
};

static struct area *area_new(const void *data, size_t bytes)
{
	struct area *area = mmap(NULL, sizeof(*area) + bytes, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED)
		return NULL;
	area->result = -EINTR;
	memcpy(area->data, data, bytes);
	return area;
}

/* Waits for the end of a child, or for a stop (WUNTRACED); true: stopped. */
static bool wait_for(pid_t pid, int options)
{
	int status = 0;

	while (waitpid(pid, &status, options) < 0)
		if (errno != EINTR)
			return false;
	return WIFSTOPPED(status);
}

/*
 * For want of memory the kernel would kill us and then, if that was not enough, what has a copy of
 * our memory; or both at once (memory.oom.group). Takes CAP_SYS_RESOURCE.
 */
static void be_spared(void)
{
	static const char never[] = "-1000";
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	/* Without that capability it is as good as it can be. */
	(void)!write(fd, never, sizeof(never) - 1);
	close(fd);
}

static _Noreturn void run(struct area *area, int (*fn)(void *data))
{
	/* What kills our process group, as shells do with jobs, is meant for us alone. */
	setpgid(0, 0);
	be_spared();
	area->result = fn(area->data);
	/* Nothing of what we do at exit, nor what we have still to print. */
	_exit(0);
}

int apart_call(int (*fn)(void *data), void *data, size_t bytes)
{
	struct area *area = area_new(data, bytes);
	/* Not fork(), which neither shares descriptors nor leaves out the handlers of libraries. */
	pid_t pid = area ? syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0) : -1;
	int result;

	if (!pid)
		run(area, fn);
	if (pid > 0) {
		wait_for(pid, 0);
		memcpy(data, area->data, bytes);
	}
	result = pid > 0 ? area->result : fn(data);
	if (area)
		munmap(area, sizeof(*area) + bytes);
	return result;
}

/*
 * Lets go of all but the descriptor, stops, and waits to be killed. The others must all be held by
 * somebody else meanwhile, or this would be where they are closed. If we are killed, so is it.
 */
static _Noreturn void keep_one(int fd, pid_t parent)
{
	setpgid(0, 0);
	if (fd > 0)
		close_range(0, fd - 1, 0);
	close_range(fd + 1, ~0U, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent)
		kill(getpid(), SIGSTOP);
	_exit(0);
}

void apart_close(const int *fds, size_t cnt)
{
	/* From the first copy of our table until the descriptors are in no new copy any more. */
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pid_t parent = getpid(), pids[APART_CLOSE_MAX];

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < cnt; i++) {
		pids[i] = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (!pids[i])
			keep_one(fds[i], parent);
	}
	for (size_t i = 0; i < cnt; i++)
		if (pids[i] > 0 && !wait_for(pids[i], WUNTRACED))
			pids[i] = -1;
	/* Now each is held by one process, which nothing but its end makes let it go. */
	for (size_t i = 0; i < cnt; i++)
		close(fds[i]);
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; i < cnt; i++)
		if (pids[i] > 0)
			kill(pids[i], SIGKILL);
	for (size_t i = 0; i < cnt; i++)
		if (pids[i] > 0)
			wait_for(pids[i], 0);
}
