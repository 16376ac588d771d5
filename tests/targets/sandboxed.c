// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A process that gave up its rights: after READY it may only read, write, get memory and exit; any
 * other system call kills it.
 * build: -fno-builtin
 */
#include "truth.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

SITE(site_sandboxed)
{
	for (int i = 0; i < 1000; i++) {
		void *p = took(self, malloc(100), 100);

		if (i % 2) {
			free(p);
			gave(self, 100);
		}
	}
	took(self, malloc(1 << 20), 1 << 20);
	took(self, calloc(10, 10), 100);
}

#define ALLOW(name)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                     \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void enter_sandbox(void)
{
	static struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(read),
		ALLOW(write),
		ALLOW(brk),
		ALLOW(mmap),
		ALLOW(munmap),
		ALLOW(mremap),
		ALLOW(getrandom),
		ALLOW(exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(6);
}

int main(void)
{
	enter_sandbox();
	await("READY");
	RUN(site_sandboxed);
	finish();
	return 0;
}
