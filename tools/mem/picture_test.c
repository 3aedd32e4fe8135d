/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pictures of registered memory over time: of nothing, of little and of more than there is room for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "picture.h"

static struct picture picture;

static char *drawn(const char *title)
{
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	assert_non_null(to);
	picture_print(to, &picture, title);
	assert_int_equal(fclose(to), 0);
	return text;
}

static int setup(void **state)
{
	memset(&picture, 0, sizeof(picture));
	return 0;
}

static void add(double at_s, uint64_t live, uint64_t hits)
{
	struct sample sample = { .at_s = at_s };

	sample.counts[WEFT_MEM_PART_ARENA][WEFT_MEM_ARENA_LIVE_BYTES] = live;
	sample.counts[WEFT_MEM_PART_CACHE][WEFT_MEM_CACHE_HITS] = hits;
	sample.parts[WEFT_MEM_PART_CACHE] = hits != 0;
	picture_add(&picture, &sample);
}

static void a_picture_of_nothing_has_its_axes(void **state)
{
	char *text = drawn("a <b> & c");

	assert_non_null(strstr(text, "a &lt;b&gt; &amp; c"));
	assert_non_null(strstr(text, "the arena, MiB"));
	assert_null(strstr(text, "nan"));
	assert_non_null(strstr(text, "</svg>"));
	free(text);
}

static void devices_bring_panels(void **state)
{
	char *text;

	add(0, 1 << 20, 0);
	text = drawn("t");
	assert_null(strstr(text, "each second"));
	free(text);
	add(1, 2 << 20, 10);
	text = drawn("t");
	assert_non_null(strstr(text, "each second"));
	assert_non_null(strstr(text, "registered with devices"));
	free(text);
}

/* At 2 s the counter of a process that has ended is missing: that is no rate. */
static void a_sum_that_shrinks_is_no_rate(void **state)
{
	char *text;

	add(0, 0, 100);
	add(1, 0, 300);
	add(2, 0, 5);
	text = drawn("t");
	assert_null(strstr(text, ",-"));
	assert_non_null(strstr(text, ">200<"));
	free(text);
}

static void a_long_time_is_thinned_out(void **state)
{
	const size_t cnt = 10 * PICTURE_POINTS + 3;

	for (size_t i = 0; i < cnt; i++)
		add((double)i, i, 0);
	assert_in_range(picture.cnt, PICTURE_POINTS / 2, PICTURE_POINTS);
	for (size_t i = 0; i < picture.cnt; i++) {
		assert_true(picture.points[i].at_s == (double)(i * picture.stride));
		assert_true(picture.points[i].values[PICTURE_LIVE] == picture.points[i].at_s);
	}
	assert_true(picture.points[picture.cnt - 1].at_s + picture.stride >= (double)cnt);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_picture_of_nothing_has_its_axes),
		TEST(devices_bring_panels),
		TEST(a_sum_that_shrinks_is_no_rate),
		TEST(a_long_time_is_thinned_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
