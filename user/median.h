/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The middle of measurements any of which may have been disturbed.
 */
#ifndef MEDIAN_H
#define MEDIAN_H

#include <stdlib.h>

static inline int median_compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* The median of `cnt` values, at least 1; of an even number the upper one. Sorts them. */
static inline double median(double *values, size_t cnt)
{
	qsort(values, cnt, sizeof(*values), median_compare);
	return values[cnt / 2];
}

#endif
