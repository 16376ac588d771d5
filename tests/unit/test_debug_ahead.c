// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * debug_ahead against debug_index, and symbolizer_expect() against lookups alone: this program has
 * some dozen units with inlined functions, and everything about all of its functions must come out
 * the same, in however many copies, and also where none can be made.
 */
#include "check.h"
#include "cleanup.h"
#include "contain.h"
#include "copies.h"
#include "debug_ahead.h"
#include "debug_file.h"
#include "debug_index.h"
#include "subject.h"
#include "vec.h"

#include <errno.h>
#include <sys/resource.h>

/* In this program, and one that is in no unit. */
struct addresses {
	uint64_t *vmas;
	size_t cnt, cap;
};

/* Its first instruction, its last byte and some in between. */
static int add_function(const struct elf_symbol *symbol, void *addresses_)
{
	struct addresses *addresses = addresses_;
	uint64_t size = symbol->size_bytes;

	for (uint64_t part = 0; size && part <= 4; part++) {
		if (vec_reserve(&addresses->vmas, &addresses->cap, addresses->cnt + 1))
			return -ENOMEM;
		addresses->vmas[addresses->cnt++] = symbol->vma + part * (size - 1) / 4;
	}
	return 0;
}

static bool find_addresses(const struct elf_file *file, struct addresses *addresses)
{
	bool found = !elf_file_each_function(file, add_function, addresses);

	if (found && !vec_reserve(&addresses->vmas, &addresses->cap, addresses->cnt + 1))
		addresses->vmas[addresses->cnt++] = UINT64_MAX;
	return found && addresses->cnt > 1000;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* ---- debug_ahead ---- */

/* One reading of this program's DWARF. */
struct reading {
	struct elf_file *file;
	struct debug_file *debug;
	struct debug_index *index;
};

static bool reading_open(struct reading *reading)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	*reading = (struct reading){0};
	return !elf_file_open(fd, "self", &reading->file) &&
	       !debug_file_find(reading->file, -1, &reading->debug) &&
	       !debug_index_new(reading->debug, &reading->index) && reading->index;
}

static void reading_close(struct reading *reading)
{
	debug_index_free(reading->index);
	debug_file_free(reading->debug);
	elf_file_free(reading->file);
}

struct comparison {
	struct reading alone;
	const struct addresses *addresses;
	size_t *taken; /* how often, by item */
	size_t taken_cnt, inlined_cnt;
	bool differs;
};

static void compare(size_t item, const struct debug_frame *frames, int cnt, void *comparison_)
{
	struct comparison *comparison = comparison_;
	struct debug_frame want[DEBUG_INDEX_FRAMES_MAX];
	uint64_t vma = comparison->addresses->vmas[item];

	comparison->taken[item]++;
	comparison->taken_cnt++;
	comparison->differs |= cnt != debug_index_lookup(comparison->alone.index, vma, want);
	for (int i = 0; i < cnt && !comparison->differs; i++) {
		comparison->inlined_cnt += frames[i].inlined;
		comparison->differs = !same_text(frames[i].linkage_name, want[i].linkage_name) ||
				      !same_text(frames[i].name, want[i].name) ||
				      !same_text(frames[i].file, want[i].file) ||
				      frames[i].line != want[i].line ||
				      frames[i].start_line != want[i].start_line ||
				      frames[i].inlined != want[i].inlined ||
				      frames[i].entry_vma != want[i].entry_vma;
	}
}

/* All addresses with this share; true if `all` or none of those in units came, and are right. */
static bool ahead_is_right(struct debug_ahead_share share, bool all)
{
	struct comparison comparison = {0};
	_cleanup_free_ struct debug_ahead_item *items = NULL;
	struct addresses addresses = {0};
	struct debug_index_unit unit;
	struct reading ahead;
	bool right = reading_open(&ahead) && reading_open(&comparison.alone) &&
		     find_addresses(ahead.file, &addresses);

	comparison.addresses = &addresses;
	comparison.taken = calloc(addresses.cnt + 1, sizeof(*comparison.taken));
	items = calloc(addresses.cnt + 1, sizeof(*items));
	for (size_t i = 0; i < addresses.cnt; i++)
		items[i] = (struct debug_ahead_item){ahead.index, addresses.vmas[i]};
	if (right)
		debug_ahead(items, addresses.cnt, share, compare, &comparison);
	for (size_t i = 0; right && i < addresses.cnt; i++)
		right = comparison.taken[i] ==
			(all && debug_index_find_unit(ahead.index, addresses.vmas[i], &unit));
	right = right && !comparison.differs && (comparison.inlined_cnt > 100) == all;
	/* The limit is for what was read anywhere; here it was the same, unit by unit. */
	right = right && (!all || debug_index_steps(ahead.index) ==
					  debug_index_steps(comparison.alone.index));
	if (!right)
		fprintf(stderr, "%u at once, %llu bytes: %zu of %zu came%s\n", share.at_once,
			(unsigned long long)share.piece_bytes, comparison.taken_cnt, addresses.cnt,
			comparison.differs ? ", and some differ" : "");
	free(comparison.taken);
	free(addresses.vmas);
	reading_close(&comparison.alone);
	reading_close(&ahead);
	return right;
}

TEST(copies_say_what_one_process_says)
{
	for (unsigned at_once = 1; at_once <= COPIES_MAX; at_once++) {
		CHECK(ahead_is_right((struct debug_ahead_share){at_once, 1 << 14}, true));
		CHECK(ahead_is_right((struct debug_ahead_share){at_once, 1 << 17}, true));
	}
	/* Each unit by itself. */
	CHECK(ahead_is_right((struct debug_ahead_share){2, 1}, true));
}

TEST(little_is_left_to_the_lookups)
{
	CHECK(ahead_is_right((struct debug_ahead_share){2, 1ULL << 40}, false));
	CHECK(ahead_is_right(debug_ahead_default(), false));
}

static void count(size_t item, const struct debug_frame *frames, int cnt, void *taken_cnt)
{
	(void)item;
	(void)frames;
	(void)cnt;
	++*(size_t *)taken_cnt;
}

/* With descriptors some come, without none. */
static int ahead_without_descriptors(void *data)
{
	struct debug_ahead_share *share = data;
	_cleanup_free_ struct debug_ahead_item *items = NULL;
	struct addresses addresses = {0};
	struct rlimit none = {0, 0};
	size_t with_cnt = 0, without_cnt = 0;
	struct reading ahead;

	if (!reading_open(&ahead) || !find_addresses(ahead.file, &addresses))
		return 1;
	items = calloc(addresses.cnt, sizeof(*items));
	for (size_t i = 0; i < addresses.cnt; i++)
		items[i] = (struct debug_ahead_item){ahead.index, addresses.vmas[i]};
	debug_ahead(items, addresses.cnt, *share, count, &with_cnt);
	if (setrlimit(RLIMIT_NOFILE, &none))
		return 2;
	debug_ahead(items, addresses.cnt, *share, count, &without_cnt);
	free(addresses.vmas);
	reading_close(&ahead);
	return with_cnt && !without_cnt ? 0 : 3;
}

TEST(without_copies_nothing_comes)
{
	struct debug_ahead_share share = {2, 1 << 14};
	int result = -1;

	CHECK(contain_call(ahead_without_descriptors, &share, &result));
	CHECK_EQ(result, 0);
}

/* ---- symbolizer_expect() ---- */

static bool same_frames(const struct symbolize_result *a, const struct symbolize_result *b)
{
	if (a->cnt != b->cnt)
		return false;
	for (size_t i = 0; i < a->cnt; i++)
		if (strcmp(a->frames[i].name, b->frames[i].name) ||
		    strcmp(a->frames[i].system_name, b->frames[i].system_name) ||
		    !same_text(a->frames[i].file, b->frames[i].file) ||
		    a->frames[i].line != b->frames[i].line ||
		    a->frames[i].start_line != b->frames[i].start_line)
			return false;
	return true;
}

/* Expects every address of `file` twice, and something that is in no file. */
static void expect_all(struct subject *subject, const struct addresses *addresses)
{
	_cleanup_free_ struct symbolize_address *all = calloc(2 * addresses->cnt + 1, sizeof(*all));

	for (size_t i = 0; i < 2 * addresses->cnt; i++)
		all[i] = (struct symbolize_address){subject->file,
						    addresses->vmas[i % addresses->cnt]};
	symbolizer_expect(subject->symbolizer, all, 2 * addresses->cnt + 1);
}

static bool names_are_the_same(const char *path, unsigned at_once, bool limited)
{
	struct rlimit old, none = {0, 0};
	struct subject alone, expecting;
	struct addresses addresses = {0};
	bool same = subject_open_as(&alone, path, path, NULL) &&
		    subject_open_as(&expecting, path, path, NULL) &&
		    find_addresses(alone.file, &addresses);

	/* At least the descriptors that are open stay so. */
	getrlimit(RLIMIT_NOFILE, &old);
	none.rlim_max = old.rlim_max;
	symbolizer_set_share(expecting.symbolizer, at_once, 1 << 14);
	if (limited)
		setrlimit(RLIMIT_NOFILE, &none);
	expect_all(&expecting, &addresses);
	for (size_t i = 0; i < addresses.cnt && same; i++)
		same = !symbolizer_lookup(alone.symbolizer, alone.file, addresses.vmas[i],
					  &alone.result) &&
		       !symbolizer_lookup(expecting.symbolizer, expecting.file, addresses.vmas[i],
					  &expecting.result) &&
		       same_frames(&alone.result, &expecting.result);
	setrlimit(RLIMIT_NOFILE, &old);
	free(addresses.vmas);
	subject_close(&alone);
	subject_close(&expecting);
	return same;
}

TEST(names_are_the_same_if_they_were_expected)
{
	CHECK(names_are_the_same("/proc/self/exe", 1, false));
	CHECK(names_are_the_same("/proc/self/exe", 2, false));
	CHECK(names_are_the_same("/proc/self/exe", COPIES_MAX, false));
}

TEST(names_are_the_same_if_no_copies_can_be_made)
{
	CHECK(names_are_the_same("/proc/self/exe", 2, true));
}

/* Its debug information is in a file of its own, where there is any, with many small units. */
TEST(names_of_libc_are_the_same)
{
	CHECK(names_are_the_same("/lib/x86_64-linux-gnu/libc.so.6", 2, false));
}
