// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a function and its data. Out: its result and what it made of the data, from a process that
 * lives and dies by itself. That is a fork that shares descriptors, and a piece of memory for what
 * comes back.
 */
#include "apart.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Shared with the process apart. */
struct apart_area {
	int result;
	_Alignas(max_align_t) unsigned char data[];
};

static struct apart_area *area_new(const void *data, size_t bytes)
{
	struct apart_area *area = mmap(NULL, sizeof(*area) + bytes, PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED)
		return NULL;
	area->result = -EINTR;
	memcpy(area->data, data, bytes);
	return area;
}

static void area_free(struct apart_area *area, size_t bytes)
{
	if (area)
		munmap(area, sizeof(*area) + bytes);
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

static _Noreturn void run(struct apart_area *area, int (*fn)(void *data))
{
	/* What kills our process group, as shells do with jobs, is meant for us alone. */
	setpgid(0, 0);
	be_spared();
	area->result = fn(area->data);
	/* Nothing of what we do at exit, nor what we have still to print. */
	_exit(0);
}

void apart_begin(struct apart *apart, int (*fn)(void *data), void *data, size_t bytes)
{
	*apart = (struct apart){.data = data, .bytes = bytes, .area = area_new(data, bytes)};
	/* Not fork(), which neither shares descriptors nor leaves out the handlers of libraries. */
	apart->pid = apart->area ? syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0) : -1;
	if (!apart->pid)
		run(apart->area, fn);
	if (apart->pid > 0)
		return;
	area_free(apart->area, bytes);
	apart->area = NULL;
	apart->result = fn(data);
}

int apart_end(struct apart *apart)
{
	if (!apart->area)
		return apart->result;
	while (waitpid(apart->pid, NULL, 0) < 0 && errno == EINTR)
		;
	apart->result = apart->area->result;
	memcpy(apart->data, apart->area->data, apart->bytes);
	area_free(apart->area, apart->bytes);
	apart->area = NULL;
	return apart->result;
}

int apart_call(int (*fn)(void *data), void *data, size_t bytes)
{
	struct apart apart;

	apart_begin(&apart, fn, data, bytes);
	return apart_end(&apart);
}
