// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a profiler takes for itself.
 *   spent FILE COMMAND ARG...
 * Runs the command, writes "SECONDS KILOBYTES" to FILE when it has ended: the processor time of it
 * and of all whom it waited for, and the memory of the largest of them at its peak. Ends with its
 * status. SIGINT is passed on; SIGTERM kills it, for tools that would first write for minutes.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child;

static void pass_on(int signal)
{
	kill(child, signal == SIGTERM ? SIGKILL : signal);
}

static double seconds_of(const struct rusage *usage)
{
	return usage->ru_utime.tv_sec + usage->ru_stime.tv_sec +
	       (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
	struct rusage usage;
	sigset_t passed;
	int status;
	FILE *file;

	if (argc < 3)
		return 64;
	/* None is lost between the fork and the handlers. */
	sigemptyset(&passed);
	sigaddset(&passed, SIGINT);
	sigaddset(&passed, SIGTERM);
	sigprocmask(SIG_BLOCK, &passed, NULL);
	child = fork();
	if (child < 0)
		return 71;
	if (child == 0) {
		sigprocmask(SIG_UNBLOCK, &passed, NULL);
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigprocmask(SIG_UNBLOCK, &passed, NULL);
	while (wait4(child, &status, 0, &usage) < 0)
		if (errno != EINTR)
			return 71;
	file = fopen(argv[1], "w");
	if (!file)
		return 73;
	fprintf(file, "%.3f %ld\n", seconds_of(&usage), usage.ru_maxrss);
	if (fclose(file))
		return 74;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
