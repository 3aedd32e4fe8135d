/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The pattern that verification checks, and the verdict of a comparison. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include "traffic.h"
#include "compare.h"

static void what_was_filled_is_right(void **state)
{
	unsigned char buf[70000];
	size_t len;

	for (len = 0; len <= sizeof(buf); len = len * 3 + 1) {
		traffic_fill(buf, len, 12345);
		assert_int_equal(traffic_check(buf, len, 12345), len);
	}
}

static void each_wrong_byte_shows(void **state)
{
	unsigned char buf[777];
	size_t i;

	traffic_fill(buf, sizeof(buf), 1);
	for (i = 0; i < sizeof(buf); i++) {
		buf[i] ^= 1;
		assert_int_equal(traffic_check(buf, sizeof(buf), 1), i);
		buf[i] ^= 1;
	}
}

static void another_message_shows(void **state)
{
	unsigned char buf[4096];
	uint64_t number;

	/* Neighbours, and messages a whole rotation of buffers apart. */
	for (number = 0; number < 1000; number++) {
		traffic_fill(buf, sizeof(buf), number);
		assert_true(traffic_check(buf, sizeof(buf), number + 1) < 64);
		assert_true(traffic_check(buf, sizeof(buf), number + 8) < 64);
		assert_true(traffic_check(buf, sizeof(buf), number + 128) < 64);
	}
}

static void a_part_moved_by_a_page_shows(void **state)
{
	unsigned char buf[16384];

	traffic_fill(buf, sizeof(buf), 5);
	memmove(buf, buf + 4096, 4096);
	assert_true(traffic_check(buf, sizeof(buf), 5) < 4096);
}

static void only_what_is_beyond_the_spread_counts(void **state)
{
	assert_string_equal(compare_verdict(0.96, 0.95, 1.05), "same");
	assert_string_equal(compare_verdict(0.94, 0.95, 1.05), "slower");
	assert_string_equal(compare_verdict(1.06, 0.95, 1.05), "faster");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_filled_is_right),
		cmocka_unit_test(each_wrong_byte_shows),
		cmocka_unit_test(another_message_shows),
		cmocka_unit_test(a_part_moved_by_a_page_shows),
		cmocka_unit_test(only_what_is_beyond_the_spread_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
