/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Figures: names, and what a time means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "figures.h"

static void tests_are_known_by_long_and_short_names(void **state)
{
	assert_int_equal(figure_tests_parse("lat"), FIGURE_BIT(FIGURE_LATENCY));
	assert_int_equal(figure_tests_parse("bandwidth,rate"),
			 FIGURE_BIT(FIGURE_BANDWIDTH) | FIGURE_BIT(FIGURE_RATE));
	assert_int_equal(figure_tests_parse("write,readbw"),
			 FIGURE_BIT(FIGURE_WRITE) | FIGURE_BIT(FIGURE_READ_BW));
	assert_int_equal(figure_tests_parse("all"),
			 ((1 << FIGURE_TESTS) - 1) & ~FIGURE_BIT(FIGURE_PASSIVE) & ~FIGURES_BTL);
	assert_int_equal(figure_tests_parse(""), 0);
	assert_int_equal(figure_tests_parse("lat,"), 0);
	assert_int_equal(figure_tests_parse("lat,speed"), 0);
}

static void times_become_figures(void **state)
{
	/* 2000 trips in 1 ms are half a microsecond each. */
	assert_float_equal(figure_from_time(FIGURE_LATENCY, 8, 2000, 1e6), 0.5, 1e-6);
	/* 1000 times 1000 bytes in 1 ms are 1 GB/s, and a million messages. */
	assert_float_equal(figure_from_time(FIGURE_BANDWIDTH, 1000, 1000, 1e6), 1000, 1e-6);
	assert_float_equal(figure_from_time(FIGURE_RATE, 1000, 1000, 1e6), 1, 1e-6);
	assert_float_equal(figure_from_time(FIGURE_ADD, 8, 1000, 1e6), 1, 1e-6);
	assert_float_equal(figure_from_time(FIGURE_READ, 8, 1000, 1e6), 1, 1e-6);
	assert_float_equal(figure_from_time(FIGURE_WRITE_BW, 1000, 1000, 1e6), 1000, 1e-6);
	/* 1 ms for 10^6 bytes is a second for 10^9. */
	assert_float_equal(figure_from_time(FIGURE_CPU, 1000, 1000, 1e6), 1000, 1e-6);
}

static void less_is_better_of_times_alone(void **state)
{
	assert_true(figure_test_is_time(FIGURE_LATENCY));
	assert_true(figure_test_is_time(FIGURE_ATOMIC));
	assert_true(figure_test_is_time(FIGURE_CPU));
	assert_false(figure_test_is_time(FIGURE_BANDWIDTH));
	assert_false(figure_test_is_time(FIGURE_READ_BW));
	assert_false(figure_test_is_time(FIGURE_RATE));
	assert_false(figure_test_is_time(FIGURE_ADD));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tests_are_known_by_long_and_short_names),
		cmocka_unit_test(times_become_figures),
		cmocka_unit_test(less_is_better_of_times_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
