/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Medians and percentiles; stats.h has the contract. Used by every subcommand
 * that measures.
 */
#include "stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double stats_percentile(const double *sorted, size_t cnt, double p)
{
	double at, low;
	size_t idx;

	if (!cnt)
		return NAN;
	at = p / 100 * (double)(cnt - 1);
	low = floor(at);
	idx = (size_t)low;
	if (idx + 1 >= cnt)
		return sorted[cnt - 1];
	return sorted[idx] + (at - low) * (sorted[idx + 1] - sorted[idx]);
}

struct stats stats_of(double *samples, size_t cnt)
{
	struct stats st;
	size_t kept = 0, i;
	double swap;

	for (i = 0; i < cnt; i++) {
		if (isnan(samples[i]))
			continue;
		swap = samples[kept];
		samples[kept++] = samples[i];
		samples[i] = swap;
	}
	if (kept)
		qsort(samples, kept, sizeof(*samples), ascending);
	st.cnt = kept;
	st.p10 = stats_percentile(samples, kept, 10);
	st.median = stats_percentile(samples, kept, 50);
	st.p90 = stats_percentile(samples, kept, 90);
	return st;
}

struct stats stats_of_copy(const double *samples, size_t cnt)
{
	struct stats st = { 0, NAN, NAN, NAN };
	double *copy = malloc(cnt * sizeof(*copy) + 1);

	if (!copy)
		return st;
	if (cnt)
		memcpy(copy, samples, cnt * sizeof(*copy));
	st = stats_of(copy, cnt);
	free(copy);
	return st;
}
