/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lanes of the TCP wire that break, and can't be made again at once, or at all. Over loopback.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "mock_core.h"
#include "mock_engine.h"
#include "mock_send.h"
#include "raw_peer.h"
#include "tcp_conn.h"
#include "tcp_control.h"
#include "tcp_hub.h"
#include "tcp_session.h"

#define DEAD_MS 1000

static void short_silence(void)
{
	tcp_settings.dead_ms = DEAD_MS;
}

static void long_silence(void)
{
	tcp_settings.dead_ms = 10000;
}

static void poll_for(struct side *side, uint64_t ns)
{
	uint64_t end = platform_now_ns() + ns;

	while (platform_now_ns() < end) {
		side_poll(side);
		platform_sleep(NULL, 1000000);
	}
}

static void hear_nothing(int fd)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog filter = { .len = 1, .filter = &drop };

	if (!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)))
		return;
	assert_int_equal(errno, EPERM);
	long_silence();
	skip(); /* this user may not set a filter */
}

/* connect(2) to a multicast address fails at once: so it does where no route is left. */
static void a_network_that_is_gone_is_given_up(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;

	short_silence();
	pair_up(a, b, &ab, &ba);
	tcp_conn_from(ab)->remote.in.sin_addr.s_addr = htonl(0xe0000001);
	shutdown(tcp_conn_from(ab)->control.fd, SHUT_RDWR);
	DRIVE(a, NULL, a->downs);
	long_silence();
	side_close(a);
	side_close(b);
}

/* Its kernel accepts, and the network is cut before the preamble has come through. */
static void a_host_that_falls_silent_is_asked_once(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct tcp_conn *conn;

	short_silence();
	conn = tcp_conn_from(side_connect(a, b));
	hear_nothing(conn->control.fd);
	/* not answered meanwhile */
	DRIVE(a, NULL, a->downs);
	assert_int_equal(a->last_err, -FI_ETIMEDOUT);
	long_silence();
	side_close(a);
	side_close(b);
}

/* The old socket has the only port that the program allows: connect(2) fails at once. */
static void a_lack_of_ports_passes(void **state)
{
	struct weft_addr from = { .version = ADDR_VERSION };
	struct linger linger = { .l_onoff = 1 };
	int port = raw_reserve(&from), old;
	struct wire_conn *ab, *ba;
	struct side *a, *b = side_open(NULL);

	a = side_open_dialing(&from);
	pair_up(a, b, &ab, &ba);
	old = dup(tcp_conn_from(ba)->control.fd);
	assert_true(old >= 0);
	shutdown(tcp_conn_from(ab)->control.fd, SHUT_RDWR);
	DRIVE(a, b, tcp_conn_from(ba)->control.state != TCP_LANE_UP);
	poll_for(a, 20000000);
	assert_int_equal(tcp_conn_from(ab)->control.fd, -1);
	assert_true(publish(ab, 0, 8, false));
	assert_true(publish(ab, 1, 8, false));
	setsockopt(old, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(old);
	DRIVE(a, b, b->got_cnt == 2);
	assert_int_equal(a->downs + b->downs, 0);
	side_close(a);
	side_close(b);
	close(port);
}

/* What a kernel that lacks memory does to the first bytes of a socket. */
static const struct mock_send lacks[] = {
	{ .cnt = 3, .err = EAGAIN }, { .cnt = 3, .err = ENOBUFS },
	{ .cnt = 3, .err = ENOMEM }, { .cnt = 1, .err = EINTR },
	{ .cnt = 1, .most = 1 },     { .cnt = UINT32_MAX, .most = 7 },
};

static void a_preamble_that_has_no_room_is_said_later(void **state)
{
	static uint8_t bytes[TCP_CARRY_MAX + 1];
	struct iovec iov = { bytes, sizeof(bytes) };

	for (size_t i = 0; i < sizeof(lacks) / sizeof(lacks[0]); i++) {
		struct side *a = side_open(NULL), *b = side_open(NULL);
		struct sent sent = { 0 };
		struct wire_conn *ab;

		pattern(bytes, sizeof(bytes), 0);
		/* without a session, which would have another socket */
		a->hello.kind = b->hello.kind = HELLO_MSG;
		mock_send = lacks[i];
		ab = side_connect(a, b);
		DRIVE(a, b, ab->up);
		mock_send = lacks[i];
		assert_int_equal(send_bulk(ab, 0, &iov, 1, &sent), 0);
		DRIVE(a, b, sent.done && b->got_cnt == 1 && b->got[0].payload);
		mock_send.cnt = 0;
		assert_int_equal(a->downs + b->downs, 0);
		assert_true(payload_right(&b->got[0]));
		side_close(a);
		side_close(b);
	}
}

/* Another one would need a descriptor, and the process has none for longer than the peer waits. */
static void a_lack_of_descriptors_ends_a_conn_in_time(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct rlimit before, full;
	int fds[128], cnt = 0, old;
	struct wire_conn *ab, *ba;

	short_silence();
	pair_up(a, b, &ab, &ba);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	old = break_unheard(tcp_conn_from(ab), &tcp_conn_from(ab)->control);
	full = before;
	full.rlim_cur = (rlim_t)old + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &full), 0);
	while (cnt < 128 && (fds[cnt] = dup(old)) >= 0)
		cnt++;
	DRIVE(a, NULL, a->downs);
	assert_int_equal(a->last_err, -FI_ECONNRESET);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	while (cnt--)
		close(fds[cnt]);
	close(old);
	long_silence();
	side_close(a);
	side_close(b);
}

/* The answer was lost, and so was the end of the socket that it came over. */
static void a_new_socket_that_is_half_open_is_replaced(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;
	struct tcp_conn *conn;

	tcp_settings.dead_ms = 60000;
	pair_up(a, b, &ab, &ba);
	conn = tcp_conn_from(ab);
	shutdown(conn->control.fd, SHUT_RDWR);
	DRIVE(a, NULL, conn->control.state == TCP_LANE_GREETING);
	hear_nothing(conn->control.fd);
	conn = tcp_conn_from(ba);
	DRIVE(b, NULL, conn->session.control.turn == 1);
	assert_true(tcp_session_broken(conn, &conn->control, -FI_ECONNRESET));
	assert_true(publish(ba, 0, 8, false));
	DRIVE(a, b, a->got_cnt == 1);
	assert_int_equal(a->downs + b->downs, 0);
	long_silence();
	side_close(a);
	side_close(b);
}

/* The side that can't connect has lost the data lane, and no room to say so. */
static void a_data_lane_is_asked_for_once_there_is_room(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	static uint8_t bytes[TCP_CARRY_MAX + 1];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct wire_conn *ab, *ba;
	struct tcp_conn *conn;
	uint32_t cnt = 0;
	int old;

	pair_up_data(a, b, &ab, &ba, &iov);
	conn = tcp_conn_from(ba);
	while (publish(ba, cnt, 1000, true))
		cnt++;
	while (tcp_control_own(conn, TCP_OP_ACK, conn->session.control.in,
			       conn->session.data.in))
		;
	old = break_unheard(conn, &conn->data);
	DRIVE(a, b, a->got_cnt == (int)cnt && conn->data.state == TCP_LANE_UP);
	assert_int_equal(a->downs + b->downs, 0);
	close(old);
	side_close(a);
	side_close(b);
}

/* What is queued on a data lane that has just been reset: the end waits for it. */
static void an_end_waits_for_a_data_lane_that_breaks(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	static uint8_t bytes[TCP_CARRY_MAX + 1];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct wire_conn *ab, *ba;
	struct sent sent = { 0 };

	pair_up_data(a, b, &ab, &ba, &iov);
	tcp_lane_reset(&tcp_conn_from(ab)->data);
	assert_int_equal(send_bulk(ab, 1, &iov, 1, &sent), 0);
	assert_true(tcp_conn_from(ab)->data.write_failed);
	assert_false(tcp_conn_drained(tcp_conn_from(ab)));
	assert_false(tcp_conn_from(ab)->bye_sent);
	DRIVE(a, b, b->got_cnt == 2 && sent.done);
	DRIVE(a, b, tcp_conn_drained(tcp_conn_from(ab)));
	tcp_disconnect(ab);
	DRIVE(b, NULL, b->downs == 1);
	assert_int_equal(b->last_err, 0);
	side_close(a);
	side_close(b);
}

/*
 * The new socket breaks too, after the peer's kernel has kept it for longer than a dead host may be
 * silent.
 */
static void a_peer_that_computes_between_breaks_is_waited_for(void **state)
{
	struct side *a, *b;
	struct wire_conn *ab, *ba;
	struct tcp_conn *conn;

	short_silence();
	for (int connects = 0; connects < 2; connects++) {
		a = side_open(NULL);
		b = side_open(NULL);
		if (connects)
			pair_up(a, b, &ab, &ba);
		else
			pair_up(b, a, &ba, &ab);
		conn = tcp_conn_from(ab);
		shutdown(tcp_conn_from(ba)->control.fd, SHUT_RDWR);
		DRIVE(a, NULL, conn->control.state == TCP_LANE_GREETING);
		poll_for(a, (DEAD_MS + 500) * 1000000ull);
		shutdown(conn->control.fd, SHUT_RDWR);
		DRIVE(a, NULL, conn->control.state != TCP_LANE_GREETING);
		DRIVE(a, NULL, a->downs || conn->control.state == TCP_LANE_GREETING);
		assert_int_equal(a->downs, 0);
		assert_true(publish(ab, 0, 8, false));
		DRIVE(a, b, b->got_cnt == 1);
		assert_int_equal(a->downs + b->downs, 0);
		side_close(a);
		side_close(b);
	}
	long_silence();
}

/* Another process has the port: it accepts, and closes what it does not understand. */
static void a_port_that_never_answers_is_given_up(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct wire_conn *ab, *ba;
	struct weft_addr addr;
	int fd, listener = raw_listen(&addr);

	short_silence();
	pair_up(a, b, &ab, &ba);
	assert_int_equal(fcntl(listener, F_SETFL, O_NONBLOCK), 0);
	ip_sockaddr_set_port(&tcp_conn_from(ab)->remote, addr.port);
	shutdown(tcp_conn_from(ab)->control.fd, SHUT_RDWR);
	start_clock();
	while (!a->downs && !expired()) {
		side_poll(a);
		fd = accept(listener, NULL, NULL);
		if (fd >= 0)
			close(fd);
	}
	assert_int_equal(a->downs, 1);
	long_silence();
	close(listener);
	side_close(a);
	side_close(b);
}

/* A stranger has this side speak to no third party, and gets no more than the dead time. */
static void another_host_is_not_asked(void **state)
{
	struct side *side = side_open(NULL);
	struct tcp_preamble preamble = raw_preamble(TCP_LANE_CONTROL);
	union ip_sockaddr at = { .in = { .sin_family = AF_INET } };
	socklen_t len = sizeof(at.in);
	int fd = raw_connect(side), listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct tcp_answer answer;

	short_silence();
	/*
	 * the listener takes what is sent to 127.0.0.2 too, and the preamble comes from 127.0.0.1
	 */
	assert_true(listener >= 0);
	assert_int_equal(bind(listener, &at.sa, len), 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_int_equal(getsockname(listener, &at.sa, &len), 0);
	preamble.hello.addr.port = ip_sockaddr_port(&at);
	preamble.hello.addr.ip[3] = 2;
	raw_send(fd, &preamble, sizeof(preamble));
	assert_int_equal(raw_recv(fd, side, &answer, sizeof(answer)), sizeof(answer));
	close(fd);
	DRIVE(side, NULL, side->downs);
	assert_int_equal(accept(listener, NULL, NULL), -1);
	long_silence();
	close(listener);
	side_close(side);
}

/*
 * As behind a router that translates addresses: the peer names none at which it can be asked, and comes
 * back from another one. That it knows the session's secret is enough.
 */
static void a_peer_may_come_back_from_another_address(void **state)
{
	struct weft_addr from = { .family = ADDR_FAMILY_INET, .ip = { 127, 0, 0, 1 } };
	struct side *a = side_open_dialing(&from), *b = side_open(NULL);
	union ip_sockaddr at = { 0 };
	socklen_t len = sizeof(at);
	struct wire_conn *ab, *ba;

	pair_up(a, b, &ab, &ba);
	assert_int_equal(ip_sockaddr_port(&tcp_conn_from(ba)->remote), 0);
	tcp_wire_from(a->wire)->local.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
	tcp_lane_reset(&tcp_conn_from(ba)->control);
	tcp_lane_reset(&tcp_conn_from(ab)->control);
	assert_true(publish(ab, 0, 8, false));
	assert_true(publish(ba, 0, 8, false));
	DRIVE(a, b, a->got_cnt == 1 && b->got_cnt == 1);
	assert_int_equal(a->downs + b->downs, 0);
	assert_int_equal(getpeername(tcp_conn_from(ba)->control.fd, &at.sa, &len), 0);
	assert_int_equal(ntohl(at.in.sin_addr.s_addr), INADDR_LOOPBACK + 1);
	side_close(a);
	side_close(b);
}

/* Strangers that are gone do not take the place of a peer that comes back. */
static void the_one_that_is_lost_longest_gives_way(void **state)
{
	struct side *a = side_open(NULL), *b = side_open(NULL), *c = side_open(NULL);
	struct tcp_wire *wire = tcp_wire_from(b->wire);
	struct wire_conn *ab, *ba, *cb, *bc;

	pair_up(a, b, &ab, &ba);
	pair_up(c, b, &cb, &bc);
	wire->lost_cnt = TCP_LOST_MAX - 1;
	shutdown(tcp_conn_from(ba)->control.fd, SHUT_RDWR);
	DRIVE(b, NULL, tcp_conn_from(ba)->control.state != TCP_LANE_UP);
	assert_int_equal(wire->lost_cnt, TCP_LOST_MAX);
	shutdown(tcp_conn_from(bc)->control.fd, SHUT_RDWR);
	DRIVE(b, NULL, b->downs == 1);
	assert_ptr_equal(b->last_down, ba);
	DRIVE(b, c, tcp_conn_from(bc)->control.state == TCP_LANE_UP && !c->downs);
	assert_int_equal(b->downs, 1);
	assert_int_equal(wire->lost_cnt, TCP_LOST_MAX - 1);
	wire->lost_cnt = 0;
	side_close(a);
	side_close(c);
	side_close(b);
}

/* Another socket would bring the same bytes for the same memory. */
static void memory_that_is_gone_is_no_break(void **state)
{
	size_t len = TCP_CARRY_MAX + 4096;
	uint8_t *bytes = calloc(1, len), *gone;
	struct side *a = side_open(NULL), *b = side_open(NULL);
	struct iovec iov = { bytes, len };
	struct wire_conn *ab, *ba;
	struct sent sent = { 0 };

	gone = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(gone != MAP_FAILED);
	pair_up(a, b, &ab, &ba);
	b->scatter.iov[0] = (struct iovec){ gone, len };
	b->scatter.cnt = 1;
	b->scatter.active = true;
	assert_int_equal(send_bulk(ab, 0, &iov, 1, &sent), 0);
	DRIVE(a, b, b->downs);
	assert_int_equal(b->last_err, -FI_EFAULT);
	DRIVE(a, b, a->downs);
	assert_int_equal(sent.done, 0);
	assert_int_equal(tcp_wire_from(b->wire)->breaks, 0);
	side_close(a);
	side_close(b);
	munmap(gone, len);
	free(bytes);
}

/* A payload on the control lane, of which nothing, or the first half, can be sent. */
static void memory_that_can_not_be_read_ends_the_conn(void **state)
{
	static const size_t mapped[] = { 0, 32768, 36864 };
	size_t len = TCP_CARRY_MAX;

	for (size_t i = 0; i < sizeof(mapped) / sizeof(mapped[0]); i++) {
		struct side *a = side_open(NULL), *b = side_open(NULL);
		uint8_t *bytes = mmap(NULL, len, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct iovec iov = { bytes, len };
		struct sent sent = { 0 };
		struct wire_conn *ab, *ba;

		assert_true(bytes != MAP_FAILED);
		assert_int_equal(mprotect(bytes + mapped[i], len - mapped[i], PROT_NONE), 0);
		pair_up(a, b, &ab, &ba);
		assert_int_equal(send_bulk(ab, 0, &iov, 1, &sent), 0);
		DRIVE(a, b, a->downs);
		assert_int_equal(a->last_err, -FI_EFAULT);
		assert_int_equal(sent.done, 0);
		side_close(a);
		side_close(b);
		munmap(bytes, len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_network_that_is_gone_is_given_up),
		cmocka_unit_test(a_host_that_falls_silent_is_asked_once),
		cmocka_unit_test(a_preamble_that_has_no_room_is_said_later),
		cmocka_unit_test(a_lack_of_ports_passes),
		cmocka_unit_test(a_lack_of_descriptors_ends_a_conn_in_time),
		cmocka_unit_test(a_new_socket_that_is_half_open_is_replaced),
		cmocka_unit_test(a_data_lane_is_asked_for_once_there_is_room),
		cmocka_unit_test(an_end_waits_for_a_data_lane_that_breaks),
		cmocka_unit_test(a_peer_that_computes_between_breaks_is_waited_for),
		cmocka_unit_test(a_port_that_never_answers_is_given_up),
		cmocka_unit_test(another_host_is_not_asked),
		cmocka_unit_test(a_peer_may_come_back_from_another_address),
		cmocka_unit_test(the_one_that_is_lost_longest_gives_way),
		cmocka_unit_test(memory_that_is_gone_is_no_break),
		cmocka_unit_test(memory_that_can_not_be_read_ends_the_conn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
