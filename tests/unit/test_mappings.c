// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Numbers of mappings over snapshots, and which of the files that were at an address was there
 * when.
 */
#include "check.h"
#include "mappings.h"
#include "../bpf/abi.h"

#include <stdlib.h>

/* The files of mappings: only compared. */
#define ELF(n) ((struct elf_file *)(uintptr_t)(0x1000 * (n)))

/* A snapshot in a given state of up to four mappings; a start of 0 ends them. */
static void note(struct mappings *mappings, uint32_t epoch, uint32_t libraries, bool proven,
		 struct procmap *maps)
{
	struct mappings_state state = {epoch, libraries};
	struct procmaps now = {maps, 0};

	while (now.cnt < 4 && maps[now.cnt].start)
		now.cnt++;
	CHECK_EQ(mappings_note(mappings, proven ? &state : NULL, &now), 0);
}

static struct procmap code(uint64_t start, uint64_t end, uint64_t off, uint64_t n)
{
	return (struct procmap){.start = start,
				.end = end,
				.off = off,
				.inode = n,
				.exec = true,
				.elf = ELF(n),
				.path = (char *)"/lib.so"};
}

static struct procmap *find(const struct mappings *mappings, uint32_t epoch, uint32_t libraries,
			    uint64_t pc)
{
	return (struct procmap *)mappings_find(mappings, (struct mappings_state){epoch, libraries},
					       pc);
}

TEST(one_number_for_all_pieces)
{
	struct mappings mappings = {};
	struct procmap first[4] = {code(0x5000, 0x6000, 0x1000, 1), code(0x8000, 0x9000, 0x4000, 1),
				   code(0xa000, 0xb000, 0x4000, 1)};
	struct procmap second[4] = {code(0x4000, 0x5000, 0, 1)};

	note(&mappings, 0, 0, true, first);
	CHECK_EQ(first[0].number, 1);
	CHECK_EQ(first[1].number, 1);
	/* The same bytes elsewhere. */
	CHECK_EQ(first[2].number, 2);
	note(&mappings, 0, 1, true, second);
	CHECK_EQ(second[0].number, 1);
	CHECK_EQ(mappings.cnt, 2);
	CHECK_EQ(mappings_get(&mappings, 1)->start, 0x4000);
	CHECK_EQ(mappings_get(&mappings, 1)->end, 0x9000);
	CHECK_EQ(mappings_get(&mappings, 1)->off, 0);
	CHECK(!mappings_get(&mappings, HB_MAPPING_NONE));
	CHECK(!mappings_get(&mappings, 3));
	CHECK(!mappings_get(&mappings, HB_MAPPING_UNKNOWN));
	mappings_clear(&mappings);
}

TEST(only_code_of_files_has_a_number)
{
	struct mappings mappings = {};
	struct procmap maps[4] = {code(0x1000, 0x2000, 0, 0), code(0x3000, 0x4000, 0, 1),
				  code(0x5000, 0x6000, 0, 2), code(0x7000, 0x8000, 0, 0)};

	maps[0].elf = NULL; /* anonymous */
	maps[1].exec = false;
	maps[2].elf = NULL; /* a file that cannot be read still has a name */
	maps[3].path = (char *)"[vdso]";
	maps[3].elf = ELF(4);
	note(&mappings, 0, 0, true, maps);
	CHECK_EQ(maps[0].number, 0);
	CHECK_EQ(maps[1].number, 0);
	CHECK_EQ(maps[2].number, 1);
	CHECK_EQ(maps[3].number, 2);
	mappings_clear(&mappings);
}

TEST(an_address_is_known_in_the_states_that_showed_it)
{
	struct mappings mappings = {};
	struct procmap a[4] = {code(0x1000, 0x2000, 0, 1)}, b[4] = {code(0x1000, 0x2000, 0, 2)},
		       none[4] = {code(0x9000, 0xa000, 0, 3)};

	note(&mappings, 0, 0, true, a);
	note(&mappings, 0, 2, true, a);
	note(&mappings, 0, 4, true, none);
	note(&mappings, 0, 6, true, b);
	note(&mappings, 0, 6, true, b);
	note(&mappings, 0, 8, false, b);
	note(&mappings, 0, 10, true, a);
	note(&mappings, 1, 10, true, b);
	CHECK_EQ(mappings.cnt, 3);
	CHECK(find(&mappings, 0, 0, 0x1800)->elf == ELF(1));
	CHECK(!find(&mappings, 0, 1, 0x1800));
	CHECK(find(&mappings, 0, 2, 0x1800)->elf == ELF(1));
	CHECK(!find(&mappings, 0, 4, 0x1800));
	CHECK(find(&mappings, 0, 6, 0x1800)->elf == ELF(2));
	CHECK(!find(&mappings, 0, 7, 0x1800));
	CHECK(!find(&mappings, 0, 8, 0x1800));
	CHECK(find(&mappings, 0, 10, 0x1800)->elf == ELF(1));
	CHECK(find(&mappings, 1, 10, 0x1800)->elf == ELF(2));
	CHECK(!find(&mappings, 1, 10, 0x2000));
	CHECK(!find(&mappings, 2, 0, 0x1800));
	mappings_clear(&mappings);
}

TEST(two_at_one_address_are_none)
{
	struct mappings mappings = {};
	struct procmap a[4] = {code(0x1000, 0x2000, 0, 1)}, b[4] = {code(0x1000, 0x2000, 0, 2)};

	note(&mappings, 0, 0, true, a);
	note(&mappings, 0, 0, true, b);
	CHECK(!find(&mappings, 0, 0, 0x1800));
	mappings_clear(&mappings);
}

TEST(numbers_run_out)
{
	struct mappings mappings = {.cnt = HB_MAPPING_UNKNOWN - 2, .cap = HB_MAPPING_UNKNOWN - 2};
	struct procmap maps[4] = {code(0x1000, 0x2000, 0, 1), code(0x2000, 0x3000, 0, 1)};

	mappings.all = calloc(mappings.cap, sizeof(*mappings.all));
	for (size_t i = 0; i < mappings.cnt; i++)
		mappings.all[i].map.path = strdup("");
	note(&mappings, 0, 0, true, maps);
	CHECK_EQ(maps[0].number, HB_MAPPING_UNKNOWN - 1);
	CHECK_EQ(maps[1].number, HB_MAPPING_NONE);
	CHECK(mappings.full);
	mappings_clear(&mappings);
}

/* A forked child knows what its parent did, under the same numbers, and goes on by itself. */
TEST(a_child_has_its_parents_numbers)
{
	struct mappings parent = {}, child = {};
	struct procmap first[4] = {code(0x5000, 0x6000, 0, 1), code(0x8000, 0x9000, 0, 2)};
	struct procmap later[4] = {code(0xa000, 0xb000, 0, 3), code(0x8000, 0x9000, 0, 2)};

	note(&parent, 4, 2, true, first);
	CHECK_EQ(mappings_inherit(&child, &parent), 0);
	CHECK_EQ(mappings_get(&child, 2)->start, 0x8000);
	/* In which state the parent had them says nothing of the child. */
	CHECK(!find(&child, 4, 2, 0x5000));
	note(&child, 7, 2, true, later);
	CHECK_EQ(later[0].number, 3);
	CHECK_EQ(later[1].number, 2);
	CHECK(find(&child, 7, 2, 0x8000)->elf == ELF(2));
	CHECK(!mappings_get(&parent, 3));
	mappings_clear(&parent);
	mappings_clear(&child);
}
