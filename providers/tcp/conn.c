/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A conn of the TCP wire from its creation to its end. Called by the other files of the wire, and
 * by the engine to disconnect and to check that the peer is alive, on the thread that holds the
 * endpoint's domain.
 */
#include "net_socket.h"
#include "tcp.h"
#include "tcp_bell.h"
#include "tcp_conn.h"
#include "tcp_control.h"
#include "tcp_data.h"
#include "tcp_greet.h"
#include "tcp_hot.h"
#include "tcp_hub.h"
#include "tcp_idle.h"
#include "tcp_lane.h"
#include "tcp_options.h"
#include "tcp_prove.h"
#include "tcp_session.h"
#include "tcp_shown.h"
#include "tcp_wire.h"

#define CHECK_NS       250000000u /* time between looks at the kernel's state of a connection */
#define RETRANSMIT_MIN 3	  /* unanswered retransmissions of a peer that may be dead */
#define PROBE_MIN      2

struct tcp_conn *tcp_conn_create(struct tcp_wire *wire)
{
	struct tcp_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	conn->conn.wire = &wire->wire;
	conn->control.kind = TCP_LANE_CONTROL;
	conn->control.fd = -1;
	conn->data.kind = TCP_LANE_DATA;
	conn->data.fd = -1;
	list_init(&conn->control.ready);
	list_init(&conn->data.ready);
	list_init(&conn->known);
	list_init(&conn->dirty);
	list_init(&conn->finished);
	list_init(&conn->timed);
	list_init(&conn->telling);
	list_init(&conn->waiting);
	list_init(&conn->used);
	list_add_tail(&wire->conns, &conn->link);
	return conn;
}

void tcp_conn_up(struct tcp_conn *conn, const struct hello *hello)
{
	conn->control.state = TCP_LANE_UP;
	conn->conn.up = true;
	tcp_shown_up(conn);
	tcp_idle_up(conn);
	engine_conn_up(&conn->conn, hello);
}

/* Reads the address of one end of a socket. Returns 0, -FI_ECONNRESET if it was reset, or -FI_E*. */
static int socket_name(int fd, bool remote, struct weft_addr *addr)
{
	union ip_sockaddr sock = { 0 };
	socklen_t len = sizeof(sock);
	int err = remote ? sys_socket_peer(fd, &sock.sa, &len)
			 : sys_socket_own(fd, &sock.sa, &len);

	if (err)
		return err == -FI_ENOTCONN ? -FI_ECONNRESET : err;
	*addr = (struct weft_addr){ .version = ADDR_VERSION, .kind = ADDR_SERVICE };
	ip_sockaddr_get(&sock, addr);
	return 0;
}

int tcp_names(struct wire_conn *out, struct weft_addr *local, struct weft_addr *remote)
{
	int fd = tcp_conn_from(out)->control.fd, err;

	/* A request whose requester has given up: in the kernel no socket has the number -1. */
	if (fd < 0)
		return -FI_ECONNRESET;
	err = socket_name(fd, false, local);
	return err ? err : socket_name(fd, true, remote);
}

void tcp_part(struct wire_conn *out)
{
	struct tcp_conn *conn = tcp_conn_from(out);

	if (conn->control.fd >= 0)
		tcp_watch(tcp_wire_of(conn)->hub, &conn->control, 0);
	conn->control.revents = 0;
	list_remove(&conn->control.ready);
	list_remove(&conn->link);
	conn->conn.wire = NULL;
}

int tcp_join(struct wire_conn *out, struct wire *to)
{
	struct tcp_conn *conn = tcp_conn_from(out);
	struct tcp_wire *wire = tcp_wire_from(to);
	int err = 0;

	if (wire->hub->forked)
		return -FI_EOPBADSTATE;
	if (conn->control.fd >= 0) /* else the requester has given up */
		err = tcp_watch(wire->hub, &conn->control, EPOLLIN);
	if (err)
		return err;
	conn->conn.wire = to;
	list_add_tail(&wire->requests, &conn->link);
	return 0;
}

/* No refusal is sent: in the child of a fork the socket was the parent's, and is given up. */
void tcp_drop(struct wire_conn *out)
{
	struct tcp_conn *conn = tcp_conn_from(out);

	tcp_prove_end(&conn->control);
	tcp_lane_insecure(&conn->control);
	if (conn->control.fd >= 0)
		sys_socket_close(conn->control.fd);
	free(conn->out);
	free(conn->part);
	free(conn);
}

void tcp_conn_bury(struct tcp_conn *conn)
{
	struct tcp_wire *wire = tcp_wire_of(conn);

	if (conn->dead)
		return;
	conn->dead = true;
	conn->conn.up = false;
	tcp_shown_down(conn);
	tcp_hot_forget(conn);
	if (conn->lost && !wire->hub->forked) {
		tcp_lane_reset(&conn->control);
		tcp_lane_reset(&conn->data);
	}
	tcp_lane_close(wire->hub, &conn->control);
	tcp_lane_close(wire->hub, &conn->data);
	list_remove(&conn->known);
	list_remove(&conn->dirty);
	list_remove(&conn->finished);
	list_remove(&conn->timed);
	list_remove(&conn->telling);
	list_remove(&conn->waiting);
	list_remove(&conn->used);
	list_remove(&conn->link);
	list_add_tail(&wire->dead_conns, &conn->link);
	tcp_session_end(conn);
}

void tcp_conn_down(struct tcp_conn *conn, int err)
{
	struct tcp_wire *wire = tcp_wire_of(conn);

	if (conn->dead)
		return;
	/* The end may come in the read that has acknowledged them. */
	tcp_data_settle(conn);
	if (conn->dead)
		return;
	conn->lost |= err && conn->conn.up;
	tcp_conn_bury(conn);
	if (!wire->closing)
		engine_conn_down(&conn->conn, err);
}

void tcp_conn_dirty(struct tcp_conn *conn)
{
	if (!list_empty(&conn->dirty))
		return;
	list_add_tail(&tcp_wire_of(conn)->dirty, &conn->dirty);
	tcp_wake(tcp_wire_of(conn));
}

void tcp_conn_fail(struct tcp_conn *conn, int err)
{
	if (!conn->err)
		conn->err = err;
	tcp_conn_dirty(conn);
}

static uint64_t received(const struct tcp_conn *conn)
{
	return conn->session.control.in + conn->session.data.in;
}

static void end_later(struct tcp_conn *conn)
{
	conn->end_seen = received(conn);
	conn->end_ns = platform_now_ns() + TCP_END_NS;
	tcp_due(conn, conn->end_ns);
}

/* Nothing more arrives on this lane, and it is not made again. */
static void lane_over(struct tcp_conn *conn, struct tcp_lane *lane, int err)
{
	struct tcp_lane *other = lane == &conn->control ? &conn->data : &conn->control;

	tcp_watch(tcp_wire_of(conn)->hub, lane, 0);
	lane->state = TCP_LANE_ENDED;
	lane->write_failed = true;
	if (!conn->err)
		conn->err = err ? err : -FI_ECONNRESET;
	/* Data that the peer sent on the other lane before it ended is still read. */
	if (other->state != TCP_LANE_UP) {
		tcp_conn_down(conn, tcp_conn_end(conn));
		return;
	}
	if (!conn->ending)
		end_later(conn);
	conn->ending = true;
}

void tcp_lane_ended(struct tcp_conn *conn, struct tcp_lane *lane, int err)
{
	tcp_shown_failed(tcp_wire_of(conn)->hub, lane, err);
	if (!tcp_session_broken(conn, lane, err))
		lane_over(conn, lane, err);
}

void tcp_lane_vain(struct tcp_conn *conn, struct tcp_lane *lane, int err)
{
	if (lane == &conn->control || conn->control.state != TCP_LANE_UP) {
		tcp_conn_down(conn, err);
		return;
	}
	/* A peer that lives ends the conn too, and sends no more. */
	tcp_lane_shut(&conn->control);
	lane_over(conn, lane, err);
}

int tcp_conn_end(const struct tcp_conn *conn)
{
	const struct tcp_bulk *bulk = conn->bulk;
	bool whole = !conn->flow.left && !(bulk && (bulk->flow.left || bulk->header_len)) &&
		     conn->session.data.in == conn->session.bye_len;

	return conn->bye_received && whole ? 0 : conn->err;
}

void tcp_conn_timer(struct tcp_conn *conn, uint64_t now)
{
	if (conn->ending) {
		/* Seconds may pass between two polls, each of which reads a part of what is there. */
		if (now < conn->end_ns)
			tcp_due(conn, conn->end_ns);
		else if (received(conn) != conn->end_seen)
			end_later(conn);
		else
			tcp_conn_down(conn, tcp_conn_end(conn));
		return;
	}
	if (conn->want == TCP_WANT_DUE) {
		conn->want = TCP_WANT_NONE;
		if (conn->data.state == TCP_LANE_BROKEN && !conn->ours)
			tcp_session_ask(conn);
		else
			tcp_data_open(conn);
	}
	tcp_control_timer(conn);
	tcp_data_timer(conn);
	if (conn->session.on)
		tcp_session_timer(conn, now);
}

/*
 * Returns true if the peer's socket has everything that was sent: what its kernel has acknowledged, for
 * which it may take 40 ms. One on this host is asked, once all has left this socket.
 */
static bool lane_delivered(const struct tcp_conn *conn, const struct tcp_lane *lane)
{
	int len, end = conn->shut; /* the end of the lane counts as a byte */

	if (lane->fd < 0 || lane->write_failed || sys_socket_unacked(lane->fd) <= end)
		return true;
	len = tcp_within_host(lane->fd) ? sys_socket_unsent(lane->fd) : -1;
	return len >= 0 && len <= end && sys_socket_arrived(lane->fd);
}

static bool conn_delivered(const struct tcp_conn *conn)
{
	return conn->head == conn->tail && lane_delivered(conn, &conn->control) &&
	       lane_delivered(conn, &conn->data);
}

bool tcp_conn_over(const struct tcp_conn *conn)
{
	return conn->bye_sent &&
	       (conn->delivered || (conn->control.state == TCP_LANE_UP &&
				    !conn->control.write_failed && conn_delivered(conn)));
}

bool tcp_conn_drained(struct tcp_conn *conn)
{
	struct tcp_bulk *bulk = conn->bulk;

	if (tcp_session_unsettled(conn))
		return false;
	if (conn->control.state != TCP_LANE_UP || conn->control.write_failed)
		return true;
	if (bulk && bulk->written != bulk->queued && !conn->data.write_failed)
		return false;
	if (!conn->bye_sent) {
		/*
		 * What follows is the wire's own, and needs no acknowledgement: the kernel delivers
		 * it after close(2) too, unless packets are lost and the peer sends meanwhile.
		 */
		conn->delivered = conn_delivered(conn);
		conn->bye_sent = tcp_control_own(conn, TCP_OP_BYE, 0, bulk ? bulk->out_len : 0);
		if (!conn->bye_sent)
			return true; /* no memory: the peer sees a broken connection */
	}
	tcp_control_flush(conn);
	if (conn->head != conn->tail) /* a socket that has broken meanwhile is made again */
		return conn->control.write_failed &&
		       (conn->delivered || !tcp_session_unsettled(conn));
	if (!conn->shut) {
		if (!tcp_lane_shut(&conn->control) || !tcp_lane_shut(&conn->data))
			return false;
		conn->shut = true;
	}
	return conn->delivered || conn_delivered(conn);
}

/*
 * Sends a TCP_OP_BYE, by which the peer sees an orderly end, if that does not block and cuts no
 * packet off in the middle.
 */
void tcp_disconnect(struct wire_conn *out)
{
	struct tcp_conn *conn = tcp_conn_from(out);
	struct tcp_wire *wire = tcp_wire_of(conn);

	if (conn->dead)
		return;
	if (conn->conn.up && !conn->lost && !wire->hub->forked) {
		tcp_session_last(conn);
		tcp_conn_drained(conn);
	}
	tcp_conn_bury(conn);
	if (!wire->polling)
		tcp_reap(wire);
}

/*
 * TCP_USER_TIMEOUT would also end a connection to a live peer that does not read for that long, as
 * a process that computes. So silence is judged here: data is retransmitted, or a closed window is
 * probed, and no acknowledgement comes back. Where nothing is under way, keepalive detects a dead
 * peer.
 */
static int lane_check(const struct tcp_lane *lane)
{
	struct sys_socket_state state;

	if (lane->fd < 0 || (lane->state != TCP_LANE_UP && lane->state != TCP_LANE_GREETING))
		return 0;
	if (sys_socket_state(lane->fd, &state))
		return 0;
	if (state.silent_ms < (unsigned int)tcp_settings.dead_ms)
		return 0;
	if (state.unacked && state.retransmits >= RETRANSMIT_MIN)
		return -FI_ETIMEDOUT;
	return state.probes >= PROBE_MIN ? -FI_ETIMEDOUT : 0;
}

int tcp_check(struct wire_conn *out)
{
	struct tcp_conn *conn = tcp_conn_from(out);
	uint64_t now = platform_now_ns();
	int err;

	if (tcp_wire_of(conn)->hub->forked)
		return -FI_EOPBADSTATE;
	if (now - conn->check_ns < CHECK_NS)
		return 0;
	conn->check_ns = now;
	tcp_shown_sample(conn);
	tcp_idle_look(conn, now);
	err = lane_check(&conn->control);
	err = err ? err : lane_check(&conn->data);
	conn->lost |= err;
	return err;
}
