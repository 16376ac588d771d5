/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A small profile with one of everything, for the tests of its writers, and a way to ask programs
 * that share no code with us what they read.
 */
#ifndef PROFILE_FIXTURE_H
#define PROFILE_FIXTURE_H

#include "profile.h"
#include "../bpf/abi.h"
#include "sampling.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#define RATE 4096
#define NAMES(...)                                                                                 \
	{                                                                                          \
		(struct symbolize_frame[]){__VA_ARGS__},                                           \
			sizeof((struct symbolize_frame[]){__VA_ARGS__}) /                          \
				sizeof(struct symbolize_frame)                                     \
	}

static struct profile_mapping fixture_mappings[] = {
	{0x400000, 0x402000, 0x1000, (char *)"/opt/app/main", (char *)"00ff10", true, true, true,
	 true},
	{0x7f0000001000, 0x7f0000003000, 0, (char *)"/lib/libstripped.so", (char *)"", false, false,
	 false, false},
};

static struct profile_location fixture_locations[] = {
	{0x400010, 1,
	 NAMES({"inner", "_Z5innerv", "/src/inline.h", 5, 3},
	       {"make_tree(int)", "_Z9make_treei", "/src/tree.cc", 12, 10})},
	{0x400110, 1, NAMES({"main", "main", "/src/main.c", 20, 18})},
	{0x7f0000001230, 2, {NULL, 0}},
	{0, 0, NAMES({"[truncated]", "[truncated]", NULL, 0, 0})},
	{0x400210, 1, NAMES({"operator new(unsigned long)", "_Znwm", "/src/new.cc", 7, 5})},
	{0, 0, NAMES({"[no stack]", "[no stack]", NULL, 0, 0})},
	{0x400310, 1, NAMES({"caf\xc3\xa9\xff\n", "caf\xff", "/src/bad\x80name.c", 1, 0})},
	{0xdeadbe00, 0, {NULL, 0}},
};

static uint32_t fixture_stacks[][4] = {
	{0, 1},	   /* make_tree with something inlined, main */
	{4, 0, 1}, /* operator new below it */
	{2, 1},	   /* a library without names */
	{7, 1, 3}, /* code in no file, cut at the root */
	{5},	   /* nothing known */
	{6, 1},	   /* foreign bytes */
};

static inline void fixture_estimate(struct profile_tally *tally, double p, uint64_t size_bytes,
				    int64_t values[static 2])
{
	tally->estimate = (double)tally->raw / p;
	tally->variance = (double)tally->raw * (1 - p) / (p * p);
	values[0] = (int64_t)tally->estimate;
	values[1] = (int64_t)((double)(tally->raw * size_bytes) / p);
}

/* Estimates as heap makes them, from the table both sides use. */
static inline void fixture_scale(struct profile_sample *sample, uint64_t rate)
{
	static __u64 table[HB_CLASS_CNT];

	double p;

	sampling_fill(rate, table);
	p = sampling_p(table, sample->size_bytes);
	fixture_estimate(&sample->allocs, p, sample->size_bytes,
			 &sample->values[PROFILE_ALLOC_OBJECTS]);
	fixture_estimate(&sample->inuse, p, sample->size_bytes,
			 &sample->values[PROFILE_INUSE_OBJECTS]);
}

/* The profile, with everything borrowed from the tables above: not for profile_clear(). */
static inline struct profile fixture_profile(uint64_t rate)
{
	static struct profile_count cuts[] = {
		{HB_LOSS_STACK_TOO_DEEP, "truncated", "at the depth limit", 3}};
	static struct profile_count losses[] = {
		{HB_LOSS_LIVE_FULL, "live_full", "allocation not in inuse", 7}};
	static struct profile_count stats[] = {
		{HB_STAT_HITS, "entry probe hits", "entry probe hits", 123456}};
	static struct profile_sample samples[] = {
		{fixture_stacks[0], 2, 16, {40, 0, 0}, {10, 0, 0}, {0}, {0}},
		{fixture_stacks[0], 2, 5000, {8, 0, 0}, {0, 0, 0}, {0}, {0}},
		{fixture_stacks[1], 3, 100, {20, 0, 0}, {20, 0, 0}, {0}, {0}},
		{fixture_stacks[2], 2, 1 << 20, {2, 0, 0}, {1, 0, 0}, {0}, {0}},
		{fixture_stacks[3], 3, 31, {3, 0, 0}, {1, 0, 0}, {0}, {0}},
		{fixture_stacks[4], 1, 4096, {5, 0, 0}, {5, 0, 0}, {0}, {0}},
		{fixture_stacks[5], 2, 7, {1, 0, 0}, {1, 0, 0}, {0}, {0}},
	};
	struct profile profile = {
		.tgid = 1234,
		.comm = (char *)"app",
		.rate_bytes = rate,
		.time_ns = 1700000000123456789,
		.duration_ns = 30500000000,
		.tracks_inuse = true,
		.mappings = fixture_mappings,
		.mapping_cnt = sizeof(fixture_mappings) / sizeof(fixture_mappings[0]),
		.locations = fixture_locations,
		.location_cnt = sizeof(fixture_locations) / sizeof(fixture_locations[0]),
		.samples = samples,
		.sample_cnt = sizeof(samples) / sizeof(samples[0]),
		.raw_allocs = 79,
		.raw_complete = 71,
		.cuts = cuts,
		.cut_cnt = 1,
		.losses = losses,
		.loss_cnt = 1,
		.stats = stats,
		.stat_cnt = 1,
		.memory = {10 << 20, 6 << 20, 8 << 20, 30500000000},
	};

	for (size_t i = 0; i < profile.sample_cnt; i++)
		fixture_scale(&samples[i], rate);
	return profile;
}

/* A temporary directory that is gone with the test program; its path. */
static inline const char *fixture_dir(void)
{
	static char dir[] = "/tmp/heapbpf-unit.XXXXXX";
	static int made;

	if (!made++ && !mkdtemp(dir))
		abort();
	return dir;
}

__attribute__((destructor)) static inline void fixture_remove_dir(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", fixture_dir());
	if (system(command))
		perror("rm");
}

/* The output of a shell command, standard error included; in one buffer of its own. */
__attribute__((format(printf, 1, 2))) static inline const char *fixture_run(const char *fmt, ...)
{
	static char output[1 << 22];
	char command[4096];
	va_list args;
	size_t len;
	FILE *pipe;

	va_start(args, fmt);
	len = (size_t)snprintf(command, sizeof(command),
			       "exec 2>&1; cd %s; export HOME=%s PPROF_TMPDIR=%s; "
			       "PATH=$PATH:/usr/lib/go/bin:/usr/lib/go-1.19/bin; ",
			       fixture_dir(), fixture_dir(), fixture_dir());
	vsnprintf(command + len, sizeof(command) - len, fmt, args);
	va_end(args);
	pipe = popen(command, "r");
	if (!pipe)
		abort();
	len = fread(output, 1, sizeof(output) - 1, pipe);
	output[len] = '\0';
	pclose(pipe);
	return output;
}

/* True if a command is there; else the test is skipped, and says so. */
static inline int fixture_has(const char *command)
{
	if (!strstr(fixture_run("command -v %s >/dev/null && echo yes", command), "yes")) {
		check_skip("%s is not installed", command);
		return 0;
	}
	return 1;
}

#endif
