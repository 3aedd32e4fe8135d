/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Conns that are closed because descriptors run out; tcp_idle.h says how. Called by the other files
 * of the wire, on the thread that holds the endpoint's domain.
 *
 * hub->used has the conns that may be closed. Those in use move to its end a few times in a second,
 * when the engine checks them, and once more instead of being asked. So sending and receiving take
 * no note of it.
 */
#include "tcp.h"
#include "tcp_conn.h"
#include "tcp_control.h"
#include "tcp_hot.h"
#include "tcp_hub.h"
#include "tcp_idle.h"
#include "tcp_session.h"
#include "tcp_wire.h"

#define KEEP_SHARE 8u	       /* one of so many descriptors is the program's */
#define AGAIN_NS   1000000000u /* until a peer that has not answered is asked once more */
#define VAIN_NS	   10000000u   /* until idle conns are looked for again */

/* Changes when anything is sent or received. */
static uint64_t traffic(const struct tcp_conn *conn)
{
	return conn->out_pos + conn->tail + conn->session.control.in + conn->session.data.in +
	       (conn->bulk ? conn->bulk->queued : 0);
}

static bool data_quiet(const struct tcp_conn *conn)
{
	const struct tcp_bulk *bulk = conn->bulk;

	if (conn->data.state != TCP_LANE_NONE &&
	    (conn->data.state != TCP_LANE_UP || conn->data.want_out || conn->data.write_failed))
		return false;
	return !bulk || (bulk->completed == bulk->queued && !bulk->flow.left &&
			 !bulk->header_len && list_empty(&conn->waiting));
}

/* Returns true if this side can have the lanes made again, as far as it knows. */
static bool can_reach(const struct tcp_conn *conn)
{
	return conn->ours || (ip_sockaddr_port(&conn->remote) && !conn->session.elsewhere);
}

/* Returns true if nothing is under way, and both sides can have the lanes made again. */
static bool is_quiet(const struct tcp_conn *conn)
{
	const struct tcp_lane *lane = &conn->control;

	return conn->session.on && conn->conn.up && !conn->dead && !conn->ending &&
	       !conn->err && !conn->bye_received && !conn->bye_sent &&
	       conn->want != TCP_WANT_DUE && lane->state == TCP_LANE_UP &&
	       !lane->write_failed && !conn->held && conn->head == conn->tail &&
	       !conn->carried && !conn->flow.left && !conn->part_len && !conn->padding &&
	       data_quiet(conn) && can_reach(conn) && !tcp_wire_of(conn)->closing &&
	       !engine_conn_busy(&conn->conn);
}

/* Returns true if nothing was sent since this side has agreed. */
static bool said_last(const struct tcp_conn *conn)
{
	return conn->idle.said && conn->idle.said == conn->out_pos + conn->tail;
}

/* Returns true if nothing has arrived since the peer has agreed. */
static bool heard_last(const struct tcp_conn *conn)
{
	return conn->idle.heard && conn->idle.heard == conn->session.control.in;
}

/*
 * Returns true if the peer has told that it has everything that was sent, but for what this side has
 * said last. Else one side could close behind something that the other one had not received.
 */
static bool has_all(const struct tcp_conn *conn)
{
	uint64_t all = conn->out_pos + conn->tail -
		       (said_last(conn) ? sizeof(struct packet) : 0);

	return conn->out_pos + conn->kept >= all;
}

/* Returns true if nothing waits in the lane's socket, which the peer's kernel would count as received. */
static bool has_read_all(const struct tcp_lane *lane)
{
	char byte;

	return lane->state != TCP_LANE_UP ||
	       tcp_none_yet(sys_socket_recv(lane->fd, &byte, 1, MSG_PEEK));
}

static void say(struct tcp_conn *conn)
{
	if (!tcp_session_idle(conn))
		return;
	tcp_control_flush(conn);
	conn->idle.said = conn->out_pos + conn->tail;
}

static void rest_lane(struct tcp_conn *conn, struct tcp_lane *lane, enum tcp_lane_state state)
{
	if (lane->state == TCP_LANE_UP)
		tcp_session_stream(conn, lane)->rested = true;
	tcp_session_unplug(conn, lane, state);
}

/* Closes both lanes. */
static void rest(struct tcp_conn *conn)
{
	tcp_hot_forget(conn);
	list_remove(&conn->used);
	rest_lane(conn, &conn->control, TCP_LANE_IDLE);
	rest_lane(conn, &conn->data, TCP_LANE_NONE);
	conn->want = TCP_WANT_NONE;
	conn->idle.since_ns = platform_now_ns();
	tcp_session_shrink(conn);
	tcp_wire_of(conn)->rests++;
}

void tcp_idle_up(struct tcp_conn *conn)
{
	conn->idle.said = conn->idle.heard = 0;
	conn->idle.due = false;
	if (!conn->session.on)
		return;
	list_remove(&conn->used);
	list_add_tail(&tcp_wire_of(conn)->hub->used, &conn->used);
}

void tcp_idle_heard(struct tcp_conn *conn, uint64_t at)
{
	conn->idle.heard = at;
	conn->idle.due = true;
	tcp_conn_dirty(conn);
}

void tcp_idle_turn(struct tcp_conn *conn)
{
	conn->idle.due = false;
	if (!heard_last(conn) || !is_quiet(conn) || !has_all(conn))
		return;
	if (!said_last(conn))
		say(conn);
	if (said_last(conn) && is_quiet(conn) && has_read_all(&conn->control) &&
	    has_read_all(&conn->data))
		rest(conn);
}

bool tcp_idle_ended(struct tcp_conn *conn, const struct tcp_lane *lane)
{
	if (!said_last(conn) || !is_quiet(conn))
		return false;
	if (lane == &conn->data) { /* what the peer has said is still in the other socket */
		rest_lane(conn, &conn->data, TCP_LANE_NONE);
		conn->want = TCP_WANT_NONE;
		return true;
	}
	if (!heard_last(conn) || !has_all(conn))
		return false;
	rest(conn);
	return true;
}

void tcp_idle_wake(struct tcp_conn *conn)
{
	if (conn->control.state != TCP_LANE_IDLE || conn->dead)
		return;
	conn->control.state = TCP_LANE_BROKEN;
	tcp_session_lost(conn, &conn->control, platform_now_ns(), 0);
}

void tcp_idle_look(struct tcp_conn *conn, uint64_t now)
{
	struct list *used = &tcp_wire_of(conn)->hub->used;

	/* What a receive waits for would never come from a peer that has ended. */
	if (conn->control.state == TCP_LANE_IDLE) {
		if (now - conn->idle.since_ns < (uint64_t)tcp_settings.dead_ms * 1000000u)
			return;
		conn->idle.since_ns = now;
		if (engine_conn_awaited(&conn->conn))
			tcp_idle_wake(conn);
		return;
	}
	if (conn->idle.seen == traffic(conn)) {
		tcp_session_shrink(conn);
		return;
	}
	conn->idle.seen = traffic(conn);
	if (list_empty(&conn->used))
		return;
	list_remove(&conn->used);
	list_add_tail(used, &conn->used);
}

/* Returns true if the conn's descriptors may become free. */
static bool ask(struct tcp_conn *conn, uint64_t now)
{
	bool asked = said_last(conn), fresh = now - conn->idle.since_ns < AGAIN_NS;

	if (conn->idle.seen != traffic(conn)) {
		conn->idle.seen = traffic(conn);
		return false;
	}
	if (!is_quiet(conn))
		return false;
	if (asked && fresh)
		return true;
	say(conn);
	if (heard_last(conn))
		tcp_idle_heard(conn, conn->idle.heard);
	conn->idle.since_ns = now;
	conn->idle.seen = traffic(conn);
	return !asked;
}

uint32_t tcp_idle_ask(struct tcp_hub *hub, uint32_t cnt)
{
	uint64_t now = platform_now_ns();
	uint32_t asked = 0, lap = 0;
	struct list *node, *last;

	if (hub->forked || now - hub->vain_ns < VAIN_NS)
		return 0;
	/* Twice: those that were in use at the last look are asked if all were. */
	for (; lap < 2 && asked < cnt; lap++) {
		last = hub->used.prev;
		for (node = NULL; node != last && asked < cnt && !list_empty(&hub->used);) {
			node = list_pop(&hub->used);
			list_add_tail(&hub->used, node);
			asked += ask(container_of(node, struct tcp_conn, used), now);
		}
	}
	if (!asked)
		hub->vain_ns = now;
	return asked;
}

void tcp_idle_made(struct tcp_hub *hub, int fd)
{
	uint32_t most = platform_descriptor_max();

	if ((uint32_t)fd >= most - most / KEEP_SHARE)
		tcp_idle_ask(hub, 1);
}
