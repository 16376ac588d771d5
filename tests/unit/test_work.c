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
}

/* A scale of what is slowed a little is about right; of what hardly gets on, it may be anything. */
TEST(scale_errors)
{
	CHECK_EQ(work_scale_error(0), 1);
	CHECK(work_scale_error(0.2) < 1.05);
	CHECK(work_scale_error(0.5) > 1.1 && work_scale_error(0.5) < 1.3);
	CHECK(work_scale_error(0.95) > 2);
	CHECK(work_scale_error(1.1) > 8 && work_scale_error(1.1) < 1e3);
}
