/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of rings that grow, and of the stores that fill them: two endpoints in one process, and a
 * peer that offers what it should not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "conn.h"
#include "fault.h"
#include "lines.h"
#include "mock_core.h"
#include "mock_engine.h"

#define SOME 4096u

static struct mock a, b;

static int setup(void **state)
{
	mock_meet(&a, &b);
	return 0;
}

static int teardown(void **state)
{
	sys_fault_clear();
	mock_close(&a);
	mock_close(&b);
	free(b.room);
	b.room = NULL;
	return 0;
}

static struct pshm_conn *at(struct mock *m)
{
	return pshm_conn_of(m->conn);
}

/* As many packets of SOME bytes as there is room for. */
static uint64_t fill_up(uint64_t sent)
{
	while (mock_put(a.conn, sent, SOME))
		sent++;
	return sent;
}

static void ring_grows_when_payload_has_no_room(void **state)
{
	uint64_t sent = fill_up(0), before;

	assert_true(sent <= PSHM_DATA_LEN / SOME);
	mock_until(&a, &b, at(&a)->growing == PSHM_LARGE);
	mock_until(&b, NULL, b.next_tag == sent);
	before = sent;
	sent = fill_up(sent);
	assert_true(sent - before > PSHM_LINE_CNT / 2);
	mock_until(&b, NULL, b.next_tag == sent);
	assert_false(b.garbled);
	assert_int_equal(at(&b)->growing, PSHM_SMALL); /* each direction for itself */
}

static void small_messages_do_not_make_it_grow(void **state)
{
	uint64_t sent = 0;

	while (mock_put(a.conn, sent, 60))
		sent++;
	assert_int_equal(at(&a)->growing, PSHM_SMALL);
	mock_until(&a, &b, b.next_tag == sent);
}

static void ring_grows_when_payload_that_fits_is_frequent(void **state)
{
	uint64_t sent = 0;

	while (at(&a)->growing == PSHM_SMALL && sent < 10000) {
		assert_true(mock_put(a.conn, sent++, PSHM_GROW_MIN));
		mock_until(&b, NULL, b.next_tag == sent);
		if (sent <= 8000) /* an area for them would cost more than it gains */
			assert_int_equal(((struct pshm_wire *)a.wire)->area_len, 0);
	}
	assert_in_range(sent, 8000, 9999);
	mock_until(&a, &b, at(&a)->growing == PSHM_LARGE);
	assert_false(b.garbled);
}

static void traffic_goes_on_while_a_ring_grows(void **state)
{
	uint64_t sent = 0;

	for (uint32_t i = 0; i < 3000; i++) {
		uint32_t len = i * 7919 % (PSHM_CLAIM_MAX + 1);

		while (!mock_put(a.conn, sent, len))
			mock_poll(&b, i % 3 ? &a : NULL);
		sent++;
	}
	mock_until(&a, &b, b.next_tag == sent);
	assert_int_equal(at(&a)->growing, PSHM_LARGE);
	assert_false(b.garbled);
}

static void peer_without_descriptors_is_asked_again_later(void **state)
{
	uint64_t sent;

	sent = fill_up(0);
	sys_fault_set(SYS_CALL_OPEN_FD, EMFILE, 0, 1);
	mock_until(&a, &b, at(&a)->growing == PSHM_SMALL);
	assert_int_equal(((struct pshm_wire *)a.wire)->area_len, 0);
	for (int i = 0; i < 10; i++) {
		mock_until(&a, &b, b.next_tag == sent);
		sent = fill_up(sent);
		assert_int_equal(at(&a)->growing, PSHM_SMALL);
	}
	((struct pshm_wire *)a.wire)->tick += 1u << 20;
	mock_until(&a, &b, b.next_tag == sent);
	sent = fill_up(sent);
	mock_until(&a, &b, at(&a)->growing == PSHM_LARGE);
	mock_until(&a, &b, b.next_tag == sent);
	assert_false(b.garbled);
}

static void no_memory_for_an_area_leaves_the_ring_small(void **state)
{
	uint64_t sent;

	sys_fault_set(SYS_CALL_MEMFD_CREATE, ENOMEM, 0, 1);
	sent = fill_up(0);
	assert_int_equal(at(&a)->growing, PSHM_SMALL);
	mock_until(&a, &b, b.next_tag == sent);
	sent = fill_up(sent);
	mock_until(&a, &b, b.next_tag == sent);
	assert_false(b.garbled);
}

static void areas_of_an_endpoint_are_bounded(void **state)
{
	((struct pshm_wire *)a.wire)->area_max = PSHM_AREA_LEN;
	fill_up(0);
	assert_int_equal(at(&a)->growing, PSHM_SMALL);
	((struct pshm_wire *)a.wire)->area_max = PSHM_AREA_HEAD + PSHM_AREA_LEN;
	fill_up(0);
	assert_int_equal(at(&a)->growing, PSHM_OFFERED);
	pshm_wire_ops.disconnect(a.conn);
	assert_int_equal(((struct pshm_wire *)a.wire)->area_len, 0);
}

static void user_may_forbid_rings_to_grow(void **state)
{
	static const size_t none = 0;
	struct wire_conn *conn;

	mock_close(&a);
	mock_area_budget = &none;
	mock_open(&a);
	mock_area_budget = NULL;
	b.conn = NULL;
	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	mock_until(&a, &b, a.conn && b.conn);
	fill_up(0);
	assert_int_equal(at(&a)->growing, PSHM_SMALL);
}

/* A line of a's ring with that header. */
static void line_put(uint32_t kind, const struct pshm_growth *growth)
{
	struct ring_line *line = ring_claim(&at(&a)->tx);

	assert_non_null(line);
	memcpy(line->header, growth, sizeof(*growth));
	ring_publish(&at(&a)->tx, line, kind);
	mock_poll(&b, NULL);
}

static struct pshm_growth growth_of(const struct pshm_region *region)
{
	const struct pshm_area *area = region->addr;
	struct pshm_growth growth = { .fd = (uint32_t)region->fd };

	memcpy(growth.nonce, area->nonce, PSHM_NONCE);
	return growth;
}

static void area_that_is_not_there_is_not_mapped(void **state)
{
	struct pshm_growth growth = { .fd = a.addr.fd }; /* an inbox */

	line_put(PSHM_GROW, &growth);
	assert_int_equal(b.downs, 0);
	assert_int_equal(at(&a)->pair->grown[at(&a)->side].value, PSHM_NOT_MAPPED);
}

static void area_of_another_size_than_it_says_ends_the_connection(void **state)
{
	struct pshm_region region;
	struct pshm_growth growth;

	assert_int_equal(pshm_area_create(PSHM_AREA_LEN, &region), 0);
	growth = growth_of(&region);
	((struct pshm_area *)region.addr)->data_len = 2 * PSHM_AREA_LEN;
	line_put(PSHM_GROW, &growth);
	assert_int_equal(b.down_err, -FI_EPROTO);
	pshm_region_close(&region);
}

static void area_that_is_no_larger_ends_the_connection(void **state)
{
	struct pshm_region region;
	struct pshm_growth growth;

	assert_int_equal(pshm_area_create(PSHM_DATA_LEN, &region), 0);
	growth = growth_of(&region);
	line_put(PSHM_GROW, &growth);
	assert_int_equal(b.down_err, -FI_EPROTO);
	pshm_region_close(&region);
}

static void second_area_ends_the_connection(void **state)
{
	struct pshm_region region;
	struct pshm_growth growth;

	assert_int_equal(pshm_area_create(PSHM_AREA_LEN, &region), 0);
	growth = growth_of(&region);
	line_put(PSHM_GROW, &growth);
	assert_int_equal(b.downs, 0);
	line_put(PSHM_GROW, &growth);
	assert_int_equal(b.down_err, -FI_EPROTO);
	pshm_region_close(&region);
}

static void move_to_nowhere_ends_the_connection(void **state)
{
	struct pshm_growth growth = { .fd = 0 };

	line_put(PSHM_MOVE, &growth);
	assert_int_equal(b.downs, 1);
	assert_int_equal(b.down_err, -FI_EPROTO);
}

static void second_move_ends_the_connection(void **state)
{
	struct pshm_region region;
	struct pshm_growth growth;

	assert_int_equal(pshm_area_create(PSHM_AREA_LEN, &region), 0);
	growth = growth_of(&region);
	line_put(PSHM_GROW, &growth);
	line_put(PSHM_MOVE, &growth);
	assert_int_equal(b.downs, 0);
	line_put(PSHM_MOVE, &growth);
	assert_int_equal(b.down_err, -FI_EPROTO);
	pshm_region_close(&region);
}

/* Stores */

static void payload_in_pieces_is_exact_whatever_stores_carry_it(void **state)
{
	enum { LEN = 100003 };
	unsigned char *buf = malloc(LEN);
	struct mock_op op;

	b.room = malloc(LEN + 1);
	b.room_len = LEN;
	b.room_iovs = 3;
	for (int i = 0; i < 16; i++) {
		uint64_t tag = MOCK_BIG + (uint64_t)i;

		at(&a)->stores.kind = (enum pshm_store)(i % PSHM_STORES);
		mock_pattern(buf, LEN, tag);
		b.big_done = 0;
		assert_int_equal(mock_sendv(a.conn, tag, buf, LEN, 1 + (size_t)i % 4, &op), 0);
		mock_until(&a, &b, op.done && b.big_done);
		assert_false(b.garbled);
	}
	free(buf);
}

static void payload_of_every_length_and_alignment_is_filled(void **state)
{
	static unsigned char from[3000], to[3000];

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)(i * 131 >> 3);
	for (uint32_t n = 0; n < 4000; n++) {
		size_t off = n % 17, len = WIRE_FILL_MIN + n % 1500, first = n * 7 % len;
		struct iovec iov[2] = { { from + 5, first }, { from + 5 + first, len - first } };

		memset(to, 0xee, sizeof(to));
		at(&a)->stores.kind = (enum pshm_store)(n % PSHM_STORES);
		at(&a)->stores.until = n % 4 ? 10 : 0;
		pshm_wire_ops.fill(a.conn, to + off, iov, 2, len);
		assert_memory_equal(to + off, from + 5, len);
		assert_int_equal(to[off + len], 0xee);
		assert_true(!off || to[off - 1] == 0xee);
	}
}

/* Sends; @ns: what the consumer says that reading takes, by kind of stores. */
static void probes_answered(const uint32_t *ns)
{
	struct pshm_stores *s = &at(&a)->stores;
	static unsigned char from[2048], to[2048];
	struct iovec iov = { from, sizeof(from) };

	for (int i = 0; i < 2000; i++) {
		pshm_wire_ops.fill(a.conn, to, &iov, 1, sizeof(from));
		if (s->probing)
			at(&a)->pair->probed[at(&a)->side].value = ns[s->probe_kind];
	}
}

static void fastest_stores_are_found_and_found_again(void **state)
{
	static const enum pshm_store fastest[] = { PSHM_STREAMING, PSHM_PLAIN, PSHM_WHOLE,
						   PSHM_STREAMING, PSHM_WHOLE, PSHM_PLAIN };
	uint64_t until;

	for (size_t i = 0; i < sizeof(fastest) / sizeof(fastest[0]); i++) {
		uint32_t ns[PSHM_STORES] = { 50000, 50000, 50000 };

		ns[fastest[i]] = 300;
		/* what the stores themselves take is measured, and may be interrupted */
		until = platform_now_ns() + 20000000000u;
		do
			probes_answered(ns);
		while (at(&a)->stores.kind != fastest[i] && platform_now_ns() < until);
		assert_int_equal(at(&a)->stores.kind, fastest[i]);
	}
}

static void reader_answers_a_probe(void **state)
{
	struct pshm_stores *s = &at(&a)->stores;
	unsigned char buf[5000] = "";
	struct iovec iov = { buf, sizeof(buf) };
	struct packet *packet;
	void *payload;

	packet = pshm_wire_ops.claim(a.conn, sizeof(buf), &payload);
	assert_non_null(packet);
	mock_pattern(buf, sizeof(buf), 0);
	*packet = (struct packet){ .op = PACKET_EAGER, .len = sizeof(buf) };
	pshm_wire_ops.fill(a.conn, payload, &iov, 1, sizeof(buf));
	assert_true(s->probing);
	pshm_wire_ops.publish(a.conn, packet, false);
	mock_until(&b, NULL, b.packets);
	assert_false(b.garbled);
	assert_int_not_equal(at(&a)->pair->probed[at(&a)->side].value, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ring_grows_when_payload_has_no_room),
		TEST(small_messages_do_not_make_it_grow),
		TEST(ring_grows_when_payload_that_fits_is_frequent),
		TEST(traffic_goes_on_while_a_ring_grows),
		TEST(peer_without_descriptors_is_asked_again_later),
		TEST(no_memory_for_an_area_leaves_the_ring_small),
		TEST(areas_of_an_endpoint_are_bounded),
		TEST(user_may_forbid_rings_to_grow),
		TEST(area_that_is_not_there_is_not_mapped),
		TEST(area_of_another_size_than_it_says_ends_the_connection),
		TEST(area_that_is_no_larger_ends_the_connection),
		TEST(second_area_ends_the_connection),
		TEST(move_to_nowhere_ends_the_connection),
		TEST(second_move_ends_the_connection),
		TEST(payload_in_pieces_is_exact_whatever_stores_carry_it),
		TEST(payload_of_every_length_and_alignment_is_filled),
		TEST(fastest_stores_are_found_and_found_again),
		TEST(reader_answers_a_probe),
	};

	alarm(600);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
