// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * command: what a started process becomes, and what is left of it.
 */
#include "check.h"
#include "command.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* The exit status of sh -c `text`, run to its end. */
static int status_of(const char *text)
{
	char *argv[] = {"/bin/sh", "-c", (char *)text, NULL};
	struct command *command;
	int status;

	if (command_start(argv, -1, &command) || command_go(command))
		return -1;
	command_set_running(command);
	command_wait(command);
	status = command_status(command);
	command_free(command);
	return status;
}

/* No child is left, zombies included. */
static int is_childless(void)
{
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

TEST(status_is_that_of_a_shell)
{
	CHECK_EQ(status_of("exit 0"), 0);
	CHECK_EQ(status_of("exit 7"), 7);
	CHECK_EQ(status_of("kill -TERM $$"), 128 + SIGTERM);
	CHECK(is_childless());
}

static int status_of_failing(const char *name)
{
	char *argv[] = {(char *)name, NULL};
	struct command *command;
	int saved = dup(STDERR_FILENO), err, status = -1;
	FILE *quiet = freopen("/dev/null", "w", stderr);

	err = command_start(argv, -1, &command);
	if (!err && command_go(command))
		status = command_status(command);
	if (!err)
		command_free(command);
	if (quiet)
		dup2(saved, STDERR_FILENO);
	close(saved);
	return status;
}

TEST(what_cannot_be_executed_has_a_status_too)
{
	CHECK_EQ(status_of_failing("/no/such/program"), 127);
	CHECK_EQ(status_of_failing("no-such-program"), 127);
	CHECK_EQ(status_of_failing("/etc/passwd"), 126);
	CHECK_EQ(status_of_failing("/"), 126);
	CHECK(is_childless());
}

/* Nothing of it is run before it is told to go, and nothing of it stays. */
TEST(waits_for_the_sign)
{
	char *argv[] = {"/bin/sh", "-c", "exit 0", NULL};
	struct command *command;

	CHECK_EQ(command_start(argv, -1, &command), 0);
	CHECK(command_tgid(command) > 0);
	CHECK_EQ(command_status(command), -1);
	command_free(command);
	CHECK(is_childless());
}

TEST(descriptor_for_readiness_is_not_the_programs)
{
	int ends[2], status;
	char text[64];
	char *argv[] = {"/bin/sh", "-c", text, NULL};
	struct command *command;

	CHECK_EQ(pipe(ends), 0);
	snprintf(text, sizeof(text), "test -e /proc/self/fd/%d && test ! -e /proc/self/fd/%d",
		 ends[0], ends[1]);
	CHECK_EQ(command_start(argv, ends[1], &command), 0);
	CHECK_EQ(command_go(command), 0);
	command_set_running(command);
	command_wait(command);
	status = command_status(command);
	command_free(command);
	close(ends[0]);
	close(ends[1]);
	CHECK_EQ(status, 0);
}

TEST(signal_of_the_terminal_is_not_passed_twice)
{
	char *argv[] = {"/bin/cat", NULL};
	struct command *command;
	int ends[2], saved = dup(STDIN_FILENO), status;

	CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
	dup2(ends[0], STDIN_FILENO);
	CHECK_EQ(command_start(argv, -1, &command), 0);
	dup2(saved, STDIN_FILENO);
	CHECK_EQ(command_go(command), 0);
	command_set_running(command);
	command_pass_signal(command, SIGTERM, SI_KERNEL);
	command_pass_signal(command, SIGHUP, SI_USER);
	command_wait(command);
	status = command_status(command);
	command_free(command);
	close(ends[0]);
	close(ends[1]);
	close(saved);
	CHECK_EQ(status, 128 + SIGHUP);
}
