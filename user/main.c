// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: argv. Out: the exit status of the verb, and what it printed, all of it or an error.
 */
#include "check.h"
#include "command.h"
#include "contain.h"
#include "log.h"
#include "opts.h"
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * A standard stream that was closed would be the number of the next file opened, and that file get
 * what is meant for people. Read-only, so that writing to it fails as writing to nothing should.
 */
static void occupy_streams(void)
{
	int fd;

	/* A program that we execute finds them as closed as we did. */
	do
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Every probe, map and mapped file is a descriptor; the soft limit of shells is small. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* The status, unless something printed did not arrive. */
static enum opts_exit finish_output(enum opts_exit status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	if (!log_failed())
		log_fail(errno, "cannot write to standard output");
	return status == OPTS_EXIT_WHOLE ? OPTS_EXIT_PARTIAL : status;
}

/* The exit status of the verb. */
static int run(const struct opts *opts, struct command *command)
{
	enum opts_exit own;
	int status;

	/* Who starts us may ignore it; then nobody could wait for a child. */
	signal(SIGCHLD, SIG_DFL);
	raise_file_limit();
	contain_crashes();
	own = opts->verb == OPTS_CHECK ? check_run(opts) : record_run(opts, command);
	if (own == OPTS_EXIT_FAILED && !log_failed())
		log_fail(ENOMEM, "cannot go on");
	own = finish_output(own);
	status = opts->preserve_status ? command_status(command) : -1;
	return status < 0 ? (int)own : status;
}

int main(int argc, char **argv)
{
	struct command *command = NULL;
	struct opts opts;
	int err, status;

	occupy_streams();
	err = opts_parse(argc, argv, &opts);
	if (err)
		return finish_output(err == -ECANCELED ? OPTS_EXIT_WHOLE : OPTS_EXIT_USAGE);
	/* Before anything of this process is changed or opened that would be the program's, too. */
	if (opts.command && command_start(opts.command, opts.ready_fd, &command)) {
		opts_clear(&opts);
		return OPTS_EXIT_FAILED;
	}
	status = run(&opts, command);
	command_free(command);
	opts_clear(&opts);
	return status;
}
