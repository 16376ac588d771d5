// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a session that is over. Out: one profile per process and type, a table for people, an exit
 * status.
 */
#include "finish.h"

#include "contain.h"
#include "heap.h"
#include "log.h"
#include "opts.h"
#include "output.h"
#include "session.h"
#include "symbolize.h"
#include "target.h"
#include "top.h"
#include "windows.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

static unsigned terminal_width(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ? 0 : size.ws_col;
}

/* What was not recorded, for the budget's sake. */
static void show_coverage(const struct profile_coverage *coverage, const struct finish_clock *clock,
			  FILE *out)
{
	if (!coverage->window_cnt)
		return;
	fprintf(out,
		"recorded: %.2f of %.2f s in %u window%s; all of it would have cost %.0f%% of the "
		"processes' time (--max-overhead none)\n",
		coverage->seen_ns / 1e9, clock->duration_ns / 1e9, coverage->window_cnt,
		coverage->window_cnt == 1 ? "" : "s", 100 * coverage->full_share);
	if (coverage->bursts)
		fputs("in use: allocated in one of the windows and alive at its end\n", out);
}

/* What the probes took from the machine, by the cost measured at the start. */
static void show_cost(const struct session *session, const struct finish_clock *clock,
		      const uint64_t counters[static HB_COUNTER_CNT], FILE *out)
{
	const struct loader_cost *cost = &session->cost;
	uint64_t emulated = counters[HB_LOSS_CNT + HB_STAT_HITS];
	uint64_t stepped = counters[HB_LOSS_CNT + HB_STAT_STEPPED_HITS];
	double spent_ns = loader_spent_ns(cost, counters);
	double seconds = clock->duration_ns / 1e9;

	fprintf(out, "probes: %.0f hits/s", (emulated + stepped) / seconds);
	if (cost->emulated_ns > 0)
		fprintf(out, " at %.2f us (measured here): %.1f%% of one core",
			cost->emulated_ns / 1e3, 100 * spent_ns / clock->duration_ns);
	if (stepped)
		fprintf(out, "; %llu hits single-stepped at %.1f us", (unsigned long long)stepped,
			cost->stepped_ns / 1e3);
	fputc('\n', out);
}

/* What one target's profile is made of. */
struct finishing {
	const struct session *session;
	const struct target *target;
	const struct heap *heap;
	struct profile_coverage coverage;
	const struct finish_clock *clock;
	const uint64_t *counters;
	struct symbolizer *symbolizer; /* NULL: without names */
};

/* heap_profile(), and if names are what we lack memory or descriptors for, without them. */
static int make_profile(const struct finishing *f, const struct heap_source *source, bool *partial,
			struct profile *profile)
{
	const struct mappings *mappings = &f->target->mappings;
	int err = heap_profile(f->heap, source, mappings, f->symbolizer, profile);

	if (!err || !f->symbolizer)
		return err;
	log_warn("process %d (%s): no memory, or no descriptors, for names; the profile has "
		 "addresses only",
		 (int)f->target->tgid, f->target->comm);
	*partial = true;
	return heap_profile(f->heap, source, mappings, NULL, profile);
}

/* Makes, writes and shows the profile of one target. */
static int finish_target(const struct finishing *f, bool *partial)
{
	const struct session *session = f->session;
	const struct target *target = f->target;
	const struct finish_clock *clock = f->clock;
	const struct opts *opts = session->opts;
	FILE *out = output_people(opts);
	struct heap_source source = {
		.tgid = target->tgid,
		.comm = target->comm,
		.rate_bytes = opts->rate_bytes,
		.time_ns = clock->wall_ns,
		.duration_ns = clock->duration_ns,
		.tracks_inuse = session->track_live,
		.epoch = target->epoch,
		.counters = f->counters,
		.memory = target->memory,
		.coverage = f->coverage,
	};
	struct profile profile = {};
	int err;

	err = make_profile(f, &source, partial, &profile);
	if (err)
		return log_fail(-err, "cannot make the profile");
	err = output_write(opts, target, &profile);
	if (!opts->quiet && opts->top)
		top_write(&profile, opts->top, terminal_width(), out);
	*partial |= profile_is_partial(&profile);
	profile_clear(&profile);
	return err;
}

/* In the result of finish_one(), beside enum opts_exit: why is said. */
#define SAID 4

/* finish_target(), whose result another process understands. */
static int finish_one(void *data)
{
	bool partial = false;
	enum opts_exit status = OPTS_EXIT_FAILED;

	if (!finish_target(data, &partial))
		status = partial ? OPTS_EXIT_PARTIAL : OPTS_EXIT_WHOLE;
	if ((fflush(stdout) || ferror(stdout)) && status != OPTS_EXIT_FAILED) {
		log_fail(errno, "cannot write to standard output");
		status = OPTS_EXIT_PARTIAL;
	}
	return status | (log_failed() ? SAID : 0);
}

/* The same in a copy of us, since it reads files that anybody wrote; once more if that breaks it.
 */
static enum opts_exit finish_contained(struct finishing *f)
{
	bool crashed;
	int result;

	crashed = !contain_call(finish_one, f, &result);
	if (crashed) {
		log_warn("process %d (%s): names cannot be read, a library crashed; the profile "
			 "has addresses only",
			 (int)f->target->tgid, f->target->comm);
		f->symbolizer = NULL;
		result = finish_one(f);
	}
	if (result & SAID)
		log_set_failed();
	result &= ~SAID;
	return crashed && result == OPTS_EXIT_WHOLE ? OPTS_EXIT_PARTIAL : (enum opts_exit)result;
}

enum opts_exit finish(const struct session *session, const struct windows *windows,
		      const struct finish_clock *clock)
{
	const struct profile_coverage coverage = windows_coverage(windows);
	FILE *out = output_people(session->opts);
	uint64_t counters[HB_COUNTER_CNT];
	bool partial = false, failed = false;

	loader_counters(session->loader, counters);
	for (size_t i = 0; i < session->targets.cnt; i++) {
		struct finishing finishing = {
			.session = session,
			.target = session->targets.all[i],
			.heap = session->targets.all[i]->heap,
			.coverage = coverage,
			.clock = clock,
			.counters = counters,
			.symbolizer = session->symbolizer,
		};
		enum opts_exit status = finish_contained(&finishing);

		partial |= status == OPTS_EXIT_PARTIAL;
		failed |= status == OPTS_EXIT_FAILED;
	}
	if (!session->opts->quiet && session->opts->top) {
		show_coverage(&coverage, clock, out);
		show_cost(session, clock, counters, out);
	}
	partial |= session->incomplete;
	return failed ? OPTS_EXIT_FAILED : partial ? OPTS_EXIT_PARTIAL : OPTS_EXIT_WHOLE;
}
