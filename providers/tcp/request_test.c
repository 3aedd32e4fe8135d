/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection requests of the TCP wire that the engine answers later, and what comes with them.
 */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "iface.h"
#include "mock_engine.h"
#include "tcp.h"
#include "tcp_conn.h"
#include "tcp_greet.h"
#include "tcp_hub.h"

static struct side *a, *b;

static int setup(void **state)
{
	a = side_open(NULL);
	b = side_open(NULL);
	b->later = true;
	return 0;
}

static int teardown(void **state)
{
	if (a)
		side_close(a);
	if (b)
		side_close(b);
	return 0;
}

static void set_data(struct hello_data *data, const char *text)
{
	data->len = (uint32_t)strlen(text) + 1;
	memcpy(data->bytes, text, data->len);
}

static void poll_both(int rounds)
{
	while (rounds--) {
		side_poll(a);
		side_poll(b);
	}
}

/* A request of @a that waits at @b. */
static struct wire_conn *request(void)
{
	struct wire_conn *conn = side_connect(a, b);

	DRIVE(a, b, b->request);
	return conn;
}

static void a_request_is_accepted_later_and_carries_data_both_ways(void **state)
{
	struct wire_conn *conn;

	set_data(&a->hello.data, "let me in");
	set_data(&b->hello.data, "welcome");
	conn = request();
	assert_string_equal(b->peer_data.bytes, "let me in");
	poll_both(1000);
	assert_int_equal(a->conn_cnt + b->conn_cnt + a->downs + b->downs, 0);
	side_accept(b, b->request);
	assert_int_equal(b->conn_cnt, 0); /* only from poll */
	DRIVE(a, b, a->conn_cnt && b->conn_cnt);
	assert_string_equal(a->peer_data.bytes, "welcome");
	assert_true(publish(conn, 0, 100, false));
	assert_true(publish(b->conns[0], 0, 100, false));
	DRIVE(a, b, a->got_cnt && b->got_cnt);
	assert_true(payload_right(&a->got[0]) && payload_right(&b->got[0]));
}

static void a_request_is_refused_later_with_a_reason(void **state)
{
	struct hello_data why = { 0 };

	request();
	set_data(&why, "not you");
	tcp_conn_refuse(b->request, -FI_EACCES, &why);
	DRIVE(a, b, a->downs);
	assert_int_equal(a->last_err, -FI_EACCES);
	assert_string_equal(a->peer_data.bytes, "not you");
	assert_int_equal(a->conn_cnt + b->conn_cnt + b->downs, 0);
}

static void a_request_that_was_given_up_ends_when_it_is_accepted(void **state)
{
	struct wire_conn *conn = request();

	tcp_disconnect(conn);
	poll_both(1000);
	assert_int_equal(b->downs, 0); /* the engine owns it */
	side_accept(b, b->request);
	DRIVE(a, b, b->downs);
	assert_int_equal(b->last_err, -FI_ECONNRESET);
	assert_int_equal(b->conn_cnt, 0);
}

static void a_request_that_was_given_up_may_be_refused(void **state)
{
	tcp_disconnect(request());
	poll_both(1000);
	tcp_conn_refuse(b->request, -FI_EACCES, NULL);
	poll_both(10);
	assert_int_equal(b->downs + a->downs, 0);
}

/* The requester is asked, and does not know the session: silence would not end it for minutes. */
static void a_request_that_is_accepted_before_its_end_is_seen_breaks(void **state)
{
	const int before = tcp_settings.dead_ms;

	tcp_settings.dead_ms = 600000;
	tcp_disconnect(request()); /* no poll has seen that */
	side_accept(b, b->request);
	DRIVE(a, b, b->downs);
	assert_int_equal(b->last_err, -FI_ECONNRESET);
	tcp_settings.dead_ms = before;
}

static void a_side_that_closes_refuses_what_it_has_not_answered(void **state)
{
	request();
	side_close(b);
	b = NULL;
	DRIVE(a, NULL, a->downs);
	assert_int_equal(a->last_err, -FI_ECONNREFUSED);
}

static void a_side_that_closes_forgets_what_was_given_up(void **state)
{
	tcp_disconnect(request());
	poll_both(100);
	side_close(b);
	b = NULL;
}

static void a_conn_that_was_accepted_may_be_disconnected_before_it_is_up(void **state)
{
	request();
	side_accept(b, b->request);
	tcp_disconnect(b->request);
	DRIVE(a, b, a->downs);
	poll_both(10);
	assert_int_equal(b->conn_cnt + b->downs, 0);
}

/* The engine asks for the names when the conn comes up, and reports what it gets to the program. */
static void a_request_whose_socket_was_reset_has_no_names(void **state)
{
	struct wire_conn *conn = request();
	struct pollfd at = { .fd = ((struct tcp_conn *)b->request)->control.fd };
	struct weft_addr local, remote;

	tcp_lane_reset(&((struct tcp_conn *)conn)->control);
	assert_int_equal(poll(&at, 1, 10000), 1);
	assert_int_equal(b->wire->ops->names(b->request, &local, &remote), -FI_ECONNRESET);
}

/* fi_accept asks for the names before it answers. */
static void a_request_that_was_given_up_has_no_names(void **state)
{
	struct weft_addr local, remote;

	tcp_disconnect(request());
	DRIVE(b, NULL, ((struct tcp_conn *)b->request)->control.fd < 0);
	assert_int_equal(b->wire->ops->names(b->request, &local, &remote), -FI_ECONNRESET);
}

static void a_requester_that_sends_before_the_answer_is_cut_off(void **state)
{
	struct tcp_preamble p = {
		.magic = TCP_MAGIC,
		.version = TCP_VERSION,
		.lane = TCP_LANE_CONTROL,
		.fresh = 1,
		.cookie = { 1 },
	};
	union ip_sockaddr to;
	char byte;
	int fd;

	p.hello = a->hello;
	memset(p.to, 0, sizeof(p.to));
	assert_true(ip_sockaddr_set(&to, &b->addr));
	fd = socket(to.sa.sa_family, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, &to.sa, ip_sockaddr_len(&to)), 0);
	assert_int_equal(send(fd, &p, sizeof(p), 0), sizeof(p));
	DRIVE(b, NULL, b->request);
	assert_int_equal(send(fd, "x", 1, 0), 1);
	start_clock();
	while (recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN && !expired())
		side_poll(b);
	assert_false(expired());
	close(fd);
	side_accept(b, b->request);
	DRIVE(b, NULL, b->downs);
	assert_int_equal(b->last_err, -FI_ECONNRESET);
}

static void an_armed_wire_is_woken_by_the_answer(void **state)
{
	request();
	poll_both(10);
	while (!b->wire->ops->arm(b->wire))
		side_poll(b);
	b->woken = 0;
	side_accept(b, b->request);
	assert_int_equal(b->woken, 1);
	assert_int_equal(b->wire->ops->arm(b->wire), 0);
	DRIVE(a, b, b->conn_cnt);
}

static void requests_are_answered_in_any_order(void **state)
{
	struct wire_conn *requests[4];

	for (int i = 0; i < 4; i++) {
		b->request = NULL;
		request();
		requests[i] = b->request;
	}
	side_accept(b, requests[2]);
	tcp_conn_refuse(requests[0], -FI_EACCES, NULL);
	DRIVE(a, b, a->conn_cnt == 1 && a->downs == 1 && b->conn_cnt == 1);
	side_accept(b, requests[3]);
	side_accept(b, requests[1]);
	DRIVE(a, b, a->conn_cnt == 3 && b->conn_cnt == 3);
}

static void data_that_are_too_long_are_refused(void **state)
{
	struct wire_conn *conn;

	a->hello.data.len = HELLO_DATA_MAX + 1;
	assert_int_equal(
		tcp_connect(a->wire, (struct engine_peer *)b, &b->addr, &a->hello, &conn), 0);
	DRIVE(a, b, a->downs);
	assert_int_equal(a->last_err, -FI_EINVAL);
	assert_null(b->request);
	a->hello.data.len = 0;
	request();
	b->hello.data.len = UINT32_MAX;
	side_accept(b, b->request);
	DRIVE(a, b, a->downs == 2);
	assert_int_equal(a->last_err, -FI_EINVAL);
}

/* A request of @a, which dials, that waits at @b; it is parted from there. */
static struct wire_conn *parted(struct wire_conn **conn)
{
	side_close(a);
	a = side_open_dialing(NULL);
	a->hello.kind = HELLO_MSG;
	*conn = request();
	b->wire->ops->part(b->request);
	return b->request;
}

/* Opens the endpoint that a parted request goes to, of another domain. */
static struct side *successor(void)
{
	struct side *c = side_open_in(NULL, &b);

	c->hello.kind = HELLO_MSG;
	return c;
}

static void a_request_goes_to_another_endpoint_with_both_lanes(void **state)
{
	static uint8_t bytes[200000];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct sent sent = { 0 };
	struct wire_conn *conn, *taken = parted(&conn);
	struct side *c = successor();
	struct weft_addr local, remote;

	side_close(b); /* nothing of it is needed any more */
	b = NULL;
	assert_int_equal(c->wire->ops->join(taken, c->wire), 0);
	side_accept(c, taken);
	DRIVE(a, c, a->conn_cnt && c->conn_cnt);
	assert_int_equal(c->wire->ops->names(taken, &local, &remote), 0);
	assert_int_equal(local.family, ADDR_FAMILY_INET);
	assert_true(local.port && remote.port && local.port != c->addr.port);
	pattern(bytes, sizeof(bytes), 7);
	assert_int_equal(send_bulk(conn, 7, &iov, 1, &sent), 0);
	DRIVE(a, c, sent.done && c->got_cnt && c->got[0].payload);
	assert_true(payload_right(&c->got[0]));
	side_close(c);
}

static void a_parted_request_is_given_up_before_it_joins(void **state)
{
	struct wire_conn *conn, *taken = parted(&conn);
	struct side *c = successor();

	tcp_disconnect(conn);
	poll_both(100);
	assert_int_equal(c->wire->ops->join(taken, c->wire), 0);
	side_accept(c, taken);
	DRIVE(c, NULL, c->downs);
	assert_int_equal(c->last_err, -FI_ECONNRESET);
	side_close(c);
}

static void a_parted_request_is_dropped(void **state)
{
	struct wire_conn *conn, *taken = parted(&conn);

	b->wire->ops->drop(taken);
	DRIVE(a, b, a->downs);
	assert_int_equal(a->last_err, -FI_ECONNRESET);
	assert_int_equal(b->downs, 0);
}

static void a_wire_that_dials_connects_from_where_it_is_told(void **state)
{
	struct weft_addr from = { .family = ADDR_FAMILY_INET, .ip = { 127, 0, 0, 9 } };
	struct weft_addr local, remote;

	side_close(a);
	a = side_open_dialing(&from);
	assert_int_equal(a->addr.family, ADDR_FAMILY_NONE);
	request();
	assert_int_equal(b->wire->ops->names(b->request, &local, &remote), 0);
	assert_memory_equal(remote.ip, from.ip, sizeof(from.ip));
	side_accept(b, b->request);
	DRIVE(a, b, a->conn_cnt && b->conn_cnt);
}

/* Finds an address of this host that is valid on its link alone. Returns false if there is none. */
static bool find_link(struct weft_addr *addr)
{
	const struct ip_iface_setting any = { "none", NULL };
	struct ip_iface *list;
	bool found = false;
	char why[128];
	int cnt = ip_ifaces(&any, &list, why, sizeof(why));

	for (int i = 0; i < cnt && !found; i++) {
		found = list[i].rank == IP_RANK_LINK;
		if (found)
			ip_sockaddr_get(&list[i].addr, addr);
	}
	if (cnt > 0)
		free(list);
	return found;
}

/* Hosts number their links each for itself. */
static void the_link_of_an_address_is_the_one_that_it_came_over(void **state)
{
	struct weft_addr here = { 0 };
	struct wire_conn *ab, *ba;
	struct tcp_conn *conn;

	if (!find_link(&here)) {
		print_message("no link-local address here\n");
		skip();
	}
	side_close(a);
	side_close(b);
	a = side_open(&here);
	b = side_open(&here);
	a->hello.addr.scope = here.scope + 70;
	pair_up(a, b, &ab, &ba);
	conn = tcp_conn_from(ba);
	assert_int_equal(conn->hello.addr.scope, here.scope);
	/* So it can be asked whether it lives. */
	assert_false(conn->session.elsewhere);
	assert_int_equal(conn->remote.in6.sin6_scope_id, here.scope);
	assert_int_equal(ip_sockaddr_port(&conn->remote), a->addr.port);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_request_is_accepted_later_and_carries_data_both_ways),
		TEST(a_request_is_refused_later_with_a_reason),
		TEST(a_request_that_was_given_up_ends_when_it_is_accepted),
		TEST(a_request_that_was_given_up_may_be_refused),
		TEST(a_request_that_is_accepted_before_its_end_is_seen_breaks),
		TEST(a_side_that_closes_refuses_what_it_has_not_answered),
		TEST(a_side_that_closes_forgets_what_was_given_up),
		TEST(a_conn_that_was_accepted_may_be_disconnected_before_it_is_up),
		TEST(a_request_whose_socket_was_reset_has_no_names),
		TEST(a_request_that_was_given_up_has_no_names),
		TEST(a_requester_that_sends_before_the_answer_is_cut_off),
		TEST(an_armed_wire_is_woken_by_the_answer),
		TEST(requests_are_answered_in_any_order),
		TEST(data_that_are_too_long_are_refused),
		TEST(a_request_goes_to_another_endpoint_with_both_lanes),
		TEST(a_parted_request_is_given_up_before_it_joins),
		TEST(a_parted_request_is_dropped),
		TEST(a_wire_that_dials_connects_from_where_it_is_told),
		TEST(the_link_of_an_address_is_the_one_that_it_came_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
