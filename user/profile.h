/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A finished profile of one process, in memory: what heap builds and every writer (pprof, text,
 * top) reads. Sorted and complete, so that equal data gives equal bytes.
 */
#ifndef PROFILE_H
#define PROFILE_H

#include "spread.h"
#include "symbolize.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* What is printed of a name; readers of text have a limit per line (64 KiB in go tool pprof). */
#define PROFILE_TEXT_MAX 4096

/* The four numbers of a sample, in the order of Go's heap profile. */
enum profile_value {
	PROFILE_ALLOC_OBJECTS,
	PROFILE_ALLOC_SPACE,
	PROFILE_INUSE_OBJECTS,
	PROFILE_INUSE_SPACE,
	PROFILE_VALUE_CNT,
};

/* Which of them a file holds. */
enum profile_type {
	PROFILE_HEAP,	/* all four, default inuse_space */
	PROFILE_ALLOCS, /* alloc_*, default alloc_space */
	PROFILE_INUSE,	/* inuse_*, default inuse_space; samples with nothing in use left out */
	PROFILE_TYPE_CNT,
};

/* A mapped file. */
struct profile_mapping {
	uint64_t start, limit, off; /* as in /proc/PID/maps */
	char *file;		    /* owned */
	char *build_id;		    /* owned, lower-case hex; "" if none */
	bool has_functions, has_filenames, has_lines, has_inline_frames;
};

/* One address, or a marker for the cut root of a stack (pc 0, one frame "[reason]"). */
struct profile_location {
	uint64_t pc;		       /* for callers: return address - 1 */
	size_t mapping;		       /* index + 1 in mappings; 0: none */
	struct symbolize_result names; /* borrowed; cnt 0: only the address is known */
};

/* Objects as they were seen, and what they stand for. */
struct profile_tally {
	uint64_t raw;
	double estimate,
		variance; /* objects, objects squared; variance 0: nothing was left to chance */
};

/* One (stack, size); no two samples of a profile have equal locations and size. */
struct profile_sample {
	const uint32_t *locations; /* indices in locations, leaf first; into location_pool */
	size_t location_cnt;
	uint64_t size_bytes;		   /* of each object */
	struct profile_tally allocs;	   /* sampled objects */
	struct profile_tally inuse;	   /* of these, still in use */
	int64_t values[PROFILE_VALUE_CNT]; /* estimates */
	float replicate[SPREAD_CNT];	   /* of allocs, objects; 0 where all was seen */
};

/* A number with a name: cuts, losses, statistics, for comments and trailers. */
struct profile_count {
	uint32_t id;	  /* enum hb_loss or enum hb_stat, by the list it is in */
	const char *name; /* static */
	const char *text; /* static: what it means */
	uint64_t count;
};

/* What the kernel says of the process, bytes; 0 where unknown. */
struct profile_memory {
	uint64_t rss_bytes, heap_bytes, anonymous_bytes;
	int64_t read_ns; /* when, since the start of the recording */
};

/* How much of the time was recorded, where a budget allowed only a part. */
struct profile_coverage {
	uint32_t window_cnt; /* 0: all of it */
	int64_t seen_ns;     /* in all windows */
	double full_share;   /* of the targets' processor time that all of it would have cost */
	double scale_error; /* totals of what was allocated may be off by this factor; at least 1 */
	uint32_t share;	    /* so many processes at a time; 0: all */
	/* In use are objects allocated in a window and alive at its end, the mean of windows. */
	bool bursts;
	bool knows_spread; /* the errors of what was allocated include that of other moments */
};

/* The whole. Owns all arrays; strings in names belong to the symbolizer, which must live on. */
struct profile {
	pid_t tgid;
	char *comm; /* owned */
	uint64_t rate_bytes;
	int64_t time_ns; /* wall clock of the start, since 1970 */
	int64_t duration_ns;
	struct profile_coverage coverage;
	bool tracks_inuse;		  /* false: allocs mode, inuse values are meaningless */
	struct profile_mapping *mappings; /* those that locations use, sorted by start */
	size_t mapping_cnt;
	struct profile_location *locations; /* in order of first use by samples */
	size_t location_cnt;
	struct profile_sample *samples; /* sorted by the stacks' PCs, leaf first, then size */
	size_t sample_cnt;
	uint64_t raw_allocs;	    /* sampled objects in all samples */
	uint64_t raw_complete;	    /* of these, with a stack that reaches the outermost frame */
	struct profile_count *cuts; /* HB_CUT_LIST, those that are not 0 */
	size_t cut_cnt;
	struct profile_count *losses; /* HB_LOSS_LIST, those that are not 0 */
	size_t loss_cnt;
	struct profile_count *stats; /* all of HB_STAT_LIST */
	size_t stat_cnt;
	struct profile_memory memory;
	uint32_t *location_pool; /* backing of the samples' locations */
};

/* "heap", "allocs", "inuse". Static. */
const char *profile_type_name(enum profile_type type);

/* The first value of a view and how many it has: values[first..first + cnt - 1]. */
struct profile_view {
	size_t first, cnt;
};

/* Which values `type` shows. */
struct profile_view profile_view(enum profile_type type);

/* True if a value of `sample` that `type` shows is not 0: only such samples are written. */
bool profile_shows(const struct profile_sample *sample, enum profile_type type);

/* Sums values[value] over all samples; saturates. */
int64_t profile_total(const struct profile *profile, enum profile_value value);

/* How far a sum of samples' bytes may be off. Zeroed, it is a sum of none. */
struct profile_error {
	double variance;	      /* by chance, which allocations were sampled; bytes squared */
	double replicate[SPREAD_CNT]; /* by chance, which moments, too; bytes */
};

/* Of what `sample` has in PROFILE_INUSE_SPACE (`inuse`) or PROFILE_ALLOC_SPACE. */
struct profile_error profile_error_of(const struct profile_sample *sample, bool inuse);

/* Adds that of other samples. */
void profile_error_add(struct profile_error *sum, const struct profile_error *error);

/* The standard error, bytes. */
double profile_standard_error(const struct profile_error *error);

/*
 * Calls emit(line, data) for each line that says what was recorded of `duration_ns`, and what that
 * means for the numbers; none if it was all. Returns, and emits, as profile_notes().
 */
int profile_coverage_notes(const struct profile_coverage *coverage, int64_t duration_ns,
			   int (*emit)(const char *line, void *data), void *data);

/*
 * Calls emit(line, data) for each line that says what the numbers are worth: version and process,
 * rate, how many stacks are complete, cuts, losses, statistics, memory. Stops and returns what emit
 * returns when that is not 0; -ENOMEM. A line has no newline and lives until emit returns.
 */
int profile_notes(const struct profile *profile, enum profile_type type,
		  int (*emit)(const char *line, void *data), void *data);

/*
 * Bytes of the character at `text`, 0 at what is not UTF-8 (RFC 3629) or a control character. Names
 * and paths are the target's, and not every byte of them is fit to be shown or stored.
 */
size_t profile_char_len(const char *text);

/* Writes `text` with '?' for bytes that are no character, cut at PROFILE_TEXT_MAX bytes. */
void profile_put_text(const char *text, FILE *out);

/* True if what was allocated is scaled from a part of the time, of all or of this process. */
bool profile_is_scaled(const struct profile *profile);

/* True if something was lost: the numbers are incomplete (exit 1). A cut stack is no loss. */
bool profile_is_partial(const struct profile *profile);

/* Frees what the profile owns and empties it. */
void profile_clear(struct profile *profile);

#endif
