/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The overhead contract: decides when probes are in place, so that their cost stays below a share
 * of the processor time of the targets. Pure arithmetic over times and loads that the caller
 * measures; times are monotonic nanoseconds.
 *
 * Time is cut into periods, and each has a window in which everything is recorded: all of it if
 * that is affordable, else as much as is, which the cost of earlier windows tells.
 *   slices (allocs)  a period a second; the window begins anywhere and goes on at the other end,
 *                    so that each moment has the same chance to be seen. Counts divided by the
 *                    share of the period that was seen are unbiased (Horvitz-Thompson).
 *   bursts (in use)  one window a period, never divided: what was allocated in it and is alive at
 *                    its end is known. Periods are long enough to pay for a second, where the
 *                    recording has the time for that, and no burst is so long that a busy target
 *                    loses more than two seconds at a stretch.
 * The first period is a short look that tells what there is to pay. A period in which nothing was
 * seen, since the probes came too late for its window, is one with the next.
 *
 * What was seen of the time is not what was seen of the work: work.h.
 */
#ifndef BUDGET_H
#define BUDGET_H

#include "work.h"

#include <stdbool.h>
#include <stdint.h>

/* The plan and what is known; for budget.c, and for tests and reports to read. */
struct budget {
	double limit; /* share of the targets' time that is planned for, above 0; INFINITY: none */
	bool bursts;
	bool looking;	 /* in the first period */
	bool has_look;	 /* it was a look only: no burst */
	bool is_partial; /* not all of the time was, or will be, recorded */
	int64_t end_ns;	 /* of the recording; 0: unknown */
	int64_t turn_ns; /* a period that is recorded whole lasts so long; 0: to the next change */
	int64_t step_ns; /* of the last step */
	int64_t period_ns; /* where the period begins */
	int64_t since_ns;  /* the same, or where earlier ones began in which nothing was seen */
	int64_t length_ns;
	int64_t window_ns; /* of the period; length_ns: all of it */
	int64_t offset_ns; /* where in the period the window begins */
	int64_t opened_ns; /* since when the window is open, or the period, if later; 0: closed */
	double part;	   /* of the processes are recorded in the window */
	int64_t seen_ns;   /* since `since_ns`, for how long windows were open */
	double part_ns;	   /* the same, each window times its part */
	int64_t total_seen_ns;
	uint32_t window_cnt; /* windows that were opened */
	double on_rate;	     /* cost of windows, coming and going included: probe_ns per ns open */
	double cpu_rate;     /* cpu_ns per nanosecond, of targets that are hardly probed */
	struct work work;    /* of all targets */
	uint64_t random;     /* state of the generator */
};

/* What the caller is to do now, in this order. */
struct budget_step {
	bool close;    /* end the window: stop recording, take the probes out */
	bool settle;   /* a period ended: count what was seen in it, and in those before it */
	bool was_look; /* it was too short for what is in use at its end to mean anything */
	struct work_period period; /* what was seen of the time, and */
	double coverage;	   /* of the work of all processes; 0: nothing */
	bool begins;		   /* a period begins: what processes do counts anew */
	bool open;		   /* begin a window: put the probes in, record */
};

/* What a recording is to be like. */
struct budget_opts {
	double limit;	 /* share of the targets' time, above 0; INFINITY: none */
	bool bursts;	 /* else slices */
	int64_t end_ns;	 /* 0: nobody knows */
	int64_t turn_ns; /* the processes take turns in being recorded, so there is a new window at
			    least so often, whatever can be afforded; 0: they do not */
	double cpu_rate; /* of the targets while nothing was probed, cpu_ns per ns; 0: unknown */
	uint64_t seed;	 /* for the windows' places */
};

/* Begins at `now`: the first step of budget_step() follows at once. */
void budget_start(struct budget *budget, const struct budget_opts *opts, int64_t now_ns);

/* When budget_step() is to be called next; INT64_MAX: never, all of it is recorded. */
int64_t budget_next_ns(const struct budget *budget);

/* The step that is due at `now`. Windows that it says to open or close must be reported. */
struct budget_step budget_step(struct budget *budget, int64_t now_ns, const struct work_load *load);

/*
 * The end that was known has come: no window begins any more, not even one whose probes were still
 * on their way, except the first one.
 */
bool budget_is_over(const struct budget *budget, int64_t now_ns);

/* The window is open since `now`, for `part` (above 0, at most 1) of the processes. */
void budget_opened(struct budget *budget, int64_t now_ns, const struct work_load *load,
		   double part);

/* It was closed at `now`. */
void budget_closed(struct budget *budget, int64_t now_ns, const struct work_load *load);

/* The recording ended, and the last window with it: what was seen of the time not settled yet. */
struct work_period budget_finish(const struct budget *budget, int64_t now_ns);

/*
 * What the period's rate is to be multiplied with, at most 1: fewer bytes per sample in a window
 * give as many samples as all of the period would.
 */
double budget_rate_factor(const struct budget *budget);

#endif
