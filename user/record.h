/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The verb record: profiles the targets for the time asked, then writes profiles and the table.
 */
#ifndef RECORD_H
#define RECORD_H

#include "opts.h"

struct command;

/*
 * Runs to the end; messages go to stderr, the table and `-o -` to stdout. `command` is the program
 * of opts->command, started but not gone, or NULL; the table goes to stderr then.
 */
enum opts_exit record_run(const struct opts *opts, struct command *command);

#endif
