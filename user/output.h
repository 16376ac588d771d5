/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where profiles go: names of files, and writing every requested view of a profile.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include "profile.h"

#include <stdio.h>

struct opts;
struct target;

/*
 * Where the table for people goes: stdout, or stderr when the profile or what a command says goes
 * to stdout.
 */
FILE *output_people(const struct opts *opts);

/*
 * The path of the file for one type, which the caller free()s; NULL: out of memory. A process whose
 * number another one had before gets a name of its own.
 */
char *output_path(const struct opts *opts, const struct target *target, enum profile_type type);

/*
 * Where processes are chosen and no output is given: makes a directory of our own in this one, and
 * *path (which the caller free()s) is its name. 0 or -errno, logged.
 */
int output_make_directory(char **path);

/*
 * Checks before a run that its files can be written, all of them. 0 or -errno, logged.
 */
int output_check(const struct opts *opts, const struct target *target);

/*
 * Writes the profile once per requested type, each whole or not at all, and says where. 0 or
 * -errno of the first failure, logged; the other types are still tried.
 */
int output_write(const struct opts *opts, const struct target *target,
		 const struct profile *profile);

#endif
