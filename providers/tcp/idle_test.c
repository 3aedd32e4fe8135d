/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Conns that are closed because they are idle, and made again when there is something to send: by
 * either side, whatever both do meanwhile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "mock_core.h"
#include "mock_engine.h"
#include "mock_random.h"
#include "tcp_conn.h"
#include "tcp_greet.h"
#include "tcp_idle.h"
#include "tcp_session.h"

#define LARGE	 (66u << 10)
#define PAYLOADS 8

/* Two sides and the conn between them; a has connected. */
struct two {
	struct side *side[2];
	struct tcp_conn *conn[2];
	/* Next packet that each publishes, next payload that it sends, and those the other has seen */
	uint32_t next[2], large[2], seen[2];
	struct sent sent[2][PAYLOADS];
	uint8_t *bytes[2];
};

static struct two two_open(void)
{
	struct two t = { .side = { side_open(NULL), side_open(NULL) } };
	struct wire_conn *conn[2];

	pair_up(t.side[0], t.side[1], &conn[0], &conn[1]);
	for (int i = 0; i < 2; i++) {
		t.conn[i] = tcp_conn_from(conn[i]);
		t.bytes[i] = malloc(LARGE);
		assert_non_null(t.bytes[i]);
		pattern(t.bytes[i], LARGE, 0);
	}
	return t;
}

static void two_close(struct two *t)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(t->side[i]->downs, 0);
		side_close(t->side[i]);
		free(t->bytes[i]);
	}
}

static void say(struct two *t, int from)
{
	DRIVE(t->side[0], t->side[1], publish(&t->conn[from]->conn, t->next[from], 24, false));
	t->next[from]++;
}

/* Payload of the data lane. Returns false if too much is under way. */
static bool say_large(struct two *t, int from)
{
	struct iovec iov = { t->bytes[from], LARGE };
	struct sent *sent = &t->sent[from][t->large[from] % PAYLOADS];

	if (t->large[from] >= PAYLOADS && !sent->done)
		return false;
	*sent = (struct sent){ 0 };
	/* It waits where a lane has broken, and nobody has read that yet. */
	DRIVE(t->side[0], t->side[1], send_bulk(&t->conn[from]->conn, 0, &iov, 1, sent) == 0);
	t->large[from]++;
	return true;
}

static bool all_sent(const struct two *t, int from)
{
	for (uint32_t i = 0; i < PAYLOADS && i < t->large[from]; i++)
		if (!t->sent[from][i].done)
			return false;
	return true;
}

/* All that was published and sent has come, once, and packets in order. */
static void settle(struct two *t)
{
	for (int i = 0; i < 2; i++) {
		struct side *to = t->side[!i];
		uint32_t packets = 0, payloads = 0;

		DRIVE(t->side[0], t->side[1],
		      to->got_cnt >= (int)(t->next[i] + t->large[i]) && all_sent(t, i));
		for (int k = 0; k < to->got_cnt; k++) {
			if (to->got[k].packet.op == PACKET_EAGER)
				assert_int_equal(to->got[k].packet.seq, packets++);
			else
				payloads++;
		}
		assert_int_equal(packets, t->next[i]);
		assert_int_equal(payloads, t->large[i]);
		for (; (int)t->seen[i] < to->got_cnt; t->seen[i]++)
			assert_true(payload_right(&to->got[t->seen[i]]));
	}
}

static uint32_t ask(struct two *t, int who, uint32_t cnt)
{
	struct tcp_hub *hub = tcp_wire_of(t->conn[who])->hub;

	hub->vain_ns = 0;
	return tcp_idle_ask(hub, cnt);
}

static bool is_closed(const struct tcp_conn *conn)
{
	return conn->control.state == TCP_LANE_IDLE && conn->control.fd < 0 && conn->data.fd < 0;
}

static bool is_open(const struct tcp_conn *conn)
{
	return conn->control.state == TCP_LANE_UP;
}

static void rest(struct two *t, int who)
{
	assert_int_equal(ask(t, who, 1), 1);
	DRIVE(t->side[0], t->side[1], is_closed(t->conn[0]) && is_closed(t->conn[1]));
}

static void an_idle_conn_is_closed_and_made_again(void **state)
{
	struct two t = two_open();

	for (int i = 0; i < 4; i++) {
		say(&t, 0);
		say(&t, 1);
		settle(&t);
		rest(&t, i & 1);
		say(&t, i / 2);
		settle(&t);
	}
	assert_int_equal(tcp_wire_of(t.conn[0])->breaks + tcp_wire_of(t.conn[1])->breaks, 0);
	two_close(&t);
}

/* Both lanes: payload that needs the data lane has it made again. */
static void payload_is_sent_after_a_rest(void **state)
{
	struct two t = two_open();

	for (int i = 0; i < 4; i++) {
		assert_true(say_large(&t, i & 1));
		assert_int_equal(ask(&t, i & 1, 1), 0);
		settle(&t);
		rest(&t, i / 2);
	}
	two_close(&t);
}

/*
 * The data lane is made again long after its last socket, and the first connect is in vain: that is no silence of the
 * peer yet.
 */
static void one_vain_connect_after_a_rest_is_none_too_many(void **state)
{
	const int dead_ms = tcp_settings.dead_ms;
	struct two t = two_open();
	union ip_sockaddr there;

	tcp_settings.dead_ms = 1000;
	assert_true(say_large(&t, 0));
	settle(&t);
	usleep(1200000);
	rest(&t, 0);
	say(&t, 0);
	settle(&t);
	assert_int_equal(t.conn[0]->data.state, TCP_LANE_NONE);
	there = t.conn[0]->remote;
	assert_int_equal(there.sa.sa_family, AF_INET);
	t.conn[0]->remote.in.sin_addr.s_addr = htonl(
		0xe0000001); /* a group: nobody connects to it */
	assert_true(say_large(&t, 0));
	for (int i = 0; i < 10; i++)
		tcp_poll(t.side[0]->wire);
	t.conn[0]->remote = there;
	settle(&t);
	two_close(&t);
	tcp_settings.dead_ms = dead_ms;
}

static void what_is_under_way_keeps_a_conn(void **state)
{
	struct two t = two_open();

	say(&t, 0);
	settle(&t);
	t.side[0]->busy = true;
	assert_int_equal(ask(&t, 0, 1), 0);
	t.side[0]->busy = false;
	t.side[1]->busy = true; /* the other side does not agree */
	assert_int_equal(ask(&t, 0, 1), 1);
	DRIVE(t.side[0], t.side[1], t.conn[1]->idle.heard && !t.conn[1]->idle.due);
	assert_true(is_open(t.conn[0]) && is_open(t.conn[1]));
	t.side[1]->busy = false; /* now it asks itself, and the first one agrees already */
	rest(&t, 1);
	say(&t, 1);
	settle(&t);
	two_close(&t);
}

/* Where the kernel has it: what one side sends while the other one closes. */
static void a_packet_that_crosses_arrives(void **state)
{
	struct two t = two_open();

	for (int who = 0; who < 4; who++) {
		DRIVE(t.side[0], t.side[1],
		      (say(&t, 0), say(&t, 1), settle(&t),
		       is_open(t.conn[0]) && is_open(t.conn[1])));
		assert_int_equal(ask(&t, who & 1, 1), 1);
		if (who / 2)
			DRIVE(t.side[!(who & 1)], NULL, is_closed(t.conn[!(who & 1)]));
		say(&t, who & 1);
		settle(&t);
	}
	two_close(&t);
}

/* Of its break the side that connected, which agrees to close, hears on the control lane alone. */
static void a_data_lane_that_the_peer_wants_is_made_again(void **state)
{
	for (int both = 0; both < 2; both++) {
		struct two t = two_open();
		int keep;

		assert_true(say_large(&t, 1));
		settle(&t);
		assert_int_equal(ask(&t, 0, 1), 1);
		if (both)
			assert_int_equal(ask(&t, 1, 1), 1);
		keep = dup(t.conn[1]->data.fd); /* the other end hears nothing of it */
		assert_true(keep >= 0);
		assert_true(tcp_session_broken(t.conn[1], &t.conn[1]->data, -FI_ECONNRESET));
		assert_true(say_large(&t, 1));
		side_poll(t.side[1]); /* it asks for the lane before the other one closes */
		settle(&t);
		two_close(&t);
		close(keep);
	}
}

static void nothing_is_lost_whatever_crosses(void **state)
{
	struct two t = two_open();
	uint64_t rests = 0;
	uint32_t what;
	int who;

	for (int i = 0; i < 20000; i++) {
		what = rnd(64);
		who = (int)rnd(2);
		if (what < 4)
			say(&t, who);
		else if (what == 12 && rnd(4) == 0)
			say_large(&t, who);
		else if (what < 10)
			ask(&t, who, 1);
		else if (what == 10 && t.conn[who]->control.fd >= 0 && rnd(8) == 0)
			shutdown(t.conn[who]->control.fd, SHUT_RDWR);
		else if (what == 13 && t.conn[who]->data.fd >= 0 && rnd(8) == 0)
			shutdown(t.conn[who]->data.fd, SHUT_RDWR);
		else if (what == 11)
			settle(&t);
		else
			side_poll(t.side[who]);
	}
	settle(&t);
	for (int i = 0; i < 2; i++)
		rests += tcp_wire_of(t.conn[i])->rests;
	assert_true(rests > 10);
	two_close(&t);
}

static void the_least_recently_used_is_closed_first(void **state)
{
	struct side *a = side_open(NULL), *b[3];
	struct wire_conn *conn[3], *other;
	struct tcp_hub *hub;

	for (int i = 0; i < 3; i++) {
		b[i] = side_open(NULL);
		pair_up(a, b[i], &conn[i], &other);
	}
	hub = tcp_wire_of(tcp_conn_from(conn[0]))->hub;
	for (int i = 3; i--;) {
		assert_true(publish(conn[i], 0, 8, false));
		DRIVE(a, b[i], b[i]->got_cnt == 1);
		tcp_conn_from(conn[i])->check_ns = 0;
		assert_int_equal(tcp_check(conn[i]), 0);
	}
	for (int i = 3; i--;) {
		assert_int_equal(tcp_idle_ask(hub, 1), 1);
		DRIVE(a, b[i], is_closed(tcp_conn_from(conn[i])));
		for (int j = 0; j < i; j++)
			assert_true(is_open(tcp_conn_from(conn[j])));
	}
	side_close(a);
	for (int i = 0; i < 3; i++)
		side_close(b[i]);
}

/* No descriptor is left: an idle conn gives its own. */
static void a_full_table_closes_an_idle_conn(void **state)
{
	struct side *c = side_open(NULL);
	struct rlimit before, full;
	struct wire_conn *conn, *far;
	struct two t = two_open();
	int fds[128];

	say(&t, 0);
	settle(&t);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (size_t i = 0; i < 128; i++)
		fds[i] = dup(tcp_wire_of(t.conn[0])->hub->epoll_fd);
	full = before;
	full.rlim_cur = (rlim_t)fds[127] + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &full), 0);
	assert_int_equal(tcp_connect(t.side[0]->wire, (struct engine_peer *)c, &c->addr,
				     &t.side[0]->hello, &conn),
			 -FI_EAGAIN);
	DRIVE(t.side[0], t.side[1], is_closed(t.conn[0]) && is_closed(t.conn[1]));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	for (size_t i = 0; i < 128; i++)
		close(fds[i]);
	pair_up(t.side[0], c, &conn, &far);
	say(&t, 1);
	settle(&t);
	side_close(c);
	two_close(&t);
}

/* A receive names a peer that ends while the conn is closed: it is looked for now and then. */
static void a_peer_that_is_awaited_is_watched(void **state)
{
	int dead_ms = tcp_settings.dead_ms;
	struct two t = two_open();

	tcp_settings.dead_ms = 300;
	say(&t, 0);
	settle(&t);
	rest(&t, 0);
	t.side[0]->awaits = true;
	DRIVE(t.side[0], t.side[1],
	      (tcp_check(&t.conn[0]->conn), is_open(t.conn[0]) && is_open(t.conn[1])));
	say(&t, 1);
	settle(&t);
	rest(&t, 1);
	side_close(t.side[1]);
	DRIVE(t.side[0], NULL, t.side[0]->downs || (tcp_check(&t.conn[0]->conn), false));
	assert_int_equal(t.side[0]->last_err, -FI_ECONNRESET);
	side_close(t.side[0]);
	free(t.bytes[0]);
	free(t.bytes[1]);
	tcp_settings.dead_ms = dead_ms;
}

/* Looks at the conn as the engine does, @cnt times. */
static void look(struct tcp_conn *conn, int cnt)
{
	while (cnt--) {
		conn->check_ns = 0;
		assert_int_equal(tcp_check(&conn->conn), 0);
	}
}

static void output_takes_memory_while_it_is_used(void **state)
{
	struct two t = two_open();

	for (int round = 0; round < 2; round++) {
		say(&t, 0);
		assert_int_equal(t.conn[0]->out_size, TCP_OUT_FIRST);
		while (publish(&t.conn[0]->conn, t.next[0], 1000 + t.next[0] % 2000, false))
			t.next[0]++;
		assert_int_equal(t.conn[0]->out_size, TCP_OUT_LEN + TCP_OUT_SPARE);
		assert_true(t.conn[0]->tail - t.conn[0]->kept <= TCP_OUT_LEN);
		settle(&t);
		tcp_session_tell(t.conn[1]);
		say(&t, 1);
		settle(&t);
		DRIVE(t.side[0], t.side[1], t.conn[0]->kept == t.conn[0]->tail);
		look(t.conn[0], 2);
		look(t.conn[1], 2);
		assert_int_equal(t.conn[0]->out_size, TCP_OUT_FIRST);
		assert_null(t.conn[1]->part);
	}
	two_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_idle_conn_is_closed_and_made_again),
		cmocka_unit_test(payload_is_sent_after_a_rest),
		cmocka_unit_test(one_vain_connect_after_a_rest_is_none_too_many),
		cmocka_unit_test(what_is_under_way_keeps_a_conn),
		cmocka_unit_test(a_packet_that_crosses_arrives),
		cmocka_unit_test(a_data_lane_that_the_peer_wants_is_made_again),
		cmocka_unit_test(nothing_is_lost_whatever_crosses),
		cmocka_unit_test(the_least_recently_used_is_closed_first),
		cmocka_unit_test(a_full_table_closes_an_idle_conn),
		cmocka_unit_test(a_peer_that_is_awaited_is_watched),
		cmocka_unit_test(output_takes_memory_while_it_is_used),
	};

	rnd_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
