/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Options of sockets: congestion control by the destination of a connection, and the receive
 * buffer.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <cmocka.h>
#include "mock_engine.h"
#include "tcp_options.h"

struct lanes {
	int listener, ours, theirs;
};

static union ip_sockaddr at(const char *ip)
{
	union ip_sockaddr addr = { .in = { .sin_family = AF_INET } };

	assert_int_equal(inet_pton(AF_INET, ip, &addr.in.sin_addr), 1);
	return addr;
}

/* Connects @from to @to, as hub.c and greet.c do. */
static struct lanes lanes_open(struct tcp_hub *hub, const char *from, const char *to)
{
	union ip_sockaddr here = at(from), there = at(to);
	socklen_t len = sizeof(there.in);
	struct lanes l = { .listener = socket(AF_INET, SOCK_STREAM, 0),
			   .ours = socket(AF_INET, SOCK_STREAM, 0) };

	tcp_set_listening(hub, l.listener);
	assert_int_equal(bind(l.listener, &there.sa, len), 0);
	assert_int_equal(listen(l.listener, 1), 0);
	assert_int_equal(getsockname(l.listener, &there.sa, &len), 0);
	tcp_set_connecting(l.ours, &there);
	assert_int_equal(bind(l.ours, &here.sa, len), 0);
	assert_int_equal(connect(l.ours, &there.sa, len), 0);
	l.theirs = accept(l.listener, NULL, NULL);
	assert_true(l.theirs >= 0);
	return l;
}

static void lanes_close(const struct lanes *l)
{
	close(l->listener);
	close(l->ours);
	close(l->theirs);
}

static void assert_congestion(int fd, const char *want)
{
	char name[TCP_CONGESTION_LEN] = "";
	socklen_t len = sizeof(name) - 1;

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len), 0);
	assert_string_equal(name, want);
}

static void lanes_within_the_host_have_had_reno_from_the_first_byte(void **state)
{
	struct tcp_hub hub = { 0 };
	struct lanes l = lanes_open(&hub, "127.0.0.1", "127.0.0.1");

	assert_congestion(l.ours, "reno");
	if (hub.congestion[0])
		assert_congestion(l.theirs, "reno");
	tcp_set_accepted(&hub, l.theirs);
	tcp_set_connected(l.ours);
	assert_congestion(l.theirs, "reno");
	assert_congestion(l.ours, "reno");
	lanes_close(&l);
}

static void add_address(const char *alias, const char *ip)
{
	union ip_sockaddr addr = at(ip);
	struct ifreq req = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	strncpy(req.ifr_name, alias, sizeof(req.ifr_name) - 1);
	memcpy(&req.ifr_addr, &addr.sa, sizeof(addr.in));
	assert_int_equal(ioctl(fd, SIOCSIFADDR, &req), 0);
	req.ifr_flags = IFF_UP | IFF_RUNNING;
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &req), 0);
	close(fd);
}

static void lanes_that_lead_elsewhere_have_the_systems_choice(void **state)
{
	union ip_sockaddr far = at("203.0.113.1");
	struct tcp_hub hub = { 0 };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char name[TCP_CONGESTION_LEN] = "";
	socklen_t len = sizeof(name) - 1;
	struct lanes l;

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len), 0);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		print_message("no network namespace here\n");
		close(fd);
		skip();
	}
	add_address("lo", "192.0.2.1");
	add_address("lo:1", "198.51.100.1");
	tcp_set_connecting(fd, &far);
	assert_congestion(fd, name);
	close(fd);
	/* by its addresses the accepted one may come from anywhere */
	l = lanes_open(&hub, "192.0.2.1", "198.51.100.1");
	tcp_set_accepted(&hub, l.theirs);
	assert_congestion(l.theirs, name);
	lanes_close(&l);
}

#define WINDOW (256 << 10) /* less than half of what any system allows */

static void a_window_grows_and_is_readable_at_one_byte(void **state)
{
	struct tcp_hub hub = { 0 };
	struct lanes l = lanes_open(&hub, "127.0.0.1", "127.0.0.1");
	int room = 0, low = 0;
	socklen_t len = sizeof(room);
	char byte = 1;

	tcp_set_window(l.theirs, WINDOW);
	assert_int_equal(getsockopt(l.theirs, SOL_SOCKET, SO_RCVBUF, &room, &len), 0);
	assert_true(room >= WINDOW);
	assert_int_equal(getsockopt(l.theirs, SOL_SOCKET, SO_RCVLOWAT, &low, &len), 0);
	assert_int_equal(low, 1);
	assert_int_equal(send(l.ours, &byte, 1, 0), 1);
	assert_int_equal(recv(l.theirs, &byte, 1, 0), 1);
	lanes_close(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lanes_within_the_host_have_had_reno_from_the_first_byte),
		cmocka_unit_test(a_window_grows_and_is_readable_at_one_byte),
		cmocka_unit_test(lanes_that_lead_elsewhere_have_the_systems_choice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
