// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: argv. Out: the exit status of the verb.
 */
#include "check.h"
#include "opts.h"
#include "record.h"

#include <errno.h>

int main(int argc, char **argv)
{
	static enum opts_exit (*const verbs[OPTS_VERB_CNT])(const struct opts *) = {
		[OPTS_RECORD] = record_run,
		[OPTS_CHECK] = check_run,
	};
	enum opts_exit status;
	struct opts opts;
	int err = opts_parse(argc, argv, &opts);

	if (err)
		return err == -ECANCELED ? OPTS_EXIT_WHOLE : OPTS_EXIT_USAGE;
	status = verbs[opts.verb](&opts);
	opts_clear(&opts);
	return status;
}
