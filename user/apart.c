// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a function. Out: its result, from a process that lives and dies by itself. It is a vfork()
 * that shares descriptors as well: we sleep until it has ended, so nothing runs at the same time.
 */
#include "apart.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* libbpf keeps paths and attributes on its stack; untouched pages cost nothing. */
#define STACK_BYTES (256 * 1024)

struct call {
	int (*fn)(void *data);
	void *data;
	int result;
};

static int run(void *data)
{
	struct call *call = data;

	/* What kills our process group, as shells do with jobs, is meant for us alone. */
	setpgid(0, 0);
	call->result = call->fn(call->data);
	return 0;
}

int apart_call(int (*fn)(void *data), void *data)
{
	struct call call = {fn, data, 0};
	char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	pid_t pid = -1;

	if (stack != MAP_FAILED)
		pid = clone(run, stack + STACK_BYTES,
			    CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, &call);
	if (pid < 0)
		call.result = fn(data);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (stack != MAP_FAILED)
		munmap(stack, STACK_BYTES);
	return call.result;
}
