// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What all writers ask of a finished profile: which values a view has, sums and their errors,
 * whether it is whole. It knows no format and does not change what heap built.
 */
#include "profile.h"

#include "cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *profile_type_name(enum profile_type type)
{
	static const char *const names[PROFILE_TYPE_CNT] = {
		[PROFILE_HEAP] = "heap",
		[PROFILE_ALLOCS] = "allocs",
		[PROFILE_INUSE] = "inuse",
	};

	return names[type];
}

struct profile_view profile_view(enum profile_type type)
{
	static const struct profile_view views[PROFILE_TYPE_CNT] = {
		[PROFILE_HEAP] = {PROFILE_ALLOC_OBJECTS, PROFILE_VALUE_CNT},
		[PROFILE_ALLOCS] = {PROFILE_ALLOC_OBJECTS, 2},
		[PROFILE_INUSE] = {PROFILE_INUSE_OBJECTS, 2},
	};

	return views[type];
}

bool profile_shows(const struct profile_sample *sample, enum profile_type type)
{
	struct profile_view view = profile_view(type);

	for (size_t i = 0; i < view.cnt; i++)
		if (sample->values[view.first + i])
			return true;
	return false;
}

bool profile_is_scaled(const struct profile *profile)
{
	return profile->coverage.window_cnt || profile->coverage.share;
}

int64_t profile_total(const struct profile *profile, enum profile_value value)
{
	int64_t total = 0;

	for (size_t i = 0; i < profile->sample_cnt; i++)
		if (__builtin_add_overflow(total, profile->samples[i].values[value], &total))
			return INT64_MAX;
	return total;
}

struct profile_error profile_error_of(const struct profile_sample *sample, bool inuse)
{
	double bytes = (double)sample->size_bytes;
	double objects = inuse ? sample->inuse.variance : sample->allocs.variance;
	struct profile_error error = {.variance = objects * bytes * bytes};

	/* What is in use is not scaled from windows. */
	for (int i = 0; i < SPREAD_CNT && !inuse; i++)
		error.replicate[i] = bytes * sample->replicate[i];
	return error;
}

void profile_error_add(struct profile_error *sum, const struct profile_error *error)
{
	sum->variance += error->variance;
	for (int i = 0; i < SPREAD_CNT; i++)
		sum->replicate[i] += error->replicate[i];
}

double profile_standard_error(const struct profile_error *error)
{
	double squares = 0;

	for (int i = 0; i < SPREAD_CNT; i++)
		squares += error->replicate[i] * error->replicate[i];
	/* Of few samples, or few windows, replicates know less. */
	return sqrt(fmax(error->variance, squares / SPREAD_CNT));
}

/* Where notes go; `err` is what emit said, and then nothing more is emitted. */
struct notes {
	int (*emit)(const char *line, void *data);
	void *data;
	int err;
};

/* Formats and emits one note. */
__attribute__((format(printf, 2, 3))) static void note(struct notes *notes, const char *fmt, ...)
{
	_cleanup_free_ char *line = NULL;
	va_list args;
	int len;

	if (notes->err)
		return;
	va_start(args, fmt);
	len = vasprintf(&line, fmt, args);
	va_end(args);
	if (len < 0) {
		line = NULL; /* undefined after a failure */
		notes->err = -ENOMEM;
		return;
	}
	notes->err = notes->emit(line, notes->data);
}

/* The memory of the process as the kernel counts it, or did while there was a process. */
static void note_memory(struct notes *notes, const struct profile *profile)
{
	const struct profile_memory *memory = &profile->memory;
	const struct {
		const char *name;
		uint64_t bytes;
	} rows[] = {
		{"RSS", memory->rss_bytes},
		{"Heap", memory->heap_bytes},
		{"Anonymous", memory->anonymous_bytes},
	};

	if (memory->rss_bytes && memory->read_ns < profile->duration_ns)
		note(notes, "the process ended; its memory when last seen, after %.1f s:",
		     (double)memory->read_ns / 1e9);

	for (size_t i = 0; i < ARRAY_CNT(rows); i++)
		if (rows[i].bytes)
			note(notes, "%s = %" PRIu64, rows[i].name, rows[i].bytes);
}

static void note_counts(struct notes *notes, const char *what, const struct profile_count *counts,
			size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		note(notes, "%s: %s = %" PRIu64 ": %s", what, counts[i].name, counts[i].count,
		     counts[i].text);
}

/* From here on, a scale that may be wrong is worth a word. */
#define SCALE_ERROR_SHOWN 1.2

/* What scaling from windows means for what was allocated. */
static void note_scale(struct notes *notes, const struct profile_coverage *coverage)
{
	const char *from =
		coverage->knows_spread
			? "the windows to the whole time"
			: "the windows to the whole time, and +/- knows of no other moments";

	if (coverage->scale_error < SCALE_ERROR_SHOWN)
		note(notes, "allocated: scaled from %s", from);
	else
		note(notes,
		     "allocated: scaled from %s; probes slow the processes a lot there, so totals "
		     "may be off by a factor of %.1f, shares hardly",
		     from, coverage->scale_error);
}

int profile_coverage_notes(const struct profile_coverage *coverage, int64_t duration_ns,
			   int (*emit)(const char *line, void *data), void *data)
{
	struct notes notes = {.emit = emit, .data = data};

	if (coverage->share)
		note(&notes,
		     "recorded: %u of the processes at a time, at random; what was allocated is "
		     "scaled to all of the time, what is in use is the mean of a process's turns",
		     coverage->share);
	if (!coverage->window_cnt)
		return notes.err;
	note(&notes,
	     "recorded: %.2f of %.2f s in %" PRIu32
	     " window%s; all of it would have cost %.0f%% of "
	     "the processes' time (--max-overhead none)",
	     (double)coverage->seen_ns / 1e9, (double)duration_ns / 1e9, coverage->window_cnt,
	     coverage->window_cnt == 1 ? "" : "s", 100 * coverage->full_share);
	if (coverage->bursts)
		note(&notes, "in use: allocated in a window and alive at its end%s",
		     coverage->window_cnt > 1 ? ", the mean of the windows" : "");
	note_scale(&notes, coverage);
	return notes.err;
}

/* All statistics but zeros in one line: pprof shows every comment above every table. */
static void note_stats(struct notes *notes, const struct profile *profile)
{
	_cleanup_free_ char *line = NULL;
	bool some = false;
	size_t len;
	FILE *stream = open_memstream(&line, &len);

	if (!stream) {
		notes->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < profile->stat_cnt; i++) {
		if (!profile->stats[i].count)
			continue;
		fprintf(stream, "%s%s = %" PRIu64, some ? ", " : "", profile->stats[i].text,
			profile->stats[i].count);
		some = true;
	}
	if (!close_memstream(stream, &line))
		notes->err = -ENOMEM;
	else if (len)
		note(notes, "%s", line);
}

int profile_notes(const struct profile *profile, enum profile_type type,
		  int (*emit)(const char *line, void *data), void *data)
{
	struct notes notes = {.emit = emit, .data = data};

	note(&notes, "heapbpf %s: %s profile of %s (pid %d)", HEAPBPF_VERSION,
	     profile_type_name(type), profile->comm, (int)profile->tgid);
	if (profile->rate_bytes <= 1)
		note(&notes, "every allocation counted%s",
		     profile_is_scaled(profile) ? " in the windows" : "");
	else
		note(&notes, "one sample per %" PRIu64 " bytes allocated, on average",
		     profile->rate_bytes);
	if (!notes.err)
		notes.err = profile_coverage_notes(&profile->coverage, profile->duration_ns, emit,
						   data);
	note(&notes, "%" PRIu64 " of %" PRIu64 " stacks complete", profile->raw_complete,
	     profile->raw_allocs);
	note_counts(&notes, "cut", profile->cuts, profile->cut_cnt);
	note_counts(&notes, "lost", profile->losses, profile->loss_cnt);
	note_stats(&notes, profile);
	note_memory(&notes, profile);
	return notes.err;
}

size_t profile_char_len(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t len = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

	if (s[0] < ' ' || s[0] == 0x7f || (s[0] >= 0x80 && s[0] < 0xc2) || s[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* C1 controls, overlong forms, surrogates, beyond U+10FFFF. */
	if ((s[0] == 0xc2 && s[1] < 0xa0) || (s[0] == 0xe0 && s[1] < 0xa0) ||
	    (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
	    (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return len;
}

void profile_put_text(const char *text, FILE *out)
{
	for (size_t i = 0, len; text[i] && i < PROFILE_TEXT_MAX; i += len ? len : 1) {
		len = profile_char_len(&text[i]);
		fwrite(len ? &text[i] : "?", 1, len ? len : 1, out);
	}
}

bool profile_is_partial(const struct profile *profile)
{
	return profile->loss_cnt > 0;
}

void profile_clear(struct profile *profile)
{
	for (size_t i = 0; i < profile->mapping_cnt; i++) {
		free(profile->mappings[i].file);
		free(profile->mappings[i].build_id);
	}
	free(profile->mappings);
	free(profile->locations);
	free(profile->samples);
	free(profile->location_pool);
	free(profile->cuts);
	free(profile->losses);
	free(profile->stats);
	free(profile->comm);
	*profile = (struct profile){0};
}
