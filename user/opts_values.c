// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: the value of one option. Out: a field of struct opts, or one line that says what to give.
 */
#include "opts_values.h"

#include "cleanup.h"
#include "log.h"
#include "opts.h"
#include "quantity.h"
#include "vec.h"

#include "../bpf/abi.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <wordexp.h>

/* --NAME TEXT, from `min` to `max`. */
static int parse_count(const char *name, const char *text, uint64_t min, uint64_t max,
		       uint32_t *out)
{
	uint64_t value;
	const char *end;

	if (quantity_number(text, max, &value, &end) || *end || value < min)
		return log_fail(0, "--%s %s: give a number from %llu to %llu", name, text,
				(unsigned long long)min, (unsigned long long)max);
	*out = value;
	return 0;
}

static int add_tgid(struct opts *opts, size_t *cap, pid_t tgid)
{
	for (size_t i = 0; i < opts->tgid_cnt; i++)
		if (opts->tgids[i] == tgid)
			return 0;
	if (vec_reserve(&opts->tgids, cap, opts->tgid_cnt + 1))
		return -ENOMEM;
	opts->tgids[opts->tgid_cnt++] = tgid;
	return 0;
}

static int parse_pids(struct opts *opts, const char *text)
{
	size_t cap = opts->tgid_cnt;
	const char *at = text;

	for (;;) {
		uint64_t value;

		if (quantity_number(at, INT_MAX, &value, &at) || !value || (*at && *at != ','))
			return log_fail(0, "-p %s: give process ids, like -p 12 or -p 12,34", text);
		if (add_tgid(opts, &cap, value))
			return log_fail(ENOMEM, "-p %s", text);
		if (!*at)
			return 0;
		at++;
	}
}

int opts_set_command(struct opts *opts, char *const *words, size_t cnt)
{
	if (opts->command)
		return log_fail(0, "which program? give -c once, or -- PROGRAM (see --help)");
	opts->command = calloc(cnt + 1, sizeof(*opts->command));
	for (size_t i = 0; opts->command && i < cnt; i++) {
		opts->command[i] = strdup(words[i]);
		if (!opts->command[i])
			return log_fail(ENOMEM, "cannot run %s", words[0]);
	}
	return opts->command ? 0 : log_fail(ENOMEM, "cannot run %s", words[0]);
}

/*
 * Words as a shell splits and expands them, but without a shell, which would be what is recorded:
 * most of them fork for the program in their -c.
 */
static int parse_command(struct opts *opts, const char *text)
{
	wordexp_t words = {};
	int err = wordexp(text, &words, WRDE_NOCMD);

	if (err == WRDE_NOSPACE)
		return log_fail(ENOMEM, "-c %s", text);
	if (err || !words.we_wordc)
		err = log_fail(0,
			       "-c %s: give a program and its arguments; for more of a shell's "
			       "language, -- sh -c '...'",
			       text);
	else
		err = opts_set_command(opts, words.we_wordv, words.we_wordc);
	wordfree(&words);
	return err;
}

static int parse_types(struct opts *opts, const char *text)
{
	const char *at = text;

	memset(opts->types, 0, sizeof(opts->types));
	for (;;) {
		size_t len = strcspn(at, ","), type = 0;

		while (type < PROFILE_TYPE_CNT && (strlen(profile_type_name(type)) != len ||
						   strncmp(profile_type_name(type), at, len) != 0))
			type++;
		if (type == PROFILE_TYPE_CNT)
			return log_fail(0, "-t %s: give heap, allocs or inuse, or a list", text);
		opts->types[type] = true;
		if (!at[len])
			return 0;
		at += len + 1;
	}
}

static int parse_prefixes(struct opts *opts, const char *text)
{
	int err = alloc_prefixes_add(&opts->hints.prefixes, text);

	if (err == -E2BIG)
		return log_fail(0,
				"--symbol-prefix %s: there can be %d prefixes, known ones included",
				text, ALLOC_PREFIX_MAX - 1);
	if (err == -EINVAL)
		return log_fail(0, "--symbol-prefix %s: give what names begin with, like my_",
				text);
	return err ? log_fail(-err, "--symbol-prefix %s", text) : 0;
}

static int parse_tier(struct opts *opts, const char *text)
{
	for (int tier = 0; tier < UPROBE_LINK_TIER_CNT; tier++) {
		if (strcmp(text, uprobe_link_tier_name(tier)) != 0)
			continue;
		opts->tier = tier;
		return 0;
	}
	return log_fail(0, "--tier %s: give session, multi or perf", text);
}

static int parse_ready_fd(struct opts *opts, const char *text)
{
	uint32_t fd;
	int err = parse_count("ready-fd", text, 0, INT_MAX, &fd);

	if (!err)
		opts->ready_fd = fd;
	return err;
}

static int parse_overhead(struct opts *opts, const char *text)
{
	if (!strcmp(text, "none"))
		opts->max_overhead = INFINITY;
	else if (quantity_percent(text, &opts->max_overhead))
		return log_fail(0, "--max-overhead %s: give a percentage like 5 or 0.5, or none",
				text);
	return 0;
}

int opts_value(struct opts *opts, int key, const char *text)
{
	switch (key) {
	case 'p':
		return parse_pids(opts, text);
	case 'c':
		return parse_command(opts, text);
	case 'd':
		if (quantity_duration(text, &opts->duration_ns))
			return log_fail(0, "-d %s: give a time like 500ms, 30s, 5m", text);
		return 0;
	case 'r':
		if (quantity_size(text, &opts->rate_bytes))
			return log_fail(0, "-r %s: give bytes like 1, 64K, 512K, 1M", text);
		return 0;
	case 't':
		return parse_types(opts, text);
	case 'o':
		if (!text[0])
			return log_fail(0, "-o needs a file, a directory or -");
		opts->output = text;
		return 0;
	case OPTS_KEY_READY_FD:
		return parse_ready_fd(opts, text);
	case OPTS_KEY_TOP:
		return parse_count("top", text, 0, 100000, &opts->top);
	case OPTS_KEY_MAX_OVERHEAD:
		return parse_overhead(opts, text);
	case OPTS_KEY_SYMBOL_PREFIX:
		return parse_prefixes(opts, text);
	case OPTS_KEY_PROBE:
		return alloc_hints_add_probe(&opts->hints, text);
	case OPTS_KEY_ALLOC_LIB:
		return alloc_hints_add_lib(&opts->hints, text);
	case OPTS_KEY_MAX_STACKS:
		return parse_count("max-stacks", text, 1, 1 << 22, &opts->max_stacks);
	case OPTS_KEY_MAX_SITES:
		return parse_count("max-sites", text, 1, 1 << 24, &opts->max_sites);
	case OPTS_KEY_MAX_LIVE:
		return parse_count("max-live", text, 1, 1 << 28, &opts->max_live);
	case OPTS_KEY_MAX_PROCESSES:
		return parse_count("max-processes", text, 1, 1 << 20, &opts->max_processes);
	case OPTS_KEY_SHARE:
		return parse_count("share", text, 1, 1 << 20, &opts->share);
	case OPTS_KEY_COMM:
		return selection_set_comm(&opts->selection, text);
	case OPTS_KEY_CGROUP:
		return selection_set_cgroup(&opts->selection, text);
	case OPTS_KEY_USER:
		return selection_set_user(&opts->selection, text);
	case OPTS_KEY_MAX_DEPTH:
		return parse_count("max-depth", text, 1, HB_STACK_MAX, &opts->max_depth);
	default:
		return parse_tier(opts, text);
	}
}
