// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: something to do. Out: does a process under seccomp survive it. The child lives for
 * milliseconds and dies with us.
 */
#include "sandbox.h"

#include "cleanup.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define ALLOW(name)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                     \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/*
 * From now on any system call but these kills. By a filter, since strict mode is refused where we
 * run under a filter ourselves, as in a container. 0, or -1 with errno set.
 */
static int enter(void)
{
	static struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(read),
		ALLOW(exit),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {ARRAY_CNT(filter), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* The child: waits for a byte, acts, exits. Anything else kills it. */
static void be_child(int go_fd, void (*act)(void))
{
	/* A filter's kill would leave a core. */
	const struct rlimit no_core = {};
	char byte;

	if (setrlimit(RLIMIT_CORE, &no_core) || prctl(PR_SET_PDEATHSIG, SIGKILL) || enter())
		_exit(1);
	if (read(go_fd, &byte, 1) == 1) {
		act();
		/* exit_group(), which _exit() calls, is not allowed. */
		syscall(SYS_exit, 0);
	}
	syscall(SYS_exit, 1);
}

/* Does a process that did what it may not die of `number`? Of others somebody else is the cause. */
static bool is_own_death(int number)
{
	return number == SIGSYS || number == SIGSEGV || number == SIGILL || number == SIGTRAP ||
	       number == SIGBUS;
}

/* How the child ended: 0, -EOPNOTSUPP if it was killed for what it did, -errno. */
static int wait_for(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (WIFSIGNALED(status))
		return is_own_death(WTERMSIG(status)) ? -EOPNOTSUPP : -EINTR;
	return WEXITSTATUS(status) ? -EIO : 0;
}

int sandbox_try(int (*arm)(pid_t child, void *data), void *data, void (*act)(void))
{
	int go[2], err, end;
	pid_t child;

	if (pipe(go))
		return -errno;
	child = fork();
	if (!child) {
		close(go[1]);
		be_child(go[0], act);
	}
	err = child < 0 ? -errno : 0;
	if (!err)
		err = arm(child, data);
	/* We read from it as well: the child may be dead, and that must not end us. */
	if (!err && write(go[1], "g", 1) != 1)
		err = -errno;
	close(go[0]);
	/* Without a byte this ends the child, too. */
	close(go[1]);
	end = child < 0 ? 0 : wait_for(child);
	return err ? err : end;
}
