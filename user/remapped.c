// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a snapshot of mappings. Out: the same, with code that has lost its file given back to it. The
 * kernel forgets where a copy came from, but the other segments of the file are still in their
 * places, and the file says where its code belongs beside them.
 */
#include "remapped.h"

#include "elf_cache.h"
#include "elf_file.h"
#include "procmaps.h"
#include "shortage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES 4096

/* Code of `file` at the mapping, given that its address 0 is at `base`. True, and its offset. */
static bool holds_code(const struct elf_file *file, uint64_t base, const struct procmap *map,
		       uint64_t *off)
{
	uint64_t vma = map->start - base, room = elf_file_text_room(file, vma);

	/* A segment is mapped in whole pages. */
	room = (room + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	return room >= map->end - map->start && elf_file_vma_to_off(file, vma, off);
}

/* Gives `map` to the file of `before`, a mapping at a lower address, if it is its code. */
static int restore(struct procmap *map, const struct procmap *before, pid_t tgid,
		   struct elf_cache *cache)
{
	struct elf_file *file = before->elf;
	uint64_t vma, off;
	char *path;
	int err = file ? 0 : elf_cache_get(cache, tgid, before, &file);

	if (err)
		return shortage_is(err) ? err : 0;
	if (!elf_file_off_to_vma(file, before->off, &vma) ||
	    !holds_code(file, before->start - vma, map, &off))
		return 0;
	path = strdup(before->path);
	if (!path)
		return -ENOMEM;
	free(map->path);
	map->path = path;
	map->off = off;
	map->inode = before->inode;
	map->dev_major = before->dev_major;
	map->dev_minor = before->dev_minor;
	map->deleted = before->deleted;
	map->elf = file;
	map->remapped = true;
	return 0;
}

int remapped_restore(struct procmaps *maps, pid_t tgid, struct elf_cache *cache)
{
	const struct procmap *before = NULL;
	int err = 0;

	for (size_t i = 0; i < maps->cnt && !err; i++) {
		struct procmap *map = &maps->maps[i];

		if (map->inode)
			before = map;
		else if (before && map->exec && !map->path[0])
			err = restore(map, before, tgid, cache);
	}
	return err;
}
