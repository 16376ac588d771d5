// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a finished profile. Out: its samples summed by site. Which frames belong to an allocator is
 * decided by their names alone and as pprof decides it; the file in pprof keeps those of the
 * languages' libraries, which the table on the terminal passes over.
 */
#include "sites.h"

#include "alloc_names.h"
#include "cleanup.h"
#include "plumbing.h"

#include <errno.h>
#include <inttypes.h>
#include <regex.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* A site in the making. */
struct group {
	UT_hash_handle hh;
	char *key; /* its whole name */
	struct site site;
	const uint32_t *last_stack; /* the one that was counted last */
};

/* All of them. */
struct grouping {
	const struct profile *profile;
	size_t *hidden; /* by location: innermost frames that belong to an allocator */
	struct group *groups;
};

/* Bytes of an operator's name at `text`, whose brackets are no brackets; 0: it is none. */
static size_t operator_len(const char *text)
{
	size_t len = strlen("operator"), sign;

	if (strncmp(text, "operator", len) != 0)
		return 0;
	sign = strspn(text + len, "<>=-");
	return len + (sign ? sign : strncmp(text + len, "()", 2) ? 0 : 2);
}

/*
 * Bytes of `name` before the arguments of a C++ function: up to the first top-level parentheses
 * that are no qualifier ("(anonymous namespace)::", "f(int)::{lambda()#1}::").
 */
static size_t bare_len(const char *name)
{
	size_t open = 0, depth = 0;

	for (size_t i = 0, skip; name[i]; i += skip ? skip : 1) {
		skip = operator_len(name + i);
		if (skip)
			continue;
		if (name[i] == '(' && !depth)
			open = i;
		if (strchr("<({[", name[i]))
			depth++;
		else if (strchr(">)}]", name[i]) && depth && !--depth && name[i] == ')' &&
			 strncmp(name + i + 1, "::", 2))
			return open;
	}
	return strlen(name);
}

/*
 * Writes `name` without arguments, those of templates included: "std::map<>::operator[]". A '<'
 * that follows no name is part of one ("<T as Trait>::f", "f::<lambda>").
 */
static void put_short(const char *name, FILE *out)
{
	size_t len = bare_len(name), depth = 0;

	for (size_t i = 0, part; i < len; i += part) {
		bool opens = name[i] == '<' && i > 0 && !strchr(": <(", name[i - 1]);

		part = operator_len(name + i);
		part = part ? part : 1;
		if (part == 1 && name[i] == '>' && depth)
			depth--;
		if (!depth)
			fwrite(&name[i], 1, part, out);
		if (part == 1 && (depth ? name[i] == '<' : opens))
			depth++;
	}
}

/* Compiles drop_frames (RE2, whole names) for regexec(); "(?:" is its only foreign syntax. */
static int compile_drop_frames(regex_t *regex)
{
	const char *source = alloc_names_drop_frames();
	_cleanup_free_ char *text = calloc(strlen(source) + 5, 1);
	size_t len = 0;
	int err;

	if (!text)
		return -ENOMEM;
	len += (size_t)snprintf(text, 3, "^(");
	while (*source) {
		text[len++] = *source;
		source += !strncmp(source, "(?:", 3) ? 3 : 1;
	}
	snprintf(text + len, 3, ")$");
	err = regcomp(regex, text, REG_EXTENDED);
	return err == REG_ESPACE ? -ENOMEM : err ? -EINVAL : 0;
}

static bool is_allocator(const regex_t *regex, const char *name)
{
	regmatch_t bare = {.rm_so = 0, .rm_eo = (regoff_t)bare_len(name)};

	return !regexec(regex, name, 1, &bare, REG_STARTEND);
}

/* Fills g->hidden: everything inside the outermost frame with an allocator's name. */
static int find_hidden(struct grouping *g)
{
	const struct profile *profile = g->profile;
	regex_t regex;
	int err;

	g->hidden = calloc(profile->location_cnt + 1, sizeof(*g->hidden));
	if (!g->hidden)
		return -ENOMEM;
	err = compile_drop_frames(&regex);
	if (err)
		return err == -ENOMEM ? err : 0; /* names we cannot match hide nothing */
	for (size_t i = 0; i < profile->location_cnt; i++) {
		const struct symbolize_result *names = &profile->locations[i].names;
		size_t cnt = names->cnt;

		while (cnt > 0 && !is_allocator(&regex, names->frames[cnt - 1].name))
			cnt--;
		g->hidden[i] = cnt;
	}
	regfree(&regex);
	return 0;
}

/* Frames of a location; one without a name counts as one. */
static size_t frame_cnt(const struct profile_location *location)
{
	return location->names.cnt ? location->names.cnt : 1;
}

/* The allocator's caller, by the rule of pprof's drop_frames: never hides a whole stack. */
static struct sites_position find_caller(const struct grouping *g,
					 const struct profile_sample *sample)
{
	const struct profile_location *leaf;
	bool found_user = false;
	size_t hidden;

	for (size_t i = sample->location_cnt; i-- > 0;) {
		uint32_t location = sample->locations[i];

		hidden = g->hidden[location];
		if (!hidden)
			found_user = true;
		else if (found_user && hidden == g->profile->locations[location].names.cnt)
			return (struct sites_position){i + 1, 0};
		else if (found_user)
			return (struct sites_position){i, hidden};
	}
	leaf = &g->profile->locations[sample->locations[0]];
	hidden = g->hidden[sample->locations[0]];
	return (struct sites_position){0, hidden < leaf->names.cnt ? hidden : 0};
}

bool sites_is_plumbing(const struct profile *profile, const struct profile_sample *sample,
		       struct sites_position position)
{
	const struct profile_location *location =
		&profile->locations[sample->locations[position.location]];

	if (location->mapping && plumbing_is_file(profile->mappings[location->mapping - 1].file))
		return true;
	return location->names.cnt && plumbing_is_function(&location->names.frames[position.frame]);
}

/* A marker where the stack was cut: who would come there is not known. */
static bool is_marker(const struct profile *profile, const struct profile_sample *sample,
		      struct sites_position position)
{
	return !profile->locations[sample->locations[position.location]].pc;
}

/* The site of `sample`: the first frame of somebody's own code, else the allocator's caller. */
static struct sites_position find_site(const struct grouping *g,
				       const struct profile_sample *sample)
{
	struct sites_position caller = find_caller(g, sample), position = caller;

	while (sites_is_plumbing(g->profile, sample, position))
		if (!sites_to_caller(g->profile, sample, &position) ||
		    is_marker(g->profile, sample, position))
			return caller;
	return position;
}

/* The part of `path` after the last slash. */
static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

void sites_put_name(const struct profile *profile, const struct profile_sample *sample,
		    struct sites_position position, FILE *out)
{
	const struct profile_location *location =
		&profile->locations[sample->locations[position.location]];
	const struct profile_mapping *mapping;

	if (location->names.cnt) {
		put_short(location->names.frames[position.frame].name, out);
		return;
	}
	if (!location->mapping) {
		fprintf(out, "0x%" PRIx64, location->pc);
		return;
	}
	mapping = &profile->mappings[location->mapping - 1];
	fprintf(out, "%s+0x%" PRIx64, base_name(mapping->file),
		location->pc - mapping->start + mapping->off);
}

/* The name of a site, `whole` or short, and where that is; NULL: no memory. */
static char *site_text(const struct profile *profile, const struct profile_sample *sample,
		       struct sites_position position, bool whole)
{
	const struct profile_location *location =
		&profile->locations[sample->locations[position.location]];
	const struct symbolize_frame *frame =
		location->names.cnt ? &location->names.frames[position.frame] : NULL;
	char *text = NULL;
	size_t len;
	FILE *stream = open_memstream(&text, &len);

	if (!stream)
		return NULL;
	if (frame && whole)
		fputs(frame->name, stream);
	else
		sites_put_name(profile, sample, position, stream);
	if (frame && frame->file)
		fprintf(stream, "  %s:%" PRIu32, base_name(frame->file), frame->line);
	close_memstream(stream, &text);
	return text;
}

/* The group of `sample`'s site, a new one with zeros; NULL: no memory. */
static struct group *group_of(struct grouping *g, const struct profile_sample *sample,
			      struct sites_position position)
{
	_cleanup_free_ char *key = site_text(g->profile, sample, position, true);
	_cleanup_free_ struct group *fresh = NULL;
	struct group *group;

	if (!key)
		return NULL;
	HASH_FIND_STR(g->groups, key, group);
	if (group)
		return group;
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh)
		return NULL;
	HASH_ADD_KEYPTR(hh, g->groups, key, strlen(key), fresh);
	if (!fresh->hh.tbl)
		return NULL;
	fresh->key = take_ptr(key);
	return take_ptr(fresh);
}

/* What `sample` alone amounts to. */
static struct site numbers_of(const struct profile *profile, const struct profile_sample *sample)
{
	bool inuse = profile->tracks_inuse;
	const int64_t *values = &sample->values[inuse ? PROFILE_INUSE_OBJECTS : 0];

	return (struct site){
		.bytes = (double)values[1],
		.objects = (double)values[0],
		.alloc_bytes = (double)sample->values[PROFILE_ALLOC_SPACE],
		.error = profile_error_of(sample, inuse),
		.largest = sample,
	};
}

void sites_add(const struct site *site, struct site *sum)
{
	sum->bytes += site->bytes;
	sum->objects += site->objects;
	sum->alloc_bytes += site->alloc_bytes;
	profile_error_add(&sum->error, &site->error);
	sum->cnt++;
}

static int add_sample(struct grouping *g, const struct profile_sample *sample)
{
	struct sites_position position = find_site(g, sample);
	struct group *group = group_of(g, sample, position);
	struct site numbers = numbers_of(g->profile, sample);
	size_t stack_cnt;

	if (!group)
		return -ENOMEM;
	stack_cnt = group->site.cnt + (sample->locations != group->last_stack);
	group->last_stack = sample->locations;
	sites_add(&numbers, &group->site);
	group->site.cnt = stack_cnt;
	if (!group->site.largest ||
	    numbers.bytes > numbers_of(g->profile, group->site.largest).bytes) {
		group->site.largest = sample;
		group->site.position = position;
	}
	return 0;
}

static int compare_sites(const void *a_, const void *b_)
{
	const struct site *a = a_, *b = b_;
	int order;

	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? 1 : -1;
	if (a->alloc_bytes != b->alloc_bytes)
		return a->alloc_bytes < b->alloc_bytes ? 1 : -1;
	order = strcmp(a->name, b->name);
	return order ? order : (a->largest > b->largest) - (a->largest < b->largest);
}

static void grouping_clear(struct grouping *g)
{
	struct group *group, *next;

	HASH_ITER(hh, g->groups, group, next)
	{
		HASH_DEL(g->groups, group);
		free(group->key);
		free(group);
	}
	free(g->hidden);
}

int sites_make(const struct profile *profile, struct sites *out)
{
	_cleanup_(grouping_clear) struct grouping g = {.profile = profile};
	_cleanup_(sites_clear) struct sites sites = {0};

	if (find_hidden(&g))
		return -ENOMEM;
	for (size_t i = 0; i < profile->sample_cnt; i++)
		if (add_sample(&g, &profile->samples[i]))
			return -ENOMEM;
	sites.sites = calloc(HASH_COUNT(g.groups) + 1, sizeof(*sites.sites));
	if (!sites.sites)
		return -ENOMEM;
	for (struct group *group = g.groups; group; group = group->hh.next) {
		struct site *site = &sites.sites[sites.cnt];

		*site = group->site;
		site->name = site_text(profile, site->largest, site->position, false);
		if (!site->name)
			return -ENOMEM;
		sites.cnt++;
		sites_add(site, &sites.sum);
	}
	qsort(sites.sites, sites.cnt, sizeof(*sites.sites), compare_sites);
	*out = sites;
	sites = (struct sites){0};
	return 0;
}

void sites_clear(struct sites *sites)
{
	for (size_t i = 0; i < sites->cnt; i++)
		free(sites->sites[i].name);
	free(sites->sites);
	*sites = (struct sites){0};
}

bool sites_to_caller(const struct profile *profile, const struct profile_sample *sample,
		     struct sites_position *position)
{
	uint32_t location = sample->locations[position->location];

	if (position->frame + 1 < frame_cnt(&profile->locations[location])) {
		position->frame++;
		return true;
	}
	position->location++;
	position->frame = 0;
	return position->location < sample->location_cnt;
}
