/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where profiles go: names of files, and writing every requested view of a profile.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdio.h>

struct opts;
struct profile;
struct target;

/*
 * Where the table for people goes: stdout, or stderr when the profile or what a command says goes
 * to stdout.
 */
FILE *output_people(const struct opts *opts);

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
