// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * opts: what is accepted, what it means, what is refused.
 */
#include "check.h"
#include "log.h"
#include "opts.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <unistd.h>

/* Parses the words (after the program's name) with stderr closed to people. */
static int parse(struct opts *opts, int cnt, const char *const *words)
{
	char *argv[16] = {"heapbpf"}; /* ends with NULL, as main() gets it */
	int saved = dup(STDERR_FILENO), err;
	FILE *quiet = freopen("/dev/null", "w", stderr);

	for (int i = 0; i < cnt; i++)
		argv[i + 1] = (char *)words[i];
	optind = 0;
	err = opts_parse(cnt + 1, argv, opts);
	if (quiet)
		dup2(saved, STDERR_FILENO);
	close(saved);
	return err;
}

#define PARSE(opts, ...)                                                                           \
	parse(opts, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *),                   \
	      (const char *const[]){__VA_ARGS__})

TEST(defaults)
{
	struct opts opts;

	CHECK_EQ(PARSE(&opts, "-p", "12"), 0);
	CHECK_EQ(opts.verb, OPTS_RECORD);
	CHECK_EQ(opts.tgid_cnt, 1);
	CHECK_EQ(opts.tgids[0], 12);
	CHECK_EQ(opts.duration_ns, 0);
	CHECK_EQ(opts.rate_bytes, 524288);
	CHECK(opts.types[PROFILE_HEAP] && !opts.types[PROFILE_ALLOCS] &&
	      !opts.types[PROFILE_INUSE]);
	CHECK_EQ(opts.ready_fd, -1);
	opts_clear(&opts);
}

TEST(prefixes_of_all_options_add_up)
{
	struct opts opts;

	CHECK_EQ(PARSE(&opts, "check", "--symbol-prefix", "a_,b_", "--symbol-prefix=c_"), 0);
	CHECK_EQ(opts.hints.prefixes.cnt, 3);
	CHECK_STR(opts.hints.prefixes.names[2], "c_");
	opts_clear(&opts);
	CHECK_EQ(PARSE(&opts, "check", "--symbol-prefix", "a_,"), -EINVAL);
	CHECK_EQ(PARSE(&opts, "check", "--symbol-prefix", "a-b"), -EINVAL);
}

TEST(several_pids_once_each)
{
	struct opts opts;

	CHECK_EQ(PARSE(&opts, "record", "-p", "12,34,12", "--pid=56"), 0);
	CHECK_EQ(opts.tgid_cnt, 3);
	CHECK_EQ(opts.tgids[1], 34);
	CHECK_EQ(opts.tgids[2], 56);
	opts_clear(&opts);
}

TEST(types_are_a_list)
{
	struct opts opts;

	CHECK_EQ(PARSE(&opts, "-p1", "-t", "inuse,allocs"), 0);
	CHECK(!opts.types[PROFILE_HEAP] && opts.types[PROFILE_ALLOCS] && opts.types[PROFILE_INUSE]);
	CHECK_EQ(opts.type_cnt, 2);
	opts_clear(&opts);
}

TEST(nonsense_is_refused)
{
	static const char *const bad[][4] = {
		{"-p", "0"},
		{"-p", "abc"},
		{"-p", "1,"},
		{"-p", "99999999999"},
		{"-p", "1", "-d", "0"},
		{"-p", "1", "-t", "live"},
		{"-p", "1", "-t", ""},
		{"-p", "1", "-r", "-5"},
		{"-p", "1", "--max-depth", "513"},
		{"-p", "1", "--max-live", "0"},
		{"-p", "1", "--tier", "kprobe"},
		{"-p", "1", "--nonsense", "1"},
		{"-p", "1", "profile", "x"},
		{"-p", "1", "record", "x"},
		{"-p", "1,2", "-o", "-"},
		{"-p", "1,2", "-o", "file"},
		{"-p", "1,2", "-o", "/dev/null"},
		{"-tallocs,heap", "-p", "1", "-ofile"},
		{"-d", "1s", "-r", "1"},
		{"-q", "-v", "-q", "-p"},
		{"--"},
		{"-p", "1", "--"},
		{"-p", "1", "--", "prog"},
		{"check", "--", "prog"},
		{"-c", "prog", "--", "prog"},
		{"-c", "a; b"},
		{"-c", "$(a)"},
		{"-c", "'a"},
		{"-c", ""},
		{"--", ""},
		{"-p", "1", "--preserve-status"},
		{"--floor", "--", "prog"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct opts opts;
		int cnt = 0;

		while (cnt < 4 && bad[i][cnt])
			cnt++;
		CHECK_EQ(parse(&opts, cnt, bad[i]), -EINVAL);
	}
	log_set_level(LOG_LEVEL_INFO);
}

/* No more than can be alive: the kernel clears a table of that size at the start. */
TEST(room_for_live_objects_is_by_rate)
{
	static const struct {
		const char *rate, *live;
		uint32_t max_live;
	} cases[] = {
		{"1", NULL, 4194304},
		{"1023G", NULL, 65536},
		{"1", "100", 100},
		{"1023G", "268435456", 268435456},
	};
	struct opts opts;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (cases[i].live)
			CHECK_EQ(PARSE(&opts, "-p1", "-r", cases[i].rate, "--max-live",
				       cases[i].live),
				 0);
		else
			CHECK_EQ(PARSE(&opts, "-p1", "-r", cases[i].rate), 0);
		CHECK_EQ(opts.max_live, cases[i].max_live);
		opts_clear(&opts);
	}
}

/* Several profiles go into a directory, which is known by its name or by being there. */
TEST(several_profiles_need_a_directory)
{
	struct opts opts;

	CHECK_EQ(PARSE(&opts, "-p", "1,2", "-o", "not/there/"), 0);
	opts_clear(&opts);
	CHECK_EQ(PARSE(&opts, "-p", "1", "-t", "allocs,heap", "-o", "/tmp"), 0);
	opts_clear(&opts);
	CHECK_EQ(PARSE(&opts, "-p", "1", "-t", "allocs,heap"), 0);
	opts_clear(&opts);
}

TEST(check_needs_no_pid)
{
	struct opts opts;

	CHECK_EQ(PARSE(&opts, "check"), 0);
	CHECK_EQ(opts.verb, OPTS_CHECK);
	CHECK_EQ(opts.tgid_cnt, 0);
	opts_clear(&opts);
}

/* A budget unless all was asked for. */
TEST(default_budget)
{
	struct opts opts;

	CHECK_EQ(PARSE(&opts, "-p", "1"), 0);
	CHECK(opts.max_overhead == 0.1);
	opts_clear(&opts);
	CHECK_EQ(PARSE(&opts, "-a"), 0);
	CHECK(opts.max_overhead == 0.1);
	opts_clear(&opts);
	CHECK_EQ(PARSE(&opts, "-p", "1", "-r", "1"), 0);
	CHECK(isinf(opts.max_overhead));
	opts_clear(&opts);
	CHECK_EQ(PARSE(&opts, "-p", "1", "-r", "1", "--max-overhead", "20"), 0);
	CHECK(opts.max_overhead == 0.2);
	opts_clear(&opts);
	CHECK_EQ(PARSE(&opts, "-p", "1", "--max-overhead", "none"), 0);
	CHECK(isinf(opts.max_overhead));
	opts_clear(&opts);
}

TEST(program_after_two_dashes)
{
	struct opts opts;

	CHECK_EQ(PARSE(&opts, "record", "-d", "5s", "--", "prog", "-p", "--", "x"), 0);
	CHECK_EQ(opts.tgid_cnt, 0);
	CHECK_EQ(opts.duration_ns, 5000000000);
	CHECK(isinf(opts.max_overhead));
	CHECK_STR(opts.command[0], "prog");
	CHECK_STR(opts.command[1], "-p");
	CHECK_STR(opts.command[2], "--");
	CHECK_STR(opts.command[3], "x");
	CHECK(!opts.command[4]);
	opts_clear(&opts);
	CHECK_EQ(PARSE(&opts, "--max-overhead", "5", "--preserve-status", "--", "record"), 0);
	CHECK(opts.max_overhead == 0.05 && opts.preserve_status);
	CHECK_STR(opts.command[0], "record");
	opts_clear(&opts);
	CHECK_EQ(PARSE(&opts, "-p1", "-o", "--"), 0);
	CHECK(!opts.command);
	CHECK_STR(opts.output, "--");
	opts_clear(&opts);
}

TEST(program_in_one_word)
{
	struct opts opts;

	CHECK_EQ(PARSE(&opts, "-c", "prog  'a  b' \"c\"d"), 0);
	CHECK_STR(opts.command[0], "prog");
	CHECK_STR(opts.command[1], "a  b");
	CHECK_STR(opts.command[2], "cd");
	CHECK(!opts.command[3]);
	opts_clear(&opts);
}
