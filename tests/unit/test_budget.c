// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The overhead contract against made-up targets, millisecond by millisecond: what is spent stays
 * within the limit, and what is counted in slices is, on average, what there was.
 */
#include "budget.h"

#include "budget_sim.h"
#include "check.h"
#include "cleanup.h"

#include <math.h>

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

/* What probes took of the limit in a minute, on average and at most, as the windows fall. */
static double spent_of_limit(rate_fn *rate, double limit, int way, double *most)
{
	double sum = 0;
	int runs = 10;

	*most = 0;
	for (int i = 0; i < runs; i++) {
		struct outcome out = record(rate, &(struct setup){.limit = limit,
								  .bursts = way & 1,
								  .known_end = way & 2,
								  .busy = way & 4,
								  .seconds = 60,
								  .delay_ms = 2,
								  .seed = 7 + i});
		double spent = out.probe_ns / (limit * out.cpu_ns);

		sum += spent;
		*most = fmax(*most, spent);
	}
	return sum / runs;
}

TEST(the_limit_is_kept)
{
	static const double limits[] = {0.02, 0.1, 0.3};

	for (size_t i = 0; i < ARRAY_CNT(rates); i++) {
		for (size_t n = 0; n < ARRAY_CNT(limits); n++) {
			for (int way = 0; way < 8; way++) {
				double most, mean = spent_of_limit(rates[i], limits[n], way, &most);

				if (rates[i] == steady_rate) {
					CHECK(most <= 1);
					continue;
				}
				/* A rise is noticed late, and paid back if there is time. */
				CHECK(mean <= 1.3);
				CHECK(most <= 1.8);
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
	*spread = sqrt(fmax(squares / runs - sum / runs * sum / runs, 0));
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

/*
 * Whoever sees other moments of a load that changes gets other numbers: by about as much as a
 * recording tells of itself. It tells too much of loads that change from one second to the next.
 */
TEST(a_recording_knows_how_far_it_may_be_off)
{
	for (size_t i = 0; i < ARRAY_CNT(rates); i++) {
		double squares = 0, told = 0, calls = 0;
		int runs = 200;

		for (int run = 0; run < runs; run++) {
			struct setup setup = {.limit = 0.1,
					      .seconds = 30,
					      .seed = 0x9e3779b97f4a7c15ULL * (run + 1)};
			struct outcome out = record(rates[i], &setup);

			squares += pow(out.counted - out.calls, 2) / runs;
			told += pow(out.told, 2) / runs;
			calls = out.calls;
		}
		/* A percent or two are the borders of windows, which fall on milliseconds. */
		CHECK(sqrt(told) >= 0.8 * sqrt(squares) - 0.02 * calls);
		CHECK(sqrt(told) <= 4 * sqrt(squares) + 0.02 * calls);
	}
}

/* What is over before its probes were counted on is recorded all the same, if only for a moment. */
TEST(the_shortest_recording_has_a_window)
{
	struct work_load load = {0};
	struct budget budget;

	budget_start(&budget, &(struct budget_opts){.limit = 0.1, .end_ns = SECOND + MS, .seed = 3},
		     SECOND);
	CHECK(!budget_is_over(&budget, SECOND + 2 * MS));
	CHECK(budget_step(&budget, SECOND + 2 * MS, &load).open);
	budget_opened(&budget, SECOND + 2 * MS, &load, 1);
	CHECK(budget_is_over(&budget, SECOND + 3 * MS));
	CHECK(!budget_step(&budget, SECOND + 3 * MS, &load).open);
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

	/* A tenth of the time by half of it: 12 s in three, and the look. */
	CHECK_EQ(out.windows, 4);
	/* As many samples as all of the time would give. */
	CHECK(fabs(out.rate_factor * 20 / out.longest_s - 1) < 0.1);
	CHECK(out.longest_s > 2.5 && out.longest_s < 5);
	setup.known_end = false;
	out = record(steady_rate, &setup);
	CHECK(out.windows >= 8 && out.windows <= 13);
	CHECK(out.longest_s >= 0.9 && out.longest_s < 1.6);
}

/* Nobody stands still for a minute because an hour pays for it. */
TEST(no_burst_takes_more_than_two_seconds_at_a_stretch)
{
	for (int seconds = 60; seconds <= 3600; seconds *= 60) {
		struct setup setup = {.limit = 0.1,
				      .bursts = true,
				      .known_end = true,
				      .busy = true,
				      .seconds = seconds,
				      .seed = 5};
		struct outcome out = record(steady_rate, &setup);

		/* Probes take half of it. */
		CHECK(out.longest_s < 4.2);
		CHECK(out.probe_ns <= 0.1 * out.cpu_ns);
		CHECK(out.probe_ns >= 0.06 * out.cpu_ns);
	}
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

	CHECK_EQ(out.windows, 2);
	CHECK(out.seen_s > 0.5 && out.seen_s < 1.1);
}

/*
 * Whatever can be afforded, nobody is recorded for longer than a turn, and all of the time counts.
 */
TEST(turns)
{
	static const double limits[] = {1.2, INFINITY};

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
		CHECK(least > 0.6 && most < 2);
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
