// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: something to do. Out: did a process under seccomp survive it. The child lives for
 * milliseconds and dies with us.
 */
#include "sandbox.h"

#include "cleanup.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* The child: waits for a byte, acts, exits. Anything else kills it. */
static void be_child(int go_fd, void (*act)(void))
{
	char byte;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		_exit(1);
	if (read(go_fd, &byte, 1) == 1) {
		act();
		/* exit_group(), which _exit() calls, is not allowed. */
		syscall(SYS_exit, 0);
	}
	syscall(SYS_exit, 1);
}

bool sandbox_survives(int (*arm)(pid_t child, void *data), void *data, void (*act)(void))
{
	int go[2], status = -1;
	pid_t child;

	if (pipe(go))
		return false;
	child = fork();
	if (!child) {
		close(go[1]);
		be_child(go[0], act);
	}
	close(go[0]);
	/* Closing the pipe without a byte ends the child, too. */
	if (child > 0 && !arm(child, data) && write(go[1], "g", 1) != 1)
		status = -1;
	close(go[1]);
	while (child > 0 && waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return child > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}
