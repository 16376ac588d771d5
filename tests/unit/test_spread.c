// SPDX-License-Identifier: GPL-2.0-or-later
/* spread: the error that comes of seeing some moments and not others. */
#include "spread.h"

#include "check.h"
#include "xorshift.h"

#include <math.h>
#include <string.h>

#define SECOND 1e9
#define TENTH  0.1 /* is seen */

/* The standard error of the sum of `cnt` estimates. */
static double error_of(const struct spread_periods *periods, const struct spread *spreads, int cnt)
{
	double squares = 0;

	for (int r = 0; r < SPREAD_CNT; r++) {
		double replicate = 0;

		for (int i = 0; i < cnt; i++)
			replicate += spread_factor(periods) * (double)spreads[i].replicate[r];
		squares += replicate * replicate;
	}
	return sqrt(squares / SPREAD_CNT);
}

TEST(what_is_seen_whole_has_no_error)
{
	struct spread_periods periods = {0};
	struct spread spread = {0};

	for (int i = 0; i < 10; i++) {
		spread_period(&periods, 1, 0);
		spread_add(&periods, &spread, 100 * i);
	}
	CHECK(error_of(&periods, &spread, 1) == 0);
}

TEST(one_window_tells_nothing_of_others)
{
	struct spread_periods periods = {0};
	struct spread spread = {0};

	spread_period(&periods, TENTH, SECOND);
	spread_add(&periods, &spread, 100);
	CHECK(error_of(&periods, &spread, 1) == 0);
}

TEST(what_is_always_the_same_has_none)
{
	struct spread_periods periods = {0};
	struct spread spread = {0};

	for (int i = 0; i < 20; i++) {
		spread_period(&periods, TENTH, SECOND);
		/* What was before the first period is unknown. */
		spread_add(&periods, &spread, 60);
		spread_add(&periods, &spread, 40);
	}
	CHECK(error_of(&periods, &spread, 1) < 1e-3);
}

/* A job that was in one window of ten might as well have been in none. */
TEST(what_was_there_once_is_as_uncertain_as_large)
{
	for (int when = 1; when < 9; when++) {
		struct spread_periods periods = {0};
		struct spread spread = {0};
		double error;

		for (int i = 0; i < 10; i++) {
			spread_period(&periods, TENTH, SECOND);
			if (i == when)
				spread_add(&periods, &spread, 5000);
		}
		error = error_of(&periods, &spread, 1);
		/* Two differences, nine of ten compared, nine tenths not seen. */
		CHECK(fabs(error / sqrt(5000. * 5000 * 2 / 2 * 10 / 9 * 0.9) - 1) < 1e-5);
	}
}

/* What moves together is more uncertain together, what takes turns is less. */
TEST(sums_know_what_moves_together)
{
	struct spread_periods periods = {0};
	struct spread alike[2] = {0}, turns[2] = {0};
	uint64_t random = 5;

	for (int i = 0; i < 40; i++) {
		double value = (double)(xorshift_next(&random) % 1000);

		spread_period(&periods, TENTH, SECOND);
		spread_add(&periods, &alike[0], value);
		spread_add(&periods, &alike[1], value);
		spread_add(&periods, &turns[0], value);
		spread_add(&periods, &turns[1], 1000 - value);
	}
	CHECK(fabs(error_of(&periods, alike, 2) / (2 * error_of(&periods, alike, 1)) - 1) < 1e-3);
	CHECK(error_of(&periods, turns, 2) < 1e-2 * error_of(&periods, turns, 1));
}

/* A load that rises is no error: each window stands for its own second. */
TEST(a_slow_change_is_no_chance)
{
	struct spread_periods periods = {0};
	struct spread spread = {0};
	double sum = 0;

	for (int i = 0; i < 30; i++) {
		spread_period(&periods, TENTH, SECOND);
		spread_add(&periods, &spread, 100 + 10 * i);
		sum += 100 + 10 * i;
	}
	CHECK(error_of(&periods, &spread, 1) < 0.02 * sum);
}

/* The look at the beginning is no second, and does not count as one that was not compared. */
TEST(a_short_period_is_not_compared)
{
	struct spread_periods periods = {0};
	struct spread spread = {0};

	spread_period(&periods, 0.5, SECOND / 30);
	spread_add(&periods, &spread, 1000);
	for (int i = 0; i < 10; i++) {
		spread_period(&periods, TENTH, SECOND);
		spread_add(&periods, &spread, i == 4 ? 5000 : 0);
	}
	CHECK(fabs(error_of(&periods, &spread, 1) / 5000 - 1) < 0.01);
}

/* Windows that come too late make one period of two. */
TEST(a_period_twice_as_long_is_expected_to_have_twice_as_much)
{
	struct spread_periods periods = {0};
	struct spread spread = {0};

	for (int i = 0; i < 10; i++) {
		double seconds = 1 + i % 2;

		spread_period(&periods, TENTH, seconds * SECOND);
		spread_add(&periods, &spread, 100 * seconds);
	}
	CHECK(error_of(&periods, &spread, 1) < 1e-3);
}

/* What is seen nearly whole is known nearly whole, however it changes. */
TEST(what_was_seen_is_no_error)
{
	for (int percent = 10; percent < 100; percent += 10) {
		struct spread_periods periods = {0};
		struct spread spread = {0};

		for (int i = 0; i < 10; i++) {
			spread_period(&periods, percent / 100., SECOND);
			spread_add(&periods, &spread, i % 2 ? 1000 : 0);
		}
		/* Nine differences of 1000. */
		CHECK(fabs(error_of(&periods, &spread, 1) /
				   sqrt(1e6 * 9 / 2 * 10 / 9 * (1 - percent / 100.)) -
			   1) < 1e-5);
	}
}

/* A whole period between two windows: they are no neighbours. */
TEST(whole_periods_part_the_others)
{
	struct spread_periods periods = {0};
	struct spread spread = {0};

	for (int i = 0; i < 10; i++) {
		spread_period(&periods, i % 2 ? 1 : TENTH, i % 2 ? 0 : SECOND);
		spread_add(&periods, &spread, 100 * i);
	}
	CHECK(error_of(&periods, &spread, 1) == 0);
	CHECK(spread_factor(&periods) == 0);
	/* Nobody is left in the list. */
	spread_period(&periods, 1, 0);
	CHECK(!periods.added && !spread.next && spread.last == 0);
}

/* Bernoulli draws of 1000 objects a period, as raw / p. */
TEST(it_is_what_repeated_runs_show)
{
	const double p = 0.05;
	const int runs = 400, period_cnt = 20, objects = 1000;
	double predicted = 0, squares = 0;
	uint64_t random = 9;

	for (int run = 0; run < runs; run++) {
		struct spread_periods periods = {0};
		struct spread spread = {0};
		double sum = 0, error;

		/* Each run's signs are its own. */
		periods.random = xorshift_next(&random);
		for (int i = 0; i < period_cnt; i++) {
			int raw = 0;

			/* Moments have nothing to do with it. */
			spread_period(&periods, 0, SECOND);
			for (int n = 0; n < objects; n++)
				raw += (double)xorshift_next(&random) * 0x1p-53 < p;
			spread_add(&periods, &spread, raw / p);
			sum += raw / p;
		}
		error = error_of(&periods, &spread, 1);
		predicted += error * error / runs;
		squares += pow(sum - period_cnt * objects, 2) / runs;
	}
	CHECK(fabs(sqrt(predicted / squares) - 1) < 0.1);
}
