/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Medians and percentiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "stats.h"

static void median_of_an_even_count_lies_between(void **state)
{
	double samples[] = { 4, 1, 3, 2 };
	struct stats st = stats_of(samples, 4);

	assert_int_equal(st.cnt, 4);
	assert_float_equal(st.median, 2.5, 1e-6);
}

static void percentiles_interpolate(void **state)
{
	double samples[11];
	struct stats st;
	int i;

	for (i = 0; i < 11; i++)
		samples[i] = (i * 7) % 11 * 10;
	st = stats_of(samples, 11);
	assert_float_equal(st.p10, 10, 1e-6);
	assert_float_equal(st.median, 50, 1e-6);
	assert_float_equal(st.p90, 90, 1e-6);
	assert_float_equal(stats_percentile(samples, 11, 95), 95, 1e-6);
	assert_float_equal(stats_percentile(samples, 11, 100), 100, 1e-6);
}

static void one_sample_is_all_percentiles(void **state)
{
	double sample = 7;
	struct stats st = stats_of(&sample, 1);

	assert_float_equal(st.p10, 7, 1e-6);
	assert_float_equal(st.median, 7, 1e-6);
	assert_float_equal(st.p90, 7, 1e-6);
}

static void samples_that_could_not_be_taken_are_left_out(void **state)
{
	double samples[] = { NAN, 3, NAN, 1, 2 };
	struct stats st = stats_of(samples, 5);

	assert_int_equal(st.cnt, 3);
	assert_float_equal(st.median, 2, 1e-6);
}

static void nothing_has_no_median(void **state)
{
	double none[] = { NAN };
	struct stats st = stats_of(none, 1);

	assert_int_equal(st.cnt, 0);
	assert_true(isnan(st.median));
	assert_true(isnan(stats_of(NULL, 0).p90));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(median_of_an_even_count_lies_between),
		cmocka_unit_test(percentiles_interpolate),
		cmocka_unit_test(one_sample_is_all_percentiles),
		cmocka_unit_test(samples_that_could_not_be_taken_are_left_out),
		cmocka_unit_test(nothing_has_no_median),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
