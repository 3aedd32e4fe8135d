/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What tools are told of connections: those that are up, that break, are made again and end. Both
 * sides are in this process, each with a part of its page.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <cmocka.h>
#include "mock_engine.h"
#include "tcp_conn.h"
#include "tcp_hub.h"
#include "tcp_shown.h"

static uint64_t told(const struct side *side, enum weft_mem_tcp_count idx)
{
	const struct weft_mem_part *part = tcp_wire_from(side->wire)->hub->part;

	assert_non_null(part);
	assert_int_equal(part->kind, WEFT_MEM_PART_TCP);
	return __atomic_load_n(&part->counts[idx], __ATOMIC_RELAXED);
}

static void connections_are_told_until_they_end(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;

	assert_null(tcp_wire_from(a->wire)->hub->part);
	pair_up(a, b, &ab, &ba);
	assert_int_equal(told(a, WEFT_MEM_TCP_CONNS), 1);
	assert_int_equal(told(b, WEFT_MEM_TCP_CONNS), 1);
	assert_true(publish(ab, 0, 1000, false));
	DRIVE(a, b, b->got_cnt == 1);
	tcp_shown_sample(tcp_conn_from(ab));
	tcp_shown_sample(tcp_conn_from(ba));
	assert_true(told(a, WEFT_MEM_TCP_RETAINED_BYTES) >= 1000);
	assert_int_equal(told(a, WEFT_MEM_TCP_SENT_BYTES), told(b, WEFT_MEM_TCP_RECEIVED_BYTES));
	tcp_disconnect(ab);
	DRIVE(a, b, b->downs);
	assert_int_equal(told(a, WEFT_MEM_TCP_CONNS), 0);
	assert_int_equal(told(a, WEFT_MEM_TCP_MADE), 1);
	assert_int_equal(told(a, WEFT_MEM_TCP_RETAINED_BYTES), 0);
	assert_int_equal(told(a, WEFT_MEM_TCP_LOST), 0);
	assert_int_equal(told(b, WEFT_MEM_TCP_LOST), 0);
	side_close(a);
	side_close(b);
}

static void breaks_are_told_and_what_becomes_of_them(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;
	uint64_t sent;

	pair_up(a, b, &ab, &ba);
	assert_true(publish(ab, 0, 1000, false));
	DRIVE(a, b, b->got_cnt == 1);
	tcp_shown_sample(tcp_conn_from(ab));
	sent = told(a, WEFT_MEM_TCP_SENT_BYTES);
	tcp_lane_reset(&tcp_conn_from(ab)->control);
	DRIVE(a, NULL, told(a, WEFT_MEM_TCP_BREAKS) == 1);
	assert_int_equal(told(a, WEFT_MEM_TCP_BROKEN), 1);
	assert_int_equal(told(a, WEFT_MEM_TCP_RESUMES), 0);
	DRIVE(a, b, told(a, WEFT_MEM_TCP_RESUMES) == 1);
	DRIVE(a, b, told(b, WEFT_MEM_TCP_RESUMES) == told(b, WEFT_MEM_TCP_BREAKS));
	assert_int_equal(told(a, WEFT_MEM_TCP_BROKEN), 0);
	assert_int_equal(told(a, WEFT_MEM_TCP_CONNS), 1);
	tcp_shown_sample(tcp_conn_from(ab));
	assert_int_equal(told(a, WEFT_MEM_TCP_SENT_BYTES), sent);

	side_close(a);
	DRIVE(b, NULL, b->downs);
	assert_int_equal(told(b, WEFT_MEM_TCP_CONNS), 0);
	assert_int_equal(told(b, WEFT_MEM_TCP_BROKEN), 0);
	side_close(b);
}

static void a_connection_that_fails_is_told_as_lost(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;

	pair_up(a, b, &ab, &ba);
	b->reject = -FI_EINVAL;
	assert_true(publish(ab, 0, 8, false));
	DRIVE(a, b, a->downs && b->downs);
	assert_int_equal(told(a, WEFT_MEM_TCP_LOST), 1);
	assert_int_equal(told(b, WEFT_MEM_TCP_LOST), 1);
	assert_int_equal(told(a, WEFT_MEM_TCP_BROKEN), 0);
	assert_int_equal(told(b, WEFT_MEM_TCP_CONNS), 0);
	side_close(a);
	side_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_are_told_until_they_end),
		cmocka_unit_test(breaks_are_told_and_what_becomes_of_them),
		cmocka_unit_test(a_connection_that_fails_is_told_as_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
