/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How far estimates would differ if windows had been elsewhere. What is scaled from windows to all
 * of the time has two errors: which allocations were sampled, which their number tells, and which
 * moments were seen. A job that runs once in ten seconds is in a window or it is not, however many
 * samples it has there.
 *
 * Both errors together are estimated from how periods differ from those before them: each estimate
 * has replicates, which add every period's difference from the last one, each with a sign of its
 * own. Replicates of two estimates may be added like the estimates themselves, and half the mean of
 * their squares is the variance of the sum. Loads that change from one period to the next by
 * themselves make it too large. (Successive difference replication: Fay and Train 1995, "Aspects of
 * survey and model-based postcensal estimation of income and poverty characteristics for states and
 * counties"; Wolter 2007, "Introduction to variance estimation", 8.2.)
 */
#ifndef SPREAD_H
#define SPREAD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Replicates, a power of 2. Of less than as many differences their signs are those of a Hadamard
 * matrix, so that the sum of squares is exact; beyond that it has chance.
 */
#define SPREAD_CNT 16

/*
 * Of one estimate, in its unit. Zeroed, nothing was added. Must stay where it is, and alive, as
 * long as there are periods.
 */
struct spread {
	float replicate[SPREAD_CNT];
	double last;	     /* what was added in this period; above 0: it is in `added` */
	struct spread *next; /* there; borrowed */
};

/* The periods that several estimates are sums over. Zeroed, none has begun. */
struct spread_periods {
	double partial_ns;  /* of all that were seen in part */
	double compared_ns; /* of these, that were compared with the one before */
	/* Of the one that goes on: */
	bool is_partial, is_compared;
	double length_ns;
	double weight;	      /* of its difference: the root of what was not seen of it */
	uint32_t signs;	      /* of its difference, a bit for each replicate; 1: minus */
	struct spread *added; /* those to which something was added; borrowed */
	uint32_t number;      /* of differences until now */
	uint64_t random;      /* state of the generator */
};

/*
 * A period of `length_ns` begins for all estimates, of which `coverage` (0..1) is seen. What is
 * seen whole (1, of any length) has no error of this kind, and what was seen nearly whole a small
 * one. Periods of very different lengths are not compared.
 */
void spread_period(struct spread_periods *periods, double coverage, double length_ns);

/* `estimate`, at least 0, is added to what is estimated of the period that goes on. */
void spread_add(struct spread_periods *periods, struct spread *spread, double estimate);

/*
 * What replicates are to be multiplied with, so that the mean of their squares is the variance of
 * all periods; 0: too few were compared.
 */
double spread_factor(const struct spread_periods *periods);

#endif
