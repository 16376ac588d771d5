// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Addresses to locations and mappings: return addresses, images before and after an exec, and what
 * mappings say is known of them.
 */
#include "heap_fixture.h"

TEST(exec_ends_what_was_in_use)
{
	struct heap *heap = heap_new();
	struct profile profile;
	const uint64_t pcs[] = {0x400101};

	add_stack(heap, 1, 1, HB_STACK_COMPLETE, pcs, 1);
	add_stack(heap, 2, 2, HB_STACK_COMPLETE, pcs, 1);
	add_site(heap, 1, 8, 1, 10, 4, 0);
	add_site(heap, 2, 8, 2, 5, 1, 0);
	CHECK_EQ(make(heap, 1, &profile), 0);
	CHECK_EQ(profile.sample_cnt, 2);
	CHECK_EQ(profile_total(&profile, PROFILE_ALLOC_OBJECTS), 15);
	CHECK_EQ(profile_total(&profile, PROFILE_INUSE_OBJECTS), 4);
	/* The same address in two images: two mappings, two names. */
	CHECK_EQ(profile.mapping_cnt, 2);
	CHECK_STR(profile.mappings[at(&profile, 0, 0)->mapping - 1].file, "/old");
	CHECK_STR(profile.mappings[at(&profile, 1, 0)->mapping - 1].file, "/app");
	CHECK_STR(at(&profile, 0, 0)->names.frames[0].name, "f528");
	CHECK_STR(at(&profile, 1, 0)->names.frames[0].name, "f16");
	profile_clear(&profile);
	heap_free(heap);
}

TEST(equal_images_are_one)
{
	struct heap *heap = heap_new();
	struct profile profile;
	struct heap_source source = source_at(1);
	const struct heap_space same[] = {{1, &maps}, {2, &maps}};
	const uint64_t pcs[] = {0x400101, 0x600101};

	add_stack(heap, 1, 1, HB_STACK_COMPLETE, pcs, 2);
	add_stack(heap, 2, 2, HB_STACK_COMPLETE, pcs, 2);
	for (uint64_t size = 8; size < 11; size++) {
		add_site(heap, 1, size, 1, 10, 4, 0);
		add_site(heap, 2, size, 2, 5, 1, 0);
	}
	CHECK_EQ(heap_profile(heap, &source, same, 2, SYMBOLIZER, &profile), 0);
	CHECK_EQ(profile.sample_cnt, 3);
	CHECK_EQ(profile.location_cnt, 2);
	CHECK_EQ(profile.mapping_cnt, 2);
	CHECK_EQ(profile.samples[0].raw_allocs, 15);
	CHECK_EQ(profile.samples[0].raw_inuse, 4);
	profile_clear(&profile);
	heap_free(heap);
}

TEST(callers_are_one_byte_before_the_return_address)
{
	struct heap *heap = heap_new();
	struct profile profile;
	struct hb_stack stack = {.epoch = 2, .cnt = 70, .end = HB_STACK_COMPLETE};

	for (int i = 0; i < 70; i++)
		stack.pc[i] = 0x400100;
	stack.exact[0] = 1ULL << 1;
	stack.exact[1] = 1ULL << 5;
	CHECK_EQ(heap_add_stack(heap, 1, &stack), 0);
	add_site(heap, 1, 8, 2, 1, 0, 0);
	CHECK_EQ(make(heap, 1, &profile), 0);
	CHECK_EQ(profile.location_cnt, 2);
	for (size_t n = 0; n < 70; n++)
		CHECK_EQ(at(&profile, 0, n)->pc, n == 1 || n == 69 ? 0x400100 : 0x4000ff);
	CHECK_STR(at(&profile, 0, 0)->names.frames[0].name, "f15");
	CHECK_STR(at(&profile, 0, 1)->names.frames[0].name, "f16");
	profile_clear(&profile);
	heap_free(heap);
}

TEST(a_call_that_ends_the_mapping_is_in_it)
{
	struct heap *heap = heap_new();
	struct profile profile;
	const uint64_t pcs[] = {0x410000};

	add_stack(heap, 1, 2, HB_STACK_COMPLETE, pcs, 1);
	add_site(heap, 1, 8, 2, 1, 0, 0);
	CHECK_EQ(make(heap, 1, &profile), 0);
	CHECK_EQ(at(&profile, 0, 0)->mapping, 1);
	profile_clear(&profile);
	heap_free(heap);
}

TEST(mappings_say_what_is_known_of_them)
{
	struct heap *heap = heap_new();
	struct profile profile;
	const uint64_t named[] = {0x600101, 0x400101, 0x406001};
	const uint64_t nameless[] = {0x500101, 0x700101, 0x900001};

	add_stack(heap, 1, 2, HB_STACK_COMPLETE, named, 3);
	add_stack(heap, 2, 2, HB_STACK_COMPLETE, nameless, 3);
	add_site(heap, 1, 8, 2, 1, 0, 0);
	add_site(heap, 2, 8, 2, 1, 0, 0);
	CHECK_EQ(make(heap, 1, &profile), 0);
	CHECK_EQ(profile.mapping_cnt, 3);
	CHECK_STR(profile.mappings[0].file, "/app");
	CHECK_STR(profile.mappings[0].build_id, "00abff");
	CHECK_STR(profile.mappings[1].file, "/lib.so");
	CHECK_STR(profile.mappings[1].build_id, "");
	CHECK_EQ(profile.mappings[1].off, 0x1000);
	CHECK_STR(profile.mappings[2].file, "/gone.so");
	for (size_t i = 0; i < 3; i++) {
		CHECK_EQ(profile.mappings[i].has_functions, i < 2);
		CHECK_EQ(profile.mappings[i].has_filenames, i < 2);
		CHECK_EQ(profile.mappings[i].has_lines, i < 2);
		CHECK_EQ(profile.mappings[i].has_inline_frames, i < 2);
	}
	CHECK_EQ(at(&profile, 0, 0)->mapping, 0);
	CHECK_EQ(at(&profile, 0, 1)->mapping, 3);
	CHECK_EQ(at(&profile, 0, 2)->mapping, 0);
	CHECK_EQ(at(&profile, 1, 0)->mapping, 2);
	CHECK_EQ(at(&profile, 1, 2)->mapping, 1);
	CHECK_EQ(at(&profile, 1, 2)->names.cnt, 0);
	profile_clear(&profile);
	heap_free(heap);
}
