/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests of which rings are polled: one endpoint with several peers, all in this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "conn.h"
#include "mock_engine.h"
#include "seeded.h"

#define PEERS 6
#define COOL  (32u * 70u) /* polls after which an idle ring is cold */

static struct mock hub, peers[PEERS];
static uint64_t sent;

static struct pshm_wire *wire(void)
{
	return (struct pshm_wire *)hub.wire;
}

static int setup(void **state)
{
	struct wire_conn *conn;

	sent = 0;
	mock_open(&hub);
	for (int i = 0; i < PEERS; i++) {
		mock_open(&peers[i]);
		assert_int_equal(mock_connect(&peers[i], &hub.addr, &conn), 0);
		mock_until(&peers[i], &hub, peers[i].conn && hub.ups == i + 1);
	}
	return 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < PEERS; i++)
		mock_close(&peers[i]);
	mock_close(&hub);
	return 0;
}

static void polls(uint32_t cnt)
{
	while (cnt--)
		mock_poll(&hub, NULL);
}

static void quiet_rings_cool_and_who_calls_is_heard_at_once(void **state)
{
	assert_int_equal(wire()->hot_cnt, PEERS);
	polls(COOL);
	assert_true(wire()->hot_cnt < PEERS);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < PEERS; i++) {
			assert_true(mock_put(peers[i].conn, sent++, 8));
			mock_poll(&hub, NULL);
			assert_int_equal(hub.next_tag, sent);
		}
		assert_int_equal(wire()->hot_cnt, PEERS);
		polls(COOL);
	}
	assert_false(hub.garbled);
}

static void busy_rings_stay_hot(void **state)
{
	for (uint32_t i = 0; i < 3 * COOL; i++) {
		if (i % 500 == 0)
			for (int p = 0; p < 3; p++)
				assert_true(mock_put(peers[p].conn, sent++, 8));
		mock_poll(&hub, NULL);
	}
	assert_int_equal(wire()->hot_cnt, 3);
	for (int p = 0; p < 3; p++)
		assert_int_equal(pshm_conn_of(peers[p].conn)->polling->mode,
				 wire()->barriers ? PSHM_POLLED : PSHM_UNSURE);
}

static void call_that_is_lost_is_a_delay(void **state)
{
	polls(COOL);
	for (int i = 0; i < PEERS; i++)
		assert_true(mock_put(peers[i].conn, sent + (uint64_t)i, 8));
	/* as if the peers had not seen yet that they are to ring, or a neighbour had cleared them */
	memset((void *)wire()->inbox->doorbells, 0, sizeof(wire()->inbox->doorbells));
	wire()->inbox->rung = 0;
	while (hub.packets < PEERS)
		mock_poll(&hub, NULL);
}

/* What a producer publishes before it sees that it is to ring is found by the next poll. */
static void who_publishes_while_its_ring_cools_is_heard(void **state)
{
	struct pshm_conn *conn = pshm_conn_of(peers[PEERS - 1].conn);
	enum pshm_polling_mode before = conn->polling->mode;

	for (int round = 0; round < 10; round++) {
		for (uint32_t i = 0; conn->polling->mode != PSHM_RING_DOORBELL; i++) {
			assert_true(i < 2 * COOL);
			mock_poll(&hub, NULL);
		}
		conn->polling->mode = before;
		assert_true(mock_put(&conn->base, sent++, 8));
		conn->polling->mode = PSHM_RING_DOORBELL;
		mock_poll(&hub, NULL);
		assert_int_equal(hub.next_tag, sent);
	}
	polls(2 * COOL);
	assert_true(wire()->hot_cnt < PEERS);
}

static void bits_that_nobody_set_do_no_harm(void **state)
{
	uint64_t seed = 0x5eed0a77;

	print_message("seed %#llx\n", (unsigned long long)seed);
	for (uint32_t i = 0; i < 20000; i++) {
		wire()->inbox->doorbells[seeded_below(&seed, 8)] = seeded_random(&seed);
		wire()->inbox->rung = seeded_random(&seed) >> 32;
		wire()->inbox->armed = seeded_below(&seed, 2);
		if (i % 3 == 0)
			assert_true(mock_put(peers[i % PEERS].conn, sent++, 8));
		mock_poll(&hub, NULL);
		assert_int_equal(hub.next_tag, sent);
	}
	assert_int_equal(hub.downs, 0);
}

static void doorbell_outside_the_inbox_stays_inside(void **state)
{
	struct pshm_conn *conn = pshm_conn_of(peers[0].conn);

	conn->polling->mode = PSHM_RING_DOORBELL;
	conn->polling->doorbell = UINT32_MAX;
	assert_true(mock_put(peers[0].conn, sent++, 8));
	mock_poll(&hub, NULL);
	assert_int_equal(hub.next_tag, sent);
	conn->polling->mode = 77; /* no way to report the sleep: as unsure */
	assert_true(mock_put(peers[0].conn, sent++, 8));
	mock_poll(&hub, NULL);
	assert_int_equal(hub.next_tag, sent);
}

static void end_of_a_cold_one_is_told(void **state)
{
	polls(COOL);
	for (int i = 0; i < PEERS; i++) {
		mock_close(&peers[i]);
		polls(100);
		assert_int_equal(hub.downs, i + 1);
		assert_int_equal(hub.down_err, 0);
	}
	assert_int_equal(wire()->up_cnt, 0);
	assert_int_equal(wire()->hot_cnt, 0);
}

/* Connections that begin and end in any order leave every list and index right. */
static void comings_and_goings_keep_the_order_of_hot_and_cold(void **state)
{
	uint64_t seed = 0x5eed0a78;

	print_message("seed %#llx\n", (unsigned long long)seed);
	for (uint32_t i = 0; i < 3000; i++) {
		struct mock *m = &peers[seeded_below(&seed, PEERS)];

		if (!m->conn && i % 2) {
			struct wire_conn *conn;

			if (!m->wire)
				mock_open(m);
			assert_int_equal(mock_connect(m, &hub.addr, &conn), 0);
			mock_until(m, &hub, m->conn);
		} else if (m->conn && i % 7 == 0) {
			m->wire->ops->disconnect(m->conn);
			m->conn = NULL;
		} else if (m->conn) {
			assert_true(mock_put(m->conn, sent++, 8));
			mock_until(&hub, NULL, hub.next_tag == sent);
		}
		polls(seeded_below(&seed, 100) ? 1 : COOL);
		for (uint32_t u = 0; u < wire()->up_cnt; u++)
			assert_int_equal(wire()->up[u]->up_idx, u);
		assert_true(wire()->hot_cnt <= wire()->up_cnt);
	}
	assert_false(hub.garbled);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(quiet_rings_cool_and_who_calls_is_heard_at_once),
		TEST(busy_rings_stay_hot),
		TEST(call_that_is_lost_is_a_delay),
		TEST(who_publishes_while_its_ring_cools_is_heard),
		TEST(bits_that_nobody_set_do_no_harm),
		TEST(doorbell_outside_the_inbox_stays_inside),
		TEST(end_of_a_cold_one_is_told),
		TEST(comings_and_goings_keep_the_order_of_hot_and_cold),
	};

	alarm(600);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
