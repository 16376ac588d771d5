// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: argv. Out: struct opts, or one line that says what is wrong. One table makes the parser and
 * --help, so that they cannot disagree.
 */
#include "opts.h"

#include "../bpf/abi.h"
#include "cleanup.h"
#include "log.h"
#include "outfile.h"
#include "quantity.h"
#include "vec.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <wordexp.h>

/* Bounds of the default of --max-live. */
#define LIVE_MIN 65536
#define LIVE_MAX 4194304

struct option_row {
	int key; /* the short option, or a number above all characters */
	const char *name;
	const char *arg;  /* NULL: takes none */
	const char *help; /* NULL: hidden */
};

enum {
	KEY_WORD = 1, /* not an option; as getopt has it */
	KEY_TEXT = 256,
	KEY_VERSION,
	KEY_READY_FD,
	KEY_TOP,
	KEY_MAX_OVERHEAD,
	KEY_SYMBOL_PREFIX,
	KEY_MAX_STACKS,
	KEY_MAX_SITES,
	KEY_MAX_LIVE,
	KEY_MAX_DEPTH,
	KEY_TIER,
	KEY_FLOOR,
	KEY_PRESERVE_STATUS,
};

static const struct option_row rows[] = {
	{'p', "pid", "PID[,PID...]", "processes to profile"},
	{'c', "command", "COMMAND", "run and profile it, like -- PROGRAM ARG..., but in one word"},
	{'d', "duration", "TIME", "how long: 500ms, 30s, 5m, 1h (default: until Ctrl-C or exit)"},
	{'r', "rate", "BYTES", "mean bytes between samples (default 512K; 1 = every allocation)"},
	{KEY_MAX_OVERHEAD, "max-overhead", "PCT|none",
	 "percent of the targets' time for probes (default 10; none with -r 1 or a program)"},
	{'t', "type", "TYPE[,TYPE]", "heap, allocs, inuse (default heap)"},
	{'o', "output", "FILE|DIR/|-", "where to (default heapbpf.COMM.PID.pb.gz)"},
	{KEY_TEXT, "text", NULL, "write the text form instead of a gzipped pprof"},
	{KEY_TOP, "top", "N", "rows of the table on the terminal (default 10; 0: none)"},
	{'q', "quiet", NULL, "errors only"},
	{'v', "verbose", NULL, "say more, with what libbpf says"},
	{KEY_PRESERVE_STATUS, "preserve-status", NULL, "exit with the status of the program"},
	{KEY_READY_FD, "ready-fd", "FD", "write a byte there when every probe is in place"},
	{KEY_SYMBOL_PREFIX, "symbol-prefix", "PREFIX[,PREFIX]",
	 "of an allocator's names, beside je_, _rjem_, _rjem_je_, tc_, mi_"},
	{KEY_MAX_STACKS, "max-stacks", "N", "distinct stacks (default 32768)"},
	{KEY_MAX_SITES, "max-sites", "N", "distinct pairs of stack and size (default 131072)"},
	{KEY_MAX_LIVE, "max-live", "N",
	 "sampled objects alive at a time (default: by rate and memory)"},
	{KEY_MAX_DEPTH, "max-depth", "N", "frames of a stack (default 128, at most 512)"},
	{KEY_TIER, "tier", "session|multi|perf", NULL},
	{KEY_FLOOR, "floor", NULL, NULL},
	{'h', "help", NULL, "show this"},
	{KEY_VERSION, "version", NULL, "show the version"},
};

static const char usage[] =
	"usage: heapbpf [record] -p PID[,PID...] [-d TIME] [OPTION...]\n"
	"       heapbpf [record] [-d TIME] [OPTION...] -- PROGRAM [ARG...]\n"
	"       heapbpf check [-p PID] [OPTION...]\n"
	"\n"
	"Profiles the heap of processes from outside: running ones without restarting them, or a\n"
	"program from its first allocation to its end.\n"
	"  record   sample allocations, write a pprof profile (default)\n"
	"  check    show what this kernel and a process allow, and what would be probed\n"
	"\n";

static void print_help(void)
{
	fputs(usage, stdout);
	for (size_t i = 0; i < ARRAY_CNT(rows); i++) {
		char left[64];

		if (!rows[i].help)
			continue;
		snprintf(left, sizeof(left), "%s%c%s--%s%s%s", rows[i].key < 256 ? "-" : " ",
			 rows[i].key < 256 ? rows[i].key : ' ', rows[i].key < 256 ? ", " : "  ",
			 rows[i].name, rows[i].arg ? " " : "", rows[i].arg ? rows[i].arg : "");
		printf("  %-32s %s\n", left, rows[i].help);
	}
	fputs("\nexit status: 0 complete, 1 written but something was lost, 2 failed, 64 usage;\n"
	      "with --preserve-status that of the program\n",
	      stdout);
}

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

/* The words that are executed: `cnt` > 0 of them, copied. */
static int set_command(struct opts *opts, char *const *words, size_t cnt)
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
		err = set_command(opts, words.we_wordv, words.we_wordc);
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

/* Options that take a value. */
static int parse_value(struct opts *opts, int key, const char *text)
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
	case KEY_READY_FD:
		return parse_ready_fd(opts, text);
	case KEY_TOP:
		return parse_count("top", text, 0, 100000, &opts->top);
	case KEY_MAX_OVERHEAD:
		return parse_overhead(opts, text);
	case KEY_SYMBOL_PREFIX:
		if (alloc_prefixes_add(&opts->prefixes, text))
			return log_fail(0,
					"--symbol-prefix %s: give what names begin with, like my_",
					text);
		return 0;
	case KEY_MAX_STACKS:
		return parse_count("max-stacks", text, 1, 1 << 22, &opts->max_stacks);
	case KEY_MAX_SITES:
		return parse_count("max-sites", text, 1, 1 << 24, &opts->max_sites);
	case KEY_MAX_LIVE:
		return parse_count("max-live", text, 1, 1 << 28, &opts->max_live);
	case KEY_MAX_DEPTH:
		return parse_count("max-depth", text, 1, HB_STACK_MAX, &opts->max_depth);
	default:
		return parse_tier(opts, text);
	}
}

static int parse_flag(struct opts *opts, int key)
{
	switch (key) {
	case 'q':
		opts->quiet = true;
		log_set_level(LOG_LEVEL_ERROR);
		return 0;
	case 'v':
		log_set_level(LOG_LEVEL_DEBUG);
		return 0;
	case KEY_TEXT:
		opts->text = true;
		return 0;
	case KEY_FLOOR:
		opts->floor = true;
		return 0;
	case KEY_PRESERVE_STATUS:
		opts->preserve_status = true;
		return 0;
	case KEY_VERSION:
		puts("heapbpf " HEAPBPF_VERSION);
		return -ECANCELED;
	default:
		print_help();
		return -ECANCELED;
	}
}

/* getopt's two descriptions, made from the table. */
static void fill_getopt(struct option *longs, char *shorts)
{
	/* Words in their place among the options, and no messages. */
	*shorts++ = '-';
	*shorts++ = ':';
	for (size_t i = 0; i < ARRAY_CNT(rows); i++) {
		longs[i] =
			(struct option){rows[i].name, rows[i].arg ? required_argument : no_argument,
					NULL, rows[i].key};
		if (rows[i].key >= 256)
			continue;
		*shorts++ = rows[i].key;
		if (rows[i].arg)
			*shorts++ = ':';
	}
	*shorts = 0;
}

static const struct option_row *find_row(int key)
{
	for (size_t i = 0; i < ARRAY_CNT(rows); i++)
		if (rows[i].key == key)
			return &rows[i];
	return NULL;
}

/*
 * An option that getopt does not take, in words. In a cluster of short ones (-qx) only `optopt`
 * tells which; `word` has the others.
 */
static int refuse_option(int key, const char *word)
{
	const struct option_row *row = find_row(optopt);

	if (key == ':')
		return log_fail(0, "--%s needs a value; see --help", row->name);
	if (row)
		return log_fail(0, "--%s takes no value; see --help", row->name);
	if (optopt)
		return log_fail(0, "unknown option -%c; see --help", optopt);
	return log_fail(0, "unknown option %s; see --help", word);
}

/* A word that is no option: the first is the verb, and there is no second. */
static int parse_word(struct opts *opts, int index, const char *word)
{
	if (index)
		return log_fail(0, "unexpected argument %s; see --help", word);
	if (!strcmp(word, "check"))
		opts->verb = OPTS_CHECK;
	else if (strcmp(word, "record") != 0)
		return log_fail(0,
				"unknown command %s; give record or check, or -- and a program to "
				"run (see --help)",
				word);
	return 0;
}

static int parse_options(struct opts *opts, int argc, char **argv)
{
	struct option longs[ARRAY_CNT(rows) + 1] = {};
	char shorts[2 * ARRAY_CNT(rows) + 3];
	const char *taken = NULL;
	int key, word_cnt = 0, err = 0;

	fill_getopt(longs, shorts);
	opterr = 0;
	while (!err && (key = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const struct option_row *row = find_row(key);

		taken = optarg;
		if (key == KEY_WORD)
			err = parse_word(opts, word_cnt++, optarg);
		else if (!row)
			err = refuse_option(key, argv[optind - 1]);
		else
			err = row->arg ? parse_value(opts, key, optarg) : parse_flag(opts, key);
	}
	if (err)
		return err;
	/* What getopt leaves comes after a "--". */
	if (optind < argc)
		return set_command(opts, argv + optind, argc - optind);
	if (argv[argc - 1] != taken && !strcmp(argv[argc - 1], "--"))
		return log_fail(0, "which program? give one after -- (see --help)");
	return 0;
}

/*
 * Of what is alive, a byte in `rate_bytes` is sampled at the most; room for four times the
 * machine's memory, since not all that is allocated is there. More would only cost: the kernel
 * clears a table of that many entries at the start.
 */
static uint32_t default_live(uint64_t rate_bytes)
{
	uint64_t memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t objects = 4 * memory_bytes / rate_bytes;

	if (objects < LIVE_MIN)
		return LIVE_MIN;
	return objects > LIVE_MAX ? LIVE_MAX : objects;
}

/* One file holds one process and one type. */
static int check_output(const struct opts *opts)
{
	size_t tgid_cnt = opts->command ? 1 : opts->tgid_cnt;

	if (opts->output && tgid_cnt * opts->type_cnt > 1 && !outfile_is_directory(opts->output))
		return log_fail(0,
				"-o %s: one file holds one process and one type; give a directory, "
				"like -o DIR/",
				opts->output);
	return 0;
}

/* What a command goes together with. */
static int check_command(const struct opts *opts)
{
	if (opts->verb == OPTS_CHECK)
		return log_fail(0, "check runs no program; give -p PID (see --help)");
	if (opts->tgid_cnt)
		return log_fail(0, "give -p PID or a program to run, not both");
	if (!opts->command[0][0])
		return log_fail(0, "the program to run has an empty name");
	if (opts->floor)
		return log_fail(0, "--floor needs -p PID");
	return 0;
}

/* What options mean together. */
static int check_together(struct opts *opts)
{
	if (!opts->max_live)
		opts->max_live = default_live(opts->rate_bytes);
	/* Exact is exact, and from its first allocation to its end is all of it. */
	if (isnan(opts->max_overhead))
		opts->max_overhead =
			opts->rate_bytes == 1 || opts->floor || opts->command ? INFINITY : 0.1;
	for (int type = 0; type < PROFILE_TYPE_CNT; type++)
		opts->type_cnt += opts->types[type];
	if (opts->command)
		return check_command(opts) ?: check_output(opts);
	if (opts->preserve_status)
		return log_fail(0, "--preserve-status is for a program to run (see --help)");
	if (opts->verb == OPTS_RECORD && !opts->tgid_cnt)
		return log_fail(0, "which process? give -p PID, or -- and a program to run (see "
				   "--help)");
	return check_output(opts);
}

int opts_parse(int argc, char **argv, struct opts *out)
{
	struct opts opts = {
		.rate_bytes = 512 * 1024,
		.types = {[PROFILE_HEAP] = true},
		.max_overhead = NAN,
		.top = 10,
		.ready_fd = -1,
		.max_stacks = 32768,
		.max_sites = 131072,
		.max_depth = 128,
		.tier = UPROBE_LINK_TIER_CNT,
	};
	int err = parse_options(&opts, argc, argv);

	if (!err)
		err = check_together(&opts);
	if (err) {
		opts_clear(&opts);
		return err;
	}
	*out = opts;
	return 0;
}

void opts_clear(struct opts *opts)
{
	free(opts->tgids);
	for (size_t i = 0; opts->command && opts->command[i]; i++)
		free(opts->command[i]);
	free(opts->command);
	opts->tgids = NULL;
	opts->command = NULL;
	opts->tgid_cnt = 0;
	alloc_prefixes_clear(&opts->prefixes);
}
