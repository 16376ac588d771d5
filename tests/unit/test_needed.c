// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which files of this very process stay mapped: those that the linker was told of, and no others.
 */
#include "check.h"
#include "cleanup.h"
#include "elf_cache.h"
#include "needed.h"
#include "procmaps.h"

#include <dlfcn.h>
#include <limits.h>

DEFINE_CLEANUP(elf_cache, struct elf_cache, elf_cache_free)

/* Our mappings with their files and marks. */
static void look(struct elf_cache *cache, struct procmaps *maps)
{
	char exe[PATH_MAX] = "";

	CHECK(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	CHECK_EQ(procmaps_read(getpid(), maps), 0);
	for (size_t i = 0; i < maps->cnt; i++)
		if (maps->maps[i].exec)
			elf_cache_get(cache, getpid(), &maps->maps[i], &maps->maps[i].elf);
	CHECK_EQ(needed_mark(maps, exe), 0);
}

/* How many executable mappings of files whose path contains `name` there are, and are permanent. */
static void count(const struct procmaps *maps, const char *name, int *all, int *permanent)
{
	*all = *permanent = 0;
	for (size_t i = 0; i < maps->cnt; i++) {
		if (!maps->maps[i].exec || !strstr(maps->maps[i].path, name))
			continue;
		++*all;
		*permanent += maps->maps[i].permanent;
	}
}

TEST(what_is_needed_stays)
{
	struct elf_cache *cache _cleanup_(cleanup_elf_cache) = elf_cache_new();
	/* libz needs libc, libdw needs libz: directly or not is all one. */
	static const char *const names[] = {"/test_needed", "/libelf",	 "/libz.",
					    "/libc.so.6",   "/ld-linux", "[vdso]"};
	struct procmaps maps = {};
	int all, permanent;

	look(cache, &maps);
	for (size_t i = 0; i < ARRAY_CNT(names); i++) {
		count(&maps, names[i], &all, &permanent);
		CHECK(all > 0);
		CHECK_EQ(permanent, all);
	}
	procmaps_clear(&maps);
}

TEST(what_was_opened_may_go)
{
	struct elf_cache *cache _cleanup_(cleanup_elf_cache) = elf_cache_new();
	/* Of libc6, and nothing that we need needs it. */
	void *library = dlopen("libBrokenLocale.so.1", RTLD_NOW);
	struct procmaps maps = {};
	int all, permanent;

	CHECK(library);
	look(cache, &maps);
	count(&maps, "/libBrokenLocale", &all, &permanent);
	CHECK_EQ(all, 1);
	CHECK_EQ(permanent, 0);
	procmaps_clear(&maps);
	dlclose(library);
}

TEST(what_is_mapped_twice_may_go)
{
	struct elf_cache *cache _cleanup_(cleanup_elf_cache) = elf_cache_new();
	void *second = dlmopen(LM_ID_NEWLM, "libz.so.1", RTLD_NOW);
	struct procmaps maps = {};
	int all, permanent;

	CHECK(second);
	look(cache, &maps);
	count(&maps, "/libz.", &all, &permanent);
	CHECK_EQ(all, 2);
	CHECK_EQ(permanent, 0);
	procmaps_clear(&maps);
	dlclose(second);
}
