/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The control lane when it is up: packets gathered into writes, and read in batches. Called by
 * the engine (claim, publish) and by the wire's poll, on the thread that holds the endpoint's
 * domain.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include "tcp_wire.h"

#define READ_MAX 4 /* reads of one lane in one poll */

bool tcp_control_room(struct tcp_conn *conn)
{
	if (likely(conn->out != NULL))
		return true;
	/* Pages that are never written to cost nothing: an idle conn uses the first one. */
	conn->out = aligned_alloc(CACHE_LINE, TCP_OUT_LEN + TCP_OUT_SPARE);
	return conn->out != NULL;
}

/* @flags: of send(2) */
static void control_write(struct tcp_conn *conn, int flags)
{
	struct tcp_lane *lane = &conn->control;
	ssize_t n;

	if (lane->mute)
		conn->head = conn->tail;
	while (conn->head != conn->tail) {
		n = send(lane->fd, conn->out + conn->head, conn->tail - conn->head,
			 MSG_NOSIGNAL | flags);
		if (n > 0) {
			conn->head += (uint32_t)n;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) {
			lane->want_out = true;
			tcp_watch(tcp_wire_of(conn)->hub, lane, EPOLLIN | EPOLLOUT);
			return;
		}
		/* The reader finds the reason, behind what the peer sent before it. */
		lane->mute = true;
		conn->head = conn->tail;
	}
	conn->head = conn->tail = 0;
	if (unlikely(lane->want_out)) {
		lane->want_out = false;
		tcp_watch(tcp_wire_of(conn)->hub, lane, EPOLLIN);
	}
}

void tcp_control_flush(struct tcp_conn *conn)
{
	int one = 1;

	if (conn->head != conn->tail)
		control_write(conn, 0);
	else if (conn->held) /* setting it again is how the kernel is told to wait no longer */
		setsockopt(conn->control.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	conn->held = false;
}

/* Make room behind the tail; false when there is none. */
static bool make_room(struct tcp_conn *conn, size_t len)
{
	if (!conn->control.want_out)
		tcp_control_flush(conn);
	if (conn->tail + len <= TCP_OUT_LEN)
		return true;
	/* Moving costs less than it gains when half of the buffer has been written. */
	if (conn->head < TCP_OUT_LEN / 2)
		return false;
	memmove(conn->out, conn->out + conn->head, conn->tail - conn->head);
	conn->tail -= conn->head;
	conn->head = 0;
	return conn->tail + len <= TCP_OUT_LEN;
}

struct packet *tcp_claim(struct wire_conn *out, size_t len, void **payload)
{
	struct tcp_conn *conn = tcp_conn_from(out);
	size_t frame_len = tcp_frame_len(len);
	struct packet *packet;

	if (unlikely(!tcp_control_room(conn) || conn->control.mute ||
		     tcp_wire_of(conn)->hub->forked))
		return NULL;
	if (unlikely(conn->tail + frame_len > TCP_OUT_LEN) && !make_room(conn, frame_len))
		return NULL;
	packet = (struct packet *)(conn->out + conn->tail);
	/* The padding, if there is any, is in the last 8 bytes: no old bytes leave with it. */
	memset((char *)packet + frame_len - 8, 0, 8);
	*payload = packet + 1;
	return packet;
}

/*
 * Written at once, unless something is gathered that this can join:
 *  - the kernel has not taken what came before, or more follows at once;
 *  - we are in poll: all replies of one round leave together, before it returns;
 *  - the application sends one after the other without looking for progress. A system call for
 *    each of them is what a stream would spend its time on, so after TCP_BURST they are gathered
 *    until the next poll, or until there are enough to be worth one.
 */
void tcp_publish(struct wire_conn *out, struct packet *packet, bool more)
{
	struct tcp_conn *conn = tcp_conn_from(out);
	struct tcp_wire *wire = tcp_wire_of(conn);

	conn->tail += (uint32_t)tcp_frame_len(packet->len);
	if (conn->control.want_out)
		return;
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
 * The kernel has it and does not send it yet: a system call, but no packet. Should nothing follow,
 * not even a poll, the kernel sends it when the peer acknowledges something, after 0.2 s, or when
 * the process ends.
 */
void tcp_hold(struct wire_conn *out, struct packet *packet)
{
	struct tcp_conn *conn = tcp_conn_from(out);

	conn->tail += (uint32_t)tcp_frame_len(packet->len);
	if (conn->control.want_out)
		return;
	control_write(conn, MSG_MORE);
	conn->held = true;
	tcp_conn_dirty(conn);
}

bool tcp_control_raw(struct tcp_conn *conn, const void *bytes, size_t len)
{
	if (!tcp_control_room(conn) || conn->tail + len > TCP_OUT_LEN + TCP_OUT_SPARE)
		return false;
	memcpy(conn->out + conn->tail, bytes, len);
	conn->tail += (uint32_t)len;
	return true;
}

bool tcp_control_own(struct tcp_conn *conn, enum tcp_op op)
{
	struct packet packet = { .op = (uint8_t)op };

	return tcp_control_raw(conn, &packet, sizeof(packet));
}

/* One of the wire's own packets. Returns 0 or -FI_E* for one that no peer sends. */
static int own_packet(struct tcp_conn *conn, const struct packet *packet)
{
	struct packet known = { .op = packet->op };

	if (memcmp(packet, &known, sizeof(known)))
		return -FI_EINVAL;
	if (packet->op == TCP_OP_BYE) {
		conn->bye = true;
		tcp_lane_ended(conn, &conn->control, 0);
		return 0;
	}
	if (packet->op != TCP_OP_LANE || !conn->ours)
		return -FI_EINVAL;
	tcp_data_open(conn);
	return 0;
}

/*
 * Hand on the packets that are whole; keep the rest for the next read.
 * Returns their number, or -FI_E* that ends the conn.
 */
static int parse(struct tcp_conn *conn, const uint8_t *at, const uint8_t *end)
{
	struct engine_ep *ep = conn->conn.wire->ep;
	struct wire_dest dest;
	struct packet packet;
	int moved = 0, err;

	while ((size_t)(end - at) >= sizeof(packet)) {
		memcpy(&packet, at, sizeof(packet));
		if (unlikely(packet.len > TCP_CLAIM_MAX))
			return -FI_EINVAL;
		if ((size_t)(end - at) < tcp_frame_len(packet.len))
			break;
		if (unlikely(packet.op >= TCP_OP_BYE))
			err = own_packet(conn, &packet);
		else
			err = engine_packet(ep, &conn->conn, &packet, at + sizeof(packet),
					    packet.len, &dest);
		if (unlikely(err < 0))
			return err;
		moved++;
		at += tcp_frame_len(packet.len);
		if (unlikely(conn->dead || conn->control.state != TCP_LANE_UP))
			return moved;
	}
	conn->part_len = (uint32_t)(end - at);
	memcpy(conn->part, at, conn->part_len);
	return moved;
}

int tcp_control_read(struct tcp_conn *conn)
{
	struct tcp_wire *wire = tcp_wire_of(conn);
	int moved = 0, round, cnt;
	const uint8_t *start;
	uint8_t *room;
	ssize_t n;

	for (round = 0; round < READ_MAX; round++) {
		/* Such that the first packet, of which a part is put in front, starts on 8 bytes. */
		room = wire->hub->in + TCP_IN_HEAD + conn->part_len % 8;
		n = recv(conn->control.fd, room, TCP_IN_LEN - 8, 0);
		if (n <= 0) {
			if (n < 0 && (errno == EAGAIN || errno == EINTR))
				break;
			tcp_lane_ended(conn, &conn->control, n ? -errno : 0);
			break;
		}
		if (wire->closing)
			continue; /* nobody is there to take it */
		start = room - conn->part_len;
		memcpy(room - conn->part_len, conn->part, conn->part_len);
		conn->part_len = 0;
		cnt = parse(conn, start, room + n);
		if (cnt < 0) {
			tcp_conn_down(conn, cnt);
			break;
		}
		moved += cnt;
		if (conn->dead || conn->control.state != TCP_LANE_UP || n < TCP_IN_LEN - 8)
			break;
	}
	return moved;
}
