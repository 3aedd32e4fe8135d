/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Route reports are taken out of a stream, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "line_filter.h"

#define REPORT \
	"weft-routes: host=h pid=1 wire=shm peers=1 tx_msgs=1 tx_bytes=1 rx_msgs=1 rx_bytes=1"

struct stage {
	struct line_filter filter;
	struct route_table table;
	char out[65536];
	size_t len;
};

static void take(void *arg, const char *data, size_t len)
{
	struct stage *stage = arg;

	assert_true(stage->len + len < sizeof(stage->out));
	memcpy(stage->out + stage->len, data, len);
	stage->len += len;
	stage->out[stage->len] = '\0';
}

static struct stage *begin(void)
{
	static struct stage stage;

	route_table_fini(&stage.table);
	memset(&stage, 0, sizeof(stage));
	line_filter_init(&stage.filter, &stage.table, take, &stage);
	return &stage;
}

static void feed(struct stage *stage, const char *text)
{
	line_filter_feed(&stage->filter, text, strlen(text));
}

static uint64_t reports(const struct stage *stage)
{
	return stage->table.cnt ? stage->table.rows[0].endpoints : 0;
}

static void other_lines_pass_at_once_and_unfinished_ones_soon(void **state)
{
	struct stage *stage = begin();

	feed(stage, "one\ntwo\nthr");
	assert_string_equal(stage->out, "one\ntwo\n");
	line_filter_tick(&stage->filter);
	assert_string_equal(stage->out, "one\ntwo\nthr");
	feed(stage, "ee\n\n");
	assert_string_equal(stage->out, "one\ntwo\nthree\n\n");
}

static void reports_are_taken_out(void **state)
{
	struct stage *stage = begin();

	feed(stage, "a\n" REPORT "\nb\n" REPORT "\n");
	assert_string_equal(stage->out, "a\nb\n");
	assert_int_equal(reports(stage), 2);
}

static void a_launchers_tag_goes_with_the_report(void **state)
{
	struct stage *stage = begin();

	feed(stage, "[1,0]<stderr>:" REPORT "\n[1,1]<stderr>:text\n");
	feed(stage, "Mon Nov 20 17:00:00 2026[1,10]<stderr>:" REPORT "\n");
	assert_string_equal(stage->out, "[1,1]<stderr>:text\n");
	assert_int_equal(reports(stage), 2);
}

static void text_before_a_report_stays(void **state)
{
	struct stage *stage = begin();

	feed(stage, "progress 50%" REPORT "\n");
	feed(stage, " 100%\n");
	assert_string_equal(stage->out, "progress 50% 100%\n");
	assert_int_equal(reports(stage), 1);
}

static void what_only_looks_like_a_report_passes(void **state)
{
	struct stage *stage = begin();

	feed(stage, "weft-routes: garbage\n" REPORT " and more\nweft-route\n");
	assert_string_equal(stage->out,
			    "weft-routes: garbage\n" REPORT " and more\nweft-route\n");
	assert_int_equal(reports(stage), 0);
}

static void a_report_in_pieces_is_still_one(void **state)
{
	static const char text[] = "x\n[1,0]<stderr>:" REPORT "\ny\n";
	struct stage *stage;
	size_t cut, i;

	for (cut = 1; cut < sizeof(text) - 1; cut++) {
		stage = begin();
		for (i = 0; i < sizeof(text) - 1; i += cut)
			line_filter_feed(&stage->filter, text + i,
					 i + cut < sizeof(text) - 1 ? cut
								    : sizeof(text) - 1 - i);
		line_filter_finish(&stage->filter);
		assert_string_equal(stage->out, "x\ny\n");
		assert_int_equal(reports(stage), 1);
	}
}

static void an_unfinished_line_waits_only_while_it_may_be_a_report(void **state)
{
	struct stage *stage = begin();

	feed(stage, "go? (y/n) weft-");
	assert_string_equal(stage->out, "go? (y/n) ");
	assert_true(line_filter_holds(&stage->filter));
	line_filter_tick(&stage->filter);
	assert_string_equal(stage->out, "go? (y/n) weft-");
	assert_false(line_filter_holds(&stage->filter));
	/* One that has begun as a report is not freed by time. */
	feed(stage, "\nweft-routes: host=h");
	line_filter_tick(&stage->filter);
	assert_string_equal(stage->out, "go? (y/n) weft-\n");
	line_filter_finish(&stage->filter);
	assert_string_equal(stage->out, "go? (y/n) weft-\nweft-routes: host=h");
}

static void a_report_without_end_is_let_go(void **state)
{
	struct stage *stage = begin();
	char text[4 * ROUTE_LINE_MAX];

	memset(text, 'x', sizeof(text));
	memcpy(text, "weft-routes: ", 13);
	line_filter_feed(&stage->filter, text, sizeof(text));
	assert_int_equal(stage->len, sizeof(text));
	assert_memory_equal(stage->out, text, sizeof(text));
}

/* Against the obvious way to do it: whole lines, all at once. */
static void random_cuts_give_what_whole_lines_give(void **state)
{
	static const char *const parts[] = { "text\n", REPORT "\n", "[1,0]<stderr>:",
					     "\n",     "weft-",	    "weft-routes: x\n",
					     "[1,",    "\0\n",	    "<" };
	static char in[20000], want[20000];
	unsigned seed = (unsigned)time(NULL), round;
	struct stage *stage;
	size_t len, cut, i, part;

	print_message("seed %u\n", seed);
	for (round = 0; round < 300; round++) {
		len = 0;
		in[0] = '\0';
		for (i = 0; i < 30; i++) {
			part = (size_t)rand_r(&seed) % (sizeof(parts) / sizeof(parts[0]));
			strcpy(in + len, parts[part]);
			len += strlen(parts[part]);
		}
		stage = begin();
		line_filter_feed(&stage->filter, in, len);
		line_filter_finish(&stage->filter);
		memcpy(want, stage->out, stage->len + 1);
		stage = begin();
		for (i = 0; i < len; i += cut) {
			cut = 1 + (size_t)rand_r(&seed) % 40;
			line_filter_feed(&stage->filter, in + i, i + cut < len ? cut : len - i);
		}
		line_filter_finish(&stage->filter);
		assert_string_equal(stage->out, want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_lines_pass_at_once_and_unfinished_ones_soon),
		cmocka_unit_test(reports_are_taken_out),
		cmocka_unit_test(a_launchers_tag_goes_with_the_report),
		cmocka_unit_test(text_before_a_report_stays),
		cmocka_unit_test(what_only_looks_like_a_report_passes),
		cmocka_unit_test(a_report_in_pieces_is_still_one),
		cmocka_unit_test(an_unfinished_line_waits_only_while_it_may_be_a_report),
		cmocka_unit_test(a_report_without_end_is_let_go),
		cmocka_unit_test(random_cuts_give_what_whole_lines_give),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
