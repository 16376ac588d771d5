// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * linker: our own one is found where our program was told that it is.
 */
#include "check.h"
#include "elf_cache.h"
#include "elf_file.h"
#include "linker.h"
#include "procmaps.h"

#include <link.h>
#include <unistd.h>

/* Our mappings with their files. */
static int open_maps(struct elf_cache *cache, struct procmaps *maps)
{
	if (procmaps_read(getpid(), maps))
		return -1;
	for (size_t i = 0; i < maps->cnt; i++)
		if (maps->maps[i].exec)
			elf_cache_get(cache, getpid(), &maps->maps[i], &maps->maps[i].elf);
	return 0;
}

/* Where our program was told that it is. */
static uintptr_t told(void)
{
	for (const ElfW(Dyn) *dyn = _DYNAMIC; dyn->d_tag != DT_NULL; dyn++)
		if (dyn->d_tag == DT_DEBUG)
			return dyn->d_un.d_ptr;
	return 0;
}

TEST(found_in_a_dynamic_program)
{
	struct elf_cache *cache = elf_cache_new();
	struct procmaps maps = {};
	struct hb_linker linker = {};

	CHECK(cache && !open_maps(cache, &maps));
	CHECK(linker_find(&maps, &linker));
	CHECK(linker.is_pointer || linker.debug_pc == told());
	procmaps_clear(&maps);
	elf_cache_free(cache);
}

TEST(none_without_files)
{
	struct procmap map = {.start = 0x1000, .end = 0x2000, .exec = true, .path = ""};
	struct procmaps maps = {&map, 1};
	struct hb_linker linker = {1, 1, 0};

	CHECK(!linker_find(&maps, &linker));
	CHECK(linker.debug_pc == 1 && linker.is_pointer);
}
