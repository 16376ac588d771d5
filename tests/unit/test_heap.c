// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Raw counts to profiles: scaling, order, merging, and what is said of stacks that are cut or
 * missing and of losses.
 */
#include "heap_fixture.h"
#include "pprof.h"

#include <math.h>
#include <time.h>

HEAP_TEST(exact_at_rate_one)
{
	const uint64_t pcs[] = {0x400101, 0x400201};

	add_stack(heap, 1, 2, HB_STACK_COMPLETE, pcs, 2);
	add_site(heap, 1, 10, 2, 7, 3, 1);
	add_site(heap, 1, 0, 2, 5, 0, 0);
	add_site(heap, 1, 1ULL << 40, 2, 1000003, 1, 0);
	CHECK_EQ(make(heap, 1, profile), 0);
	CHECK_EQ(profile->sample_cnt, 3);
	CHECK_EQ(profile->samples[0].size_bytes, 0);
	CHECK_EQ(profile->samples[0].values[PROFILE_INUSE_OBJECTS], 5);
	CHECK_EQ(profile->samples[0].values[PROFILE_INUSE_SPACE], 0);
	CHECK_EQ(profile->samples[1].values[PROFILE_ALLOC_OBJECTS], 7);
	CHECK_EQ(profile->samples[1].values[PROFILE_ALLOC_SPACE], 70);
	CHECK_EQ(profile->samples[1].values[PROFILE_INUSE_OBJECTS], 3);
	CHECK_EQ(profile->samples[1].values[PROFILE_INUSE_SPACE], 30);
	CHECK_EQ(profile->samples[2].values[PROFILE_ALLOC_SPACE], 1000003LL << 40);
	CHECK_EQ(profile_total(profile, PROFILE_ALLOC_OBJECTS), 1000015);
}

HEAP_TEST(scales_by_stack_and_size)
{
	const uint64_t pcs[] = {0x400101};
	uint64_t state = 1;
	double objects = 0;

	sample_at(512 * 1024);
	add_stack(heap, 1, 2, HB_STACK_COMPLETE, pcs, 1);
	for (int i = 0; i < 5000; i++) {
		uint64_t allocs;

		state = state * 6364136223846793005 + 1442695040888963407;
		allocs = 1 + (state >> 60);
		add_site(heap, 1, 1 + (state >> 33) % 2000000, 2, allocs, allocs / 2, 0);
	}
	CHECK_EQ(make(heap, 512 * 1024, profile), 0);
	for (size_t i = 0; i < profile->sample_cnt; i++) {
		const struct profile_sample *sample = &profile->samples[i];
		double p = sampling_p(threshold, sample->size_bytes);
		double n = (double)sample->allocs.raw / p;

		CHECK(fabs(sample->allocs.variance / (n * (1 - p) / p) - 1) < 1e-9);
		CHECK(fabs((double)sample->values[PROFILE_ALLOC_OBJECTS] - n) <= 1);
		objects += n;
		CHECK(fabs((double)sample->values[PROFILE_ALLOC_SPACE] -
			   n * (double)sample->size_bytes) <= 1);
		CHECK(sample->values[PROFILE_INUSE_OBJECTS] <=
		      sample->values[PROFILE_ALLOC_OBJECTS]);
		CHECK(sample->values[PROFILE_INUSE_SPACE] <= sample->values[PROFILE_ALLOC_SPACE]);
		CHECK(i == 0 || profile->samples[i - 1].size_bytes < sample->size_bytes);
	}
	/* No fraction is lost: the sum is as exact as one number can be. */
	CHECK(fabs((double)profile_total(profile, PROFILE_ALLOC_OBJECTS) - objects) <= 1);
	sample_at(1);
}

/* Each window counts by its own share of the time and its own rate; in use is the mean of them. */
HEAP_TEST(windows_add_up)
{
	const struct profile_sample *sample;
	const uint64_t pcs[] = {0x400101};
	double p;

	add_stack(heap, 1, 2, HB_STACK_COMPLETE, pcs, 1);
	add_site_seen(heap, 1, 1000, 2, 40, 30, 0, 1);
	add_site_seen(heap, 1, 1000, 2, 50, 45, 0, 0.5);
	sample_at(8192);
	p = sampling_p(threshold, 1000);
	add_site_seen(heap, 1, 1000, 2, 10, 8, 1, 0.1);
	sample_at(1);
	CHECK_EQ(make(heap, 1, profile), 0);
	sample = profile->samples;
	CHECK_EQ(profile->sample_cnt, 1);
	CHECK_EQ(sample->allocs.raw, 100);
	CHECK_EQ(sample->inuse.raw, 16);
	CHECK(fabs(sample->allocs.estimate - (40 + 50 / 0.5 + 10 / (p * 0.1))) < 1e-6);
	CHECK(fabs(sample->inuse.estimate - (10 + 5 + 1 / p) / 3) < 1e-9);
	CHECK_EQ(sample->values[PROFILE_ALLOC_OBJECTS], floor(sample->allocs.estimate));
	CHECK_EQ(sample->values[PROFILE_INUSE_SPACE], floor(sample->inuse.estimate * 1000));
	CHECK(fabs(sample->allocs.variance -
		   (50 * 0.5 / 0.25 + 10 * (1 - p * 0.1) / (p * p * 0.01))) < 1e-6);
}

/* The standard error of a sample, in parts of its bytes. */
static double relative_error(const struct profile_sample *sample, bool inuse)
{
	struct profile_error error = profile_error_of(sample, inuse);

	return profile_standard_error(&error) /
	       (double)sample->values[inuse ? PROFILE_INUSE_SPACE : PROFILE_ALLOC_SPACE];
}

/* A thousand samples tell much of what is always there, and little of what is there at times. */
HEAP_TEST(what_was_in_one_window_of_ten_is_uncertain)
{
	const uint64_t always[] = {0x400101}, once[] = {0x400201};

	sample_at(1);
	add_stack(heap, 1, 2, HB_STACK_COMPLETE, always, 1);
	add_stack(heap, 2, 2, HB_STACK_COMPLETE, once, 1);
	for (int i = 0; i < 10; i++) {
		heap_period(heap, &(struct heap_period){
					  .coverage = 0.1, .length_ns = 1e9, .window_ns = 1});
		add_site_now(heap, 1, 64, 2, 100, 0, 0);
		if (i == 4)
			add_site_now(heap, 2, 64, 2, 1000, 500, 0);
	}
	CHECK_EQ(make(heap, 1, profile), 0);
	CHECK_EQ(profile->sample_cnt, 2);
	CHECK_EQ(profile->samples[0].values[PROFILE_ALLOC_OBJECTS], 10000);
	CHECK_EQ(profile->samples[1].values[PROFILE_ALLOC_OBJECTS], 10000);
	CHECK(relative_error(&profile->samples[0], false) < 0.04);
	CHECK(relative_error(&profile->samples[1], false) > 0.5);
	/* In use is what was seen, as it was seen. */
	CHECK(relative_error(&profile->samples[1], true) == 0);
}

/* What an image before left is not in use, and the windows that it was in do not count. */
HEAP_TEST(in_use_is_the_mean_of_the_windows_of_an_image)
{
	const uint64_t pcs[] = {0x400101};
	struct heap_period period = {
		.coverage = 0.1, .length_ns = 1e9, .epoch = 1, .window_ns = 1, .was_there = true};

	sample_at(1);
	add_stack(heap, 1, 2, HB_STACK_COMPLETE, pcs, 1);
	for (int i = 0; i < 3; i++)
		heap_period(heap, &period);
	period.epoch = 2;
	heap_period(heap, &period);
	add_site_now(heap, 1, 64, 2, 100, 40, 0);
	/* Nothing. */
	heap_period(heap, &period);
	heap_period(heap, &period);
	add_site_now(heap, 1, 64, 2, 100, 10, 0);
	/* It ended in here, and then was in none. */
	period.was_there = false;
	heap_period(heap, &period);
	add_site_now(heap, 1, 64, 2, 100, 50, 0);
	heap_period(heap, &period);
	CHECK_EQ(make(heap, 1, profile), 0);
	CHECK_EQ(profile->samples[0].values[PROFILE_INUSE_OBJECTS], (60 + 90 + 50) / 4);
	CHECK_EQ(profile->samples[0].values[PROFILE_INUSE_SPACE], (60 + 90 + 50) / 4 * 64);
	CHECK(fabs(heap_totals(heap, 2).inuse - 50) < 1e-9);
}

/* A long window knows more than a short one. */
HEAP_TEST(windows_count_by_their_length)
{
	const uint64_t pcs[] = {0x400101};
	struct heap_period period = {
		.coverage = 0.1, .length_ns = 1e9, .epoch = 2, .window_ns = 3, .was_there = true};

	sample_at(1);
	add_stack(heap, 1, 2, HB_STACK_COMPLETE, pcs, 1);
	heap_period(heap, &period);
	add_site_now(heap, 1, 64, 2, 1000, 0, 0);
	period.window_ns = 1;
	heap_period(heap, &period);
	heap_period(heap, &period);
	add_site_now(heap, 1, 64, 2, 100, 0, 0);
	CHECK_EQ(make(heap, 1, profile), 0);
	CHECK_EQ(profile->samples[0].values[PROFILE_INUSE_OBJECTS], (3 * 1000 + 100) / 5);
}

HEAP_TEST(whole_periods_are_exact)
{
	const uint64_t pcs[] = {0x400101};

	sample_at(1);
	add_stack(heap, 1, 2, HB_STACK_COMPLETE, pcs, 1);
	for (int i = 0; i < 10; i++)
		add_site_seen(heap, 1, 64, 2, i == 4 ? 100 : 1, 0, 0, 1);
	CHECK_EQ(make(heap, 1, profile), 0);
	CHECK_EQ(profile->samples[0].values[PROFILE_ALLOC_OBJECTS], 109);
	CHECK(relative_error(&profile->samples[0], false) == 0);
}

TEST(huge_numbers_saturate)
{
	struct heap *heap = new_heap();
	struct profile profile;

	add_site(heap, 0, UINT64_MAX, 2, UINT64_MAX, 0, 0);
	add_site(heap, 0, 1, 2, UINT64_MAX / 2, 0, 0);
	CHECK_EQ(make(heap, 1, &profile), 0);
	CHECK_EQ(profile.samples[1].values[PROFILE_ALLOC_SPACE], INT64_MAX);
	CHECK_EQ(profile_total(&profile, PROFILE_ALLOC_SPACE), INT64_MAX);
	profile_clear(&profile);
	heap_free(heap);
	heap = new_heap();
	sample_at(4096);
	add_site(heap, 0, 1, 2, UINT64_MAX, 0, 0);
	sample_at(1);
	CHECK_EQ(make(heap, 4096, &profile), 0);
	CHECK_EQ(profile.samples[0].values[PROFILE_ALLOC_SPACE], INT64_MAX);
	profile_clear(&profile);
	heap_free(heap);
}

HEAP_TEST(inuse_is_never_negative)
{
	add_site(heap, 0, 8, 2, 3, 2, 2);
	CHECK_EQ(make(heap, 1, profile), 0);
	CHECK_EQ(profile->samples[0].values[PROFILE_INUSE_OBJECTS], 0);
	CHECK_EQ(profile->samples[0].values[PROFILE_ALLOC_OBJECTS], 3);
}

HEAP_TEST(cut_stacks_have_a_root_that_says_why)
{
	const uint64_t pcs[] = {0x400101};

	add_stack(heap, 1, 2, HB_LOSS_STACK_TOO_DEEP, pcs, 1);
	add_stack(heap, 2, 2, HB_LOSS_STACK_NO_ROW, pcs, 1);
	add_stack(heap, 3, 2, HB_STACK_COMPLETE, pcs, 1);
	add_stack(heap, 4, 2, 0x1234, pcs, 1);
	for (uint64_t id = 1; id <= 4; id++)
		add_site(heap, id, 8, 2, id, 0, 0);
	CHECK_EQ(make(heap, 1, profile), 0);
	CHECK_EQ(profile->sample_cnt, 4);
	CHECK_STR(at(profile, 0, 1)->names.frames[0].name, "[no_row]");
	CHECK_STR(at(profile, 1, 1)->names.frames[0].name, "[truncated]");
	CHECK_STR(at(profile, 2, 1)->names.frames[0].name, "[cut]");
	CHECK_EQ(at(profile, 0, 1)->mapping, 0);
	CHECK_EQ(profile->samples[3].location_cnt, 1);
	CHECK_EQ(profile->raw_allocs, 10);
	CHECK_EQ(profile->raw_complete, 3);
}

HEAP_TEST(a_site_without_a_stack_is_kept)
{
	add_site(heap, 0, 8, 2, 3, 0, 0);
	add_site(heap, 99, 8, 2, 4, 0, 0);
	CHECK_EQ(make(heap, 1, profile), 0);
	CHECK_EQ(profile->sample_cnt, 1);
	CHECK_EQ(profile->samples[0].allocs.raw, 7);
	CHECK_EQ(profile->samples[0].location_cnt, 1);
	CHECK_STR(at(profile, 0, 0)->names.frames[0].name, "[no stack]");
	CHECK_EQ(profile->raw_complete, 0);
}

HEAP_TEST(others_sites_are_not_ours)
{
	struct hb_site_key key = {.size = 8, .tgid = TGID + 1, .epoch = 2};

	heap_period(heap, &(struct heap_period){.coverage = 1, .window_ns = 1});
	CHECK_EQ(heap_add_site(heap, &key, &(struct hb_site){1, 0, 0}, threshold), 0);
	CHECK_EQ(make(heap, 1, profile), 0);
	CHECK_EQ(profile->sample_cnt, 0);
	CHECK_EQ(profile_total(profile, PROFILE_ALLOC_OBJECTS), 0);
}

HEAP_TEST(equal_keys_add_up)
{
	add_site(heap, 0, 8, 2, 3, 1, 0);
	add_site(heap, 0, 8, 2, 4, 1, 1);
	CHECK_EQ(make(heap, 1, profile), 0);
	CHECK_EQ(profile->samples[0].allocs.raw, 7);
	CHECK_EQ(profile->samples[0].inuse.raw, 4);
}

HEAP_TEST(allocs_mode_has_nothing_in_use)
{
	struct heap_source source = source_at(1);

	add_site(heap, 0, 8, 2, 3, 0, 0);
	source.tracks_inuse = false;
	CHECK_EQ(heap_profile(heap, &source, &mappings, NULL, profile), 0);
	CHECK_EQ(profile_total(profile, PROFILE_ALLOC_OBJECTS), 3);
	CHECK_EQ(profile_total(profile, PROFILE_INUSE_OBJECTS), 0);
	CHECK_EQ(profile->tracks_inuse, false);
}

TEST(only_what_happened_is_listed)
{
	struct heap *heap = new_heap();
	struct profile profile;

	counters[HB_LOSS_STACK_TOO_DEEP] = 5;
	counters[HB_LOSS_LIVE_FULL] = 6;
	counters[HB_LOSS_CNT + HB_STAT_HITS] = 77;
	CHECK_EQ(make(heap, 1, &profile), 0);
	CHECK_EQ(profile.cut_cnt, 1);
	CHECK_STR(profile.cuts[0].name, "truncated");
	CHECK_EQ(profile.cuts[0].count, 5);
	CHECK_EQ(profile.loss_cnt, 1);
	CHECK_STR(profile.losses[0].name, "live_full");
	CHECK_EQ(profile.losses[0].count, 6);
	CHECK_EQ(profile.stat_cnt, HB_STAT_CNT);
	CHECK_EQ(profile.stats[HB_STAT_HITS].count, 77);
	profile_clear(&profile);
	memset(counters, 0, sizeof(counters));
	heap_free(heap);
}

/* A cut stack keeps its sample; whatever else is given up makes the profile incomplete. */
TEST(a_cut_is_no_loss)
{
#define IS_CUT(id, name, text) [HB_LOSS_##id] = true,
	static const bool is_cut[HB_LOSS_CNT] = {HB_CUT_LIST(IS_CUT)};
#undef IS_CUT
	struct heap *heap = new_heap();
	struct profile profile;

	for (int loss = 0; loss < HB_LOSS_CNT; loss++) {
		counters[loss] = 1;
		CHECK_EQ(make(heap, 1, &profile), 0);
		CHECK_EQ(profile.cut_cnt, is_cut[loss]);
		CHECK_EQ(profile.loss_cnt, !is_cut[loss]);
		CHECK_EQ(profile_is_partial(&profile), !is_cut[loss]);
		profile_clear(&profile);
		counters[loss] = 0;
	}
	memset(counters, 0, sizeof(counters));
	heap_free(heap);
}

/* A large collection whose entries are added forwards or backwards. */
static struct heap *large(size_t stack_cnt, bool backwards)
{
	struct heap *heap = new_heap();

	sample_at(4096);
	for (size_t n = 0; n < stack_cnt; n++) {
		size_t id = 1 + (backwards ? stack_cnt - 1 - n : n);
		uint64_t pcs[40];

		for (uint64_t i = 0; i < 40; i++)
			pcs[i] = 0x400001 + (id * (i + 3) * 7919 + i) % 0x8000;
		add_stack(heap, id, 2, id % 50 ? HB_STACK_COMPLETE : HB_LOSS_STACK_NO_ROW, pcs,
			  (uint16_t)(20 + id % 20));
		for (uint64_t size = 1; size <= 3; size++)
			add_site(heap, id, backwards ? 64 - size * 16 : size * 16, 2, id, id / 2,
				 0);
	}
	sample_at(1);
	return heap;
}

TEST(order_of_arrival_does_not_show)
{
	static char forwards[1 << 22], backwards[1 << 22];
	struct profile profile;
	size_t len[2];

	for (int i = 0; i < 2; i++) {
		struct heap *heap = large(1000, i);
		FILE *out = fmemopen(i ? backwards : forwards, sizeof(forwards), "w");

		CHECK_EQ(make(heap, 4096, &profile), 0);
		CHECK_EQ(pprof_write(&profile, PROFILE_HEAP, out), 0);
		len[i] = (size_t)ftell(out);
		fclose(out);
		profile_clear(&profile);
		heap_free(heap);
	}
	CHECK_EQ(len[0], len[1]);
	CHECK(!memcmp(forwards, backwards, len[0]));
}

TEST(twenty_thousand_stacks_are_fast)
{
	struct heap *heap = large(20000, false);
	struct profile profile;
	clock_t start = clock();
	FILE *out = fopen("/dev/null", "w");

	CHECK_EQ(make(heap, 4096, &profile), 0);
	CHECK_EQ(profile.sample_cnt, 60000);
	CHECK_EQ(pprof_write(&profile, PROFILE_HEAP, out), 0);
	fclose(out);
	/* A second here, with sanitizers; quadratic would be minutes. */
	CHECK((clock() - start) / CLOCKS_PER_SEC < 20);
	profile_clear(&profile);
	heap_free(heap);
}
