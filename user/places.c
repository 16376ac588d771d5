// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: frames of stacks, all that was ever mapped, a symbolizer. Out: locations, each once, and the
 * mappings that hold them. Memory that no file backs (JIT code) has addresses and no mapping, and
 * names if the process tells them; a mapping none of whose addresses has a name keeps its flags
 * clear, so that a reader with better debug information may still name them.
 */
#include "places.h"

#include "cleanup.h"
#include "../bpf/abi.h"
#include "elf_file.h"
#include "perf_map.h"
#include "profile.h"
#include "vec.h"

#include <errno.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* What makes two locations one. */
struct place_key {
	uint64_t mapping; /* index + 1, or 0 */
	uint64_t pc;
	uint64_t jit_image;		     /* of JIT code, the epoch + 1; else 0 */
	const struct symbolize_frame *frame; /* of a marker, or NULL */
};

struct place {
	UT_hash_handle hh;
	struct place_key key;
	uint32_t location; /* index */
};

struct places {
	const struct mappings *known;
	struct symbolizer *symbolizer;
	struct place *places;
	size_t *numbered; /* by number of known - 1: index in mappings + 1, 0: not in use */
	struct profile_mapping *mappings;
	size_t mapping_cnt, mapping_cap;
	struct profile_location *locations;
	struct symbolize_address *addresses; /* of the locations, where names can be had */
	size_t location_cnt, location_cap, address_cap;
};

struct places *places_new(const struct mappings *known, struct symbolizer *symbolizer)
{
	struct places *places = calloc(1, sizeof(*places));

	if (!places)
		return NULL;
	places->known = known;
	places->symbolizer = symbolizer;
	places->numbered = calloc(known->cnt + 1, sizeof(*places->numbered));
	if (!places->numbered) {
		free(places);
		return NULL;
	}
	return places;
}

void places_free(struct places *places)
{
	struct place *place, *next_place;

	if (!places)
		return;
	HASH_ITER(hh, places->places, place, next_place)
	{
		HASH_DEL(places->places, place);
		free(place);
	}
	for (size_t i = 0; i < places->mapping_cnt; i++) {
		free(places->mappings[i].file);
		free(places->mappings[i].build_id);
	}
	free(places->mappings);
	free(places->locations);
	free(places->addresses);
	free(places->numbered);
	free(places);
}

/* Lower-case hex of the build id of `elf`, "" if it has none; NULL: no memory. */
static char *build_id_text(const struct elf_file *elf)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *id = NULL;
	size_t len = 0;
	char *text;

	if (elf)
		id = elf_file_build_id(elf, &len);
	text = calloc(len + 1, 2);
	for (size_t i = 0; text && i < len; i++) {
		text[2 * i] = digits[id[i] >> 4];
		text[2 * i + 1] = digits[id[i] & 0xf];
	}
	return text;
}

/* *out: the index of the mapping that `map` is + 1, or 0: memory without a name. */
static int use_mapping(struct places *places, const struct procmap *map, uint64_t *out)
{
	_cleanup_free_ char *file = NULL;
	_cleanup_free_ char *build_id = NULL;
	size_t *numbered;

	*out = 0;
	if (!map)
		return 0;
	numbered = &places->numbered[map->number - 1];
	*out = *numbered;
	if (*numbered)
		return 0;
	if (vec_reserve(&places->mappings, &places->mapping_cap, places->mapping_cnt + 1))
		return -ENOMEM;
	file = strdup(map->path);
	build_id = build_id_text(map->elf);
	if (!file || !build_id)
		return -ENOMEM;
	places->mappings[places->mapping_cnt++] = (struct profile_mapping){
		.start = map->start,
		.limit = map->end,
		.off = map->off,
		.file = take_ptr(file),
		.build_id = take_ptr(build_id),
	};
	*out = *numbered = places->mapping_cnt;
	return 0;
}

/* Where the names at `pc`, which `map` holds, can be had. */
static struct symbolize_address address_of(const struct places *places, const struct procmap *map,
					   uint64_t pc)
{
	struct symbolize_address address = {0};

	if (map && map->elf && places->symbolizer &&
	    elf_file_off_to_vma(map->elf, pc - map->start + map->off, &address.vma))
		address.file = map->elf;
	return address;
}

/*
 * Could `map` (NULL: none) be JIT code? It may lie in memory that is shared, and so has an inode.
 */
static bool holds_jit(const struct procmap *map)
{
	return !map || (!map->elf &&
			(!strncmp(map->path, "/memfd:", 7) || !strcmp(map->path, "/dev/zero")));
}

/* The place of `key` in *out, NULL if it is new. */
static void find_place(const struct places *places, const struct place_key *key, struct place **out)
{
	HASH_FIND(hh, places->places, key, sizeof(*key), *out);
}

/* Appends `location`, known as `key` from now on; its index in *index. */
static int add_place(struct places *places, const struct place_key *key,
		     const struct profile_location *location, struct symbolize_address address,
		     uint32_t *index)
{
	_cleanup_free_ struct place *fresh = calloc(1, sizeof(*fresh));
	size_t cnt = places->location_cnt + 1;

	if (!fresh || vec_reserve(&places->locations, &places->location_cap, cnt) ||
	    vec_reserve(&places->addresses, &places->address_cap, cnt))
		return -ENOMEM;
	fresh->key = *key;
	fresh->location = (uint32_t)places->location_cnt;
	HASH_ADD(hh, places->places, key, sizeof(*key), fresh);
	if (!fresh->hh.tbl)
		return -ENOMEM;
	take_ptr(fresh);
	*index = (uint32_t)places->location_cnt;
	places->addresses[places->location_cnt] = address;
	places->locations[places->location_cnt++] = *location;
	return 0;
}

int places_use_code(struct places *places, struct mappings_state state, uint64_t frame,
		    uint32_t *location)
{
	/* A return address may be the first byte of what follows: the call is before it. */
	uint64_t pc = HB_FRAME_PC(frame) - !(frame & HB_FRAME_EXACT);
	const struct procmap *map = HB_FRAME_NUMBER(frame) == HB_MAPPING_UNKNOWN
					    ? mappings_find(places->known, state, pc)
					    : mappings_get(places->known, HB_FRAME_NUMBER(frame));
	struct profile_location fresh = {.pc = pc};
	struct place_key key = {.pc = pc};
	struct place *known;

	if (use_mapping(places, map, &key.mapping))
		return -ENOMEM;
	if (holds_jit(map))
		key.jit_image = state.epoch + 1ULL;
	find_place(places, &key, &known);
	if (known) {
		*location = known->location;
		return 0;
	}
	fresh.mapping = key.mapping;
	return add_place(places, &key, &fresh, address_of(places, map, pc), location);
}

int places_use_frame(struct places *places, const struct symbolize_frame *frame, uint32_t *location)
{
	struct place_key key = {.frame = frame};
	struct profile_location fresh = {.names = {frame, 1}};
	struct place *known;

	find_place(places, &key, &known);
	if (known) {
		*location = known->location;
		return 0;
	}
	return add_place(places, &key, &fresh, (struct symbolize_address){0}, location);
}

/* Names a location and notes in its mapping what is known there. */
static int name_location(struct places *places, const struct symbolize_address *address,
			 struct profile_location *location)
{
	struct profile_mapping *mapping = &places->mappings[location->mapping - 1];
	int err = symbolizer_lookup(places->symbolizer, address->file, address->vma,
				    &location->names);

	if (err)
		return err;
	mapping->has_functions |= location->names.cnt > 0;
	for (size_t i = 0; i < location->names.cnt; i++) {
		mapping->has_filenames |= location->names.frames[i].file != NULL;
		mapping->has_lines |= location->names.frames[i].line != 0;
	}
	/* Lines come from DWARF, which tells inline frames, too, where there are any. */
	mapping->has_inline_frames = mapping->has_lines;
	return 0;
}

int places_name_files(struct places *places)
{
	int err;

	if (places->symbolizer)
		symbolizer_expect(places->symbolizer, places->addresses, places->location_cnt);
	for (size_t i = 0; i < places->location_cnt; i++) {
		if (!places->addresses[i].file)
			continue;
		err = name_location(places, &places->addresses[i], &places->locations[i]);
		if (err)
			return err;
	}
	return 0;
}

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static int compare_pcs(const void *a, const void *b, void *locations_)
{
	const struct profile_location *locations = locations_;

	return COMPARE(locations[*(const uint32_t *)a].pc, locations[*(const uint32_t *)b].pc);
}

/* Asks the map for the names of `locations`, which ascend by pc; `codes` has room for them. */
static int name_sorted(struct places *places, const struct perf_map_owner *owner,
		       const uint32_t *locations, struct perf_map_code *codes, size_t cnt)
{
	int err;

	for (size_t i = 0; i < cnt; i++)
		codes[i] = (struct perf_map_code){.pc = places->locations[locations[i]].pc};
	err = perf_map_name(owner, codes, cnt);
	for (size_t i = 0; i < cnt; i++) {
		struct profile_location *location = &places->locations[locations[i]];

		if (!err && codes[i].name)
			err = symbolizer_name(places->symbolizer, codes[i].name, &location->names);
		if (location->mapping && location->names.cnt)
			places->mappings[location->mapping - 1].has_functions = true;
		free(codes[i].name);
	}
	return err;
}

int places_name_jit(struct places *places, uint32_t epoch, const struct perf_map_owner *owner)
{
	_cleanup_free_ uint32_t *locations = calloc(places->location_cnt + 1, sizeof(*locations));
	_cleanup_free_ struct perf_map_code *codes =
		calloc(places->location_cnt + 1, sizeof(*codes));
	size_t cnt = 0;

	if (!locations || !codes)
		return -ENOMEM;
	if (!places->symbolizer)
		return 0;
	for (struct place *place = places->places; place; place = place->hh.next)
		if (place->key.jit_image == epoch + 1ULL)
			locations[cnt++] = place->location;
	qsort_r(locations, cnt, sizeof(*locations), compare_pcs, places->locations);
	return name_sorted(places, owner, locations, codes, cnt);
}

/* By start; what an exec put at the same place follows in order of first use. */
static int compare_mappings(const void *a_, const void *b_, void *mappings_)
{
	const size_t *a = a_, *b = b_;
	const struct profile_mapping *mappings = mappings_;
	int order = COMPARE(mappings[*a].start, mappings[*b].start);

	return order ? order : COMPARE(*a, *b);
}

int places_take(struct places *places, struct profile *profile)
{
	size_t cnt = places->mapping_cnt;
	_cleanup_free_ size_t *order = calloc(cnt + 1, sizeof(*order));
	_cleanup_free_ size_t *number = calloc(cnt + 1, sizeof(*number));
	_cleanup_free_ struct profile_mapping *sorted = calloc(cnt + 1, sizeof(*sorted));

	if (!order || !number || !sorted)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		order[i] = i;
	qsort_r(order, cnt, sizeof(*order), compare_mappings, places->mappings);
	for (size_t i = 0; i < cnt; i++) {
		sorted[i] = places->mappings[order[i]];
		number[order[i] + 1] = i + 1;
	}
	for (size_t i = 0; i < places->location_cnt; i++)
		places->locations[i].mapping = number[places->locations[i].mapping];
	profile->mappings = take_ptr(sorted);
	profile->mapping_cnt = cnt;
	profile->locations = take_ptr(places->locations);
	profile->location_cnt = places->location_cnt;
	places->mapping_cnt = places->location_cnt = 0;
	return 0;
}
