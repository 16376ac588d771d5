// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: entries of the maps `sites` and `stacks`, any order, and the process's mappings. Out: a
 * profile whose order depends on the data alone. Each (stack, size) is scaled by itself, by the
 * probability it was seen with; sums over sizes are never scaled. It knows no output format and
 * reads no process; what is mapped where and what it is called is the business of places.
 */
#include "heap.h"

#include "cleanup.h"
#include "mappings.h"
#include "places.h"
#include "rounding.h"
#include "sampling.h"
#include "spread.h"

#include <errno.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* A stack without the unused part of hb_stack. */
struct stack {
	UT_hash_handle hh;
	uint64_t id;
	struct mappings_state state;
	uint16_t cnt, end;
	uint64_t frame[]; /* HB_FRAME() */
};

struct site {
	UT_hash_handle hh;
	struct hb_site_key key;
	struct profile_tally allocs, inuse;
	struct spread spread; /* of allocs */
};

struct heap {
	struct stack *stacks;	   /* by id */
	struct site *sites;	   /* by key */
	struct heap_period period; /* the last one */
	/* The first window that the process was in with this image; all such, in parts of it. */
	double first_ns, windows;
	struct spread_periods periods;
};

/* A site of the process with its stack; NULL: none. */
struct entry {
	const struct site *site;
	const struct stack *stack;
};

/* Frames of the locations that are no address: the reason of a cut, or of no stack at all. */
#define MARKER_NO_STACK		     HB_LOSS_CNT
#define MARKER_CUT		     (HB_LOSS_CNT + 1) /* a reason that is not in our list */
#define MARKER_CNT		     (HB_LOSS_CNT + 2)
#define MARKER_FRAME(id, name, text) [HB_LOSS_##id] = {"[" name "]", "[" name "]", NULL, 0, 0},
static const struct symbolize_frame marker_frames[MARKER_CNT] = {
	HB_CUT_LIST(MARKER_FRAME)
		/* clang-format off */
	[MARKER_NO_STACK] = {"[no stack]", "[no stack]", NULL, 0, 0},
	[MARKER_CUT] = {"[cut]", "[cut]", NULL, 0, 0},
	/* clang-format on */
};

/* A profile in the making. */
struct builder {
	const struct heap_source *source;
	struct places *places;
	struct profile *profile;
	float factor; /* of replicates */
	double mean_inuse;
	size_t pool_cnt;  /* used of location_pool */
	size_t run_start; /* first sample with the frames and size of the last one */
};

DEFINE_CLEANUP(places, struct places, places_free)

struct heap *heap_new(void)
{
	return calloc(1, sizeof(struct heap));
}

void heap_free(struct heap *heap)
{
	struct stack *stack, *next_stack;
	struct site *site, *next_site;

	if (!heap)
		return;
	HASH_ITER(hh, heap->stacks, stack, next_stack)
	{
		HASH_DEL(heap->stacks, stack);
		free(stack);
	}
	HASH_ITER(hh, heap->sites, site, next_site)
	{
		HASH_DEL(heap->sites, site);
		free(site);
	}
	free(heap);
}

/*
 * Adds `raw` objects, each seen with probability p: an estimate of raw / p (Horvitz and Thompson
 * 1952), whose variance is estimated by raw (1 - p) / p^2; times `weight`.
 */
static void tally_add(struct profile_tally *tally, uint64_t raw, double p, double weight)
{
	tally->raw += raw;
	tally->estimate += (double)raw / p * weight;
	tally->variance += (double)raw * (1 - p) / (p * p) * weight * weight;
}

/* Adds `part` of what `tally` stands for. */
static void tally_add_part(struct profile_tally *sum, const struct profile_tally *tally,
			   double part)
{
	sum->raw += tally->raw;
	sum->estimate += tally->estimate * part;
	sum->variance += tally->variance * part * part;
}

/* What a window weighs, by its length: 1 if it is the only one, so that its counts stay exact. */
static double weight_of(const struct heap *heap)
{
	return heap->period.window_ns / heap->first_ns;
}

static void add_window(struct heap *heap)
{
	if (heap->first_ns <= 0)
		heap->first_ns = heap->period.window_ns;
	heap->windows += weight_of(heap);
}

void heap_period(struct heap *heap, const struct heap_period *period)
{
	if (period->epoch != heap->period.epoch)
		heap->first_ns = heap->windows = 0;
	heap->period = *period;
	if (period->was_there)
		add_window(heap);
	spread_period(&heap->periods, period->coverage, period->length_ns);
}

bool heap_knows_spread(const struct heap *heap)
{
	return spread_factor(&heap->periods) > 0;
}

/* The mean of what is in use at the ends of windows, in parts of their sum. */
static double mean_inuse(const struct heap *heap)
{
	return heap->windows > 0 ? 1 / heap->windows : 1;
}

int heap_add_site(struct heap *heap, const struct hb_site_key *key, const struct hb_site *counts,
		  const __u64 threshold[static HB_CLASS_CNT])
{
	_cleanup_free_ struct site *fresh = NULL;
	double p = sampling_p(threshold, key->size);
	uint64_t gone = counts->frees + counts->untracked;
	struct site *site;

	if (heap->period.coverage <= 0)
		return 0;
	HASH_FIND(hh, heap->sites, key, sizeof(*key), site);
	if (!site) {
		fresh = calloc(1, sizeof(*fresh));
		if (!fresh)
			return -ENOMEM;
		fresh->key = *key;
		HASH_ADD(hh, heap->sites, key, sizeof(*key), fresh);
		if (!fresh->hh.tbl)
			return -ENOMEM;
		site = take_ptr(fresh);
	}
	/* What was sampled cannot have p = 0. */
	if (p <= 0)
		p = 1;
	tally_add(&site->allocs, counts->allocs, p * heap->period.coverage, 1);
	spread_add(&heap->periods, &site->spread,
		   (double)counts->allocs / (p * heap->period.coverage));
	if (heap->period.was_look)
		return 0;
	/* Even if it ended before the window did. */
	if (!heap->period.was_there)
		add_window(heap);
	heap->period.was_there = true;
	/* Races between counters never show as a negative. */
	if (counts->allocs > gone)
		tally_add(&site->inuse, counts->allocs - gone, p, weight_of(heap));
	return 0;
}

struct heap_totals heap_totals(const struct heap *heap, uint32_t epoch)
{
	struct heap_totals totals = {0};
	double mean = mean_inuse(heap);
	const struct site *site, *next;

	HASH_ITER(hh, heap->sites, site, next)
	{
		double bytes = (double)site->key.size;

		totals.samples += site->allocs.raw;
		totals.allocs += site->allocs.estimate;
		totals.alloc_bytes += site->allocs.estimate * bytes;
		if (site->key.epoch != epoch)
			continue;
		totals.inuse += site->inuse.estimate * mean;
		totals.inuse_bytes += site->inuse.estimate * mean * bytes;
	}
	return totals;
}

int heap_add_stack(struct heap *heap, uint64_t id, const struct hb_stack *stack)
{
	size_t cnt = stack->cnt < HB_STACK_MAX ? stack->cnt : HB_STACK_MAX;
	_cleanup_free_ struct stack *fresh = NULL;
	struct stack *known;

	HASH_FIND(hh, heap->stacks, &id, sizeof(id), known);
	if (known)
		return 0;
	fresh = calloc(1, sizeof(*fresh) + cnt * sizeof(fresh->frame[0]));
	if (!fresh)
		return -ENOMEM;
	fresh->id = id;
	fresh->state = (struct mappings_state){stack->epoch, stack->libraries};
	fresh->cnt = (uint16_t)cnt;
	fresh->end = stack->end;
	memcpy(fresh->frame, stack->frame, cnt * sizeof(fresh->frame[0]));
	HASH_ADD(hh, heap->stacks, id, sizeof(fresh->id), fresh);
	if (!fresh->hh.tbl)
		return -ENOMEM;
	take_ptr(fresh);
	return 0;
}

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* Orders by addresses, leaf first, then by what is at them; no stack comes first. */
static int compare_frames(const struct stack *a, const struct stack *b)
{
	size_t a_cnt = a ? a->cnt : 0, b_cnt = b ? b->cnt : 0, cnt = a_cnt < b_cnt ? a_cnt : b_cnt;
	int order;

	for (size_t i = 0; a != b && i < cnt; i++) {
		uint64_t a_pc = HB_FRAME_PC(a->frame[i]), b_pc = HB_FRAME_PC(b->frame[i]);

		if (a_pc != b_pc)
			return COMPARE(a_pc, b_pc);
	}
	order = COMPARE(a_cnt, b_cnt);
	for (size_t i = 0; a != b && i < cnt && !order; i++)
		order = COMPARE(a->frame[i], b->frame[i]);
	return order;
}

/* A total order of sites, so that the order of the kernel's hash maps shows nowhere. */
static int compare_entries(const void *a_, const void *b_)
{
	const struct entry *a = a_, *b = b_;
	const struct hb_site_key *a_key = &a->site->key, *b_key = &b->site->key;
	int order = compare_frames(a->stack, b->stack);

	if (!order)
		order = COMPARE(a_key->size, b_key->size);
	if (!order && a->stack && b->stack)
		order = COMPARE(a->stack->end, b->stack->end);
	if (!order)
		order = COMPARE(a_key->epoch, b_key->epoch);
	return order ? order : COMPARE(a_key->stack_id, b_key->stack_id);
}

/* The process's sites, sorted; *out is the caller's. */
static int collect_entries(const struct heap *heap, pid_t tgid, struct entry **out, size_t *cnt)
{
	size_t site_cnt = HASH_COUNT(heap->sites);
	struct entry *entries = calloc(site_cnt + 1, sizeof(*entries));
	const struct site *site;

	if (!entries)
		return -ENOMEM;
	*cnt = 0;
	for (site = heap->sites; site; site = site->hh.next) {
		struct entry *entry = &entries[*cnt];

		if (site->key.tgid != (uint32_t)tgid)
			continue;
		entry->site = site;
		HASH_FIND(hh, heap->stacks, &site->key.stack_id, sizeof(uint64_t), entry->stack);
		*cnt += 1;
	}
	qsort(entries, *cnt, sizeof(*entries), compare_entries);
	*out = entries;
	return 0;
}

/* Appends the locations of `stack` to the pool, a cut one with its marker at the root. */
static int use_stack(struct builder *b, const struct stack *stack)
{
	uint32_t *pool = b->profile->location_pool;
	uint32_t marker = MARKER_NO_STACK;

	for (size_t n = 0; stack && n < stack->cnt; n++) {
		if (places_use_code(b->places, stack->state, stack->frame[n], &pool[b->pool_cnt]))
			return -ENOMEM;
		b->pool_cnt++;
	}
	if (stack && stack->cnt && stack->end == HB_STACK_COMPLETE)
		return 0;
	if (stack && stack->end != HB_STACK_COMPLETE)
		marker = stack->end < HB_LOSS_CNT && marker_frames[stack->end].name ? stack->end
										    : MARKER_CUT;
	if (places_use_frame(b->places, &marker_frames[marker], &pool[b->pool_cnt]))
		return -ENOMEM;
	b->pool_cnt++;
	return 0;
}

/* The earlier sample of the run with these locations, or a new one; there is room for it. */
static struct profile_sample *sample_for(struct builder *b, const uint32_t *locations, size_t cnt,
					 uint64_t size_bytes)
{
	struct profile_sample *sample;

	for (size_t i = b->run_start; i < b->profile->sample_cnt; i++) {
		sample = &b->profile->samples[i];
		if (sample->location_cnt == cnt &&
		    !memcmp(sample->locations, locations, cnt * sizeof(*locations)))
			return sample;
	}
	sample = &b->profile->samples[b->profile->sample_cnt++];
	*sample = (struct profile_sample){
		.locations = locations, .location_cnt = cnt, .size_bytes = size_bytes};
	return sample;
}

/* Adds `entry`; `last` is the one before it, or NULL. */
static int add_entry(struct builder *b, const struct entry *entry, const struct entry *last)
{
	struct profile *profile = b->profile;
	uint64_t size_bytes = entry->site->key.size, allocs = entry->site->allocs.raw;
	const uint32_t *locations = &profile->location_pool[b->pool_cnt];
	struct profile_sample *sample;
	size_t cnt;

	if (last && last->stack == entry->stack) {
		const struct profile_sample *same = &profile->samples[profile->sample_cnt - 1];

		locations = same->locations;
		cnt = same->location_cnt;
	} else {
		size_t before = b->pool_cnt;

		if (use_stack(b, entry->stack))
			return -ENOMEM;
		cnt = b->pool_cnt - before;
	}
	if (!last || compare_frames(last->stack, entry->stack) ||
	    last->site->key.size != size_bytes)
		b->run_start = profile->sample_cnt;
	sample = sample_for(b, locations, cnt, size_bytes);
	tally_add_part(&sample->allocs, &entry->site->allocs, 1);
	for (int i = 0; i < SPREAD_CNT; i++)
		sample->replicate[i] += b->factor * entry->site->spread.replicate[i];
	if (b->source->tracks_inuse && entry->site->key.epoch == b->source->epoch)
		tally_add_part(&sample->inuse, &entry->site->inuse, b->mean_inuse);
	profile->raw_allocs += allocs;
	if (entry->stack && entry->stack->end == HB_STACK_COMPLETE)
		profile->raw_complete += allocs;
	return 0;
}

/*
 * One sample per stack and size, in the order of `entries`; the pool is sized first because the
 * samples point into it.
 */
static int add_entries(struct builder *b, const struct entry *entries, size_t cnt)
{
	struct profile *profile = b->profile;
	size_t pool_max = 1;

	for (size_t i = 0; i < cnt; i++)
		if (i == 0 || entries[i].stack != entries[i - 1].stack)
			pool_max += (entries[i].stack ? entries[i].stack->cnt : 0) + 1;
	profile->location_pool = calloc(pool_max, sizeof(*profile->location_pool));
	profile->samples = calloc(cnt + 1, sizeof(*profile->samples));
	if (!profile->location_pool || !profile->samples)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		if (add_entry(b, &entries[i], i ? &entries[i - 1] : NULL))
			return -ENOMEM;
	return 0;
}

/* Those of `list` whose counter is not 0, malloc()ed; NULL: no memory. */
static struct profile_count *copy_happened(const struct profile_count *list, size_t cnt,
					   const uint64_t *counters, size_t *happened_cnt)
{
	struct profile_count *happened = calloc(cnt, sizeof(*happened));

	for (size_t i = 0; happened && i < cnt; i++) {
		if (!counters[list[i].id])
			continue;
		happened[*happened_cnt] = list[i];
		happened[*happened_cnt].count = counters[list[i].id];
		*happened_cnt += 1;
	}
	return happened;
}

/* Copies the cuts and losses that happened and all statistics, with their names. */
static int add_counters(struct profile *profile, const uint64_t *counters)
{
#define COUNT(id_, name_, text_) {.id = HB_LOSS_##id_, .name = name_, .text = text_},
	static const struct profile_count cuts[] = {HB_CUT_LIST(COUNT)};
	static const struct profile_count losses[] = {HB_LOSS_LIST(COUNT)};
#undef COUNT
#define COUNT(id_, text_) {.id = HB_STAT_##id_, .name = text_, .text = text_},
	static const struct profile_count stats[] = {HB_STAT_LIST(COUNT)};
#undef COUNT

	profile->cuts = copy_happened(cuts, ARRAY_CNT(cuts), counters, &profile->cut_cnt);
	profile->losses = copy_happened(losses, ARRAY_CNT(losses), counters, &profile->loss_cnt);
	profile->stats = calloc(HB_STAT_CNT, sizeof(*stats));
	if (!profile->cuts || !profile->losses || !profile->stats)
		return -ENOMEM;
	for (size_t i = 0; i < HB_STAT_CNT; i++) {
		profile->stats[i] = stats[i];
		profile->stats[i].count = counters[HB_LOSS_CNT + i];
	}
	profile->stat_cnt = HB_STAT_CNT;
	return 0;
}

/* What the profile takes over from its source as it is. */
static int add_facts(struct profile *profile, const struct heap_source *source)
{
	profile->tgid = source->tgid;
	profile->rate_bytes = source->rate_bytes;
	profile->time_ns = source->time_ns;
	profile->duration_ns = source->duration_ns;
	profile->tracks_inuse = source->tracks_inuse;
	profile->memory = source->memory;
	profile->coverage = source->coverage;
	profile->comm = strdup(source->comm);
	return profile->comm ? add_counters(profile, source->counters) : -ENOMEM;
}

int heap_profile(const struct heap *heap, const struct heap_source *source,
		 const struct mappings *mappings, struct symbolizer *symbolizer,
		 struct profile *out)
{
	_cleanup_(profile_clear) struct profile profile = {0};
	_cleanup_(cleanup_places) struct places *places = NULL;
	_cleanup_free_ struct entry *entries = NULL;
	struct builder builder = {.source = source,
				  .profile = &profile,
				  .factor = (float)spread_factor(&heap->periods),
				  .mean_inuse = mean_inuse(heap)};
	size_t cnt = 0;
	int err;

	places = places_new(mappings, symbolizer);
	if (!places || add_facts(&profile, source))
		return -ENOMEM;
	builder.places = places;
	if (collect_entries(heap, source->tgid, &entries, &cnt) ||
	    add_entries(&builder, entries, cnt))
		return -ENOMEM;
	rounding_of_samples(&profile);
	err = places_name_files(places);
	if (err)
		return err;
	if (source->owner && (err = places_name_jit(places, source->epoch, source->owner)))
		return err;
	if (places_take(places, &profile))
		return -ENOMEM;
	*out = profile;
	profile = (struct profile){0};
	return 0;
}
