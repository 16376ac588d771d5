// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The overhead contract against made-up targets, millisecond by millisecond: what is spent stays
 * within the limit, and what is counted in slices is, on average, what there was.
 */
#include "budget.h"

#include "check.h"
#include "cleanup.h"
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

/* The caller of budget. */
static struct outcome record(rate_fn *rate, const struct setup *setup)
{
	int64_t start = 5 * SECOND, end = start + setup->seconds * SECOND, now;
	double raw = 0, opened_s = 0, coverage, part = setup->part > 0 ? setup->part : 1;
	struct outcome out = {0};
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
			if (step.settle && raw > 0) {
				if (!(step.coverage > 0 && step.coverage <= 1))
					abort();
				out.counted += raw / step.coverage;
				raw = 0;
			}
			if (step.open)
				open_in = now == start ? 0 : delay_of(setup, now);
		}
		if (open_in >= 0 && open_in-- == 0 && !budget_is_over(&budget, now)) {
			budget_opened(&budget, now, &load, part);
			opened_s = now / 1e9;
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
	if (raw > 0)
		out.counted += raw / coverage;
	out.probe_ns = load.probe_ns;
	out.cpu_ns = load.cpu_ns;
	out.windows = (int)budget.window_cnt;
	out.seen_s = budget.total_seen_ns / 1e9;
	return out;
}

TEST(without_a_limit_it_is_all_one_window)
{
	struct outcome out = record(steady_rate, &(struct setup){.limit = INFINITY, .seconds = 10});

	CHECK_EQ(out.windows, 1);
	CHECK(out.counted == out.calls);
}

TEST(what_is_cheap_is_recorded_whole)
{
	for (int bursts = 0; bursts < 2; bursts++) {
		struct setup setup = {.limit = 0.1, .bursts = bursts, .seconds = 10};
		struct outcome out = record(idle_rate, &setup);

		CHECK_EQ(out.windows, 1);
		CHECK(out.longest_s > 9.9);
		out = record(step_rate, &setup);
		CHECK_EQ(out.windows, 1);
		CHECK(fabs(out.counted - out.calls) < 1e-6 * out.calls);
	}
}

TEST(the_limit_is_kept)
{
	static const double limits[] = {0.02, 0.1, 0.3};

	for (size_t i = 0; i < ARRAY_CNT(rates); i++) {
		for (size_t n = 0; n < ARRAY_CNT(limits); n++) {
			for (int way = 0; way < 8; way++) {
				struct outcome out =
					record(rates[i], &(struct setup){.limit = limits[n],
									 .bursts = way & 1,
									 .known_end = way & 2,
									 .busy = way & 4,
									 .seconds = 60,
									 .delay_ms = 2,
									 .seed = 7});

				/* A rise is noticed a second late, and paid back. */
				CHECK(out.probe_ns <=
				      limits[n] * out.cpu_ns * (rates[i] == steady_rate ? 1 : 1.3));
			}
		}
	}
}

/* Also in a recording as short as the first second. */
TEST(the_first_second_is_within_the_limit)
{
	struct outcome out = record(
		steady_rate, &(struct setup){.limit = 0.1, .busy = true, .seconds = 1, .seed = 3});

	CHECK(out.probe_ns <= 0.11 * out.cpu_ns);
}

/* Mean of the estimates of many recordings, as a part of the truth; *spread: standard deviation. */
static double mean_of(rate_fn *rate, struct setup setup, double *spread)
{
	double sum = 0, squares = 0;
	int runs = 400;

	for (int i = 0; i < runs; i++) {
		struct outcome out;
		double part;

		setup.delay_ms = i % 3;
		setup.seed = 0x9e3779b97f4a7c15ULL * (i + 1);
		out = record(rate, &setup);
		part = out.counted / out.calls;
		sum += part;
		squares += part * part;
	}
	*spread = sqrt(squares / runs - sum / runs * sum / runs);
	return sum / runs;
}

TEST(slices_are_unbiased)
{
	for (size_t i = 0; i < ARRAY_CNT(rates); i++) {
		for (int way = 0; way < 4; way++) {
			struct setup setup = {
				.limit = 0.1, .known_end = way & 1, .busy = way & 2, .seconds = 20};
			double spread, mean = mean_of(rates[i], setup, &spread);

			/*
			 * A window that holds both a slow and a fast piece of a target that is
			 * always busy knows only how much it was slowed in all.
			 */
			if (setup.busy && rates[i] == pulse_rate)
				CHECK(fabs(mean - 1) <= 0.1);
			else
				CHECK(fabs(mean - 1) <= 0.02);
			/* The paced ones are right by design: five standard errors. */
			if (!setup.busy)
				CHECK(fabs(mean - 1) <= 5 * spread / 20 + 0.001);
		}
	}
}

TEST(there_is_a_slice_in_each_second)
{
	struct outcome out = record(
		steady_rate,
		&(struct setup){
			.limit = 0.02, .known_end = true, .busy = true, .seconds = 60, .seed = 5});

	CHECK(out.windows >= 60);
	CHECK(out.longest_s < 0.2);
}

TEST(a_burst_is_long)
{
	struct setup setup = {.limit = 0.1,
			      .bursts = true,
			      .known_end = true,
			      .busy = true,
			      .seconds = 60,
			      .seed = 5};
	struct outcome out = record(steady_rate, &setup);

	/* A tenth of the time by half of it: 12 s in three. */
	CHECK_EQ(out.windows, 3);
	CHECK(out.longest_s > 3 && out.longest_s < 5);
	setup.known_end = false;
	out = record(steady_rate, &setup);
	CHECK(out.windows >= 8 && out.windows <= 13);
	CHECK(out.longest_s >= 0.9 && out.longest_s < 1.6);
}

/* Even if the end comes before a burst is paid for, it is one piece. */
TEST(a_short_recording_has_one_burst)
{
	struct outcome out = record(steady_rate, &(struct setup){.limit = 0.1,
								 .bursts = true,
								 .known_end = true,
								 .busy = true,
								 .seconds = 4,
								 .seed = 5});

	CHECK_EQ(out.windows, 1);
	CHECK(out.seen_s > 0.6 && out.seen_s < 1.1);
}

/*
 * Whatever can be afforded, nobody is recorded for longer than a turn, and all of the time counts.
 */
TEST(turns)
{
	static const double limits[] = {0.9, INFINITY};

	for (size_t i = 0; i < ARRAY_CNT(limits); i++) {
		for (int bursts = 0; bursts < 2; bursts++) {
			struct setup setup = {.limit = limits[i],
					      .bursts = bursts,
					      .known_end = true,
					      .seconds = 20,
					      .delay_ms = 30,
					      .seed = 9,
					      .turn_ns = 2 * SECOND};
			struct outcome out = record(steady_rate, &setup);

			CHECK(out.windows >= 10 && out.windows <= 12);
			CHECK(out.longest_s < 2.2);
			CHECK(fabs(out.counted - out.calls) < 0.02 * out.calls);
		}
	}
}

/* Who is recorded is slower than those whose turn it is not, and their work counts, too. */
TEST(turns_of_some)
{
	static const double limits[] = {0.05, 0.9, INFINITY};

	for (size_t i = 0; i < ARRAY_CNT(limits); i++) {
		for (int busy = 0; busy < 2; busy++) {
			struct setup setup = {.limit = limits[i],
					      .known_end = true,
					      .busy = busy,
					      .seconds = 20,
					      .turn_ns = SECOND,
					      .part = 1.0 / 3};
			double spread, mean = mean_of(wave_rate, setup, &spread);

			/* A turn knows only how much it was slowed in all, not when. */
			CHECK(fabs(mean - 1) <= (busy ? 0.03 : 0.01));
		}
	}
}

/* Who waits most of the time is not slowed, whatever the cost of a hit is believed to be. */
TEST(a_cost_that_is_about_known)
{
	for (int way = 0; way < 4; way++) {
		struct setup setup = {.limit = 0.1,
				      .known_end = true,
				      .seconds = 20,
				      .cost_error = way & 1 ? 0.1 : -0.1};
		double spread, mean;

		setup.part = way & 2 ? 0.5 : 0;
		setup.turn_ns = way & 2 ? SECOND : 0;
		mean = mean_of(steady_rate, setup, &spread);
		CHECK(fabs(mean - 1) <= 0.02);
	}
}

/*
 * On a machine that changes its speed and is late at times, the worst of many recordings is still
 * about right: no single window decides how much a process was slowed.
 */
TEST(a_noisy_machine)
{
	for (int way = 0; way < 8; way++) {
		struct setup setup = {.limit = 0.1,
				      .known_end = way & 1,
				      .busy = way & 2,
				      .noisy = true,
				      .seconds = 6};
		double least = 1, most = 1, mean = 0;
		int runs = 1000;

		for (int i = 0; i < runs; i++) {
			struct outcome out;

			setup.seed = 0x9e3779b97f4a7c15ULL * (i + 1);
			setup.cost_error = way & 4 ? 0.3 * ((i % 11) / 5.0 - 1) : 0;
			out = record(steady_rate, &setup);
			mean += out.counted / out.calls / runs;
			least = fmin(least, out.counted / out.calls);
			most = fmax(most, out.counted / out.calls);
		}
		CHECK(least > 0.6 && most < 1.9);
		CHECK(fabs(mean - 1) <= 0.15);
	}
}

/*
 * Somebody's processor time is not known, who was hit: what that would mean for the others is
 * ignored.
 */
TEST(time_that_is_not_known)
{
	struct work_load load = {0};
	struct budget_step step;
	struct budget budget;
	int64_t now = SECOND;

	budget_start(&budget, &(struct budget_opts){.limit = 0.1, .turn_ns = SECOND, .seed = 3},
		     now);
	budget_step(&budget, now, &load);
	budget_opened(&budget, now, &load, 0.5);
	load = (struct work_load){.probe_ns = 10 * MS, .cpu_ns = 15 * MS, .probed_cpu_ns = 2 * MS};
	now = budget_next_ns(&budget);
	step = budget_step(&budget, now, &load);
	CHECK(fabs(step.coverage - 0.5) < 1e-9);
}

/* Probes that take longer to come than a window is planned to last. */
TEST(late_probes)
{
	for (int way = 0; way < 4; way++) {
		struct setup setup = {
			.limit = way & 1 ? 0.1 : 0.02, .known_end = way & 2, .seconds = 20};
		double sum = 0;
		int runs = 200;

		for (int i = 0; i < runs; i++) {
			struct outcome out;

			setup.seed = 0x9e3779b97f4a7c15ULL * (i + 1);
			setup.delay_ms = 50 + 37 * (i % 20);
			out = record(steady_rate, &setup);
			sum += out.counted / out.calls / runs;
		}
		CHECK(fabs(sum - 1) <= 0.05);
	}
}

/* A window so short that the target's processor time clock stands still in it. */
TEST(no_time_for_the_clock)
{
	struct budget budget;
	struct work_load load = {0};
	struct budget_step step;
	int64_t now = SECOND;

	budget_start(&budget, &(struct budget_opts){.limit = 0.1, .seed = 3}, now);
	budget_step(&budget, now, &load);
	budget_opened(&budget, now, &load, 1);
	load = (struct work_load){.probe_ns = 10 * MS, .cpu_ns = 30 * MS, .probed_cpu_ns = 30 * MS};
	now = budget_next_ns(&budget);
	step = budget_step(&budget, now, &load);
	for (int i = 0; i < 20; i++) {
		CHECK(step.coverage >= 0 && step.coverage <= 1);
		if (step.close)
			budget_closed(&budget, now, &load);
		now = budget_next_ns(&budget);
		load.cpu_ns += step.open ? 0 : 100 * MS;
		load.probed_cpu_ns = load.cpu_ns;
		if (step.open) {
			/* A hit was counted, and less than a tick has passed. */
			budget_opened(&budget, now - 1000, &load, 1);
			load.probe_ns += 500;
		}
		step = budget_step(&budget, now, &load);
	}
}
