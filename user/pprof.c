// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a finished profile. Out: one view of it as gzipped profile.proto. The message tree is built
 * in one arena and packed straight into the compressor. Only what the view shows is written; ids
 * are given in order of first use and the gzip header has no time, so equal profiles are equal
 * bytes.
 */
#include "pprof.h"

#include "alloc_names.h"
#include "cleanup.h"
#include "gzip.h"
#include "profile.pb-c.h"
#include "vec.h"

#include <errno.h>
#include <stddef.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

typedef Perftools__Profiles__Profile pb_profile;
typedef Perftools__Profiles__ValueType pb_value_type;
typedef Perftools__Profiles__Sample pb_sample;
typedef Perftools__Profiles__Label pb_label;
typedef Perftools__Profiles__Mapping pb_mapping;
typedef Perftools__Profiles__Location pb_location;
typedef Perftools__Profiles__Line pb_line;
typedef Perftools__Profiles__Function pb_function;

/* A piece of the arena. */
struct block {
	struct block *next;
	max_align_t data[];
};

/* A string of the table; `text` is its own key. */
struct string {
	UT_hash_handle hh;
	int64_t index;
	char text[];
};

/* What makes two functions one: indices in the string table. */
struct function_key {
	int64_t name, system_name, file, start_line;
};

struct function {
	UT_hash_handle hh;
	struct function_key key;
	uint64_t id;
};

/* A message tree in the making. */
struct builder {
	const struct profile *profile;
	enum profile_type type;
	struct block *blocks; /* owns every message below */
	struct string *strings;
	struct function *functions;
	size_t string_cap, function_cap, comment_cap;
	uint64_t *location_ids; /* by index in profile->locations; 0: not shown */
	uint64_t *mapping_ids;	/* by index in profile->mappings; 0: not shown */
	pb_profile message;
};

/* The compressor, as protobuf-c wants to write to it. */
struct sink {
	ProtobufCBuffer base; /* first: the callback gets a pointer to it */
	struct gzip *gzip;
	int err;
};

DEFINE_CLEANUP(gzip, struct gzip, gzip_free)

/* Zeroed memory that lives as long as the builder; NULL: none left. */
static void *take(struct builder *b, size_t cnt, size_t item_bytes)
{
	struct block *block;
	size_t bytes;

	if (__builtin_mul_overflow(cnt, item_bytes, &bytes) ||
	    __builtin_add_overflow(bytes, sizeof(*block), &bytes))
		return NULL;
	block = calloc(1, bytes);
	if (!block)
		return NULL;
	block->next = b->blocks;
	b->blocks = block;
	return block->data;
}

static void builder_clear(struct builder *b)
{
	struct block *next;

	HASH_CLEAR(hh, b->strings);
	HASH_CLEAR(hh, b->functions);
	free(b->message.string_table);
	free(b->message.function);
	free(b->message.comment);
	for (; b->blocks; b->blocks = next) {
		next = b->blocks->next;
		free(b->blocks);
	}
}

/* Replaces what strict readers refuse, and terminals obey: names are foreign bytes. */
static void make_clean(char *text)
{
	for (size_t i = 0, len; text[i]; i += len) {
		len = profile_char_len(&text[i]);
		if (!len) {
			text[i] = '?';
			len = 1;
		}
	}
}

/* The index of `text` (NULL: "") in the string table. */
static int intern(struct builder *b, const char *text, int64_t *index)
{
	size_t len = text ? strlen(text) : 0, cnt = b->message.n_string_table;
	_cleanup_free_ struct string *fresh = malloc(sizeof(*fresh) + len + 1);
	struct string *known;

	if (!fresh)
		return -ENOMEM;
	memcpy(fresh->text, text ? text : "", len + 1);
	make_clean(fresh->text);
	HASH_FIND(hh, b->strings, fresh->text, len, known);
	if (!known) {
		if (vec_reserve(&b->message.string_table, &b->string_cap, cnt + 1))
			return -ENOMEM;
		known = take(b, 1, sizeof(*known) + len + 1);
		if (!known)
			return -ENOMEM;
		memcpy(known->text, fresh->text, len + 1);
		known->index = (int64_t)cnt;
		HASH_ADD_KEYPTR(hh, b->strings, known->text, len, known);
		if (!known->hh.tbl)
			return -ENOMEM;
		b->message.string_table[cnt] = known->text;
		b->message.n_string_table = cnt + 1;
	}
	*index = known->index;
	return 0;
}

static pb_value_type *make_value_type(struct builder *b, const char *type, const char *unit)
{
	pb_value_type *value_type = take(b, 1, sizeof(*value_type));

	if (!value_type)
		return NULL;
	perftools__profiles__value_type__init(value_type);
	if (intern(b, type, &value_type->type) || intern(b, unit, &value_type->unit))
		return NULL;
	return value_type;
}

/* What a sample's numbers are, which of them readers show first, and what a period is. */
static int add_types(struct builder *b)
{
	static const char *const names[PROFILE_VALUE_CNT][2] = {
		[PROFILE_ALLOC_OBJECTS] = {"alloc_objects", "count"},
		[PROFILE_ALLOC_SPACE] = {"alloc_space", "bytes"},
		[PROFILE_INUSE_OBJECTS] = {"inuse_objects", "count"},
		[PROFILE_INUSE_SPACE] = {"inuse_space", "bytes"},
	};
	struct profile_view view = profile_view(b->type);
	pb_profile *message = &b->message;
	size_t last = view.first + view.cnt - 1;

	message->sample_type = take(b, view.cnt, sizeof(*message->sample_type));
	if (!message->sample_type)
		return -ENOMEM;
	for (size_t i = view.first; i <= last; i++) {
		pb_value_type *type = make_value_type(b, names[i][0], names[i][1]);

		if (!type)
			return -ENOMEM;
		message->sample_type[message->n_sample_type++] = type;
	}
	message->default_sample_type = message->sample_type[view.cnt - 1]->type;
	message->period_type = make_value_type(b, "space", "bytes");
	return message->period_type ? 0 : -ENOMEM;
}

/* The size of each object, as Go labels it. */
static int add_size_label(struct builder *b, pb_sample *sample, uint64_t size_bytes)
{
	pb_label *label = take(b, 1, sizeof(*label));

	sample->label = take(b, 1, sizeof(*sample->label));
	if (!label || !sample->label)
		return -ENOMEM;
	perftools__profiles__label__init(label);
	if (intern(b, "bytes", &label->key))
		return -ENOMEM;
	label->num = size_bytes > INT64_MAX ? INT64_MAX : (int64_t)size_bytes;
	label->num_unit = label->key;
	sample->label[sample->n_label++] = label;
	return 0;
}

static int add_sample(struct builder *b, const struct profile_sample *from)
{
	struct profile_view view = profile_view(b->type);
	pb_sample *sample = take(b, 1, sizeof(*sample));

	if (!sample)
		return -ENOMEM;
	perftools__profiles__sample__init(sample);
	sample->location_id = take(b, from->location_cnt, sizeof(*sample->location_id));
	if (!sample->location_id)
		return -ENOMEM;
	for (size_t i = 0; i < from->location_cnt; i++) {
		uint64_t *id = &b->location_ids[from->locations[i]];

		if (!*id)
			*id = ++b->message.n_location;
		sample->location_id[sample->n_location_id++] = *id;
	}
	sample->value = (int64_t *)&from->values[view.first]; /* packing only reads */
	sample->n_value = view.cnt;
	if (from->size_bytes && add_size_label(b, sample, from->size_bytes))
		return -ENOMEM;
	b->message.sample[b->message.n_sample++] = sample;
	return 0;
}

/* Adds the samples that the view shows and gives their locations ids. */
static int add_samples(struct builder *b)
{
	const struct profile *profile = b->profile;

	b->location_ids = take(b, profile->location_cnt, sizeof(*b->location_ids));
	b->message.sample = take(b, profile->sample_cnt, sizeof(*b->message.sample));
	if (!b->location_ids || !b->message.sample)
		return -ENOMEM;
	for (size_t i = 0; i < profile->sample_cnt; i++)
		if (profile_shows(&profile->samples[i], b->type) &&
		    add_sample(b, &profile->samples[i]))
			return -ENOMEM;
	return 0;
}

static int add_mapping(struct builder *b, const struct profile_mapping *from, uint64_t id)
{
	pb_mapping *mapping = take(b, 1, sizeof(*mapping));

	if (!mapping)
		return -ENOMEM;
	perftools__profiles__mapping__init(mapping);
	mapping->id = id;
	mapping->memory_start = from->start;
	mapping->memory_limit = from->limit;
	mapping->file_offset = from->off;
	mapping->has_functions = from->has_functions;
	mapping->has_filenames = from->has_filenames;
	mapping->has_line_numbers = from->has_lines;
	mapping->has_inline_frames = from->has_inline_frames;
	if (intern(b, from->file, &mapping->filename) ||
	    intern(b, from->build_id, &mapping->build_id))
		return -ENOMEM;
	b->message.mapping[id - 1] = mapping;
	return 0;
}

/* Adds the mappings of shown locations; by start, which puts the main program first. */
static int add_mappings(struct builder *b)
{
	const struct profile *profile = b->profile;

	b->mapping_ids = take(b, profile->mapping_cnt + 1, sizeof(*b->mapping_ids));
	b->message.mapping = take(b, profile->mapping_cnt, sizeof(*b->message.mapping));
	if (!b->mapping_ids || !b->message.mapping)
		return -ENOMEM;
	for (size_t i = 0; i < profile->location_cnt; i++)
		if (b->location_ids[i] && profile->locations[i].mapping)
			b->mapping_ids[profile->locations[i].mapping - 1] = 1;
	for (size_t i = 0; i < profile->mapping_cnt; i++) {
		if (!b->mapping_ids[i])
			continue;
		b->mapping_ids[i] = ++b->message.n_mapping;
		if (add_mapping(b, &profile->mappings[i], b->mapping_ids[i]))
			return -ENOMEM;
	}
	return 0;
}

/* Appends the function of `key`, whose id is the next one. */
static int append_function(struct builder *b, const struct function_key *key)
{
	size_t cnt = b->message.n_function;
	pb_function *function = take(b, 1, sizeof(*function));

	if (!function || vec_reserve(&b->message.function, &b->function_cap, cnt + 1))
		return -ENOMEM;
	perftools__profiles__function__init(function);
	function->id = cnt + 1;
	function->name = key->name;
	function->system_name = key->system_name;
	function->filename = key->file;
	function->start_line = key->start_line;
	b->message.function[cnt] = function;
	b->message.n_function = cnt + 1;
	return 0;
}

/* The id of the function of `frame`. */
static int use_function(struct builder *b, const struct symbolize_frame *frame, uint64_t *id)
{
	struct function_key key = {.start_line = frame->start_line};
	struct function *function;

	if (intern(b, frame->name, &key.name) || intern(b, frame->system_name, &key.system_name) ||
	    intern(b, frame->file, &key.file))
		return -ENOMEM;
	HASH_FIND(hh, b->functions, &key, sizeof(key), function);
	if (!function) {
		function = take(b, 1, sizeof(*function));
		if (!function || append_function(b, &key))
			return -ENOMEM;
		function->key = key;
		function->id = b->message.n_function;
		HASH_ADD(hh, b->functions, key, sizeof(key), function);
		if (!function->hh.tbl)
			return -ENOMEM;
	}
	*id = function->id;
	return 0;
}

static int add_location(struct builder *b, const struct profile_location *from, uint64_t id)
{
	pb_location *location = take(b, 1, sizeof(*location));
	pb_line *lines = take(b, from->names.cnt, sizeof(*lines));

	if (!location || !lines)
		return -ENOMEM;
	perftools__profiles__location__init(location);
	location->id = id;
	location->address = from->pc;
	location->mapping_id = from->mapping ? b->mapping_ids[from->mapping - 1] : 0;
	location->line = take(b, from->names.cnt, sizeof(*location->line));
	if (!location->line)
		return -ENOMEM;
	for (size_t i = 0; i < from->names.cnt; i++) {
		perftools__profiles__line__init(&lines[i]);
		lines[i].line = from->names.frames[i].line;
		if (use_function(b, &from->names.frames[i], &lines[i].function_id))
			return -ENOMEM;
		location->line[location->n_line++] = &lines[i];
	}
	b->message.location[id - 1] = location;
	return 0;
}

static int add_locations(struct builder *b)
{
	const struct profile *profile = b->profile;

	b->message.location = take(b, b->message.n_location, sizeof(*b->message.location));
	if (!b->message.location)
		return -ENOMEM;
	for (size_t i = 0; i < profile->location_cnt; i++)
		if (b->location_ids[i] &&
		    add_location(b, &profile->locations[i], b->location_ids[i]))
			return -ENOMEM;
	return 0;
}

/* Adds one note as a comment; the builder is `data`. */
static int add_comment(const char *line, void *data)
{
	struct builder *b = data;

	if (vec_reserve(&b->message.comment, &b->comment_cap, b->message.n_comment + 1) ||
	    intern(b, line, &b->message.comment[b->message.n_comment]))
		return -ENOMEM;
	b->message.n_comment++;
	return 0;
}

static int build(struct builder *b)
{
	const struct profile *profile = b->profile;
	pb_profile *message = &b->message;
	int64_t empty;

	perftools__profiles__profile__init(message);
	message->time_nanos = profile->time_ns;
	message->duration_nanos = profile->duration_ns;
	message->period = (int64_t)profile->rate_bytes;
	if (intern(b, "", &empty) || add_types(b) || add_samples(b) || add_mappings(b) ||
	    add_locations(b) || profile_notes(profile, b->type, add_comment, b) ||
	    intern(b, alloc_names_drop_frames(), &message->drop_frames))
		return -ENOMEM;
	return 0;
}

/* protobuf-c's side of the compressor; it has no way to stop, so the first error is kept. */
static void sink_append(ProtobufCBuffer *base, size_t len, const uint8_t *data)
{
	struct sink *sink = (struct sink *)base;

	if (!sink->err)
		sink->err = gzip_write(sink->gzip, data, len);
}

int pprof_write(const struct profile *profile, enum profile_type type, FILE *out)
{
	_cleanup_(builder_clear) struct builder builder = {.profile = profile, .type = type};
	_cleanup_(cleanup_gzip) struct gzip *gzip = gzip_new(out);
	struct sink sink = {.base = {sink_append}, .gzip = gzip};

	if (!gzip || build(&builder))
		return -ENOMEM;
	protobuf_c_message_pack_to_buffer(&builder.message.base, &sink.base);
	return sink.err ? sink.err : gzip_finish(gzip);
}
