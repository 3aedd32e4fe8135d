/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Medians and percentiles of samples. No state; any thread.
 */
#ifndef WEFT_TOOLS_STATS_H
#define WEFT_TOOLS_STATS_H

#include <stddef.h>

struct stats {
	size_t cnt;
	double p10;
	double median;
	double p90;
};

/*
 * stats_percentile - a percentile of sorted samples, interpolated
 * @sorted:  ascending, @cnt of them
 * @p:       0 to 100
 *
 * Returns NAN without samples.
 */
double stats_percentile(const double *sorted, size_t cnt, double p);

/*
 * stats_of - sort samples in place and summarize them
 * @samples: NAN marks a sample that could not be measured; those are left out and moved behind the
 *           others
 */
struct stats stats_of(double *samples, size_t cnt);

/*
 * stats_of_copy - the same, with the samples left as they are
 *
 * Without memory the summary is that of no samples.
 */
struct stats stats_of_copy(const double *samples, size_t cnt);

#endif
