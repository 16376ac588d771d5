/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the text of an option to what it means; opts has the table of options, and what they mean
 * together.
 */
#ifndef OPTS_VALUES_H
#define OPTS_VALUES_H

#include <stddef.h>

struct opts;

/* Options without a letter, and what getopt_long() gives for a word that is none. */
enum opts_key {
	OPTS_KEY_WORD = 1, /* not an option; as getopt has it */
	OPTS_KEY_TEXT = 256,
	OPTS_KEY_VERSION,
	OPTS_KEY_READY_FD,
	OPTS_KEY_TOP,
	OPTS_KEY_MAX_OVERHEAD,
	OPTS_KEY_SYMBOL_PREFIX,
	OPTS_KEY_PROBE,
	OPTS_KEY_ALLOC_LIB,
	OPTS_KEY_MAX_STACKS,
	OPTS_KEY_MAX_SITES,
	OPTS_KEY_MAX_LIVE,
	OPTS_KEY_MAX_DEPTH,
	OPTS_KEY_MAX_PROCESSES,
	OPTS_KEY_SHARE,
	OPTS_KEY_COMM,
	OPTS_KEY_CGROUP,
	OPTS_KEY_USER,
	OPTS_KEY_FOLLOW,
	OPTS_KEY_NO_FOLLOW,
	OPTS_KEY_TIER,
	OPTS_KEY_FLOOR,
	OPTS_KEY_PRESERVE_STATUS,
};

/*
 * Takes `text` as the value of option `key`: a letter, or an enum opts_key. 0, or -EINVAL or
 * -ENOMEM after one logged line.
 */
int opts_value(struct opts *opts, int key, const char *text);

/* Takes a copy of `cnt` > 0 words as the program to run. As opts_value(). */
int opts_set_command(struct opts *opts, char *const *words, size_t cnt);

#endif
