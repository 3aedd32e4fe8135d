/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The control lane when it is up: packets are gathered into writes, and read in batches. Called by
 * the engine (claim, publish) and by the wire's poll, on the thread that holds the endpoint's
 * domain.
 */
#include "net_socket.h"
#include "tcp_carry.h"
#include "tcp_conn.h"
#include "tcp_control.h"
#include "tcp_flow.h"
#include "tcp_greet.h"
#include "tcp_hub.h"
#include "tcp_idle.h"
#include "tcp_lane.h"
#include "tcp_session.h"
#include "tcp_wire.h"

#define READ_MAX 4 /* reads of one lane in one poll */

void tcp_control_full(struct tcp_conn *conn)
{
	conn->control.want_out = true;
	/* One that epoll does not watch, and for which it has no memory now (hot.c) */
	if (tcp_watch(tcp_wire_of(conn)->hub, &conn->control, EPOLLIN | EPOLLOUT))
		tcp_due(conn, platform_now_ns() + TCP_RETRY_NS);
}

/* Writes gathered packets. @flags: of send(2) */
static void control_write(struct tcp_conn *conn, int flags)
{
	struct tcp_lane *lane = &conn->control;
	ssize_t n;

	while (conn->head != conn->tail && !lane->write_failed) {
		n = tcp_lane_send(lane, conn->out + conn->head, conn->tail - conn->head, flags);
		if (n > 0) {
			conn->head += (uint32_t)n;
			continue;
		}
		if (n == -FI_EINTR)
			continue;
		if (tcp_no_room((int)n)) {
			tcp_control_full(conn);
			return;
		}
		/* Reading finds the reason, after what the peer sent before it. */
		lane->write_failed = true;
	}
	tcp_session_wrote(conn);
	if (unlikely(lane->want_out)) {
		lane->want_out = false;
		tcp_watch(tcp_wire_of(conn)->hub, lane, EPOLLIN);
	}
}

void tcp_control_timer(struct tcp_conn *conn)
{
	struct tcp_lane *lane = &conn->control;

	if (lane->state == TCP_LANE_UP && lane->want_out && !(lane->events & EPOLLOUT))
		control_write(conn, 0);
}

void tcp_control_flush(struct tcp_conn *conn)
{
	int one = 1;

	if (unlikely(conn->session.ack_due))
		tcp_session_tell(conn);
	if (conn->head != conn->tail)
		control_write(conn, 0);
	else if (conn->held) /* setting TCP_NODELAY again makes the kernel send what it holds back */
		sys_socket_set(conn->control.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	conn->held = false;
}

/* Makes room for @len bytes at the tail. Returns false when there is none. */
static bool make_room(struct tcp_conn *conn, size_t len)
{
	if (tcp_session_grow(conn, len))
		return true;
	if (!conn->control.want_out)
		tcp_control_flush(conn);
	return tcp_session_grow(conn, len);
}

struct packet *tcp_claim(struct wire_conn *out, size_t len, void **payload)
{
	struct tcp_conn *conn = tcp_conn_from(out);
	size_t frame_len = tcp_frame_len(len);
	struct packet *packet;

	if (unlikely(conn->control.write_failed || tcp_wire_of(conn)->hub->forked))
		return NULL;
	if (unlikely(conn->tail + frame_len > conn->out_turn) && !make_room(conn, frame_len))
		return NULL;
	packet = (struct packet *)(conn->out + conn->tail);
	/* The last 8 bytes contain the padding, if any: old bytes of the buffer are never sent. */
	memset((char *)packet + frame_len - 8, 0, 8);
	*payload = packet + 1;
	return packet;
}

/*
 * Written at once, unless the packet joins others that are gathered:
 *  - the kernel has not taken earlier ones, or the caller sends more at once;
 *  - the wire is in poll: all replies of a round leave together, before poll returns;
 *  - the program sends one after the other without making progress. A stream would spend its time on a
 *    system call for each, so after TCP_BURST they are gathered until the next poll, or until
 *    TCP_BATCH_LEN bytes are there.
 */
void tcp_publish(struct wire_conn *out, struct packet *packet, bool more)
{
	struct tcp_conn *conn = tcp_conn_from(out);
	struct tcp_wire *wire = tcp_wire_of(conn);

	conn->tail += (uint32_t)tcp_frame_len(packet->len);
	if (conn->control.want_out) {
		tcp_idle_wake(conn);
		return;
	}
	if (conn->burst_tick != wire->tick) {
		conn->burst_tick = wire->tick;
		conn->burst = 0;
	}
	if (!more && !wire->polling && conn->burst < TCP_BURST) {
		conn->burst++;
		tcp_control_flush(conn);
	} else if (conn->tail - conn->head >= TCP_BATCH_LEN) {
		tcp_control_flush(conn);
	} else {
		tcp_conn_dirty(conn);
	}
}

/*
 * The kernel gets the packet and does not send it yet: a system call, but no segment. If nothing
 * follows, not even a poll, the kernel sends it when the peer acknowledges earlier data, after 0.2
 * s, or when the process ends.
 */
void tcp_hold(struct wire_conn *out, struct packet *packet)
{
	struct tcp_conn *conn = tcp_conn_from(out);

	conn->tail += (uint32_t)tcp_frame_len(packet->len);
	if (conn->control.want_out) {
		tcp_idle_wake(conn);
		return;
	}
	control_write(conn, MSG_MORE);
	conn->held = true;
	tcp_conn_dirty(conn);
}

bool tcp_control_own(struct tcp_conn *conn, enum tcp_op op, uint64_t tag, uint64_t data)
{
	struct packet packet = { .op = (uint8_t)op, .tag = tag, .data = data };

	if (!tcp_session_room(conn, sizeof(packet)) &&
	    conn->tail + sizeof(packet) > conn->out_size)
		return false;
	memcpy(conn->out + conn->tail, &packet, sizeof(packet));
	conn->tail += (uint32_t)sizeof(packet);
	return true;
}

/*
 * Handles one of the wire's own packets, of which @end is the end in the lane. Returns 0, or -FI_E*
 * for one that no correct peer sends.
 */
static int own_packet(struct tcp_conn *conn, const struct packet *packet, uint64_t end)
{
	struct packet known = { .op = packet->op, .data = packet->data };
	bool counts = packet->op == TCP_OP_ACK || packet->op == TCP_OP_IDLE;

	if (counts)
		known.tag = packet->tag;
	if (memcmp(packet, &known, sizeof(known)))
		return -FI_EINVAL;
	if (packet->op == TCP_OP_IDLE)
		tcp_idle_heard(conn, end);
	if (counts)
		return tcp_session_acked(conn, packet->tag, packet->data);
	if (packet->op == TCP_OP_BYE) {
		conn->bye_received = true;
		conn->session.bye_len = packet->data;
		tcp_lane_ended(conn, &conn->control, 0);
		return 0;
	}
	if (packet->op != TCP_OP_LANE || !conn->ours)
		return -FI_EINVAL;
	tcp_session_wanted(conn, packet->data);
	return 0;
}

/*
 * Begins a large packet; @len bytes of it are at @at, header first. Returns things moved, or
 * -FI_E*
 */
static int begin_large(struct tcp_conn *conn, const struct packet *packet, const uint8_t *at,
		       size_t len)
{
	size_t there = len - sizeof(*packet), payload;
	int err;

	tcp_answered(conn);
	err = tcp_flow_begin(conn, &conn->flow, packet);

	conn->in_large = true;
	if (err || conn->dead)
		return err == -FI_EAGAIN ? -FI_EINVAL : err; /* no packet waits on this lane */
	payload = there < conn->flow.left ? there : conn->flow.left;
	tcp_flow_take(&conn->flow, at + sizeof(*packet), payload);
	conn->padding = -packet->len & 7;
	if (conn->flow.left)
		return 1;
	conn->padding -= (uint32_t)(there - payload);
	tcp_flow_end(conn, &conn->flow);
	return 2;
}

static bool part_room(struct tcp_conn *conn)
{
	if (!conn->part)
		conn->part = malloc(TCP_PART_MAX);
	return conn->part;
}

/* Keeps the first part of a packet. Returns things moved, or -FI_E* that ends the conn. */
static int keep_part(struct tcp_conn *conn, const uint8_t *at, size_t len)
{
	struct packet packet;

	if (!len)
		return 0;
	if (len >= sizeof(packet)) {
		memcpy(&packet, at, sizeof(packet));
		if (packet.len > TCP_CLAIM_MAX)
			return begin_large(conn, &packet, at, len);
	}
	if (!part_room(conn))
		return -FI_ENOMEM;
	conn->part_len = (uint32_t)len;
	memcpy(conn->part, at, len);
	return 0;
}

/*
 * Passes complete packets to the engine, and keeps the rest for the next read. Returns the number
 * of packets, or -FI_E* that ends the conn.
 */
static int parse(struct tcp_conn *conn, const uint8_t *at, const uint8_t *end)
{
	struct engine_ep *ep = conn->conn.wire->ep;
	struct wire_dest dest;
	struct packet packet;
	int moved = 0, err;

	while ((size_t)(end - at) >= sizeof(packet)) {
		memcpy(&packet, at, sizeof(packet));
		if (unlikely(packet.len > TCP_CARRY_MAX))
			return -FI_EINVAL;
		if ((size_t)(end - at) < tcp_frame_len(packet.len))
			break;
		if (unlikely(packet.op >= TCP_OP_BYE)) {
			err = own_packet(conn, &packet,
					 conn->session.control.in - (size_t)(end - at) +
						 sizeof(packet));
		} else {
			tcp_answered(conn);
			err = engine_packet(ep, &conn->conn, &packet, at + sizeof(packet),
					    packet.len, &dest);
		}
		if (unlikely(err < 0))
			return err == -FI_EAGAIN ? -FI_EINVAL : err;
		moved++;
		at += tcp_frame_len(packet.len);
		if (unlikely(conn->dead || conn->control.state != TCP_LANE_UP))
			return moved;
	}
	err = keep_part(conn, at, (size_t)(end - at));
	return err < 0 ? err : moved + err;
}

/*
 * Returns where to read to, such that the first packet, whose first part is put in front, is
 * aligned to 8 bytes; so is the packet behind the padding of the last one.
 */
static uint8_t *in_room(const struct tcp_conn *conn)
{
	return tcp_wire_of(conn)->hub->in + TCP_IN_HEAD + conn->part_len % 8 +
	       (-conn->padding & 7);
}

/* Reads the rest of a large packet's payload into its place, and what follows to @room; as in_read(). */
static __attribute__((noinline)) ssize_t in_read_large(struct tcp_conn *conn, uint8_t *room,
						       size_t *len)
{
	struct iovec iov[WIRE_DEST_MAX + 2];
	size_t total;
	int cnt = tcp_flow_pieces(conn, &conn->flow, iov, SIZE_MAX, &total);

	iov[cnt++] = (struct iovec){ room, *len };
	*len += total;
	return tcp_lane_recvv(&conn->control, iov, (size_t)cnt);
}

/* @len: in: bytes of room at @room; out: bytes that could have been read */
static ssize_t in_read(struct tcp_conn *conn, uint8_t *room, size_t *len)
{
	if (unlikely(conn->flow.left))
		return in_read_large(conn, room, len);
	return tcp_lane_recv(&conn->control, room, *len);
}

/*
 * Handles @len bytes that were read; those behind a large packet's payload are at @room. Returns as
 * parse().
 */
static int in_take(struct tcp_conn *conn, uint8_t *room, size_t len)
{
	uint32_t padding, part_len = conn->part_len;
	int moved = 0, cnt;
	size_t payload;

	if (unlikely(conn->flow.left)) {
		payload = len < conn->flow.left ? len : conn->flow.left;
		tcp_flow_take(&conn->flow, NULL, payload);
		if (conn->flow.left)
			return 0;
		moved = 1;
		tcp_flow_end(conn, &conn->flow);
		len -= payload;
		if (conn->dead)
			return moved;
	}
	padding = conn->padding < len ? conn->padding : (uint32_t)len;
	conn->padding -= padding;
	if (part_len)
		memcpy(room - part_len, conn->part, part_len);
	conn->part_len = 0;
	cnt = parse(conn, room - part_len + padding, room + len);
	return cnt < 0 ? cnt : moved + cnt;
}

void tcp_control_discard(struct tcp_conn *conn)
{
	struct packet packet;

	conn->skip = conn->flow.left + conn->padding;
	conn->flow.left = 0;
	conn->padding = 0;
	if (conn->part_len < sizeof(packet))
		return;
	memcpy(&packet, conn->part, sizeof(packet));
	conn->skip = tcp_frame_len(packet.len) - conn->part_len;
	conn->part_len = 0;
}

/*
 * While the endpoint closes: packets are discarded, and the wire's own ones still count. Returns 0 or
 * -FI_E*
 */
static int discard(struct tcp_conn *conn, const uint8_t *at, size_t len)
{
	struct packet packet;
	size_t n;
	int err;

	for (; len; at += n, len -= n) {
		n = conn->skip ? conn->skip : sizeof(packet) - conn->part_len;
		n = n < len ? n : len;
		if (conn->skip) {
			conn->skip -= n;
			continue;
		}
		if (!part_room(conn))
			return -FI_ENOMEM;
		memcpy(conn->part + conn->part_len, at, n);
		conn->part_len += (uint32_t)n;
		if (conn->part_len < sizeof(packet))
			continue;
		memcpy(&packet, conn->part, sizeof(packet));
		conn->part_len = 0;
		conn->skip = tcp_frame_len(packet.len) - sizeof(packet);
		err = 0;
		if (packet.op >= TCP_OP_BYE)
			err = own_packet(conn, &packet, conn->session.control.in - (len - n));
		if (err || conn->dead || conn->control.state != TCP_LANE_UP)
			return err;
	}
	return 0;
}

int tcp_control_read(struct tcp_conn *conn)
{
	size_t asked, len = conn->in_large ? TCP_IN_LARGE : TCP_IN_FIRST;
	int moved = 0, round, cnt;
	uint8_t *room;
	ssize_t n;

	for (round = 0; round < READ_MAX; round++, len = TCP_IN_LEN - 16) {
		room = in_room(conn);
		asked = len;
		n = in_read(conn, room, &asked);
		if (n <= 0) {
			if (!tcp_none_yet(n))
				tcp_lane_ended(conn, &conn->control, (int)n);
			break;
		}
		conn->session.control.in += (size_t)n;
		if (unlikely(tcp_wire_of(conn)->closing))
			cnt = discard(conn, room, (size_t)n);
		else
			cnt = in_take(conn, room, (size_t)n);
		if (cnt < 0) {
			tcp_conn_down(conn, cnt);
			break;
		}
		moved += cnt;
		if (likely(!tcp_wire_of(conn)->closing))
			tcp_session_arrived(conn);
		if (!conn->flow.left && (size_t)n == TCP_IN_LARGE)
			conn->in_large = false;
		if (conn->dead || conn->control.state != TCP_LANE_UP || (size_t)n < asked)
			break;
	}
	tcp_lane_rest(conn, &conn->control);
	return moved;
}
