// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: snapshots of a process's mappings, each with the state that the process was in. Out: numbers
 * that outlive them. Within one state the dynamic linker unmaps nothing, so whatever a snapshot
 * shows was there, if not from its beginning, then from when code first ran there.
 */
#include "mappings.h"

#include "../bpf/abi.h"
#include "cleanup.h"
#include "log.h"
#include "vec.h"

#include <errno.h>
#include <string.h>

void mappings_clear(struct mappings *mappings)
{
	for (size_t i = 0; i < mappings->cnt; i++) {
		free(mappings->all[i].map.path);
		free(mappings->all[i].spans);
	}
	free(mappings->all);
	free(mappings->states);
	*mappings = (struct mappings){};
}

static int compare_states(struct mappings_state a, struct mappings_state b)
{
	if (a.epoch != b.epoch)
		return a.epoch < b.epoch ? -1 : 1;
	return a.libraries < b.libraries ? -1 : a.libraries > b.libraries;
}

/* The index of the snapshot in `state`, appended if new; *out. */
static int note_state(struct mappings *mappings, struct mappings_state state, uint32_t *out)
{
	size_t cnt = mappings->state_cnt;

	if (!cnt || compare_states(mappings->states[cnt - 1], state)) {
		if (vec_reserve(&mappings->states, &mappings->state_cap, cnt + 1))
			return -ENOMEM;
		mappings->states[mappings->state_cnt++] = state;
	}
	*out = (uint32_t)(mappings->state_cnt - 1);
	return 0;
}

static bool is_same(const struct procmap *a, const struct procmap *b)
{
	return a->elf == b->elf && a->start - a->off == b->start - b->off && a->inode == b->inode &&
	       !strcmp(a->path, b->path);
}

/* The record of `map`, made if new; NULL if out of memory or of numbers. */
static struct mapping *record_of(struct mappings *mappings, const struct procmap *map)
{
	struct mapping *record;

	for (size_t i = 0; i < mappings->cnt; i++)
		if (is_same(&mappings->all[i].map, map))
			return &mappings->all[i];
	if (mappings->cnt + 1 >= HB_MAPPING_UNKNOWN) {
		if (!mappings->full)
			log_warn("more than %d mappings were seen; later ones get no names",
				 HB_MAPPING_UNKNOWN - 1);
		mappings->full = true;
		return NULL;
	}
	if (vec_reserve(&mappings->all, &mappings->cap, mappings->cnt + 1))
		return NULL;
	record = &mappings->all[mappings->cnt];
	*record = (struct mapping){.map = *map};
	record->map.path = strdup(map->path);
	if (!record->map.path)
		return NULL;
	mappings->cnt++;
	record->map.number = (uint16_t)mappings->cnt;
	return record;
}

/* Makes the record hold `map`, another piece or another size of the same mapping. */
static void extend(struct mapping *record, const struct procmap *map)
{
	if (map->start < record->map.start) {
		record->map.start = map->start;
		record->map.off = map->off;
	}
	if (map->end > record->map.end)
		record->map.end = map->end;
}

/* Snapshot `index` shows the record. 0 or -ENOMEM. */
static int note_seen(struct mapping *record, uint32_t index)
{
	struct mappings_span *last = record->span_cnt ? &record->spans[record->span_cnt - 1] : NULL;

	if (last && last->last + 1 >= index) {
		last->last = index;
		return 0;
	}
	if (vec_reserve(&record->spans, &record->span_cap, record->span_cnt + 1))
		return -ENOMEM;
	record->spans[record->span_cnt++] = (struct mappings_span){index, index};
	return 0;
}

int mappings_note(struct mappings *mappings, const struct mappings_state *state,
		  struct procmaps *now)
{
	uint32_t index = 0;

	if (state && note_state(mappings, *state, &index))
		return -ENOMEM;
	for (size_t i = 0; i < now->cnt; i++) {
		struct procmap *map = &now->maps[i];
		struct mapping *record;

		if (!map->exec || (!map->elf && !map->inode))
			continue;
		record = record_of(mappings, map);
		if (!record && mappings->full)
			continue;
		if (!record)
			return -ENOMEM;
		extend(record, map);
		if (state && note_seen(record, index))
			return -ENOMEM;
		map->number = record->map.number;
	}
	return 0;
}

int mappings_inherit(struct mappings *child, const struct mappings *parent)
{
	if (vec_reserve(&child->all, &child->cap, parent->cnt))
		return -ENOMEM;
	for (size_t i = 0; i < parent->cnt; i++) {
		struct mapping *record = &child->all[i];

		/* What it shows in which state begins anew: states are the child's own. */
		*record = (struct mapping){.map = parent->all[i].map};
		record->map.path = strdup(record->map.path);
		if (!record->map.path)
			return -ENOMEM;
		child->cnt++;
	}
	child->full = parent->full;
	return 0;
}

const struct procmap *mappings_get(const struct mappings *mappings, uint32_t number)
{
	return number && number <= mappings->cnt ? &mappings->all[number - 1].map : NULL;
}

static bool showed(const struct mapping *record, uint32_t index)
{
	for (size_t i = 0; i < record->span_cnt; i++)
		if (index >= record->spans[i].first && index <= record->spans[i].last)
			return true;
	return false;
}

const struct procmap *mappings_find(const struct mappings *mappings, struct mappings_state state,
				    uint64_t pc)
{
	const struct procmap *found = NULL;
	size_t low = 0, high = mappings->state_cnt;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_states(mappings->states[middle], state) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == mappings->state_cnt || compare_states(mappings->states[low], state))
		return NULL;
	for (size_t i = 0; i < mappings->cnt; i++) {
		const struct mapping *record = &mappings->all[i];

		if (pc < record->map.start || pc >= record->map.end ||
		    !showed(record, (uint32_t)low))
			continue;
		if (found)
			return NULL;
		found = &record->map;
	}
	return found;
}
