/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the TCP wires of a domain share: descriptors, a port, and the connections to it; over
 * loopback.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "iface.h"
#include "mock_core.h"
#include "mock_descriptors.h"
#include "mock_engine.h"
#include "raw_peer.h"
#include "tcp_bell.h"
#include "tcp_conn.h"
#include "tcp_greet.h"
#include "tcp_hub.h"

#define SIDES 20

static const char domain; /* its address names one */

static void open_sides(struct side *sides[SIDES])
{
	for (int i = 0; i < SIDES; i++)
		sides[i] = side_open_in(NULL, &domain);
}

static void close_sides(struct side *sides[SIDES])
{
	for (int i = 0; i < SIDES; i++)
		if (sides[i])
			side_close(sides[i]);
}

static void sides_of_a_domain_take_two_descriptors(void **state)
{
	struct side *sides[SIDES], *alone;
	int before = mock_descriptors();

	open_sides(sides);
	assert_int_equal(mock_descriptors(), before + 2);
	for (int i = 0; i < SIDES; i++) {
		assert_true(addr_valid(&sides[i]->addr));
		assert_int_equal(sides[i]->addr.port, sides[0]->addr.port);
		/* the port belongs to the first one */
		assert_int_equal(sides[i]->addr.flags, i ? ADDR_PORT_SHARED : 0);
		assert_int_equal(tcp_bell(sides[i]->wire, -1), tcp_bell(sides[0]->wire, -1));
	}
	alone = side_open(NULL);
	assert_int_not_equal(alone->addr.port, sides[0]->addr.port);
	assert_int_equal(alone->addr.flags, 0);
	assert_int_equal(mock_descriptors(), before + 4);
	side_close(alone);
	close_sides(sides);
	assert_int_equal(mock_descriptors(), before);
}

static void a_port_that_is_asked_for_is_not_shared(void **state)
{
	struct weft_addr at = { .version = ADDR_VERSION };
	int port = raw_reserve(&at);
	struct side *b = side_open_in(&at, &domain), *c;

	c = side_open_in(NULL, &domain);
	assert_int_equal(b->addr.port, at.port);
	assert_int_equal(b->addr.flags | c->addr.flags, 0);
	assert_int_not_equal(c->addr.port, at.port);
	side_close(b);
	side_close(c);
	close(port);
}

/* From outside of the domain and from within, both lanes. */
static void everybody_gets_what_is_for_him(void **state)
{
	struct side *sides[SIDES], *from = side_open(NULL);
	uint8_t bytes[100000] = { 0 };
	struct iovec iov = { bytes, sizeof(bytes) };
	struct wire_conn *to[SIDES], *from_next[SIDES], *back;

	open_sides(sides);
	for (int i = 0; i < SIDES; i++) {
		pair_up(from, sides[i], &to[i], &back);
		pair_up(sides[(i + 1) % SIDES], sides[i], &from_next[i], &back);
	}
	for (int i = 0; i < SIDES; i++) {
		struct sent sent = { 0 };
		struct side *at = sides[i];

		assert_true(publish(to[i], (uint32_t)i, 24, false));
		assert_true(publish(from_next[i], (uint32_t)i + SIDES, 24, false));
		assert_int_equal(send_bulk(to[i], 1000, &iov, 1, &sent), 0);
		start_clock();
		while (at->got_cnt < 3 || !sent.done || !at->got[0].payload ||
		       !at->got[1].payload || !at->got[2].payload) {
			side_poll(from);
			side_poll(sides[(i + 1) % SIDES]);
			side_poll(at);
			assert_false(expired());
		}
		assert_int_equal(at->conn_cnt, 2 + 1);
		assert_int_equal(at->downs, 0);
	}
	for (int i = 0; i < SIDES; i++)
		assert_int_equal(sides[i]->got_cnt, 3);
	side_close(from);
	close_sides(sides);
}

/* Returns true if @from, connecting to @addr, is refused as by a port without a listener. */
static bool refused(struct side *from, struct side *there, const struct weft_addr *addr)
{
	struct wire_conn *conn;
	int downs = from->downs;

	assert_int_equal(
		tcp_connect(from->wire, (struct engine_peer *)there, addr, &from->hello, &conn),
		0);
	DRIVE(from, there, from->downs > downs || conn->up);
	return from->downs > downs && from->last_err == -FI_ECONNREFUSED;
}

static void who_is_not_there_is_refused_and_a_service_is_the_first_one(void **state)
{
	struct side *a = side_open_in(NULL, &domain), *b = side_open_in(NULL, &domain);
	struct side *from = side_open(NULL);
	struct weft_addr service = a->addr, of_a = a->addr, nobody = b->addr;

	addr_to_service(&service);
	assert_true(addr_valid(&service));
	nobody.nonce[3] ^= 1;
	assert_true(refused(from, a, &nobody));
	assert_int_equal(a->conn_cnt + b->conn_cnt, 0);
	assert_false(refused(from, a, &service));
	DRIVE(from, a, a->conn_cnt == 1);

	side_close(a);
	DRIVE(from, b, from->downs == 2);
	/* its port is open still, for another one */
	assert_true(refused(from, b, &service));
	assert_true(refused(from, b, &of_a));
	assert_int_equal(b->conn_cnt, 0);
	assert_false(refused(from, b, &b->addr));
	/* and does not become the port of a wire that joins later */
	a = side_open_in(NULL, &domain);
	assert_int_equal(a->addr.flags, ADDR_PORT_SHARED);
	assert_true(refused(from, b, &service));
	side_close(a);
	side_close(b);
	side_close(from);
}

/* A wire that calls epoll gets events of another wire, which has to see them before it sleeps. */
static void what_another_one_finds_is_not_lost(void **state)
{
	struct side *a = side_open_in(NULL, &domain), *b = side_open_in(NULL, &domain);
	struct side *from = side_open(NULL);
	struct tcp_wire *wire = tcp_wire_from(b->wire);
	struct wire_conn *to, *back;

	/* a connection */
	assert_true(tcp_arm(b->wire) != 0);
	to = side_connect(from, b);
	assert_int_equal(b->woken, 0);
	DRIVE(from, a, !list_empty(&wire->arrived));
	assert_int_equal(b->woken, 1);
	assert_int_equal(a->conn_cnt + b->conn_cnt, 0);
	assert_int_equal(tcp_arm(b->wire), 0);
	DRIVE(from, b, to->up && b->conn_cnt == 1);
	back = b->conns[0];
	assert_true(tcp_arm(b->wire) != 0);
	/* a packet */
	assert_true(publish(to, 0, 8, false));
	DRIVE(from, a, !list_empty(&wire->ready));
	assert_int_equal(tcp_arm(b->wire), 0);
	assert_int_equal(b->got_cnt, 0);
	DRIVE(b, NULL, b->got_cnt == 1);
	assert_true(tcp_arm(b->wire) != 0);
	/* one that is found, and whose connection is given up before b handles it */
	assert_true(publish(to, 1, 8, false));
	DRIVE(from, a, !list_empty(&wire->ready));
	tcp_disconnect(back);
	side_poll(b);
	assert_int_equal(b->got_cnt, 1);
	/* a guest that is not admitted, since b closes */
	side_connect(from, b);
	DRIVE(from, a, !list_empty(&wire->arrived));
	side_close(b);
	DRIVE(from, a, from->downs == 2);
	side_close(a);
	side_close(from);
}

/* More at once than are asked for at once. */
static void a_crowd_is_served_whole(void **state)
{
	struct side *a = side_open_in(NULL, &domain), *b = side_open_in(NULL, &domain);
	struct side *from = side_open(NULL);
	struct wire_conn *conns[100];

	for (int i = 0; i < 100; i++)
		conns[i] = side_connect(from, i % 2 ? a : b);
	start_clock();
	while (a->conn_cnt + b->conn_cnt < 100 || from->conn_cnt < 100) {
		side_poll(from);
		side_poll(a);
		side_poll(b);
		assert_false(expired());
	}
	for (uint32_t i = 0; i < 100; i++)
		assert_true(publish(conns[i], i, 16, false));
	start_clock();
	while (a->got_cnt < 50 || b->got_cnt < 50) {
		side_poll(from);
		side_poll(a);
		side_poll(b);
		assert_false(expired());
	}
	side_close(from);
	side_close(a);
	side_close(b);
}

static void a_child_of_fork_shares_nothing_with_its_parent(void **state)
{
	struct side *a = side_open_in(NULL, &domain), *b = side_open_in(NULL, &domain), *c;
	struct wire_conn *ab, *ba;
	int status;
	pid_t pid;

	pair_up(a, b, &ab, &ba);
	pid = fork();
	if (!pid) {
		/* of the same domain, and of its own all the same */
		c = side_open_in(NULL, &domain);
		if (c->addr.port == a->addr.port || c->addr.flags ||
		    tcp_bell(c->wire, -1) == tcp_wire_from(a->wire)->hub->epoll_fd)
			_exit(1);
		side_close(b);
		side_close(c);
		side_close(a);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(publish(ab, 0, 8, false));
	DRIVE(a, b, b->got_cnt == 1);
	assert_false(refused(a, b, &b->addr));
	side_close(a);
	side_close(b);
}

/* Where the listener of a side is bound. */
static union ip_sockaddr bound(const struct side *side)
{
	union ip_sockaddr at = { 0 };
	socklen_t len = sizeof(at);
	int fd = tcp_wire_from(side->wire)->port->listener.fd;

	assert_int_equal(getsockname(fd, &at.sa, &len), 0);
	return at;
}

static bool has_inet6(void)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	bool has = fd >= 0 && !bind(fd, (struct sockaddr *)&at, sizeof(at));

	if (fd >= 0)
		close(fd);
	return has;
}

/* At the address that was asked for and no wider, within the ports that are allowed. */
static void listeners_are_bound_to_their_address_alone(void **state)
{
	const struct weft_addr loop[] = {
		{ .family = ADDR_FAMILY_INET, .ip = { 127, 0, 0, 1 } },
		{ .family = ADDR_FAMILY_INET6, .ip = { [15] = 1 } },
	};
	const int families = has_inet6() ? 2 : 1;
	union ip_sockaddr at, want;
	struct side *side;

	tcp_settings.port_low = 23000;
	tcp_settings.port_high = 23999;
	for (int i = 0; i < families; i++) {
		for (int shared = 0; shared < 2; shared++) {
			side = side_open_in(&loop[i], shared ? &domain : NULL);
			at = bound(side);
			ip_sockaddr_set(&want, &loop[i]);
			assert_true(ip_sockaddr_same_ip(&at, &want));
			assert_false(ip_sockaddr_any(&at));
			assert_in_range(ip_sockaddr_port(&at), 23000, 23999);
			assert_int_equal(side->addr.port, ip_sockaddr_port(&at));
			side_close(side);
		}
	}
	tcp_settings.port_low = tcp_settings.port_high = 0;
}

/* Without an address it is that of one interface: the best one, or one of FI_TCP_IFACE. */
static void listeners_without_an_address_have_that_of_an_interface(void **state)
{
	static const char *const names[] = { NULL, "lo" };
	struct wire_attr attr = { .tx_size = 64 };
	union ip_sockaddr want, at;
	struct side side = { .wire = NULL };
	char why[128];

	for (int i = 0; i < 2; i++) {
		const struct ip_iface_setting setting = { TCP_IFACE_VARIABLE, names[i] };

		tcp_settings.iface = names[i];
		assert_int_equal(ip_iface_default(&setting, AF_UNSPEC, &want, why, sizeof(why)),
				 0);
		assert_int_equal(tcp_open((struct engine_ep *)&side, &attr, &side.addr,
					  &side.wire, why, sizeof(why)),
				 0);
		at = bound(&side);
		assert_true(ip_sockaddr_same_ip(&at, &want));
		assert_false(ip_sockaddr_any(&at));
		assert_int_equal(ip_sockaddr_loopback(&at), i || ip_sockaddr_loopback(&want));
		tcp_close(side.wire);
		tcp_settings.iface = NULL;
	}
}

/* The kernel has no memory, or no room, to watch another socket: epoll_ctl(2). */
static void a_listener_that_can_not_be_watched_rests_on(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct tcp_hub *hub = tcp_wire_from(b->wire)->hub;
	struct tcp_port *port = tcp_wire_from(b->wire)->port;
	int epoll_fd = hub->epoll_fd;
	struct wire_conn *conn;

	tcp_port_rest(port, 0);
	port->rearm_ns = 1; /* it is over */
	hub->epoll_fd = -1;
	tcp_hub_rearm(hub);
	hub->epoll_fd = epoll_fd;
	assert_int_equal(hub->paused_cnt, 1);
	assert_true(tcp_hub_due(hub) != UINT64_MAX);
	conn = side_connect(a, b);
	DRIVE(a, b, conn->up && b->conn_cnt);
	assert_int_equal(hub->paused_cnt, 0);
	side_close(a);
	side_close(b);
}

static void a_lack_is_logged_with_its_own_remedy(void **state)
{
	struct tcp_hub hub = { .shortage_logged = false };

	tcp_starved(&hub, "connect to a peer", -EADDRNOTAVAIL);
	assert_non_null(strstr(mock_log, strerror(EADDRNOTAVAIL)));
	assert_null(strstr(mock_log, "descriptors"));
	tcp_starved(&hub, "connect to a peer", -EMFILE); /* once */
	assert_null(strstr(mock_log, strerror(EMFILE)));
	hub.shortage_logged = false;
	tcp_starved(&hub, "connect to a peer", -EMFILE);
	assert_non_null(strstr(mock_log, "ulimit -n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sides_of_a_domain_take_two_descriptors),
		cmocka_unit_test(a_port_that_is_asked_for_is_not_shared),
		cmocka_unit_test(everybody_gets_what_is_for_him),
		cmocka_unit_test(who_is_not_there_is_refused_and_a_service_is_the_first_one),
		cmocka_unit_test(what_another_one_finds_is_not_lost),
		cmocka_unit_test(a_crowd_is_served_whole),
		cmocka_unit_test(listeners_are_bound_to_their_address_alone),
		cmocka_unit_test(listeners_without_an_address_have_that_of_an_interface),
		cmocka_unit_test(a_listener_that_can_not_be_watched_rests_on),
		cmocka_unit_test(a_lack_is_logged_with_its_own_remedy),
		cmocka_unit_test(a_child_of_fork_shares_nothing_with_its_parent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
