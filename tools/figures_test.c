/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Figures: names, what a time means, JSON; and the lines of driven children. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "driven.h"
#include "figures.h"

static void tests_are_known_by_long_and_short_names(void **state)
{
	assert_int_equal(figure_tests_parse("lat"), FIGURE_BIT(FIGURE_LATENCY));
	assert_int_equal(figure_tests_parse("bandwidth,rate"),
			 FIGURE_BIT(FIGURE_BANDWIDTH) | FIGURE_BIT(FIGURE_RATE));
	assert_int_equal(figure_tests_parse("all"), 7);
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
}

static void json_has_null_for_what_could_not_be_measured(void **state)
{
	struct figures_origin origin = {
		.provider = "s\"h\\m",
		.library = "/lib/x\n",
		.interface = "tagged",
		.version = 2 << 16 | 6,
	};
	struct figure fig = { .test = FIGURE_RATE, .size = 8 };
	char *text;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	assert_int_equal(figure_add(&fig, 2.5, NAN), 0);
	assert_int_equal(figure_add(&fig, 1.5, NAN), 0);
	figures_print_json(to, &origin, &fig, 1);
	fclose(to);
	assert_non_null(strstr(text, "\"provider\": \"s\\\"h\\\\m\""));
	assert_non_null(strstr(text, "\"library\": \"/lib/x\\u000a\""));
	assert_non_null(strstr(text, "\"libfabric\": \"2.6\""));
	assert_non_null(strstr(text, "\"median\": 2,"));
	assert_non_null(strstr(text, "\"raw_ns\": null"));
	assert_non_null(strstr(text, "\"samples\": [2.5, 1.5]"));
	free(text);
	figure_fini(&fig);
}

static void a_sample_line_is_read(void **state)
{
	struct driven_sample sample;

	assert_int_equal(driven_sample_parse("sample latency 65536 3.25 nan\n", &sample), 0);
	assert_int_equal(sample.test, FIGURE_LATENCY);
	assert_int_equal(sample.size, 65536);
	assert_float_equal(sample.value, 3.25, 1e-6);
	assert_true(isnan(sample.raw_ns));
	assert_int_equal(driven_sample_parse("sample all 8 1 1", &sample), -EINVAL);
	assert_int_equal(driven_sample_parse("sample lat 8 1", &sample), -EINVAL);
	assert_int_equal(driven_sample_parse("Segmentation fault", &sample), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tests_are_known_by_long_and_short_names),
		cmocka_unit_test(times_become_figures),
		cmocka_unit_test(json_has_null_for_what_could_not_be_measured),
		cmocka_unit_test(a_sample_line_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
