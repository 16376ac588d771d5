// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The legacy text form: its very bytes, and that go tool pprof and google-pprof, which scale it by
 * themselves, come to the numbers of the protobuf form.
 */
#include "check.h"
#include "pprof.h"
#include "profile_fixture.h"
#include "text.h"

#include <errno.h>
#include <math.h>

static char buf[1 << 16];

/* The view as a string, in buf. */
static const char *text_of(const struct profile *profile, enum profile_type type)
{
	FILE *out = fmemopen(buf, sizeof(buf), "w");
	int err = text_write(profile, type, out);

	fclose(out);
	return err ? NULL : buf;
}

/* Writes text (or protobuf) into the directory. */
static int write_file(const struct profile *profile, enum profile_type type, const char *name,
		      int (*write)(const struct profile *, enum profile_type, FILE *))
{
	char path[256];
	FILE *out;
	int err;

	snprintf(path, sizeof(path), "%s/%s", fixture_dir(), name);
	out = fopen(path, "w");
	err = out ? write(profile, type, out) : -errno;
	return out && fclose(out) ? -errno : err;
}

TEST(is_what_go_writes_at_debug_1)
{
	struct profile profile = fixture_profile(RATE);

	profile.sample_cnt = 2;
	CHECK_STR(text_of(&profile, PROFILE_HEAP),
		  "heap profile: 10: 160 [48: 40640] @ heap_v2/4096\n"
		  "10: 160 [40: 640] @ 0x400011 0x400111\n"
		  "#\t0x400010\tinner\t/src/inline.h:5\n"
		  "#\t0x400010\tmake_tree(int)\t/src/tree.cc:12\n"
		  "#\t0x400110\tmain\t/src/main.c:20\n"
		  "\n"
		  "0: 0 [8: 40000] @ 0x400011 0x400111\n"
		  "#\t0x400010\tinner\t/src/inline.h:5\n"
		  "#\t0x400010\tmake_tree(int)\t/src/tree.cc:12\n"
		  "#\t0x400110\tmain\t/src/main.c:20\n"
		  "\n"
		  "# heapbpf 0.1.0: heap profile of app (pid 1234)\n"
		  "# one sample per 4096 bytes allocated, on average\n"
		  "# 71 of 79 stacks complete\n"
		  "# cut: truncated = 3: at the depth limit\n"
		  "# lost: live_full = 7: allocation not in inuse\n"
		  "# entry probe hits = 123456\n"
		  "# RSS = 10485760\n"
		  "# Heap = 6291456\n"
		  "# Anonymous = 8388608\n"
		  "\n"
		  "MAPPED_LIBRARIES:\n"
		  "00400000-00402000 r-xp 00001000 00:00 0 /opt/app/main\n"
		  "7f0000001000-7f0000003000 r-xp 00000000 00:00 0 /lib/libstripped.so\n");
}

TEST(unscaled_at_rate_one)
{
	struct profile profile = fixture_profile(1);

	profile.sample_cnt = 0;
	CHECK(!strncmp(text_of(&profile, PROFILE_HEAP), "heap profile: 0: 0 [0: 0] @ heapprofile\n",
		       40));
}

TEST(memory_of_a_process_that_ended_is_said_to_be_old)
{
	struct profile profile = fixture_profile(RATE);

	profile.memory.read_ns = 12345678901;
	CHECK(strstr(text_of(&profile, PROFILE_HEAP),
		     "\n# the process ended; its memory when last seen, after 12.3 s:\n"
		     "# RSS = 10485760\n"));
}

TEST(views_show_zeros_for_the_rest)
{
	struct profile profile = fixture_profile(RATE);

	profile.sample_cnt = 2;
	CHECK(strstr(text_of(&profile, PROFILE_ALLOCS), "\n0: 0 [40: 640] @ "));
	CHECK(strstr(text_of(&profile, PROFILE_INUSE), "\n10: 160 [0: 0] @ "));
	CHECK(!strstr(text_of(&profile, PROFILE_INUSE), "[8: "));
}

TEST(foreign_bytes_start_no_line)
{
	struct profile profile = fixture_profile(RATE);

	CHECK(strstr(text_of(&profile, PROFILE_HEAP), "\tcaf\xc3\xa9??\t/src/bad?name.c:1\n"));
	profile.comm = (char *)"a\nb\033[2J";
	CHECK(strstr(text_of(&profile, PROFILE_HEAP), "profile of a?b?[2J (pid"));
}

TEST(long_names_are_cut)
{
	static char name[200000];
	struct profile profile = fixture_profile(RATE);
	struct profile_location locations[8];
	struct symbolize_frame frame = {name, name, name, 1, 0};
	size_t longest = 0;

	memset(name, 'x', sizeof(name) - 1);
	memcpy(locations, profile.locations, sizeof(locations));
	locations[1].names = (struct symbolize_result){&frame, 1};
	profile.locations = locations;
	profile.sample_cnt = 1;
	for (const char *line = text_of(&profile, PROFILE_HEAP); *line;) {
		size_t len = strcspn(line, "\n");

		longest = len > longest ? len : longest;
		line += len + (line[len] == '\n');
	}
	CHECK(longest > PROFILE_TEXT_MAX && longest < 64 * 1024);
}

TEST(a_failed_write_is_an_error)
{
	struct profile profile = fixture_profile(RATE);
	FILE *out = fopen("/dev/full", "w");

	CHECK(out);
	CHECK_EQ(text_write(&profile, PROFILE_HEAP, out), -ENOSPC);
	fclose(out);
}

/* What go tool pprof sums up to. */
static double go_total(const char *file, const char *index)
{
	const char *top = fixture_run(
		"go tool pprof -symbolize=none -top -unit=B -sample_index=%s %s", index, file);
	const char *total = strstr(top, "% of ");

	return total ? strtod(total + 5, NULL) : -1;
}

/* What google-pprof sums up to; its counts have no unit. */
static double google_total(const char *file, const char *index)
{
	const char *text =
		fixture_run("google-pprof --text --show_bytes --%s /bin/true %s", index, file);
	const char *total = strstr(text, "Total: ");

	return total ? strtod(total + 7, NULL) : -1;
}

static const char *const indexes[] = {"alloc_objects", "alloc_space", "inuse_objects",
				      "inuse_space"};

/* Classes are 1 in 2^(HB_CLASS_BITS + 1) off at most; each line may be rounded down by one. */
static int agrees(double theirs, const struct profile *profile, enum profile_value value)
{
	double ours = (double)profile_total(profile, value);

	return fabs(theirs - ours) <= ours / (2 << HB_CLASS_BITS) + (double)profile->sample_cnt;
}

TEST(go_scales_as_we_do)
{
	struct profile profile = fixture_profile(RATE);

	if (!fixture_has("go"))
		return;
	CHECK_EQ(write_file(&profile, PROFILE_HEAP, "p.txt", text_write), 0);
	for (int i = 0; i < PROFILE_VALUE_CNT; i++)
		CHECK(agrees(go_total("p.txt", indexes[i]), &profile, i));
}

TEST(google_scales_as_we_do)
{
	struct profile profile = fixture_profile(RATE);

	if (!fixture_has("google-pprof"))
		return;
	CHECK_EQ(write_file(&profile, PROFILE_HEAP, "p.txt", text_write), 0);
	for (int i = 0; i < PROFILE_VALUE_CNT; i++)
		CHECK(agrees(google_total("p.txt", indexes[i]), &profile, i));
}

static void both_read_the_estimates(struct profile_coverage coverage)
{
	struct profile profile = fixture_profile(RATE);

	if (!fixture_has("go") || !fixture_has("google-pprof"))
		return;
	profile.coverage = coverage;
	for (size_t i = 0; i < profile.sample_cnt; i++)
		for (int value = 0; value < PROFILE_VALUE_CNT; value++)
			profile.samples[i].values[value] *= 10;
	CHECK_EQ(write_file(&profile, PROFILE_HEAP, "p.txt", text_write), 0);
	for (int i = 0; i < PROFILE_VALUE_CNT; i++) {
		CHECK_EQ(go_total("p.txt", indexes[i]), (double)profile_total(&profile, i));
		CHECK_EQ(google_total("p.txt", indexes[i]), (double)profile_total(&profile, i));
	}
}

/* Windows have rates of their own and leave time out: only the estimates say what was. */
TEST(both_read_the_estimates_of_windows)
{
	both_read_the_estimates((struct profile_coverage){.window_cnt = 9, .seen_ns = 3000000000});
}

/* So do turns. */
TEST(both_read_the_estimates_of_turns)
{
	both_read_the_estimates((struct profile_coverage){.share = 2});
}

TEST(both_are_exact_at_rate_one)
{
	struct profile profile = fixture_profile(1);
	struct profile_sample samples[] = {
		profile.samples[0],
		profile.samples[1],
		{fixture_stacks[3],
		 3,
		 0,
		 {100, 100, 0},
		 {33, 33, 0},
		 {100, 0, 33, 0},
		 {0}}, /* objects of size 0 */
	};

	profile.samples = samples;
	profile.sample_cnt = sizeof(samples) / sizeof(samples[0]);
	if (!fixture_has("go"))
		return;
	CHECK_EQ(write_file(&profile, PROFILE_HEAP, "p.txt", text_write), 0);
	for (int i = 0; i < PROFILE_VALUE_CNT; i++)
		CHECK(go_total("p.txt", indexes[i]) == (double)profile_total(&profile, i));
	if (!fixture_has("google-pprof"))
		return;
	for (int i = 0; i < PROFILE_VALUE_CNT; i++)
		CHECK(google_total("p.txt", indexes[i]) == (double)profile_total(&profile, i));
}

TEST(go_reads_the_same_stacks)
{
	struct profile profile = fixture_profile(RATE);
	const char *raw;

	if (!fixture_has("go"))
		return;
	CHECK_EQ(write_file(&profile, PROFILE_HEAP, "p.txt", text_write), 0);
	raw = fixture_run("go tool pprof -symbolize=none -raw p.txt");
	CHECK(strstr(raw, "0x400010 M=1"));
	CHECK(strstr(raw, "0x7f0000001230 M=2"));
	CHECK(strstr(raw, "1: 0x400000/0x402000/0x1000 /opt/app/main"));
	CHECK(strstr(raw, "bytes:[1048576]"));
}

TEST(views_are_read)
{
	struct profile profile = fixture_profile(RATE);

	if (!fixture_has("go"))
		return;
	CHECK_EQ(write_file(&profile, PROFILE_ALLOCS, "allocs.txt", text_write), 0);
	CHECK_EQ(write_file(&profile, PROFILE_INUSE, "inuse.txt", text_write), 0);
	CHECK(agrees(go_total("allocs.txt", "alloc_space"), &profile, PROFILE_ALLOC_SPACE));
	CHECK(agrees(go_total("inuse.txt", "space"), &profile, PROFILE_INUSE_SPACE));
}
