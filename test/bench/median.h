/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef MEDIAN_H
#define MEDIAN_H

/* What a benchmark makes of the values that it measured. */

#include <stdlib.h>

static inline int
median_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline void
median_sort(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), median_compare);
}

/* Sorts, so that v[0] is the smallest afterwards. */
static inline double
median(double *v, size_t n)
{
	median_sort(v, n);
	return v[n / 2];
}

#endif /* MEDIAN_H */
