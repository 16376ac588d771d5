/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How far estimates would differ if windows had been elsewhere. What is scaled from windows to all of
 * the time has two errors: which allocations were sampled, which their number tells, and which
 * moments were seen. A job that runs once in ten seconds is in a window or it is not, however many
 * samples it has there.
 *
 * The second error is estimated from how periods differ from the ones before them, successive
 * difference replication: each estimate has replicates, which add every period's difference from the
 * last one with a sign of their own. Replicates of two estimates may be added like the estimates
 * themselves; half the mean of their squares is the variance of the sum, first error included
 * (Fay and Train 1995, "Aspects of survey and model-based postcensal estimation of income and poverty
 * characteristics for states and counties"; Wolter 2007, "Introduction to variance estimation", 8.2).
 */
#ifndef SPREAD_H
#define SPREAD_H

#include <stdbool.h>
#include <stdint.h>

/* Replicates: the standard error that they tell has one of 1 / sqrt(2 * SPREAD_CNT), 18 %. */
#define SPREAD_CNT 16

/* Of one estimate. Zeroed, nothing was added. Must not move while periods go on. */
struct spread {
	float replicate[SPREAD_CNT];
	double last;	     /* what was added in this period */
	struct spread *next; /* to which something was added; ends with NULL */
};

/* The periods that they are sums over. Zeroed, none has begun. */
struct spread_periods {
	uint32_t cnt, difference_cnt; /* seen in part; of these, right after another such */
	bool is_partial, follows;     /* so is the one that goes on */
	double length_ns;	      /* of it */
	uint32_t signs;		      /* of it, a bit for each replicate; 1: minus */
	uint64_t random;	      /* state of the generator */
	struct spread *added;	      /* to which something was added in it */
};

/*
 * A period begins, for all estimates. `is_partial`: not all of it is seen. What is seen whole has no
 * error of this kind, and periods of different lengths are not compared.
 */
void spread_period(struct spread_periods *periods, double length_ns, bool is_partial);

/* `estimate`, at least 0, is added to what is estimated of the period that goes on. */
void spread_add(struct spread_periods *periods, struct spread *spread, double estimate);

/*
 * What replicates are to be multiplied with, so that the mean of their squares is the variance of all
 * periods; 0: too few were compared.
 */
double spread_factor(const struct spread_periods *periods);

#endif
