// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of sampling probabilities: its law, its resolution, its ends, and that dividing by
 * what was drawn with gives back what was there, with the spread that the reports claim.
 */
#include "check.h"
#include "cleanup.h"
#include "sampling.h"

#include <math.h>

#define DEFAULT_RATE (512 * 1024)

static __u64 table[HB_CLASS_CNT], per_byte;

static void fill(uint64_t rate_bytes)
{
	sampling_fill(rate_bytes, table);
	per_byte = sampling_per_byte(rate_bytes);
}

/* xorshift64*: the same draws in every run. */
static uint64_t draw_state = 88172645463325252ULL;
static uint32_t draw(void)
{
	draw_state ^= draw_state >> 12;
	draw_state ^= draw_state << 25;
	draw_state ^= draw_state >> 27;
	return (uint32_t)(draw_state * 0x2545f4914f6cdd1dULL >> 32);
}

/* What BPF does. */
static int taken(uint64_t size)
{
	return hb_takes(per_byte, table, size, draw());
}

TEST(rate_one_takes_everything)
{
	fill(1);
	for (uint32_t class = 0; class < HB_CLASS_CNT; class ++)
		CHECK_EQ(table[class], 1ULL << 32);
	CHECK(sampling_p(table, 0) == 1);
	CHECK(sampling_p(table, UINT64_MAX) == 1);
}

TEST(zero_size_is_never_taken_at_a_rate)
{
	fill(DEFAULT_RATE);
	CHECK_EQ(table[0], 0);
	CHECK(sampling_p(table, 0) == 0);
	CHECK(sampling_p(table, 1) > 0);
}

TEST(small_sizes_have_the_exact_law)
{
	fill(DEFAULT_RATE);
	for (uint64_t size = 1; size < 32; size++) {
		double p = -expm1(-(double)size / DEFAULT_RATE);

		CHECK(fabs(sampling_p(table, size) - p) <= 0x1p-33);
	}
}

/* The bound that spares most calls the table never overrules it. */
TEST(the_bound_is_above_every_threshold)
{
	static const uint64_t rates[] = {1,	     2,		 3,	    1000, DEFAULT_RATE,
					 1ULL << 31, 1ULL << 33, UINT64_MAX};

	for (size_t i = 0; i < ARRAY_CNT(rates); i++) {
		fill(rates[i]);
		CHECK(per_byte <= (1ULL << 32) + 2);
		for (uint64_t size = 0; size < 1ULL << 40; size += 1 + size / 300) {
			__u64 threshold = hb_threshold(table, size);

			CHECK(threshold == 0 || hb_takes(per_byte, table, size, threshold - 1));
			CHECK(!hb_takes(per_byte, table, size, threshold));
		}
	}
}

TEST(every_size_is_near_the_law)
{
	static const uint64_t rates[] = {2, 100, 4096, DEFAULT_RATE, 1ULL << 30};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		fill(rates[i]);
		for (int n = 0; n < 20000; n++) {
			uint64_t size = ((uint64_t)draw() << 32 | draw()) >> (draw() % 63) | 1;
			double p = -expm1(-(double)size / (double)rates[i]);
			/* Linear between points h apart: |error| <= h^2 / 8 |p''|, h <= s / 16. */
			double h = (double)size / (1 << HB_CLASS_BITS) / (double)rates[i];
			double bound =
				h * h / 8 * exp(-(double)size / (double)rates[i] + h) + 0x1p-31;

			CHECK(fabs(sampling_p(table, size) - p) <= bound);
		}
	}
}

TEST(larger_is_never_less_likely)
{
	fill(DEFAULT_RATE);
	for (uint32_t class = 1; class < HB_CLASS_CNT; class ++) {
		CHECK(table[class] >= table[class - 1]);
		CHECK(table[class] <= 1ULL << 32);
	}
}

TEST(no_step_between_neighbours)
{
	fill(DEFAULT_RATE);
	for (uint64_t size = 1; size < 1 << 22; size++)
		CHECK(hb_threshold(table, size) >= hb_threshold(table, size - 1));
}

TEST(log2_of_every_bit)
{
	for (uint32_t bit = 0; bit < 64; bit++) {
		CHECK_EQ(hb_log2(1ULL << bit), bit);
		CHECK_EQ(hb_log2((1ULL << bit) | ((1ULL << bit) - 1)), bit);
	}
}

TEST(a_huge_rate_still_takes_each_size_sometimes)
{
	fill(1ULL << 62);
	for (uint32_t class = 1; class < HB_CLASS_CNT; class ++)
		CHECK(table[class] >= 1);
}

/* Mean and spread of `runs` estimates of `n` objects, relative to n. */
static void simulate(uint64_t size, int n, int runs, double *mean, double *spread)
{
	double sum = 0, squares = 0;

	for (int run = 0; run < runs; run++) {
		double estimate;
		int hits = 0;

		for (int i = 0; i < n; i++)
			hits += taken(size);
		estimate = hits / sampling_p(table, size) / n;
		sum += estimate;
		squares += (estimate - 1) * (estimate - 1);
	}
	*mean = sum / runs;
	*spread = sqrt(squares / runs);
}

TEST(estimates_are_unbiased_and_spread_as_claimed)
{
	static const uint64_t sizes[] = {64, 1000, 4096, 5555, 40000};
	const int n = 10000, runs = 800;

	fill(4096);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		double p = sampling_p(table, sizes[i]), mean, spread;
		double expected = sqrt((1 - p) / (p * n));

		simulate(sizes[i], n, runs, &mean, &spread);
		CHECK(fabs(mean - 1) < 0.01);
		CHECK(fabs(spread / expected - 1) < 0.1);
	}
}
