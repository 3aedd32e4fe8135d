/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Results: the table, the JSON (read back with Jansson), the picture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "results.h"

static const double samples_a[] = { 2.5, 1.5, 2.0 }, samples_b[] = { 4, 5, 6 },
		    samples_a2[] = { 2.25, 1.75, 2.0 };

static struct result rows[] = {
	{ .test = FIGURE_LATENCY,
	  .size = 0,
	  .a = { 3, 1.6, 2.0, 2.4 },
	  .b = { 3, 4.2, 5.0, 5.8 },
	  .ratio = { 3, 2.1, 2.5, 2.9 },
	  .twin = { 3, 0.9, 1.0, 1.1 },
	  .raw_ns = { 0, NAN, NAN, NAN },
	  .samples = { samples_a, samples_b, samples_a2 },
	  .cnt = 3,
	  .verdict = "faster" },
	{ .test = FIGURE_LATENCY,
	  .size = 65536,
	  .a = { 3, 16, 20, 24 },
	  .b = { 3, 42, 50, 58 },
	  .ratio = { 3, 2.1, 2.5, 2.9 },
	  .twin = { 3, 0.9, 1.0, 1.1 },
	  .raw_ns = { 3, 50, 60, 70 },
	  .samples = { samples_a, samples_b, samples_a2 },
	  .cnt = 3,
	  .verdict = "faster" },
	{ .test = FIGURE_BANDWIDTH,
	  .size = 65536,
	  .a = { 3, 1600, 2000, 2400 },
	  .b = { 3, 420, 500, 580 },
	  .ratio = { 3, 2.1, 2.5, 2.9 },
	  .twin = { 3, 0.9, 1.0, 1.1 },
	  .raw_ns = { 3, 50, 60, 70 },
	  .samples = { samples_a, samples_b, samples_a2 },
	  .cnt = 3,
	  .verdict = "faster" },
};

static struct results example(size_t config_cnt)
{
	static char *command[] = { "weft bench", "-p", "s\"h\\m", NULL };

	return (struct results){
		.command = command,
		.machine = { .cpu = "Model <A> & B",
			     .kernel = "Linux 6",
			     .cores = 2,
			     .memory_bytes = 1ull << 33,
			     .virtual = true,
			     .load = { 0.5, NAN, 1 } },
		.interface = "tagged",
		.rounds = 3,
		.restarts = 1,
		.config_cnt = config_cnt,
		.config = { { 2 << 16 | 6, "shm\x01", "2.6", "2.6.0", "/lib/\xff\n.so" },
			    { 1 << 16 | 17, "tcp;ofi_rxm", "117.0", "1.17.0", "/usr/lib.so" } },
		.row = rows,
		.cnt = sizeof(rows) / sizeof(rows[0]),
	};
}

static json_t *json_of(const struct results *results)
{
	json_error_t error;
	json_t *whole;
	char *text;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	assert_int_equal(results_print_json(to, results), 0);
	fclose(to);
	whole = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	assert_non_null(whole);
	free(text);
	return whole;
}

static const char *text_at(json_t *whole, const char *object, const char *key)
{
	return json_string_value(json_object_get(json_object_get(whole, object), key));
}

static void json_says_what_was_measured_and_where(void **state)
{
	struct results results = example(2);
	json_t *whole = json_of(&results);
	json_t *command = json_object_get(whole, "command");

	assert_string_equal(json_string_value(json_object_get(whole, "format")), "weft-bench");
	assert_int_equal(json_array_size(command), 3);
	assert_string_equal(json_string_value(json_array_get(command, 2)), "s\"h\\m");
	assert_string_equal(text_at(whole, "machine", "cpu"), "Model <A> & B");
	assert_true(json_is_true(json_object_get(json_object_get(whole, "machine"), "virtual")));
	assert_string_equal(text_at(whole, "a", "provider"), "shm\x01");
	assert_string_equal(text_at(whole, "a", "libfabric"), "2.6");
	/* A path that is no UTF-8 loses what can't be said, not the whole. */
	assert_string_equal(text_at(whole, "a", "library"), "/lib/?\n.so");
	assert_string_equal(text_at(whole, "b", "build"), "1.17.0");
	assert_int_equal(json_integer_value(json_object_get(whole, "rounds")), 3);
	json_decref(whole);
}

static double number_at(json_t *row, const char *object, const char *key)
{
	return json_number_value(json_object_get(json_object_get(row, object), key));
}

static void json_has_every_figure_and_null_for_what_is_unknown(void **state)
{
	struct results results = example(2);
	json_t *whole = json_of(&results), *row, *samples;

	assert_int_equal(json_array_size(json_object_get(whole, "figures")), 3);
	row = json_array_get(json_object_get(whole, "figures"), 0);
	assert_string_equal(json_string_value(json_object_get(row, "test")), "latency");
	assert_string_equal(json_string_value(json_object_get(row, "unit")), "us");
	assert_string_equal(json_string_value(json_object_get(row, "verdict")), "faster");
	assert_float_equal(number_at(row, "a", "median"), 2.0, 1e-9);
	assert_float_equal(number_at(row, "b", "p10"), 4.2, 1e-9);
	assert_float_equal(number_at(row, "ratio", "p90"), 2.9, 1e-9);
	assert_float_equal(number_at(row, "aa", "p10"), 0.9, 1e-9);
	assert_true(json_is_null(json_object_get(json_object_get(row, "raw_ns"), "median")));
	samples = json_object_get(json_object_get(row, "a"), "samples");
	assert_int_equal(json_array_size(samples), 3);
	assert_float_equal(json_number_value(json_array_get(samples, 0)), 2.5, 1e-9);
	samples = json_object_get(row, "a2");
	assert_float_equal(json_number_value(json_array_get(samples, 1)), 1.75, 1e-9);
	json_decref(whole);
}

static void json_of_one_configuration_compares_nothing(void **state)
{
	struct results results = example(1);
	json_t *whole = json_of(&results), *row;

	assert_null(json_object_get(whole, "b"));
	row = json_array_get(json_object_get(whole, "figures"), 0);
	assert_non_null(json_object_get(row, "a"));
	assert_null(json_object_get(row, "b"));
	assert_null(json_object_get(row, "ratio"));
	assert_null(json_object_get(row, "verdict"));
	json_decref(whole);
}

static char *svg_of(const struct results *results)
{
	char *text;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	results_print_svg(to, results);
	fclose(to);
	return text;
}

static size_t times_in(const char *text, const char *what)
{
	size_t cnt = 0;

	while ((text = strstr(text, what))) {
		cnt++;
		text++;
	}
	return cnt;
}

static void a_picture_has_a_panel_for_each_test(void **state)
{
	struct results results = example(2);
	char *text = svg_of(&results);

	assert_int_equal(times_in(text, "class=\"heading\""), 2);
	/* Two lines and two bands in each. */
	assert_int_equal(times_in(text, "<polygon "), 4);
	assert_int_equal(times_in(text, "<circle "), 6);
	assert_int_equal(times_in(text, "class=\"raw\""), 1);
	assert_non_null(strstr(text, "Model &lt;A&gt; &amp; B"));
	assert_non_null(strstr(text, "shm? against tcp;ofi_rxm"));
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf"));
	free(text);
}

static void a_picture_of_nothing_that_can_be_drawn_is_one(void **state)
{
	struct result row = { .test = FIGURE_BANDWIDTH, .verdict = "same" };
	struct results results = example(1);
	char *text;

	results.row = &row;
	results.cnt = 1;
	text = svg_of(&results);
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf"));
	free(text);
	results.cnt = 0;
	text = svg_of(&results);
	assert_non_null(strstr(text, "</svg>"));
	free(text);
}

static void rows_are_sorted_by_test_and_size(void **state)
{
	struct result row[] = { rows[2], rows[1], rows[0] };

	results_sort(row, 3);
	assert_int_equal(row[0].size, 0);
	assert_int_equal(row[1].test, FIGURE_LATENCY);
	assert_int_equal(row[2].test, FIGURE_BANDWIDTH);
	results_sort(NULL, 0);
}

static void the_table_has_a_line_for_each_figure(void **state)
{
	struct results results = example(2);
	char *text;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	results_print(to, &results);
	fclose(to);
	assert_non_null(strstr(text, "B: provider tcp;ofi_rxm 117.0; libfabric 1.17"));
	assert_non_null(strstr(text, "2 cores of a virtual machine, 8.0 GiB, Linux 6"));
	assert_int_equal(times_in(text, " faster "), 3);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_says_what_was_measured_and_where),
		cmocka_unit_test(json_has_every_figure_and_null_for_what_is_unknown),
		cmocka_unit_test(json_of_one_configuration_compares_nothing),
		cmocka_unit_test(a_picture_has_a_panel_for_each_test),
		cmocka_unit_test(a_picture_of_nothing_that_can_be_drawn_is_one),
		cmocka_unit_test(rows_are_sorted_by_test_and_size),
		cmocka_unit_test(the_table_has_a_line_for_each_figure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
