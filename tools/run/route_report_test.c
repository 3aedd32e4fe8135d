/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lines of the route report, and their sum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "route_report.h"

#define LINE \
	"weft-routes: host=a pid=7 wire=shm peers=3 tx_msgs=10 tx_bytes=80 rx_msgs=5 rx_bytes=40"

static int parse(const char *line, struct route_row *row)
{
	return route_line_parse(line, strlen(line), row);
}

static void a_line_is_read(void **state)
{
	struct route_row row;

	assert_int_equal(parse(LINE, &row), 0);
	assert_string_equal(row.host, "a");
	assert_string_equal(row.wire, "shm");
	assert_int_equal(row.pid, 7);
	assert_int_equal(row.endpoints, 1);
	assert_int_equal(row.tx_msgs, 10);
	assert_int_equal(row.tx_bytes, 80);
	assert_int_equal(row.rx_msgs, 5);
	assert_int_equal(row.rx_bytes, 40);
}

static void keys_of_a_later_version_are_passed_over(void **state)
{
	struct route_row row;

	assert_int_equal(parse(LINE " retries=4 rail=eth0", &row), 0);
}

static void what_is_no_report_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"weft-routes: ",
		"weft-routes: host=a",
		"weft-routes: garbage",
		"host=a pid=7 wire=shm peers=3 tx_msgs=1 tx_bytes=8 rx_msgs=5 rx_bytes=4",
		"weft-routes: host= pid=7 wire=shm tx_msgs=1 tx_bytes=8 rx_msgs=5 rx_bytes=4",
		"weft-routes: host=a pid=7 wire=shm tx_msgs=-1 tx_bytes=8 rx_msgs=5 rx_bytes=4",
		"weft-routes: host=a pid=7 wire=shm tx_msgs=1 tx_bytes= rx_msgs=5 rx_bytes=4",
		"weft-routes: host=a pid=7 wire=shm tx_msgs=99999999999999999999 tx_bytes=8 "
		"rx_msgs=5 rx_bytes=4",
		LINE " and more",
		LINE "  twice",
	};
	struct route_row row = { .pid = 99 };
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse(bad[i], &row), -EINVAL);
	assert_int_equal(row.pid, 99);
}

static void a_name_too_long_is_refused(void **state)
{
	char line[ROUTE_LINE_MAX];
	struct route_row row;

	snprintf(line, sizeof(line),
		 "weft-routes: host=%0*d wire=tcp tx_msgs=1 tx_bytes=1 "
		 "rx_msgs=1 rx_bytes=1",
		 ROUTE_NAME_MAX - 1, 0);
	assert_int_equal(parse(line, &row), 0);
	snprintf(line, sizeof(line),
		 "weft-routes: host=%0*d wire=tcp tx_msgs=1 tx_bytes=1 "
		 "rx_msgs=1 rx_bytes=1",
		 ROUTE_NAME_MAX, 0);
	assert_int_equal(parse(line, &row), -EINVAL);
}

static void lines_sum_by_host_and_wire(void **state)
{
	static const char *const hosts[] = { "b", "a" }, *const wires[] = { "tcp", "shm" };
	struct route_table table = { 0 };
	struct route_row row = {
		.endpoints = 1, .tx_msgs = 2, .tx_bytes = 3, .rx_msgs = 4, .rx_bytes = 5
	};
	size_t i, len;
	char *text;
	FILE *to;

	for (i = 0; i < 40; i++) {
		strcpy(row.host, hosts[i % 2]);
		strcpy(row.wire, wires[i / 2 % 2]);
		assert_int_equal(route_table_add(&table, &row), 0);
	}
	assert_int_equal(table.cnt, 4);
	to = open_memstream(&text, &len);
	route_table_print(&table, to);
	fclose(to);
	/* Sorted, each with ten endpoints; then a total per wire. */
	assert_string_equal(table.rows[0].host, "a");
	assert_string_equal(table.rows[0].wire, "shm");
	assert_string_equal(table.rows[3].host, "b");
	assert_string_equal(table.rows[3].wire, "tcp");
	assert_int_equal(table.rows[0].endpoints, 10);
	assert_int_equal(table.rows[0].rx_bytes, 50);
	assert_non_null(strstr(text, "(all hosts)          shm           20           40"));
	assert_non_null(strstr(text, "(all hosts)          tcp           20           40"));
	free(text);
	route_table_fini(&table);
}

static void an_empty_table_says_so(void **state)
{
	struct route_table table = { 0 };
	size_t len;
	char *text;
	FILE *to = open_memstream(&text, &len);

	route_table_print(&table, to);
	fclose(to);
	assert_non_null(strstr(text, "no endpoint reported"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_read),
		cmocka_unit_test(keys_of_a_later_version_are_passed_over),
		cmocka_unit_test(what_is_no_report_is_refused),
		cmocka_unit_test(a_name_too_long_is_refused),
		cmocka_unit_test(lines_sum_by_host_and_wire),
		cmocka_unit_test(an_empty_table_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
