// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Not a target but a library to preload: shows a program a kernel that has the HAZARD of that name,
 * with the answers that such a kernel gives.
 *
 *   no_bpf         CONFIG_BPF_SYSCALL is not set
 *   one_thread     uprobe_multi links with a pid see one thread only (before 46ba0e49b642)
 *   locked_memory  maps count as locked memory, and too much is locked (before 5.11)
 *   deadly_return  who is under seccomp is killed at a return probe (CVE-2025-21834). Here it is
 *                  the next system call but read() that kills.
 *
 * build: -shared -fPIC
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Of BPF_LINK_CREATE; the headers of stable distributions are older. */
#define TRACE_UPROBE_MULTI   48
#define TRACE_UPROBE_SESSION 57
#define OFFSET_ATTACH_TYPE   8
#define OFFSET_PID	     56

static bool is(const char *name)
{
	const char *hazard = getenv("HAZARD");

	return hazard && !strcmp(hazard, name);
}

static uint32_t field(const void *attr, size_t size, size_t offset)
{
	uint32_t value = 0;

	if (offset + sizeof(value) <= size)
		memcpy(&value, (const char *)attr + offset, sizeof(value));
	return value;
}

static bool is_multi_of_nobody(long command, const void *attr, size_t size)
{
	uint32_t type = field(attr, size, OFFSET_ATTACH_TYPE);

	return command == BPF_LINK_CREATE && field(attr, size, OFFSET_PID) == UINT32_MAX &&
	       (type == TRACE_UPROBE_MULTI || type == TRACE_UPROBE_SESSION);
}

/* The error that bpf() has from such a kernel; 0: none. */
static int refusal(long command, const void *attr, size_t size)
{
	if (is("no_bpf"))
		return ENOSYS;
	if (is("one_thread") && is_multi_of_nobody(command, attr, size))
		return EBADF;
	if (is("locked_memory") && command == BPF_MAP_CREATE)
		return EPERM;
	return 0;
}

long syscall(long number, ...)
{
	static long (*real)(long, ...);
	long args[6];
	va_list list;
	int error;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		args[i] = va_arg(list, long);
	va_end(list);
	error = number == SYS_bpf ? refusal(args[0], (const void *)args[1], args[2]) : 0;
	if (error) {
		errno = error;
		return -1;
	}
	if (!real)
		real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	return real(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}

/* A sandbox that nobody leaves alive. */
static struct sock_filter deadly[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

int prctl(int option, ...)
{
	static const struct sock_fprog program = {sizeof(deadly) / sizeof(*deadly), deadly};
	unsigned long args[4];
	va_list list;

	va_start(list, option);
	for (int i = 0; i < 4; i++)
		args[i] = va_arg(list, unsigned long);
	va_end(list);
	if (option == PR_SET_SECCOMP && is("deadly_return"))
		args[1] = (unsigned long)&program;
	return (int)syscall(SYS_prctl, option, args[0], args[1], args[2], args[3]);
}
