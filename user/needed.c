// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a snapshot with the files of executable mappings. Out: marks on those that the closure of the
 * program's DT_NEEDED names, by soname, as the dynamic linker matches them (System V gABI, "Shared
 * Object Dependencies").
 */
#include "needed.h"

#include "cleanup.h"
#include "elf_dynamic.h"
#include "elf_file.h"
#include "procmaps.h"
#include "vec.h"

#include <errno.h>
#include <string.h>

/* A library or the program: its first executable mapping. */
struct object {
	struct procmap *map;
	const char *name;  /* what others need it by */
	bool is_ambiguous; /* mapped more than once */
	bool is_needed;
};

struct search {
	struct object *objects; /* owned */
	size_t cnt, cap;
};

/* A library without a soname is needed by its file name. */
static const char *name_of(const struct procmap *map)
{
	const char *soname = elf_file_soname(map->elf);
	const char *slash = strrchr(map->path, '/');

	return soname ? soname : slash ? slash + 1 : map->path;
}

static int collect(struct search *search, struct procmaps *maps)
{
	for (size_t i = 0; i < maps->cnt; i++) {
		struct procmap *map = &maps->maps[i];
		struct object *same = NULL;

		if (!map->exec || !map->elf)
			continue;
		for (size_t n = 0; n < search->cnt; n++)
			if (search->objects[n].map->elf == map->elf)
				same = &search->objects[n];
		if (same) {
			same->is_ambiguous |=
				same->map->start - same->map->off != map->start - map->off;
			continue;
		}
		if (vec_reserve(&search->objects, &search->cap, search->cnt + 1))
			return -ENOMEM;
		search->objects[search->cnt++] = (struct object){.map = map, .name = name_of(map)};
	}
	return 0;
}

static int note_needed(const char *name, void *data)
{
	struct search *search = data;

	for (size_t i = 0; i < search->cnt; i++)
		if (!strcmp(search->objects[i].name, name))
			search->objects[i].is_needed = true;
	return 0;
}

/* Follows what is needed until nothing new turns up. */
static void close_over(struct search *search)
{
	_cleanup_free_ bool *done = calloc(search->cnt + 1, sizeof(*done));
	bool found = done != NULL;

	while (found) {
		found = false;
		for (size_t i = 0; i < search->cnt; i++) {
			if (!search->objects[i].is_needed || done[i])
				continue;
			done[i] = found = true;
			elf_dynamic_each_needed(search->objects[i].map->elf, note_needed, search);
		}
	}
}

static bool is_permanent(const struct search *search, const struct procmap *map)
{
	for (size_t i = 0; i < search->cnt; i++) {
		const struct object *object = &search->objects[i];

		if (object->map->elf == map->elf)
			return object->is_needed && !object->is_ambiguous;
	}
	return false;
}

int needed_mark(struct procmaps *maps, const char *exe)
{
	struct search search = {};
	int err = collect(&search, maps);

	for (size_t i = 0; i < search.cnt; i++) {
		const char *path = search.objects[i].map->path;

		search.objects[i].is_needed = !strcmp(path, exe) || !strcmp(path, "[vdso]");
	}
	close_over(&search);
	for (size_t i = 0; i < maps->cnt; i++)
		maps->maps[i].permanent =
			maps->maps[i].elf && !err && is_permanent(&search, &maps->maps[i]);
	free(search.objects);
	return err;
}
