// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Addresses to locations and mappings: return addresses, images before and after an exec, and what
 * mappings say is known of them.
 */
#include "heap_fixture.h"

#include "cleanup.h"

HEAP_TEST(exec_ends_what_was_in_use)
{
	const uint64_t pcs[] = {0x400101};

	add_stack(heap, 1, 1, HB_STACK_COMPLETE, pcs, 1);
	add_stack(heap, 2, 2, HB_STACK_COMPLETE, pcs, 1);
	add_site(heap, 1, 8, 1, 10, 4, 0);
	add_site(heap, 2, 8, 2, 5, 1, 0);
	CHECK_EQ(make(heap, 1, profile), 0);
	CHECK_EQ(profile->sample_cnt, 2);
	CHECK_EQ(profile_total(profile, PROFILE_ALLOC_OBJECTS), 15);
	CHECK_EQ(profile_total(profile, PROFILE_INUSE_OBJECTS), 4);
	/* The same address in two images: two mappings, two names. */
	CHECK_EQ(profile->mapping_cnt, 2);
	CHECK_STR(profile->mappings[at(profile, 0, 0)->mapping - 1].file, "/app");
	CHECK_STR(profile->mappings[at(profile, 1, 0)->mapping - 1].file, "/old");
	CHECK_STR(at(profile, 0, 0)->names.frames[0].name, "f16");
	CHECK_STR(at(profile, 1, 0)->names.frames[0].name, "f528");
}

/* An image that has the same file at the same place again has the same mapping. */
HEAP_TEST(equal_images_are_one)
{
	const uint64_t pcs[] = {0x600101, 0x700101};

	add_stack(heap, 1, 1, HB_STACK_COMPLETE, pcs, 2);
	add_stack(heap, 2, 2, HB_STACK_COMPLETE, pcs, 2);
	for (uint64_t size = 8; size < 11; size++) {
		add_site(heap, 1, size, 1, 10, 4, 0);
		add_site(heap, 2, size, 2, 5, 1, 0);
	}
	CHECK_EQ(make(heap, 1, profile), 0);
	CHECK_EQ(profile->sample_cnt, 3);
	CHECK_EQ(profile->location_cnt, 2);
	CHECK_EQ(profile->mapping_cnt, 2);
	CHECK_EQ(profile->samples[0].allocs.raw, 15);
	CHECK_EQ(profile->samples[0].inuse.raw, 4);
}

HEAP_TEST(callers_are_one_byte_before_the_return_address)
{
	struct hb_stack stack = {.epoch = 2, .cnt = 70, .end = HB_STACK_COMPLETE};

	for (int i = 0; i < 70; i++)
		stack.frame[i] = HB_FRAME(APP, 0x400100);
	stack.frame[1] |= HB_FRAME_EXACT;
	stack.frame[69] |= HB_FRAME_EXACT;
	CHECK_EQ(heap_add_stack(heap, 1, &stack), 0);
	add_site(heap, 1, 8, 2, 1, 0, 0);
	CHECK_EQ(make(heap, 1, profile), 0);
	CHECK_EQ(profile->location_cnt, 2);
	for (size_t n = 0; n < 70; n++)
		CHECK_EQ(at(profile, 0, n)->pc, n == 1 || n == 69 ? 0x400100 : 0x4000ff);
	CHECK_STR(at(profile, 0, 0)->names.frames[0].name, "f15");
	CHECK_STR(at(profile, 0, 1)->names.frames[0].name, "f16");
}

/* One address, two libraries one after the other: two names, and no name where nobody can tell. */
HEAP_TEST(a_reused_address_has_the_name_of_its_time)
{
	static struct mappings_span at_first = {0, 0}, later = {1, 1};
	static struct mappings_state states[] = {{2, 0}, {2, 4}};
	struct mapping turns[] = {mappings_array[APP - 1], mappings_array[OLD - 1]};
	const struct mappings reused = {.all = turns, .cnt = 2, .states = states, .state_cnt = 2};
	struct heap_source source = source_at(1);
	const struct {
		uint32_t number, libraries;
		const char *name;
	} cases[] = {
		{1, 3, "f15"},
		{2, 4, "f527"},
		{HB_MAPPING_UNKNOWN, 0, "f15"},
		{HB_MAPPING_UNKNOWN, 2, NULL},
		{HB_MAPPING_UNKNOWN, 4, "f527"},
	};

	turns[0].spans = &at_first;
	turns[1].spans = &later;
	turns[0].span_cnt = turns[1].span_cnt = 1;
	turns[1].map.number = 2;
	for (size_t i = 0; i < ARRAY_CNT(cases); i++) {
		struct hb_stack stack = {.epoch = 2,
					 .libraries = cases[i].libraries,
					 .cnt = 1,
					 .end = HB_STACK_COMPLETE};

		stack.frame[0] = HB_FRAME(cases[i].number, 0x400100);
		CHECK_EQ(heap_add_stack(heap, 1 + i, &stack), 0);
		add_site(heap, 1 + i, 8 + i, 2, 1, 0, 0);
	}
	CHECK_EQ(heap_profile(heap, &source, &reused, SYMBOLIZER, profile), 0);
	CHECK_EQ(profile->sample_cnt, ARRAY_CNT(cases));
	for (size_t i = 0; i < profile->sample_cnt; i++) {
		const char *name = cases[profile->samples[i].size_bytes - 8].name;

		CHECK_EQ(at(profile, i, 0)->names.cnt > 0, name != NULL);
		if (name)
			CHECK_STR(at(profile, i, 0)->names.frames[0].name, name);
	}
}

HEAP_TEST(a_call_that_ends_the_mapping_is_in_it)
{
	const uint64_t pcs[] = {0x410000};

	add_stack(heap, 1, 2, HB_STACK_COMPLETE, pcs, 1);
	add_site(heap, 1, 8, 2, 1, 0, 0);
	CHECK_EQ(make(heap, 1, profile), 0);
	CHECK_EQ(at(profile, 0, 0)->mapping, 1);
}

HEAP_TEST(mappings_say_what_is_known_of_them)
{
	const uint64_t named[] = {0x600101, 0x400101, 0x406001};
	const uint64_t nameless[] = {0x500101, 0x700101, 0x900001};

	add_stack(heap, 1, 2, HB_STACK_COMPLETE, named, 3);
	add_stack(heap, 2, 2, HB_STACK_COMPLETE, nameless, 3);
	add_site(heap, 1, 8, 2, 1, 0, 0);
	add_site(heap, 2, 8, 2, 1, 0, 0);
	CHECK_EQ(make(heap, 1, profile), 0);
	CHECK_EQ(profile->mapping_cnt, 3);
	CHECK_STR(profile->mappings[0].file, "/app");
	CHECK_STR(profile->mappings[0].build_id, "00abff");
	CHECK_STR(profile->mappings[1].file, "/lib.so");
	CHECK_STR(profile->mappings[1].build_id, "");
	CHECK_EQ(profile->mappings[1].off, 0x1000);
	CHECK_STR(profile->mappings[2].file, "/gone.so");
	for (size_t i = 0; i < 3; i++) {
		CHECK_EQ(profile->mappings[i].has_functions, i < 2);
		CHECK_EQ(profile->mappings[i].has_filenames, i < 2);
		CHECK_EQ(profile->mappings[i].has_lines, i < 2);
		CHECK_EQ(profile->mappings[i].has_inline_frames, i < 2);
	}
	CHECK_EQ(at(profile, 0, 0)->mapping, 0);
	CHECK_EQ(at(profile, 0, 1)->mapping, 3);
	CHECK_EQ(at(profile, 0, 2)->mapping, 0);
	CHECK_EQ(at(profile, 1, 0)->mapping, 2);
	CHECK_EQ(at(profile, 1, 2)->mapping, 1);
	CHECK_EQ(at(profile, 1, 2)->names.cnt, 0);
}

/*
 * The map is that of the last image; what an earlier one had at the same address is another place.
 */
HEAP_TEST(jit_code_has_the_names_of_its_image)
{
	const uint64_t pcs[] = {0x20001, 0x400101, 0x10001, 0x90001, 0x20001};

	add_stack(heap, 1, 1, HB_STACK_COMPLETE, pcs, 5);
	add_stack(heap, 2, 2, HB_STACK_COMPLETE, pcs, 5);
	add_site(heap, 1, 8, 1, 1, 0, 0);
	add_site(heap, 2, 9, 2, 1, 0, 0);
	CHECK_EQ(make(heap, 1, profile), 0);
	CHECK_EQ(profile->sample_cnt, 2);
	for (size_t i = 0; i < 2; i++) {
		bool last = profile->samples[i].size_bytes == 9;

		CHECK_EQ(profile->samples[i].location_cnt, 5);
		CHECK_STR(at(profile, i, 1)->names.frames[0].name, last ? "f16" : "f528");
		CHECK_EQ(at(profile, i, 3)->names.cnt, 0);
		CHECK(at(profile, i, 0) == at(profile, i, 4));
		for (size_t n = 0; n < 5; n += 2) {
			CHECK_EQ(at(profile, i, n)->pc, pcs[n] - 1);
			CHECK_EQ(at(profile, i, n)->mapping, 0);
			CHECK_EQ(at(profile, i, n)->names.cnt, last);
			if (last)
				CHECK_STR(at(profile, i, n)->names.frames[0].name, "jit");
		}
	}
}

/* A file that cannot be read has no JIT code, whatever a map says; shared memory may. */
HEAP_TEST(jit_code_may_lie_in_shared_memory)
{
	static const struct {
		const char *path;
		bool is_memory;
	} cases[] = {{"/memfd:doublemapper", true}, {"/dev/zero", true}, {"/gone.so", false}};
	struct heap_source source = source_at(1);
	struct mapping shared[ARRAY_CNT(cases)];
	const struct mappings all = {.all = shared, .cnt = ARRAY_CNT(cases)};

	for (size_t i = 0; i < ARRAY_CNT(cases); i++) {
		struct hb_stack stack = {.epoch = 2, .cnt = 1, .end = HB_STACK_COMPLETE};

		shared[i] = (struct mapping){.map = {.start = 0x10000 * (i + 1),
						     .end = 0x10000 * (i + 2),
						     .inode = 1,
						     .number = i + 1,
						     .path = (char *)cases[i].path}};
		stack.frame[0] = HB_FRAME(i + 1, shared[i].map.start + 1);
		CHECK_EQ(heap_add_stack(heap, i + 1, &stack), 0);
		add_site(heap, i + 1, 8, 2, 1, 0, 0);
	}
	CHECK_EQ(heap_profile(heap, &source, &all, SYMBOLIZER, profile), 0);
	CHECK_EQ(profile->sample_cnt, ARRAY_CNT(cases));
	for (size_t i = 0; i < ARRAY_CNT(cases); i++) {
		CHECK_EQ(at(profile, i, 0)->mapping, i + 1);
		CHECK_EQ(at(profile, i, 0)->names.cnt, cases[i].is_memory);
		CHECK_EQ(profile->mappings[i].has_functions, cases[i].is_memory);
	}
}

HEAP_TEST(without_a_symbolizer_nothing_has_a_name)
{
	const uint64_t pcs[] = {0x20001, 0x400101};
	struct heap_source source = source_at(1);

	add_stack(heap, 1, 2, HB_STACK_COMPLETE, pcs, 2);
	add_site(heap, 1, 8, 2, 1, 0, 0);
	CHECK_EQ(heap_profile(heap, &source, &mappings, NULL, profile), 0);
	CHECK_EQ(at(profile, 0, 0)->names.cnt, 0);
	CHECK_EQ(at(profile, 0, 1)->names.cnt, 0);
}
