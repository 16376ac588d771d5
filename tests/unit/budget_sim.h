/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Made-up targets for the tests of the budget: what they do is worked out millisecond by
 * millisecond, with windows as the budget wants them.
 */
#ifndef BUDGET_SIM_H
#define BUDGET_SIM_H

#include "budget.h"

#include "cleanup.h"
#include "spread.h"
#include "xorshift.h"

#include <math.h>

#define MS     1000000LL
#define SECOND (1000 * MS)

/* Calls per nanosecond of own work at a time; each costs COST_NS while it is probed. */
#define COST_NS 1200.0
typedef double rate_fn(double seconds);

static double steady_rate(double seconds)
{
	(void)seconds;
	return 0.8e-3;
}

static double wave_rate(double seconds)
{
	return 0.4e-3 * (1 + sin(2 * M_PI * seconds / 3.7));
}

/* Busy for a tenth of each second, just as long as a period. */
static double pulse_rate(double seconds)
{
	return fmod(seconds, 1) < 0.1 ? 0.8e-3 : 0.02e-3;
}

static double step_rate(double seconds)
{
	return seconds < 10 ? 1e-6 : 0.8e-3;
}

static double rising_rate(double seconds)
{
	return 0.8e-3 * seconds / 30;
}

static double idle_rate(double seconds)
{
	(void)seconds;
	return 0;
}

static rate_fn *const rates[] = {steady_rate, wave_rate, pulse_rate, step_rate, rising_rate};

/* What a recording of a target came to. */
struct outcome {
	double calls, counted; /* there were; estimated */
	double probe_ns, cpu_ns;
	double longest_s, seen_s;
	int windows;
	double rate_factor; /* the least */
	double told;	    /* what the estimate may be off by, as it says itself; calls */
};

/* How a recording is made. */
struct setup {
	double limit;
	bool bursts, known_end, busy;
	int seconds, delay_ms; /* the latter to put the probes in */
	uint64_t seed;
	int64_t turn_ns;
	double part;	   /* of the processes, all alike, are recorded at a time; 0: all */
	double cost_error; /* the cost of a hit is believed to be larger by so much of it */
	bool noisy;	   /* the machine changes its speed, and is late at times */
};

/* The speed of a noisy machine at a time: each tenth of a second another one, 0.5 to 1.3. */
static double speed_at(const struct setup *setup, double seconds)
{
	uint64_t state = (uint64_t)(seconds * 10) * 0x9e3779b97f4a7c15ULL ^ (setup->seed | 1);

	xorshift_next(&state);
	return setup->noisy ? 0.5 + 0.8 * (double)xorshift_next(&state) * 0x1p-53 : 1;
}

/*
 * A millisecond of a target that is `busy` all the time, or else has so much to do each
 * millisecond: its calls, given the rate per nanosecond of own work, which goes to *own_ns.
 */
static double live(rate_fn *rate, const struct setup *setup, double seconds, bool probed,
		   double *own_ns)
{
	double per_ns = rate(seconds), speed = speed_at(setup, seconds);

	*own_ns = 0.3 * MS / speed;
	if (setup->busy)
		*own_ns = MS / (1 + (probed ? per_ns * COST_NS * speed : 0));
	return per_ns * *own_ns * speed;
}

/*
 * A millisecond of all processes, of which `part` are probed; what that comes to is added to *out
 * and *load. The calls that were probed.
 */
static double live_all(rate_fn *rate, const struct setup *setup, double seconds, double part,
		       struct outcome *out, struct work_load *load)
{
	double own_ns, probed_ns, calls, probed_calls;

	calls = (1 - part) * live(rate, setup, seconds, false, &own_ns);
	probed_calls = part * live(rate, setup, seconds, true, &probed_ns);
	probed_ns = part * probed_ns + probed_calls * COST_NS;
	out->calls += calls + probed_calls;
	load->cpu_ns += (1 - part) * own_ns + probed_ns;
	load->probed_cpu_ns += probed_ns;
	load->probe_ns += probed_calls * COST_NS * (1 + setup->cost_error);
	return probed_calls;
}

/* How many milliseconds probes take to come at a time. */
static int delay_of(const struct setup *setup, int64_t now_ns)
{
	uint64_t state = (uint64_t)now_ns * 0x9e3779b97f4a7c15ULL ^ (setup->seed | 1);

	xorshift_next(&state);
	return setup->delay_ms + (setup->noisy && xorshift_next(&state) % 4 == 0 ? 80 : 0);
}

/* What the calls that were seen stand for. */
struct count {
	double estimate;
	struct spread_periods periods;
	struct spread spread;
};

/* A period ended, in which `*raw` were seen. */
static void count(struct count *all, const struct work_period *period, double coverage, double *raw)
{
	double estimate = *raw > 0 ? *raw / coverage : 0;

	spread_period(&all->periods, coverage, period->inside_ns + period->outside_ns);
	spread_add(&all->periods, &all->spread, estimate);
	all->estimate += estimate;
	*raw = 0;
}

static double error_of(const struct count *all)
{
	double factor = spread_factor(&all->periods), squares = 0;

	for (int i = 0; i < SPREAD_CNT; i++)
		squares += pow(factor * (double)all->spread.replicate[i], 2);
	return sqrt(squares / SPREAD_CNT);
}

/* The caller of budget. */
static struct outcome record(rate_fn *rate, const struct setup *setup)
{
	int64_t start = 5 * SECOND, end = start + setup->seconds * SECOND, now;
	double raw = 0, opened_s = 0, coverage, part = setup->part > 0 ? setup->part : 1;
	struct outcome out = {.rate_factor = 1};
	struct work_load load = {0};
	struct work_period period;
	struct budget budget;
	struct budget_opts opts = {
		.limit = setup->limit,
		.bursts = setup->bursts,
		.end_ns = setup->known_end ? end : 0,
		.turn_ns = setup->turn_ns,
		.seed = setup->seed,
	};
	struct count all = {0};
	int open_in = -1;

	live(rate, setup, 0, false, &opts.cpu_rate);
	opts.cpu_rate /= MS;
	budget_start(&budget, &opts, start);
	/* Who puts probes in does nothing else, even if the time is over. */
	for (now = start; now < end || (setup->known_end && open_in >= 0); now += MS) {
		if (open_in < 0 && (now >= budget_next_ns(&budget) || now == start)) {
			struct budget_step step = budget_step(&budget, now, &load);

			if (step.close) {
				budget_closed(&budget, now, &load);
				out.longest_s = fmax(out.longest_s, now / 1e9 - opened_s);
				open_in = -1;
			}
			if (step.settle && raw > 0 && !(step.coverage > 0 && step.coverage <= 1))
				abort();
			if (step.settle)
				count(&all, &step.period, step.coverage, &raw);
			if (step.open)
				open_in = now == start ? 0 : delay_of(setup, now);
		}
		if (open_in >= 0 && open_in-- == 0 && !budget_is_over(&budget, now)) {
			budget_opened(&budget, now, &load, part);
			opened_s = now / 1e9;
			out.rate_factor = fmin(out.rate_factor, budget_rate_factor(&budget));
		}
		raw += live_all(rate, setup, (now - start) / 1e9, budget.opened_ns ? part : 0, &out,
				&load);
	}
	if (budget.opened_ns) {
		budget_closed(&budget, now, &load);
		out.longest_s = fmax(out.longest_s, now / 1e9 - opened_s);
	}
	period = budget_finish(&budget, now);
	coverage = work_seen(&budget.work, &period, &load);
	count(&all, &period, coverage, &raw);
	out.counted = all.estimate;
	out.told = error_of(&all);
	out.probe_ns = load.probe_ns;
	out.cpu_ns = load.cpu_ns;
	out.windows = (int)budget.window_cnt;
	out.seen_s = budget.total_seen_ns / 1e9;
	return out;
}

#endif
