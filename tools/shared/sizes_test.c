/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lists of message sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "sizes.h"

static void units_are_powers_of_1024(void **state)
{
	struct sizes sizes;

	assert_int_equal(sizes_parse("0,8,64k,1M,2KiB,1g", &sizes), 0);
	assert_int_equal(sizes.cnt, 6);
	assert_int_equal(sizes.len[0], 0);
	assert_int_equal(sizes.len[1], 8);
	assert_int_equal(sizes.len[2], 65536);
	assert_int_equal(sizes.len[3], 1 << 20);
	assert_int_equal(sizes.len[4], 2048);
	assert_int_equal(sizes.len[5], 1 << 30);
}

static void a_range_doubles_up_to_its_end(void **state)
{
	struct sizes sizes;

	assert_int_equal(sizes_parse("0,3:20,7", &sizes), 0);
	assert_int_equal(sizes.cnt, 5);
	assert_int_equal(sizes.len[1], 3);
	assert_int_equal(sizes.len[2], 6);
	assert_int_equal(sizes.len[3], 12);
	assert_int_equal(sizes.len[4], 7);
}

static void nonsense_is_refused_and_leaves_the_list(void **state)
{
	static const char *const bad[] = { "",	 ",",	"8,",	",8", "x",  "-1",  "8k8",
					   "8 ", "0:8", "16:8", "8:", "+8", "1e3", "8;9" };
	struct sizes sizes = { .cnt = 1, .len = { 42 } };
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(sizes_parse(bad[i], &sizes), -EINVAL);
	assert_int_equal(sizes.cnt, 1);
	assert_int_equal(sizes.len[0], 42);
}

static void sizes_beyond_the_limit_are_refused(void **state)
{
	struct sizes sizes = { 0 };

	assert_int_equal(sizes_parse("2g", &sizes), -ERANGE);
	assert_int_equal(sizes_parse("1073741825", &sizes), -ERANGE);
	assert_int_equal(sizes_parse("99999999999999999999999", &sizes), -ERANGE);
	assert_int_equal(sizes_parse("18446744073709551615k", &sizes), -ERANGE);
}

static void too_many_entries_are_refused(void **state)
{
	char text[2 * SIZES_MAX + 3];
	struct sizes sizes = { 0 };
	size_t i;

	for (i = 0; i <= SIZES_MAX; i++)
		memcpy(text + 2 * i, "8,", 3);
	text[2 * SIZES_MAX + 1] = '\0';
	assert_int_equal(sizes_parse(text, &sizes), -E2BIG);
	text[2 * SIZES_MAX - 1] = '\0';
	assert_int_equal(sizes_parse(text, &sizes), 0);
	assert_int_equal(sizes.cnt, SIZES_MAX);
}

static void the_short_form_is_read_back(void **state)
{
	static const size_t lens[] = { 0, 1, 1000, 1024, 1536, 3 << 20, (3 << 20) + 1024 };
	struct sizes sizes;
	char text[24];
	size_t i;

	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		assert_int_equal(sizes_parse(sizes_format(lens[i], text), &sizes), 0);
		assert_int_equal(sizes.len[0], lens[i]);
	}
	assert_string_equal(sizes_format(65536, text), "64k");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units_are_powers_of_1024),
		cmocka_unit_test(a_range_doubles_up_to_its_end),
		cmocka_unit_test(nonsense_is_refused_and_leaves_the_list),
		cmocka_unit_test(sizes_beyond_the_limit_are_refused),
		cmocka_unit_test(too_many_entries_are_refused),
		cmocka_unit_test(the_short_form_is_read_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
