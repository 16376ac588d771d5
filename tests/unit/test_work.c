// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What share of the work was seen, by hand: a second of which a window of 100 ms was seen, in which
 * probes took `probe_ms`.
 */
#include "work.h"

#include "check.h"

#include <math.h>

#define MS 1e6

static const struct work_period tenth = {
	.part = 0.1, .inside_ns = 100 * MS, .outside_ns = 900 * MS};

/* A process that used so much inside and outside. */
static double seen(double inside_ms, double probe_ms, double outside_ms)
{
	struct work_load before = {.probe_ns = 7 * MS, .cpu_ns = 30 * MS, .probed_cpu_ns = 30 * MS};
	struct work_load load = before;
	struct work work = {0};

	work_begin(&work, &before);
	load.cpu_ns += outside_ms * MS;
	load.probed_cpu_ns = load.cpu_ns;
	work_opened(&work, &load);
	load.cpu_ns += inside_ms * MS;
	load.probed_cpu_ns = load.cpu_ns;
	load.probe_ns += probe_ms * MS;
	work_note(&work, &load);
	return work_seen(&work, &tenth, &load);
}

static bool is_near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

/* Always busy, and three quarters of the window went to probes: a quarter of the work. */
TEST(who_is_always_busy_does_less_in_a_window)
{
	CHECK(is_near(seen(100, 75, 900), 0.025 / (0.025 + 0.9)));
	CHECK(is_near(seen(100, 0, 900), 0.1));
}

/* As much own work inside as outside: time is the share. */
TEST(who_waits_is_not_slowed)
{
	CHECK(is_near(seen(50, 30, 180), 0.1));
	CHECK(is_near(seen(20, 0, 180), 0.1));
}

/* Less work inside than probes explain is due to the load. */
TEST(probes_explain_no_more_than_they_took)
{
	CHECK(is_near(seen(40, 20, 900), 0.05 / (0.05 + 0.9)));
	/* More of it inside: nothing that probes do. */
	CHECK(is_near(seen(100, 20, 90), 0.1));
}

/*
 * One that waits beside one that is always busy, in one look: each by its own figures is right,
 * both together are right for neither.
 */
TEST(processes_differ)
{
	double busy = seen(100, 75, 900), waits = seen(50, 30, 180), both = seen(150, 105, 1080);

	CHECK(both > busy * 1.2);
	CHECK(both < waits * 0.7);
}

/* A period like seen()'s, with more of it behind. */
static double seen_next(struct work *work, struct work_load *load, double inside_ms,
			double probe_ms, double outside_ms, double dearer)
{
	struct work_period period = tenth;

	period.dearer = dearer;
	work_begin(work, load);
	load->cpu_ns += outside_ms * MS;
	load->probed_cpu_ns = load->cpu_ns;
	work_opened(work, load);
	load->cpu_ns += inside_ms * MS;
	load->probed_cpu_ns = load->cpu_ns;
	load->probe_ns += probe_ms * MS;
	work_note(work, load);
	return work_seen(work, &period, load);
}

/* One window among many in which the machine did something else does not decide. */
TEST(one_wild_window)
{
	struct work_load load = {0};
	struct work work = {0};

	for (int i = 0; i < 4; i++)
		CHECK(is_near(seen_next(&work, &load, 18, 8, 90, 0), 0.1));
	CHECK(seen_next(&work, &load, 9, 8.9, 90, 0) > 0.045);
	CHECK(is_near(seen_next(&work, &load, 18, 8, 90, 0), 0.1));
}

/* Nor does a window that is hardly longer than it takes to read its borders. */
TEST(one_short_window)
{
	CHECK(is_near(seen(1.5, 1.4, 10), 0.1));
}

/*
 * A hit is believed to cost half as much again. Of one that waits that leaves too little to be told
 * from one that was slowed; another one, which does nothing but being hit, tells how much it was.
 */
TEST(one_process_tells_the_cost_for_another)
{
	struct work_load busy_load = {0}, load = {0};
	struct work busy = {0}, work = {0};
	double dearer;

	seen_next(&busy, &busy_load, 100, 147, 900, 0);
	dearer = work_dearer(&busy);
	CHECK(is_near(dearer, 1.47));
	CHECK(seen_next(&work, &load, 20, 15, 90, 0) < 0.08);
	work = (struct work){0};
	load = (struct work_load){0};
	CHECK(is_near(seen_next(&work, &load, 20, 15, 90, dearer), 0.1));
	CHECK_EQ(work_dearer(&work), 1);
	/* A hit or two, and a clock that stands still, tell nothing. */
	seen_next(&work, &load, 0.1, 3, 90, 0);
	CHECK_EQ(work_dearer(&work), 1);
}

TEST(periods_that_were_seen_whole_or_not_at_all)
{
	struct work_load load = {.probe_ns = 50 * MS, .cpu_ns = 60 * MS, .probed_cpu_ns = 60 * MS};
	struct work work = {0};

	work_note(&work, &load);
	CHECK_EQ(work_seen(&work, &(struct work_period){.part = 1}, &load), 1);
	CHECK_EQ(work_seen(&work, &(struct work_period){.part = 0}, &load), 0);
}

/* Over all periods, for what is said of the scale. */
TEST(the_share_of_probes)
{
	struct work_load load = {0};
	struct work work = {0};

	CHECK_EQ(work_probed_share(&work), 0);
	for (int period = 0; period < 4; period++) {
		work_begin(&work, &load);
		work_opened(&work, &load);
		load.probe_ns += period < 2 ? 10 * MS : 30 * MS;
		load.cpu_ns += 50 * MS;
		load.probed_cpu_ns = load.cpu_ns;
		work_note(&work, &load);
		/* Outside of windows. */
		load.cpu_ns += 500 * MS;
		load.probed_cpu_ns = load.cpu_ns;
	}
	CHECK(is_near(work_probed_share(&work), 0.4));
	CHECK_EQ(work_scaled_share(&work), 0);
}

/*
 * A process that allocates nothing for ten seconds, recorded whole, and then all the time, in
 * windows of a tenth: half of the time probes would have taken nine tenths of it.
 */
TEST(the_share_of_a_load_that_rose)
{
	struct work_load load = {0};
	struct work work = {0};

	for (int second = 0; second < 20; second++) {
		bool is_busy = second >= 10;
		double inside_ms = is_busy ? 100 : 1000, probe_ms = is_busy ? 90 : 0;

		work_begin(&work, &load);
		work_opened(&work, &load);
		load.probe_ns += probe_ms * MS;
		load.cpu_ns += inside_ms * MS;
		load.probed_cpu_ns = load.cpu_ns;
		work_note(&work, &load);
		load.cpu_ns += (1000 - inside_ms) * MS;
		load.probed_cpu_ns = load.cpu_ns;
		work_seen(&work,
			  &(struct work_period){.part = inside_ms / 1000,
						.inside_ns = inside_ms * MS,
						.outside_ns = (1000 - inside_ms) * MS},
			  &load);
	}
	CHECK(is_near(work_probed_share(&work), 0.45));
	CHECK(is_near(work_scaled_share(&work), 0.9));
}

/* A scale of what is slowed a little is about right; of what hardly gets on, it may be anything. */
TEST(scale_errors)
{
	CHECK_EQ(work_scale_error(0), 1);
	CHECK(work_scale_error(0.2) < 1.1);
	CHECK(work_scale_error(0.5) > 1.2 && work_scale_error(0.5) < 1.5);
	CHECK(work_scale_error(0.95) > 2);
	CHECK(work_scale_error(1.1) > 8 && work_scale_error(1.1) < 1e3);
}
