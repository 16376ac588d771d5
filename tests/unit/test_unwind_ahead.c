// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reading the stack ahead: it gives what is there, at any address, touches no page that was not
 * asked for, and remembers nothing of a read that failed.
 */
#include "check.h"

#include <stdbool.h>

/* The target's memory: pages of words, the last one of which cannot be read; nor can all else. */
#define STACK	    0x7f0000001000ULL
#define PAGE	    4096ULL
#define PAGES	    4
#define READABLE    ((PAGES - 1) * PAGE)
#define AT(byte)    (STACK + (uint64_t)(byte))
#define PLACE(addr) ((char *)memory + ((addr)-STACK))
static uint64_t memory[PAGES * PAGE / 8];
static size_t copies;

static int copy_memory(void *dst, size_t len, uint64_t addr)
{
	copies++;
	/* As the kernel does. */
	memset(dst, 0, len);
	if (addr < STACK || addr >= AT(READABLE) || len > AT(READABLE) - addr)
		return -14;
	memcpy(dst, PLACE(addr), len);
	return 0;
}

#define HB_UNWIND_COPY(dst, len, addr) copy_memory(dst, len, addr)
#include "unwind_ahead.h"

/* Every word tells its own number. */
static void fill_memory(void)
{
	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		memory[i] = 0x1000 + i;
	copies = 0;
}

/* As a walk reads: what is there, else what is read now. */
static bool read_word(struct hb_unwind_ahead *ahead, uint64_t *dst, uint32_t len, uint64_t addr)
{
	__u64 words[2] = {0};

	if (!hb_unwind_ahead_take(ahead, words, len, addr) &&
	    !hb_unwind_ahead_fetch(ahead, words, len, addr))
		return false;
	memcpy(dst, words, len);
	return true;
}

TEST(every_word_of_the_stack_from_anywhere)
{
	fill_memory();
	for (uint32_t len = 8; len <= 16; len += 8) {
		for (uint64_t from = 0; from < READABLE; from += 8) {
			struct hb_unwind_ahead ahead = {0};

			for (uint64_t at = from; at < from + 2 * HB_UNWIND_AHEAD_LEN; at += 24) {
				bool is_whole =
					at + len <= READABLE && at / PAGE == (at + len - 1) / PAGE;
				uint64_t words[2];

				CHECK_EQ(read_word(&ahead, words, len, AT(at)), is_whole);
				CHECK(!is_whole || !memcmp(words, PLACE(AT(at)), len));
			}
		}
	}
}

TEST(few_copies_for_small_frames)
{
	struct hb_unwind_ahead ahead = {0};
	uint64_t words[2];

	fill_memory();
	for (uint64_t at = 0; at < READABLE; at += 32)
		CHECK(read_word(&ahead, words, 16, AT(at)));
	CHECK_EQ(copies, READABLE / HB_UNWIND_AHEAD_LEN);
}

TEST(not_a_byte_of_the_next_page)
{
	uint64_t words[2];

	fill_memory();
	for (uint64_t at = READABLE - HB_UNWIND_AHEAD_LEN; at <= READABLE - 16; at += 8) {
		struct hb_unwind_ahead ahead = {0};

		CHECK(read_word(&ahead, words, 16, AT(at)));
		CHECK_EQ(words[1], 0x1000 + at / 8 + 1);
		CHECK_EQ(copies, 1);
		copies = 0;
	}
}

TEST(what_cannot_be_read_is_not_remembered)
{
	static const uint64_t others[] = {0, 8, STACK - 8, AT(READABLE), 1ULL << 63, -8ULL, -16ULL};
	uint64_t word = 1;

	fill_memory();
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct hb_unwind_ahead ahead = {0};

		/* Nothing is there at first, and after a failure neither the old nor the new. */
		CHECK(!hb_unwind_ahead_take(&ahead, (__u64 *)&word, 8, others[i]));
		CHECK(read_word(&ahead, &word, 8, AT(64)));
		CHECK(!read_word(&ahead, &word, 8, others[i]));
		CHECK(!hb_unwind_ahead_take(&ahead, (__u64 *)&word, 8, others[i]));
		CHECK(!hb_unwind_ahead_take(&ahead, (__u64 *)&word, 8, AT(64)));
		CHECK(read_word(&ahead, &word, 8, AT(64)));
		CHECK_EQ(word, 0x1008);
	}
}

TEST(unaligned_is_left_to_others)
{
	struct hb_unwind_ahead ahead = {0};
	uint64_t words[2];

	fill_memory();
	for (uint64_t at = 0; at < 64; at++)
		CHECK_EQ(read_word(&ahead, words, 16, AT(at)), at % 8 == 0);
}
