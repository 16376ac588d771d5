// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: argv. Out: the exit status of the verb, and what it printed, all of it or an error.
 */
#include "check.h"
#include "contain.h"
#include "log.h"
#include "opts.h"
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * A standard stream that was closed would be the number of the next file opened, and that file get
 * what is meant for people. Read-only, so that writing to it fails as writing to nothing should.
 */
static void occupy_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
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

int main(int argc, char **argv)
{
	static enum opts_exit (*const verbs[OPTS_VERB_CNT])(const struct opts *) = {
		[OPTS_RECORD] = record_run,
		[OPTS_CHECK] = check_run,
	};
	enum opts_exit status;
	struct opts opts;
	int err;

	occupy_streams();
	raise_file_limit();
	contain_crashes();
	err = opts_parse(argc, argv, &opts);
	if (err)
		return finish_output(err == -ECANCELED ? OPTS_EXIT_WHOLE : OPTS_EXIT_USAGE);
	status = verbs[opts.verb](&opts);
	if (status == OPTS_EXIT_FAILED && !log_failed())
		log_fail(ENOMEM, "cannot go on");
	opts_clear(&opts);
	return finish_output(status);
}
