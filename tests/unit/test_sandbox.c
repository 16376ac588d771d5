// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a sandboxed child survives, and what not.
 */
#include "sandbox.h"

#include "check.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t armed;

static int arm(pid_t child, void *data)
{
	armed = child;
	return data ? -ENOMEM : 0;
}

static void do_nothing(void)
{
}

static void ask_for_a_parent(void)
{
	getppid();
}

static void crash(void)
{
	__builtin_trap();
}

TEST(the_harmless_survives)
{
	CHECK_EQ(sandbox_try(arm, NULL, do_nothing), 0);
	CHECK(armed > 0 && armed != getpid());
}

TEST(a_system_call_kills)
{
	CHECK_EQ(sandbox_try(arm, NULL, ask_for_a_parent), -EOPNOTSUPP);
	CHECK_EQ(sandbox_try(arm, NULL, crash), -EOPNOTSUPP);
}

static int kill_child(pid_t child, void *data)
{
	(void)data;
	return kill(child, SIGKILL) ? -errno : 0;
}

/* Who is killed by others, for want of memory for one, says nothing about the kernel. */
TEST(a_kill_by_others_is_no_answer)
{
	CHECK_EQ(sandbox_try(kill_child, NULL, do_nothing), -EINTR);
}

TEST(what_cannot_be_armed_tells_why)
{
	CHECK_EQ(sandbox_try(arm, &armed, do_nothing), -ENOMEM);
}

/* In a child, which stays under it: seccomp cannot be left. */
TEST(under_a_filter_of_our_own)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = {1, &allow};
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
			_exit(2);
		_exit(sandbox_try(arm, NULL, do_nothing) ||
		      sandbox_try(arm, NULL, ask_for_a_parent) != -EOPNOTSUPP);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}
