/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Figures: names, what a time means; and the lines of driven children. */
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
	assert_int_equal(figure_tests_parse("write,readbw"),
			 FIGURE_BIT(FIGURE_WRITE) | FIGURE_BIT(FIGURE_READ_BW));
	assert_int_equal(figure_tests_parse("all"), ((1 << FIGURE_TESTS) - 1) & ~FIGURE_BIT(FIGURE_PASSIVE));
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
}

static void less_is_better_of_times_alone(void **state)
{
	assert_true(figure_test_is_time(FIGURE_LATENCY));
	assert_true(figure_test_is_time(FIGURE_ATOMIC));
	assert_false(figure_test_is_time(FIGURE_BANDWIDTH));
	assert_false(figure_test_is_time(FIGURE_READ_BW));
	assert_false(figure_test_is_time(FIGURE_RATE));
	assert_false(figure_test_is_time(FIGURE_ADD));
}

static void a_child_introduces_itself(void **state)
{
	struct results_config out = { .api = 2 << 16 | 7,
				      .provider = "tcp;ofi_rxm",
				      .prov_version = "117.0",
				      .build = "1.17.0 of the distribution",
				      .library = "/a path/libfabric.so.1" };
	struct results_config in = { 0 };
	char *text;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	driven_ready_print(to, &out);
	fclose(to);
	assert_int_equal(driven_ready_parse(text, &in), 0);
	assert_int_equal(in.api, out.api);
	assert_string_equal(in.provider, out.provider);
	assert_string_equal(in.prov_version, out.prov_version);
	assert_string_equal(in.build, out.build);
	assert_string_equal(in.library, out.library);
	assert_int_equal(driven_ready_parse("ready\t1\tshm\n", &in), -EPROTO);
	free(text);
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
		cmocka_unit_test(less_is_better_of_times_alone),
		cmocka_unit_test(a_child_introduces_itself),
		cmocka_unit_test(a_sample_line_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
