// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: argv. Out: struct opts, or one line that says what is wrong. One table makes the parser and
 * --help, so that they cannot disagree.
 */
#include "opts.h"

#include "cleanup.h"
#include "log.h"
#include "opts_values.h"
#include "outfile.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>

/* Bounds of the default of --max-live. */
#define LIVE_MIN 65536
#define LIVE_MAX 4194304

struct option_row {
	int key; /* the short option, or a number above all characters */
	const char *name;
	const char *arg;  /* NULL: takes none */
	const char *help; /* NULL: hidden */
};

static const struct option_row rows[] = {
	{'p', "pid", "PID[,PID...]", "processes to profile"},
	{'a', "all", NULL, "every process that allocates, now and later; probes go into all"},
	{OPTS_KEY_COMM, "comm", "REGEX", "processes whose name matches, now and later"},
	{OPTS_KEY_CGROUP, "cgroup", "PATH", "processes of a control group and those below it"},
	{OPTS_KEY_USER, "user", "USER", "processes of a user; these three narrow -a, too"},
	{OPTS_KEY_FOLLOW, "follow", NULL, "children of these processes, too (default but for -p)"},
	{OPTS_KEY_NO_FOLLOW, "no-follow", NULL, "no children"},
	{'c', "command", "COMMAND", "run and profile it, like -- PROGRAM ARG..., but in one word"},
	{'d', "duration", "TIME", "how long: 500ms, 30s, 5m, 1h (default: until Ctrl-C or exit)"},
	{'r', "rate", "BYTES", "mean bytes between samples (default 512K; 1 = every allocation)"},
	{OPTS_KEY_MAX_OVERHEAD, "max-overhead", "PCT|none",
	 "percent of the targets' time for probes (default 10; none with -r 1 or a program)"},
	{'t', "type", "TYPE[,TYPE]", "heap, allocs, inuse (default heap)"},
	{'o', "output", "FILE|DIR/|-", "where to (default heapbpf.COMM.PID.pb.gz)"},
	{OPTS_KEY_TEXT, "text", NULL, "write the text form instead of a gzipped pprof"},
	{OPTS_KEY_TOP, "top", "N", "rows of the table on the terminal (default 10; 0: none)"},
	{'q', "quiet", NULL, "errors only"},
	{'v', "verbose", NULL, "say more, with what libbpf says"},
	{OPTS_KEY_PRESERVE_STATUS, "preserve-status", NULL, "exit with the status of the program"},
	{OPTS_KEY_READY_FD, "ready-fd", "FD", "write a byte there when every probe is in place"},
	{OPTS_KEY_SYMBOL_PREFIX, "symbol-prefix", "PREFIX[,PREFIX]",
	 "of an allocator's names, beside je_, _rjem_, _rjem_je_, tc_, mi_"},
	{OPTS_KEY_PROBE, "probe", "FN=PATH:SYMBOL|0xOFF",
	 "an allocator's function (malloc=, free=, ...), by symbol or file offset"},
	{OPTS_KEY_ALLOC_LIB, "alloc-lib", "PATH",
	 "look for the allocator in this file only; all of its functions count"},
	{OPTS_KEY_MAX_STACKS, "max-stacks", "N", "distinct stacks (default 32768)"},
	{OPTS_KEY_MAX_SITES, "max-sites", "N", "distinct pairs of stack and size (default 131072)"},
	{OPTS_KEY_MAX_LIVE, "max-live", "N",
	 "sampled objects alive at a time (default: by rate and memory)"},
	{OPTS_KEY_SHARE, "share", "N", "N random ones of the processes at a time, in turns"},
	{OPTS_KEY_MAX_PROCESSES, "max-processes", "N", "processes at a time (default 4096)"},
	{OPTS_KEY_MAX_DEPTH, "max-depth", "N", "frames of a stack (default 128, at most 512)"},
	{OPTS_KEY_TIER, "tier", "session|multi|perf", NULL},
	{OPTS_KEY_FLOOR, "floor", NULL, NULL},
	{'h', "help", NULL, "show this"},
	{OPTS_KEY_VERSION, "version", NULL, "show the version"},
};

static const char usage[] =
	"usage: heapbpf [record] -p PID[,PID...] [-d TIME] [OPTION...]\n"
	"       heapbpf [record] -a|--comm REGEX|--cgroup PATH|--user USER [-d TIME] [OPTION...]\n"
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
	case OPTS_KEY_TEXT:
		opts->text = true;
		return 0;
	case OPTS_KEY_FLOOR:
		opts->floor = true;
		return 0;
	case OPTS_KEY_PRESERVE_STATUS:
		opts->preserve_status = true;
		return 0;
	case 'a':
		opts->everybody = true;
		return 0;
	case OPTS_KEY_FOLLOW:
	case OPTS_KEY_NO_FOLLOW:
		opts->follow_given = true;
		opts->follow = key == OPTS_KEY_FOLLOW;
		return 0;
	case OPTS_KEY_VERSION:
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
		if (key == OPTS_KEY_WORD)
			err = parse_word(opts, word_cnt++, optarg);
		else if (!row)
			err = refuse_option(key, argv[optind - 1]);
		else
			err = row->arg ? opts_value(opts, key, optarg) : parse_flag(opts, key);
	}
	if (err)
		return err;
	/* What getopt leaves comes after a "--". */
	if (optind < argc)
		return opts_set_command(opts, argv + optind, argc - optind);
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

bool opts_are_selected(const struct opts *opts)
{
	return opts->everybody || selection_is_set(&opts->selection);
}

bool opts_are_many(const struct opts *opts)
{
	return opts_are_selected(opts) || opts->follow || opts->tgid_cnt > 1;
}

/* One file holds one process and one type. */
static int check_output(const struct opts *opts)
{
	if (opts->output && (opts_are_many(opts) || opts->type_cnt > 1) &&
	    !outfile_is_directory(opts->output))
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
	if (opts->tgid_cnt || opts_are_selected(opts))
		return log_fail(0, "give processes or a program to run, not both");
	if (!opts->command[0][0])
		return log_fail(0, "the program to run has an empty name");
	if (opts->floor || opts->share)
		return log_fail(0, "--%s needs processes that run, like -p PID",
				opts->floor ? "floor" : "share");
	return 0;
}

/* Which processes are to be profiled, or looked at. */
static int check_processes(const struct opts *opts)
{
	if (opts->preserve_status)
		return log_fail(0, "--preserve-status is for a program to run (see --help)");
	if (opts->tgid_cnt && opts_are_selected(opts))
		return log_fail(0, "give -p PID, or -a, --comm, --cgroup, --user, not both");
	if (opts->verb == OPTS_CHECK && opts_are_selected(opts))
		return log_fail(0, "check looks at -p PID only (see --help)");
	if (opts->everybody && opts->share)
		return log_fail(0, "--share goes with processes that are probed one by one: give "
				   "-p, --comm, --cgroup or --user without -a");
	if (opts->everybody && opts->follow_given && !opts->follow)
		return log_fail(0, "-a has the children, too; --no-follow cannot go with it");
	if (opts->verb == OPTS_RECORD && !opts->tgid_cnt && !opts_are_selected(opts))
		return log_fail(0, "which process? give -p PID, or -- and a program to run (see "
				   "--help)");
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
	/* A file has room for the program alone. */
	if (!opts->follow_given)
		opts->follow =
			opts_are_selected(opts) ||
			(opts->command && (!opts->output || outfile_is_directory(opts->output)));
	if (opts->command)
		return check_command(opts) ?: check_output(opts);
	return check_processes(opts) ?: check_output(opts);
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
		.max_processes = 4096,
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
	selection_clear(&opts->selection);
	alloc_hints_clear(&opts->hints);
}
