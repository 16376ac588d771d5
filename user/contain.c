// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a function. Out: its result, or that it has none, whatever it did to the process it ran in.
 */
#include "contain.h"

#include "cleanup.h"
#include "opts.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

/* Exit statuses of a copy that came to its end begin here; libraries that give up use small ones.
 */
#define RESULT_FIRST 100

/* A sanitizer has more to say about a crash than we. */
#ifdef __SANITIZE_ADDRESS__
#define SANITIZED true
#else
#define SANITIZED false
#endif

static void set_handlers(void (*handler)(int))
{
	for (size_t i = 0; i < ARRAY_CNT(crashes) && !SANITIZED; i++)
		signal(crashes[i], handler);
}

/* Only what is safe in a signal handler. */
static void end_by_crash(int number)
{
	static const char text[] = "heapbpf: crashed; out of memory, or a file that no library "
				   "was prepared for\n";

	(void)number;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(OPTS_EXIT_FAILED);
	_exit(OPTS_EXIT_FAILED);
}

void contain_crashes(void)
{
	set_handlers(end_by_crash);
}

pid_t contain_fork(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	set_handlers(SIG_DFL);
	return 0;
}

int contain_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -ECHILD;
}

bool contain_call(int (*fn)(void *data), void *data, int *result)
{
	pid_t pid;
	int status;

	/* Or the copy would write it a second time. */
	fflush(NULL);
	pid = contain_fork();
	if (pid < 0) {
		*result = fn(data);
		return true;
	}
	if (!pid) {
		status = fn(data);
		fflush(NULL);
		_exit(RESULT_FIRST + status);
	}
	status = contain_wait(pid);
	if (status < RESULT_FIRST)
		return false;
	*result = status - RESULT_FIRST;
	return true;
}
