// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a finished profile. Out: one view of it in the legacy text form, for people and for
 * google-pprof. The form leaves scaling to its readers where they can do it, that is by the rate
 * alone. Names and paths come from the target, so no byte of them may start a line of its own.
 */
#include "text.h"

#include <errno.h>
#include <inttypes.h>

/* The counts of a line, as a view shows them. */
struct counts {
	uint64_t inuse_objects, inuse_bytes, alloc_objects, alloc_bytes;
};

/* Do readers find the estimates by themselves? Of windows and their changing rates they know none.
 */
static bool is_raw(const struct profile *profile)
{
	return profile->rate_bytes > 1 && !profile_is_scaled(profile);
}

static struct counts counts_of(const struct profile *profile, const struct profile_sample *sample,
			       enum profile_type type)
{
	uint64_t inuse = sample->inuse.raw, allocs = sample->allocs.raw;
	struct counts counts = {inuse, inuse * sample->size_bytes, allocs,
				allocs * sample->size_bytes};

	if (!is_raw(profile))
		counts = (struct counts){
			.inuse_objects = sample->values[PROFILE_INUSE_OBJECTS],
			.inuse_bytes = sample->values[PROFILE_INUSE_SPACE],
			.alloc_objects = sample->values[PROFILE_ALLOC_OBJECTS],
			.alloc_bytes = sample->values[PROFILE_ALLOC_SPACE],
		};
	if (type == PROFILE_ALLOCS)
		counts.inuse_objects = counts.inuse_bytes = 0;
	if (type == PROFILE_INUSE)
		counts.alloc_objects = counts.alloc_bytes = 0;
	return counts;
}

static void put_counts(const struct counts *counts, FILE *out)
{
	fprintf(out, "%" PRIu64 ": %" PRIu64 " [%" PRIu64 ": %" PRIu64 "] @", counts->inuse_objects,
		counts->inuse_bytes, counts->alloc_objects, counts->alloc_bytes);
}

/* The first line: sums, and by which law readers scale. */
static void put_header(const struct profile *profile, enum profile_type type, FILE *out)
{
	struct counts sum = {0};

	for (size_t i = 0; i < profile->sample_cnt; i++) {
		struct counts counts = counts_of(profile, &profile->samples[i], type);

		sum.inuse_objects += counts.inuse_objects;
		sum.inuse_bytes += counts.inuse_bytes;
		sum.alloc_objects += counts.alloc_objects;
		sum.alloc_bytes += counts.alloc_bytes;
	}
	fputs("heap profile: ", out);
	put_counts(&sum, out);
	if (is_raw(profile))
		fprintf(out, " heap_v2/%" PRIu64 "\n", profile->rate_bytes);
	else
		fputs(" heapprofile\n", out);
}

/*
 * What readers subtract 1 from to find the location. A marker is no place in the process: it gets
 * an address that none can have, high enough that google-pprof does not look for the symbol before
 * it and not so high that it drops the sample.
 */
#define MARKERS 0x7ff0000000000000
static uint64_t return_address(const struct profile *profile, uint32_t location)
{
	const struct profile_location *at = &profile->locations[location];

	if (!at->pc && at->names.cnt)
		return MARKERS + 16 * (uint64_t)location + 1;
	return at->pc + 1;
}

/* The lines that name what is at a location, innermost function first. */
static void put_names(const struct profile *profile, uint32_t index, FILE *out)
{
	const struct profile_location *location = &profile->locations[index];
	uint64_t pc = return_address(profile, index) - 1;

	if (!location->names.cnt)
		fprintf(out, "#\t0x%" PRIx64 "\n", pc);
	for (size_t i = 0; i < location->names.cnt; i++) {
		const struct symbolize_frame *frame = &location->names.frames[i];

		fprintf(out, "#\t0x%" PRIx64 "\t", pc);
		profile_put_text(frame->name, out);
		if (frame->file) {
			fputc('\t', out);
			profile_put_text(frame->file, out);
			fprintf(out, ":%" PRIu32, frame->line);
		}
		fputc('\n', out);
	}
}

static void put_sample(const struct profile *profile, const struct profile_sample *sample,
		       enum profile_type type, FILE *out)
{
	struct counts counts = counts_of(profile, sample, type);

	put_counts(&counts, out);
	for (size_t i = 0; i < sample->location_cnt; i++)
		fprintf(out, " 0x%" PRIx64, return_address(profile, sample->locations[i]));
	fputc('\n', out);
	for (size_t i = 0; i < sample->location_cnt; i++)
		put_names(profile, sample->locations[i], out);
	fputc('\n', out);
}

static int put_note(const char *line, void *data)
{
	FILE *out = data;

	fputs("# ", out);
	profile_put_text(line, out);
	fputc('\n', out);
	return 0;
}

/* The mappings of the locations; device and inode play no part and are 0. */
static void put_mappings(const struct profile *profile, FILE *out)
{
	fputs("\nMAPPED_LIBRARIES:\n", out);
	for (size_t i = 0; i < profile->mapping_cnt; i++) {
		const struct profile_mapping *mapping = &profile->mappings[i];

		fprintf(out, "%08" PRIx64 "-%08" PRIx64 " r-xp %08" PRIx64 " 00:00 0 ",
			mapping->start, mapping->limit, mapping->off);
		profile_put_text(mapping->file, out);
		fputc('\n', out);
	}
}

int text_write(const struct profile *profile, enum profile_type type, FILE *out)
{
	put_header(profile, type, out);
	for (size_t i = 0; i < profile->sample_cnt; i++)
		if (profile_shows(&profile->samples[i], type))
			put_sample(profile, &profile->samples[i], type, out);
	if (profile_notes(profile, type, put_note, out))
		return -ENOMEM;
	put_mappings(profile, out);
	/* Flushed here because only a write has a reason; the error flag has none. */
	errno = 0;
	return fflush(out) || ferror(out) ? (errno ? -errno : -EIO) : 0;
}
