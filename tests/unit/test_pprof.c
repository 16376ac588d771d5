// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Profiles as profile.proto: what go tool pprof reads is what was written, in every view; equal
 * profiles are equal bytes; a failed write is a failure.
 */
#include "check.h"
#include "pprof.h"
#include "profile.pb-c.h"
#include "profile_fixture.h"

#include <errno.h>
#include <zlib.h>

#define BYTES_MAX (1 << 20)

/* Writes a view into the directory; 0 or what pprof_write() said. */
static int write_file(const struct profile *profile, enum profile_type type, const char *name)
{
	char path[256];
	FILE *out;
	int err;

	snprintf(path, sizeof(path), "%s/%s", fixture_dir(), name);
	out = fopen(path, "w");
	if (!out)
		return -errno;
	err = pprof_write(profile, type, out);
	return fclose(out) ? -errno : err;
}

/* The bytes of a view, in `bytes`. */
static size_t write_bytes(const struct profile *profile, enum profile_type type,
			  unsigned char bytes[static BYTES_MAX])
{
	FILE *out = fmemopen(bytes, BYTES_MAX, "w");
	int err = pprof_write(profile, type, out);
	long len = ftell(out);

	fclose(out);
	return err ? 0 : (size_t)len;
}

/* The message in the gzipped bytes; NULL: there is none. */
static Perftools__Profiles__Profile *unpack(unsigned char *bytes, size_t len)
{
	static unsigned char plain[BYTES_MAX];
	z_stream zlib = {
		.next_in = bytes, .avail_in = len, .next_out = plain, .avail_out = BYTES_MAX};

	if (inflateInit2(&zlib, MAX_WBITS + 16) != Z_OK)
		return NULL;
	len = inflate(&zlib, Z_FINISH) == Z_STREAM_END ? zlib.total_out : 0;
	inflateEnd(&zlib);
	return perftools__profiles__profile__unpack(NULL, len, plain);
}

static unsigned char first[BYTES_MAX], second[BYTES_MAX];

TEST(equal_profiles_are_equal_bytes)
{
	struct profile profile = fixture_profile(RATE);

	for (int type = 0; type < PROFILE_TYPE_CNT; type++) {
		size_t len = write_bytes(&profile, type, first);

		CHECK(len > 0);
		CHECK_EQ(write_bytes(&profile, type, second), len);
		CHECK(!memcmp(first, second, len));
	}
}

TEST(gzip_header_has_no_time_and_no_name)
{
	struct profile profile = fixture_profile(RATE);
	static const unsigned char header[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0};

	CHECK(write_bytes(&profile, PROFILE_HEAP, first) > sizeof(header));
	CHECK(!memcmp(first, header, sizeof(header)));
}

TEST(ids_are_given_in_order_of_first_use)
{
	struct profile profile = fixture_profile(RATE);
	Perftools__Profiles__Profile *message =
		unpack(first, write_bytes(&profile, PROFILE_HEAP, first));
	uint64_t next = 1;

	CHECK(message);
	for (size_t i = 0; i < message->n_sample; i++) {
		for (size_t j = 0; j < message->sample[i]->n_location_id; j++) {
			CHECK(message->sample[i]->location_id[j] <= next);
			next += message->sample[i]->location_id[j] == next;
		}
	}
	CHECK_EQ(next, message->n_location + 1);
	for (size_t i = 0; i < message->n_location; i++)
		CHECK_EQ(message->location[i]->id, i + 1);
	for (size_t i = 0; i < message->n_mapping; i++)
		CHECK_EQ(message->mapping[i]->id, i + 1);
	perftools__profiles__profile__free_unpacked(message, NULL);
}

TEST(frames_are_lines_innermost_first)
{
	struct profile profile = fixture_profile(RATE);
	Perftools__Profiles__Profile *message =
		unpack(first, write_bytes(&profile, PROFILE_HEAP, first));
	Perftools__Profiles__Function *function;

	CHECK(message);
	CHECK_EQ(message->location[0]->n_line, 2);
	CHECK_EQ(message->location[0]->line[0]->line, 5);
	CHECK_EQ(message->location[0]->line[1]->line, 12);
	function = message->function[message->location[0]->line[1]->function_id - 1];
	CHECK_STR(message->string_table[function->name], "make_tree(int)");
	CHECK_STR(message->string_table[function->system_name], "_Z9make_treei");
	CHECK_STR(message->string_table[function->filename], "/src/tree.cc");
	CHECK_EQ(function->start_line, 10);
	perftools__profiles__profile__free_unpacked(message, NULL);
}

TEST(strings_are_unique_and_utf8)
{
	struct profile profile = fixture_profile(RATE);
	Perftools__Profiles__Profile *message =
		unpack(first, write_bytes(&profile, PROFILE_HEAP, first));
	int found = 0;

	CHECK(message);
	CHECK_STR(message->string_table[0], "");
	for (size_t i = 0; i < message->n_string_table; i++) {
		found += !strcmp(message->string_table[i], "caf\xc3\xa9??");
		found += !strcmp(message->string_table[i], "/src/bad?name.c");
		for (size_t j = 0; j < i; j++)
			CHECK(strcmp(message->string_table[i], message->string_table[j]) != 0);
	}
	CHECK_EQ(found, 2);
	perftools__profiles__profile__free_unpacked(message, NULL);
}

TEST(inuse_view_leaves_out_what_is_gone)
{
	struct profile profile = fixture_profile(RATE);
	Perftools__Profiles__Profile *message =
		unpack(first, write_bytes(&profile, PROFILE_INUSE, first));

	CHECK(message);
	CHECK_EQ(message->n_sample, profile.sample_cnt - 1);
	CHECK_EQ(message->n_sample_type, 2);
	CHECK_STR(message->string_table[message->default_sample_type], "inuse_space");
	for (size_t i = 0; i < message->n_sample; i++)
		CHECK(message->sample[i]->value[0] > 0);
	perftools__profiles__profile__free_unpacked(message, NULL);
}

TEST(nothing_unused_is_written)
{
	struct profile profile = fixture_profile(RATE);
	Perftools__Profiles__Profile *message;

	profile.sample_cnt = 1;
	message = unpack(first, write_bytes(&profile, PROFILE_HEAP, first));
	CHECK(message);
	CHECK_EQ(message->n_location, 2);
	CHECK_EQ(message->n_mapping, 1);
	CHECK_EQ(message->n_function, 3);
	perftools__profiles__profile__free_unpacked(message, NULL);
}

TEST(an_empty_profile_is_valid)
{
	struct profile profile = {.comm = (char *)"idle", .rate_bytes = RATE};

	CHECK_EQ(write_file(&profile, PROFILE_HEAP, "empty.pb.gz"), 0);
	if (fixture_has("go"))
		CHECK(strstr(fixture_run("go tool pprof -raw empty.pb.gz"), "Period: 4096"));
}

TEST(a_failed_write_is_an_error)
{
	struct profile profile = fixture_profile(RATE);
	FILE *out = fopen("/dev/full", "w");

	CHECK(out);
	setvbuf(out, NULL, _IONBF, 0);
	CHECK_EQ(pprof_write(&profile, PROFILE_HEAP, out), -ENOSPC);
	fclose(out);
}

/* The line of `text` that starts with `start` after blanks; NULL: none. */
static const char *line_with(const char *text, const char *start)
{
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += strspn(line, "\n \t");
		if (!strncmp(line, start, strlen(start)))
			return line;
	}
	return NULL;
}

TEST(pprof_reads_the_facts)
{
	struct profile profile = fixture_profile(RATE);
	const char *raw;

	if (!fixture_has("go"))
		return;
	CHECK_EQ(write_file(&profile, PROFILE_HEAP, "p.pb.gz"), 0);
	raw = fixture_run("go tool pprof -raw p.pb.gz");
	CHECK(line_with(raw, "PeriodType: space bytes\nPeriod: 4096\nTime: 2023-11-14"));
	CHECK(line_with(raw, "Duration: 30.5"));
	CHECK(line_with(raw, "alloc_objects/count alloc_space/bytes inuse_objects/count "
			     "inuse_space/bytes[dflt]"));
	CHECK(strstr(raw, "1: 0x400000/0x402000/0x1000 /opt/app/main 00ff10 [FN][FL][LN][IN]"));
	CHECK(strstr(raw, "2: 0x7f0000001000/0x7f0000003000/0x0 /lib/libstripped.so  \n"));
	CHECK(strstr(raw, "bytes:[1048576 bytes]"));
	CHECK(strstr(raw, "heapbpf 0.1.0: heap profile of app (pid 1234)"));
	CHECK(strstr(raw, "cut: truncated = 3: at the depth limit"));
	CHECK(strstr(raw, "lost: live_full = 7: allocation not in inuse"));
	CHECK(strstr(raw, "71 of 79 stacks complete"));
	CHECK(strstr(raw, "entry probe hits = 123456"));
	CHECK(strstr(raw, "RSS = 10485760"));
}

/* What pprof says all samples of an index sum up to; -1: it says nothing. */
static long long pprof_total(const char *file, const char *index)
{
	const char *top =
		fixture_run("go tool pprof -top -unit=B -sample_index=%s %s", index, file);
	const char *total = strstr(top, "% of ");

	return total ? strtoll(total + 5, NULL, 10) : -1;
}

static const char *const indexes[] = {"alloc_objects", "alloc_space", "inuse_objects",
				      "inuse_space"};

TEST(pprof_sums_are_ours_in_every_index)
{
	struct profile profile = fixture_profile(RATE);

	if (!fixture_has("go"))
		return;
	CHECK_EQ(write_file(&profile, PROFILE_HEAP, "p.pb.gz"), 0);
	CHECK_EQ(write_file(&profile, PROFILE_ALLOCS, "allocs.pb.gz"), 0);
	CHECK_EQ(write_file(&profile, PROFILE_INUSE, "inuse.pb.gz"), 0);
	for (int i = 0; i < PROFILE_VALUE_CNT; i++) {
		long long total = profile_total(&profile, i);

		CHECK_EQ(pprof_total("p.pb.gz", indexes[i]), total);
		CHECK_EQ(pprof_total(i < 2 ? "allocs.pb.gz" : "inuse.pb.gz", indexes[i]), total);
	}
}

TEST(pprof_shows_the_default_of_each_view)
{
	struct profile profile = fixture_profile(RATE);

	if (!fixture_has("go"))
		return;
	CHECK_EQ(write_file(&profile, PROFILE_HEAP, "p.pb.gz"), 0);
	CHECK_EQ(write_file(&profile, PROFILE_ALLOCS, "allocs.pb.gz"), 0);
	CHECK(strstr(fixture_run("go tool pprof -top p.pb.gz"), "Type: inuse_space"));
	CHECK(strstr(fixture_run("go tool pprof -top allocs.pb.gz"), "Type: alloc_space"));
}

TEST(pprof_gives_flat_values_to_the_caller_of_new)
{
	struct profile profile = fixture_profile(RATE);
	const char *top;

	if (!fixture_has("go"))
		return;
	CHECK_EQ(write_file(&profile, PROFILE_HEAP, "p.pb.gz"), 0);
	top = fixture_run("go tool pprof -top -nodefraction=0 p.pb.gz");
	CHECK(!strstr(top, "operator new"));
	CHECK(strstr(top, "inner"));
	CHECK(strstr(top, "[truncated]"));
	CHECK(strstr(top, "[no stack]"));
	CHECK(strstr(fixture_run("go tool pprof -traces p.pb.gz"), "make_tree"));
}

TEST(pprof_finds_no_difference_from_itself)
{
	struct profile profile = fixture_profile(RATE);

	if (!fixture_has("go"))
		return;
	CHECK_EQ(write_file(&profile, PROFILE_HEAP, "p.pb.gz"), 0);
	CHECK(strstr(fixture_run("go tool pprof -top -diff_base p.pb.gz p.pb.gz"),
		     "nodes accounting for 0"));
}
