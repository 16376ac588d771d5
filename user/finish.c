// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a session that is over. Out: one profile per process and type, a table for people, an exit
 * status.
 */
#include "finish.h"

#include "cleanup.h"
#include "contain.h"
#include "heap.h"
#include "log.h"
#include "opts.h"
#include "output.h"
#include "perf_map.h"
#include "processes.h"
#include "session.h"
#include "symbolize.h"
#include "target.h"
#include "top.h"
#include "windows.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned terminal_width(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ? 0 : size.ws_col;
}

static int show_line(const char *line, void *out)
{
	return fprintf(out, "%s\n", line) < 0 ? -EIO : 0;
}

/* What the probes took from the machine, and from the processes. */
static void show_cost(const struct windows_cost *cost, double limit, int64_t duration_ns, FILE *out)
{
	uint64_t hits = cost->hits + cost->stepped_hits;

	fprintf(out, "probes: %.0f hits/s", (double)hits / ((double)duration_ns / 1e9));
	if (cost->emulated_ns > 0)
		fprintf(out, " at %.2f us (measured here): %.1f%% of one core",
			cost->emulated_ns / 1e3, 100 * cost->probe_ns / (double)duration_ns);
	if (cost->emulated_ns > 0 && cost->cpu_ns > 0) {
		fprintf(out, ", %.1f%% of the processes' time",
			100 * fmin(cost->probe_ns / cost->cpu_ns, 1));
		if (!isinf(limit))
			fprintf(out, " (%g%% allowed)", 100 * limit);
	}
	if (cost->stepped_hits)
		fprintf(out, "; %" PRIu64 " hits single-stepped at %.1f us", cost->stepped_hits,
			cost->stepped_ns / 1e3);
	fputc('\n', out);
}

/* What one target's profile is made of. */
struct finishing {
	const struct session *session;
	const struct target *target;
	bool shows; /* the table of its sites, too */
	const struct windows *windows;
	const struct finish_clock *clock;
	const uint64_t *counters;
	struct symbolizer *symbolizer; /* NULL: without names */
};

/* heap_profile(), and if names are what we lack memory or descriptors for, without them. */
static int make_profile(const struct finishing *f, const struct heap_source *source, bool *partial,
			struct profile *profile)
{
	const struct mappings *mappings = &f->target->mappings;
	int err = heap_profile(f->target->heap, source, mappings, f->symbolizer, profile);

	if (!err || !f->symbolizer)
		return err;
	log_warn("process %d (%s): no memory, or no descriptors, for names; the profile has "
		 "addresses only",
		 (int)f->target->tgid, f->target->comm);
	*partial = true;
	return heap_profile(f->target->heap, source, mappings, NULL, profile);
}

/* Makes, writes and shows the profile of one target. */
static int finish_target(const struct finishing *f, bool *partial)
{
	const struct session *session = f->session;
	const struct target *target = f->target;
	const struct finish_clock *clock = f->clock;
	const struct opts *opts = session->opts;
	FILE *out = output_people(opts);
	const struct perf_map_owner owner = {
		.tgid = target->tgid,
		.comm = target->comm,
		.inner_tgid = target->whereabouts.inner_tgid,
		.root_fd = target->whereabouts.root_fd,
		.uid = target->whereabouts.uid,
		.begun_ns = target->begun_ns,
		.ended_ns = target->ended_ns,
	};
	struct heap_source source = {
		.tgid = target->tgid,
		.comm = target->comm,
		.rate_bytes = opts->rate_bytes,
		.time_ns = clock->wall_ns,
		.duration_ns = clock->duration_ns,
		.tracks_inuse = session->track_live,
		.epoch = target->epoch,
		.owner = &owner,
		.counters = f->counters,
		.memory = target->memory,
		.coverage = windows_coverage(f->windows, target),
	};
	struct profile profile = {};
	int err;

	err = make_profile(f, &source, partial, &profile);
	if (err)
		return log_fail(-err, "cannot make the profile");
	err = output_write(opts, target, &profile);
	if (!opts->quiet && opts->top && f->shows)
		top_write(&profile, opts->top, terminal_width(), out);
	*partial |= profile_is_partial(&profile);
	profile_clear(&profile);
	return err;
}

/* In a result, beside enum opts_exit: why is said. */
#define SAID 4

/* Targets whose profiles are made one after the other, in a copy of us. */
struct batch {
	struct finishing *all;
	size_t cnt;
	/* Shared with the copy: the next one, and the results of those before. */
	struct batch_progress {
		size_t next;
		uint8_t results[];
	} * progress;
};

/* finish_target(), whose result another process understands. */
static uint8_t finish_one(const struct finishing *f)
{
	bool partial = false;
	enum opts_exit status = OPTS_EXIT_FAILED;

	if (!finish_target(f, &partial))
		status = partial ? OPTS_EXIT_PARTIAL : OPTS_EXIT_WHOLE;
	if ((fflush(stdout) || ferror(stdout)) && status != OPTS_EXIT_FAILED) {
		log_fail(errno, "cannot write to standard output");
		status = OPTS_EXIT_PARTIAL;
	}
	return status | (log_failed() ? SAID : 0);
}

static int finish_some(void *data)
{
	const struct batch *batch = data;
	struct batch_progress *progress = batch->progress;

	for (; progress->next < batch->cnt; progress->next++)
		progress->results[progress->next] = finish_one(&batch->all[progress->next]);
	return 0;
}

/* The one that broke the copy once more, without what breaks: other people's files. */
static void finish_without_names(const struct batch *batch)
{
	struct batch_progress *progress = batch->progress;
	struct finishing *f = &batch->all[progress->next];

	log_warn("process %d (%s): names cannot be read, a library crashed; the profile has "
		 "addresses only",
		 (int)f->target->tgid, f->target->comm);
	f->symbolizer = NULL;
	progress->results[progress->next] = finish_one(f);
	if ((progress->results[progress->next] & ~SAID) == OPTS_EXIT_WHOLE)
		progress->results[progress->next] |= OPTS_EXIT_PARTIAL;
	progress->next++;
}

/* All of them in a copy of us, since it reads files that anybody wrote. */
static enum opts_exit finish_contained(struct batch *batch)
{
	size_t bytes = sizeof(*batch->progress) + batch->cnt;
	struct batch_progress *progress =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool partial = false, failed = false;
	int result;

	if (progress == MAP_FAILED)
		return OPTS_EXIT_FAILED;
	batch->progress = progress;
	while (progress->next < batch->cnt)
		if (!contain_call(finish_some, batch, &result))
			finish_without_names(batch);
	for (size_t i = 0; i < batch->cnt; i++) {
		if (progress->results[i] & SAID)
			log_set_failed();
		partial |= (progress->results[i] & ~SAID) == OPTS_EXIT_PARTIAL;
		failed |= (progress->results[i] & ~SAID) == OPTS_EXIT_FAILED;
	}
	munmap(progress, bytes);
	return failed ? OPTS_EXIT_FAILED : partial ? OPTS_EXIT_PARTIAL : OPTS_EXIT_WHOLE;
}

/* Of several that were not named only the largest is shown site by site. */
static bool shows_sites(const struct processes_row *row, size_t index)
{
	return !row->target->joined || !index;
}

/* Every profile. */
static enum opts_exit finish_all(const struct session *session, const struct processes *processes,
				 const struct finishing *common)
{
	_cleanup_free_ struct finishing *all = calloc(processes->cnt + 1, sizeof(*all));
	struct batch batch = {.all = all, .cnt = processes->cnt};

	if (!all)
		return OPTS_EXIT_FAILED;
	for (size_t i = 0; i < processes->cnt; i++) {
		all[i] = *common;
		all[i].target = processes->rows[i].target;
		all[i].shows = shows_sites(&processes->rows[i], i);
		if (session->everybody)
			target_prepare_symbols(all[i].target, session->symbolizer);
	}
	return finish_contained(&batch);
}

/* What the numbers lack, where no table says it. True if they lack anything. */
static bool tell_losses(const uint64_t *counters)
{
#define LOSS(id, name, text) {HB_LOSS_##id, name, text},
	static const struct {
		enum hb_loss id;
		const char *name, *text;
	} losses[] = {HB_LOSS_LIST(LOSS)};
#undef LOSS
	bool any = false;

	for (size_t i = 0; i < ARRAY_CNT(losses); i++) {
		if (!counters[losses[i].id])
			continue;
		log_error("lost: %" PRIu64 " %s: %s", counters[losses[i].id], losses[i].name,
			  losses[i].text);
		any = true;
	}
	return any;
}

/* What people are told after the profiles. */
static void show(const struct session *session, const struct processes *processes,
		 const struct finishing *common)
{
	struct profile_coverage coverage = windows_coverage(common->windows, NULL);
	struct windows_cost cost = windows_cost(common->windows);
	FILE *out = output_people(session->opts);

	if (session->opts->quiet || !session->opts->top)
		return;
	if (opts_are_selected(session->opts) || processes->cnt > 1)
		processes_show(processes, session, session->opts->top, out);
	profile_coverage_notes(&coverage, common->clock->duration_ns, show_line, out);
	show_cost(&cost, session->opts->max_overhead, common->clock->duration_ns, out);
}

enum opts_exit finish(const struct session *session, const struct windows *windows,
		      const struct finish_clock *clock)
{
	struct processes processes _cleanup_(processes_clear) = {};
	uint64_t counters[HB_COUNTER_CNT];
	struct finishing common = {
		.session = session,
		.windows = windows,
		.clock = clock,
		.counters = counters,
		.symbolizer = session->symbolizer,
	};
	enum opts_exit status;
	bool lost = false;

	loader_counters(session->loader, counters);
	if (processes_make(session, &processes))
		return OPTS_EXIT_FAILED;
	status = finish_all(session, &processes, &common);
	/* The profiles are there without it. */
	if (opts_are_selected(session->opts) && processes_write(&processes, session) &&
	    status == OPTS_EXIT_WHOLE)
		status = OPTS_EXIT_PARTIAL;
	if (session->opts->quiet || !session->opts->top || !processes.cnt)
		lost = tell_losses(counters);
	show(session, &processes, &common);
	return status == OPTS_EXIT_WHOLE && (session->incomplete || lost) ? OPTS_EXIT_PARTIAL
									  : status;
}
