// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a finished profile and the width of the terminal. Out: the table that people read first:
 * who holds the memory, by which path, how sure that is, and what is missing. Numbers are rounded
 * here; the file has them whole.
 */
#include "top.h"

#include "cleanup.h"
#include "sites.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>

#define CALLERS_MAX 8 /* named of a site's path; more says less */

/* In place of what there is. */
#define NO_MEMORY "(no memory for a line)"

/* What is printed, and where. */
struct table {
	const struct profile *profile;
	unsigned width; /* 0: no limit */
	FILE *out;
};

const char *top_bytes(double bytes, char buf[static 16])
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
	size_t unit = 0;

	/* What would be rounded to 1024 belongs to the next unit. */
	while (fabs(bytes) >= (unit ? 1023.95 : 1023.5) && unit + 1 < ARRAY_CNT(units)) {
		bytes /= 1024;
		unit++;
	}
	snprintf(buf, 16, "%.*f%s", unit && fmod(round(bytes * 10), 10) ? 1 : 0, bytes,
		 units[unit]);
	return buf;
}

/* A number of objects, at most 7 columns. */
static const char *count_text(double count, char buf[static 16])
{
	static const char units[] = " kMGTPE";
	size_t unit = 0;

	if (count < 1e6) {
		snprintf(buf, 16, "%.0f", count);
		return buf;
	}
	for (; count >= 999.95 && unit + 2 < sizeof(units); unit++)
		count /= 1000;
	snprintf(buf, 16, "%.1f%c", count, units[unit]);
	return buf;
}

/* The standard error of `site` in parts of its value. */
static const char *error_text(const struct table *table, const struct site *site,
			      char buf[static 16])
{
	double error = profile_standard_error(&site->error);

	if (table->profile->rate_bytes <= 1 && !profile_is_scaled(table->profile))
		return "exact";
	if (site->bytes <= 0)
		return "-";
	snprintf(buf, 16, "%.0f%%", 100 * error / site->bytes);
	return buf;
}

/*
 * Writes `line`, cut to the terminal: a wrapped table is no table. A character takes a column;
 * bytes that continue a UTF-8 sequence take none.
 */
static void put_line(const struct table *table, char *line)
{
	size_t columns = 0, fits = 0;

	for (size_t i = 0; line[i]; i++) {
		if ((line[i] & 0xc0) == 0x80)
			continue;
		if (columns + 2 == table->width)
			fits = i;
		columns++;
	}
	if (table->width > 2 && columns > table->width)
		memcpy(&line[fits], "..", sizeof(".."));
	profile_put_text(line, table->out);
	fputc('\n', table->out);
}

/* put_line() of a formatted line. */
__attribute__((format(printf, 2, 3))) static void put(const struct table *table, const char *fmt,
						      ...)
{
	char no_memory[] = NO_MEMORY;
	_cleanup_free_ char *line = NULL;
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&line, fmt, args) < 0)
		line = NULL;
	va_end(args);
	put_line(table, line ? line : no_memory);
}

/* One row; `alloc` is left out where it is all there is. */
static void put_columns(const struct table *table, const char *bytes, const char *error,
			const char *objects, const char *alloc, const char *text)
{
	if (table->profile->tracks_inuse)
		put(table, "%9s  %5s  %8s  %9s  %s", bytes, error, objects, alloc, text);
	else
		put(table, "%9s  %5s  %8s  %s", bytes, error, objects, text);
}

/* The numbers of `site` and then `text`. */
static void put_row(const struct table *table, const struct site *site, const char *text)
{
	char bytes[16], error[16], objects[16], alloc[16];

	put_columns(table, top_bytes(site->bytes, bytes), error_text(table, site, error),
		    count_text(site->objects, objects), top_bytes(site->alloc_bytes, alloc), text);
}

/* Names the callers of a site, those of the stack that holds most; false: it has none. */
static bool put_chain(const struct table *table, const struct site *site, FILE *out)
{
	struct sites_position position = site->position;
	size_t cnt = 0, skipped = 0;

	while (sites_to_caller(table->profile, site->largest, &position)) {
		if (sites_is_plumbing(table->profile, site->largest, position)) {
			skipped++;
			continue;
		}
		if (skipped)
			fprintf(out, " <- (%zu std)", skipped);
		skipped = 0;
		if (cnt++ == CALLERS_MAX) {
			fputs(" <- ..", out);
			return true;
		}
		fputs(" <- ", out);
		sites_put_name(table->profile, site->largest, position, out);
	}
	if (skipped)
		fprintf(out, " <- (%zu std)", skipped);
	return cnt || skipped;
}

/* The second line of a site: how it was reached. */
static void put_callers(const struct table *table, const struct site *site)
{
	_cleanup_free_ char *line = NULL;
	bool has_callers;
	size_t len;
	FILE *stream = open_memstream(&line, &len);

	if (!stream) {
		put(table, NO_MEMORY);
		return;
	}
	fprintf(stream, "%*s", table->profile->tracks_inuse ? 39 : 28, "");
	has_callers = put_chain(table, site, stream);
	if (site->cnt > 1)
		fprintf(stream, "  (largest of %zu stacks)", site->cnt);
	if (!close_memstream(stream, &line))
		put(table, NO_MEMORY);
	else if (has_callers)
		put_line(table, line);
}

static void put_header(const struct table *table)
{
	const struct profile *profile = table->profile;
	char rate[16];

	if (profile->rate_bytes <= 1)
		snprintf(rate, sizeof(rate), "allocation");
	else
		top_bytes((double)profile->rate_bytes, rate);
	put(table, "%s (pid %d), %.1f s, one sample per %s", profile->comm, (int)profile->tgid,
	    (double)profile->duration_ns / 1e9, rate);
}

/* Whole lines on any terminal: their ends say what to do. */
static void put_counts(const struct table *table, const char *what,
		       const struct profile_count *counts, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		fprintf(table->out, "%s: %" PRIu64 " %s: %s\n", what, counts[i].count,
			counts[i].name, counts[i].text);
}

/* How whole the stacks are, and what the numbers lack, each with its meaning. */
static void put_losses(const struct table *table)
{
	const struct profile *profile = table->profile;
	double all = (double)profile->raw_allocs;

	/* Rounded down: 100 % is claimed of all stacks only. */
	if (profile->raw_allocs)
		put(table, "stacks: %.1f%% complete (%" PRIu64 " of %" PRIu64 " samples)",
		    floor(1000 * (double)profile->raw_complete / all) / 10, profile->raw_complete,
		    profile->raw_allocs);
	put_counts(table, "cut", profile->cuts, profile->cut_cnt);
	put_counts(table, "lost", profile->losses, profile->loss_cnt);
}

/* The `rows` largest sites, what the others have, and the sum. */
static void put_sites(const struct table *table, const struct sites *sites, size_t rows)
{
	struct site rest = {0};

	for (size_t i = 0; i < sites->cnt; i++) {
		const struct site *site = &sites->sites[i];

		if (i < rows && site->objects > 0) {
			put_row(table, site, site->name);
			put_callers(table, site);
		} else {
			sites_add(site, &rest);
		}
	}
	if (rest.cnt) {
		char text[64];

		snprintf(text, sizeof(text), "(%zu more site%s)", rest.cnt,
			 rest.cnt == 1 ? "" : "s");
		put_row(table, &rest, text);
	}
	put_row(table, &sites->sum, "total");
}

/* One table, by what table->profile tracks. */
static void put_table(const struct table *table, size_t rows)
{
	_cleanup_(sites_clear) struct sites sites = {0};

	put_columns(table, table->profile->tracks_inuse ? "INUSE" : "ALLOC", "+/-", "OBJECTS",
		    "ALLOC", "SITE");
	if (sites_make(table->profile, &sites))
		put(table, "(no memory for the table)");
	else
		put_sites(table, &sites, rows);
}

void top_write(const struct profile *profile, size_t rows, unsigned width, FILE *out)
{
	struct table table = {.profile = profile, .width = width, .out = out};
	/* The same numbers seen as -t allocs would: what comes and goes holds nothing. */
	struct profile allocs = *profile;

	allocs.tracks_inuse = false;
	put_header(&table);
	put_table(&table, rows);
	if (profile->tracks_inuse) {
		table.profile = &allocs;
		put_table(&table, rows);
		table.profile = profile;
	}
	put_losses(&table);
}
