/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a lane comes up on the side that connects: its preamble names the endpoint and the kind of
 * lane, and the other side answers (admit.c). Everything read here is untrusted: any process may
 * have the port. Called from the wire's poll and from connect and sendv, on the thread that holds
 * the endpoint's domain.
 */
#include "net_socket.h"
#include "tcp.h"
#include "tcp_bell.h"
#include "tcp_conn.h"
#include "tcp_control.h"
#include "tcp_data.h"
#include "tcp_greet.h"
#include "tcp_hub.h"
#include "tcp_idle.h"
#include "tcp_lane.h"
#include "tcp_options.h"
#include "tcp_prove.h"
#include "tcp_say.h"
#include "tcp_session.h"
#include "tcp_shown.h"
#include "tcp_wire.h"

#define ASK_MAX 8 /* further sockets for an answer that has not come */

void tcp_data_up(struct tcp_conn *conn)
{
	conn->data.state = TCP_LANE_UP;
	tcp_set_window(conn->data.fd, TCP_DATA_WINDOW);
}

/* Converts the error of a new socket, or of its connect, to what wire_ops.connect returns. */
static int connect_error(struct tcp_wire *wire, int err)
{
	if (tcp_idle_short(err) && tcp_idle_ask(wire->hub, 1))
		return -FI_EAGAIN;
	switch (err) {
	case -FI_EMFILE:
	case -ENFILE:
	case -FI_ENOBUFS:
	case -FI_ENOMEM:
	case -FI_EADDRNOTAVAIL: /* no local port is free */
		tcp_starved(wire->hub, "connect to a peer", err);
		return -FI_EAGAIN;
	case -FI_ENETUNREACH:
	case -EAFNOSUPPORT:
	case -FI_EINVAL: /* a link-local address without its scope */
		return -FI_EHOSTUNREACH;
	default:
		return err;
	}
}

/*
 * Binds a lane of an endpoint that dials to the address that the program has named. A port is
 * that of the control lane. Returns 0 or -FI_E*.
 */
static int lane_bind(const struct tcp_conn *conn, const struct tcp_lane *lane)
{
	union ip_sockaddr from = tcp_wire_of(conn)->local;
	int one = 1;

	if (!tcp_wire_of(conn)->dials || from.sa.sa_family != conn->remote.sa.sa_family)
		return 0;
	if (lane->kind == TCP_LANE_DATA)
		ip_sockaddr_set_port(&from, 0);
	if (ip_sockaddr_port(&from))
		sys_socket_set(lane->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	else if (ip_sockaddr_any(&from))
		return 0;
	else /* the kernel chooses the port when it knows the other end: more are free then */
		sys_socket_set(lane->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	return sys_socket_bind(lane->fd, &from.sa, ip_sockaddr_len(&from));
}

int tcp_lane_connect(struct tcp_conn *conn, struct tcp_lane *lane)
{
	struct tcp_wire *wire = tcp_wire_of(conn);
	int err;

	lane->fd = sys_socket_open(conn->remote.sa.sa_family, SOCK_STREAM);
	if (lane->fd < 0) {
		err = lane->fd;
		lane->fd = -1;
		return connect_error(wire, err);
	}
	sys_socket_private(lane->fd);
	err = lane_bind(conn, lane);
	if (err) {
		err = err == -FI_EADDRNOTAVAIL ? err : connect_error(wire, err);
		goto err_close;
	}
	tcp_idle_made(wire->hub, lane->fd);
	tcp_set_connecting(lane->fd, &conn->remote);
	tcp_set_options(lane->fd);
	tcp_set_greeting(lane->fd);
	err = sys_socket_connect(lane->fd, &conn->remote.sa, ip_sockaddr_len(&conn->remote));
	if (err) {
		err = connect_error(wire, err);
		goto err_close;
	}
	err = tcp_watch(wire->hub, lane, EPOLLOUT);
	if (err)
		goto err_close;
	lane->state = TCP_LANE_CONNECTING;
	return 0;

err_close:
	tcp_lane_close(wire->hub, lane);
	return err;
}

int tcp_connect(struct wire *out, struct engine_peer *peer, const struct weft_addr *addr,
		const struct hello *hello, struct wire_conn **result)
{
	struct tcp_wire *wire = tcp_wire_from(out);
	union ip_sockaddr remote;
	struct tcp_conn *conn;
	int err;

	if (wire->hub->forked)
		return -FI_EOPBADSTATE;
	if (!ip_sockaddr_set(&remote, addr) || !addr->port)
		return -FI_EHOSTUNREACH;
	conn = tcp_conn_create(wire);
	if (!conn)
		return -FI_EAGAIN;
	conn->conn.peer = peer;
	conn->ours = true;
	conn->hello = *hello;
	conn->remote = remote;
	memcpy(conn->to, addr->nonce, sizeof(conn->to)); /* zero in a service address */
	err = platform_random(conn->cookie, sizeof(conn->cookie));
	if (!err)
		err = tcp_lane_connect(conn, &conn->control);
	if (!err) {
		*result = &conn->conn;
		return 0;
	}
	tcp_conn_bury(conn);
	if (!wire->polling)
		tcp_reap(wire);
	return err;
}

void tcp_data_open(struct tcp_conn *conn)
{
	int err;

	if (conn->dead || conn->ending || conn->data.state != TCP_LANE_NONE)
		return;
	tcp_idle_wake(conn);
	if (!conn->ours) {
		if (conn->want != TCP_WANT_ASKED)
			tcp_session_ask(conn);
		return;
	}
	if (!conn->bulk)
		conn->bulk = calloc(1, sizeof(*conn->bulk));
	err = conn->bulk ? tcp_session_dial(conn, &conn->data) : -FI_EAGAIN;
	if (err == -FI_EAGAIN) {
		conn->want = TCP_WANT_DUE;
		tcp_due(conn, platform_now_ns() + TCP_RETRY_NS);
	} else if (err && conn->control.state == TCP_LANE_UP) {
		tcp_lane_vain(conn, &conn->data, err);
	} else if (err) {
		tcp_conn_fail(conn, err);
	}
}

void tcp_log_foreign(struct tcp_hub *hub, const char *what, int fd)
{
	union ip_sockaddr peer = { 0 };
	socklen_t len = sizeof(peer);
	char name[80];

	if (hub->foreign_logged)
		return;
	hub->foreign_logged = true;
	sys_socket_peer(fd, &peer.sa, &len);
	ip_sockaddr_str(&peer, name, sizeof(name));
	FI_WARN(&tcp_provider, FI_LOG_EP_CTRL,
		"%s %s speaks another protocol or version: install the same Weft there\n", what,
		name);
}

static struct tcp_preamble preamble_of(const struct tcp_conn *conn, const struct tcp_lane *lane)
{
	struct tcp_preamble preamble = {
		.magic = TCP_MAGIC,
		.version = TCP_VERSION,
		.lane = lane->kind,
		.hello = conn->hello,
	};

	memcpy(preamble.to, conn->to, sizeof(preamble.to));
	tcp_session_say(conn, lane, &preamble);
	return preamble;
}

/* Says the preamble, or, where a secret is to be proved before, the first of that. */
static int say_first(struct tcp_conn *conn, struct tcp_lane *lane)
{
	struct tcp_hub *hub = tcp_wire_of(conn)->hub;
	struct tcp_preamble preamble;
	int err = sys_socket_error(lane->fd);

	if (err)
		return err;
	tcp_set_connected(lane->fd);
	lane->state = TCP_LANE_GREETING;
	err = tcp_watch(hub, lane, EPOLLIN);
	if (err)
		return err;
	if (hub->secret)
		return tcp_prove_begin(hub, lane);
	preamble = preamble_of(conn, lane);
	return tcp_say(hub, lane, &preamble, sizeof(preamble));
}

int tcp_greet_fill(struct tcp_lane *lane, void *room, size_t room_len, uint32_t *len)
{
	ssize_t n;

	if (*len == room_len)
		return 1;
	n = tcp_lane_recv(lane, (char *)room + *len, room_len - *len);

	if (n < 0)
		return tcp_none_yet(n) ? 0 : (int)n;
	if (!n)
		return -FI_ECONNRESET;
	*len += (uint32_t)n;
	return *len == room_len;
}

/* Returns true for an answer in the format of this version. */
static bool answer_known(const struct tcp_answer *answer)
{
	return answer->magic == TCP_ANSWER_MAGIC && answer->version == TCP_VERSION;
}

int tcp_answer_error(const struct tcp_answer *answer)
{
	/*
	 * The preamble came back: no process listens, and the kernel connected the socket to
	 * itself.
	 */
	if (answer->magic == TCP_MAGIC)
		return -FI_ECONNREFUSED;
	if (!answer_known(answer))
		return -FI_ENOPROTOOPT;
	return answer->err < FI_ERRNO_MAX ? -(int)answer->err : -FI_EOTHER;
}

/*
 * Reads the answer of a control lane, like tcp_greet_fill(). An answer of another version may be
 * shorter: its first bytes tell.
 */
static int control_fill(struct tcp_conn *conn)
{
	struct tcp_hub *hub = tcp_wire_of(conn)->hub;
	struct tcp_stream *stream = &conn->session.control;
	int ret = tcp_greet_fill(&conn->control, &stream->answer, sizeof(stream->answer),
				 &stream->answer_len);
	struct tcp_answer answer = { .magic = 0 };

	memcpy(&answer, &stream->answer, stream->answer_len);
	if (!hub->secret && stream->answer_len >= offsetof(struct tcp_answer, received) &&
	    tcp_prove_stranger(hub, &conn->control, &answer, &conn->remote))
		return -FI_EKEYREJECTED;
	if (ret < 0 && stream->answer_len >= offsetof(struct tcp_answer, received) &&
	    tcp_answer_error(&answer) == -FI_ENOPROTOOPT)
		return -FI_ENOPROTOOPT;
	return ret;
}

/* Ends a conn that the other side has refused. */
static void control_refused(struct tcp_conn *conn, int err, const struct hello_data *data)
{
	bool closing = tcp_wire_of(conn)->closing;

	tcp_conn_bury(conn);
	if (!closing)
		engine_conn_refused(&conn->conn, err, data);
}

/*
 * Another endpoint has accepted than the one that listens at the port that was dialed: the data
 * lane goes to its port, at the host that was dialed.
 */
static void data_target(struct tcp_conn *conn, const struct weft_addr *addr)
{
	ip_sockaddr_set_port(&conn->remote, addr->port);
	memcpy(conn->to, addr->nonce, sizeof(conn->to));
}

static int control_answered(struct tcp_conn *conn)
{
	const struct tcp_answer answer = conn->session.control.answer;
	int err = tcp_answer_error(&answer);

	if (err && answer_known(&answer) && !hello_data_check(&answer.hello.data)) {
		control_refused(conn, err, &answer.hello.data);
		return 0;
	}
	if (!err)
		err = hello_check(&answer.hello);
	if (!err && memcmp(answer.cookie, conn->cookie, sizeof(conn->cookie)))
		err = -FI_EINVAL;
	if (err)
		return err;
	if (answer.hello.kind == HELLO_MSG)
		data_target(conn, &answer.hello.addr);
	tcp_set_greeted(conn->control.fd);
	tcp_session_begin(conn, &answer.hello);
	conn->peer_epoch = answer.hello.epoch;
	tcp_conn_up(conn, &answer.hello);
	return 0;
}

/*
 * A requester sends nothing between its preamble and the answer: it has given up, or breaks the
 * protocol. The lane is closed, and the conn goes down once the engine has accepted.
 */
static int request_event(struct tcp_conn *conn)
{
	char byte;

	if (tcp_none_yet(sys_socket_recv(conn->control.fd, &byte, 1, MSG_PEEK)))
		return 0;
	tcp_lane_close(tcp_wire_of(conn)->hub, &conn->control);
	return 1;
}

/*
 * The socket of a conn that is not up has broken after the preamble was sent. The peer may have
 * accepted, and sent packets: the same session is asked for once more, and where it is not known
 * the peer says so. A host that has been silent for FI_TCP_DEAD_MS is not asked again. Returns
 * false if the conn ends instead.
 */
static bool ask_again(struct tcp_conn *conn, int err)
{
	struct tcp_stream *stream = &conn->session.control;

	if (conn->conn.up || conn->hello.kind != HELLO_RDM || stream->turn == ASK_MAX ||
	    err == -FI_ENOPROTOOPT || err == -FI_ECONNREFUSED || err == -FI_EKEYREJECTED ||
	    tcp_session_silence(err))
		return false;
	tcp_lane_close(tcp_wire_of(conn)->hub, &conn->control);
	stream->answer_len = 0;
	stream->turn++;
	return !tcp_lane_connect(conn, &conn->control);
}

/* As tcp_greet_answer() */
static int answer_read(struct tcp_conn *conn, struct tcp_lane *lane)
{
	struct tcp_stream *stream = tcp_session_stream(conn, lane);
	struct tcp_hub *hub = tcp_wire_of(conn)->hub;
	struct tcp_preamble preamble;
	int ret, err;

	ret = tcp_say_rest(hub, lane);
	if (ret <= 0)
		return ret;
	if (lane->proof) {
		preamble = preamble_of(conn, lane);
		ret = tcp_prove_connecting(hub, lane, &preamble);
		if (ret <= 0)
			return ret;
	}
	if (conn->conn.up)
		ret = tcp_greet_fill(lane, &stream->answer, sizeof(stream->answer),
				     &stream->answer_len);
	else
		ret = control_fill(conn);
	if (ret <= 0 || !lane->proof)
		return ret;
	err = tcp_prove_answered(hub, lane, &stream->answer);
	return err ? err : 1;
}

int tcp_greet_answer(struct tcp_conn *conn, struct tcp_lane *lane)
{
	int ret = answer_read(conn, lane);

	tcp_shown_failed(tcp_wire_of(conn)->hub, lane, ret);
	return ret;
}

int tcp_greet_event(struct tcp_conn *conn, struct tcp_lane *lane)
{
	int err, moved;

	if (lane->state == TCP_LANE_CONNECTING) {
		err = say_first(conn, lane);
		if (err && !tcp_session_failed(conn, lane, err) &&
		    !(conn->session.control.turn && ask_again(conn, err)))
			tcp_lane_vain(conn, lane, err);
		return 0;
	}
	if (lane->state == TCP_LANE_REQUESTED)
		return request_event(conn);
	if (lane->state != TCP_LANE_GREETING)
		return 0;
	if (conn->conn.up) {
		moved = tcp_session_greeted(conn, lane);
		tcp_lane_rest(conn, lane);
		return moved;
	}
	err = tcp_greet_answer(conn, lane);
	if (!err || (err < 0 && ask_again(conn, err)))
		return 0;
	if (err > 0)
		err = control_answered(conn);
	if (err == -FI_ENOPROTOOPT)
		tcp_log_foreign(tcp_wire_of(conn)->hub, "the peer at", lane->fd);
	if (err)
		tcp_conn_down(conn, err);
	tcp_lane_rest(conn, lane);
	return 1;
}
