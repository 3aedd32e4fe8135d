/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What outlives the sockets of a conn: counts of the bytes of its lanes, what is retained until it
 * is acknowledged, and acknowledgements. They are packets like any other: counted, retained, and
 * acknowledged in turn, at a cost of 32 bytes for 16 KiB. Called by the other files of the wire, on
 * the thread that holds the endpoint's domain.
 *
 * Acknowledgements always find room, so that two sides whose buffers are full do not wait for each
 * other. Those of the control lane may use TCP_OUT_SPARE, which has room for 128 of them. A side
 * that has used it up has received 2 MiB since its buffer is full. The peer could send them only
 * because it has received acknowledgements from that spare room, that is, everything in front of
 * it: it owes an acknowledgement of that, and has used up less of its own room. For the end of an
 * operation of the data lane only the ordinary room is used: the acknowledgement waits for it.
 */
#include <sys/socket.h>
#include "tcp_bell.h"
#include "tcp_conn.h"
#include "tcp_control.h"
#include "tcp_data.h"
#include "tcp_session.h"
#include "tcp_wire.h"

/* Input of the control lane, and of a stream on the data lane, that is acknowledged within poll */
#define CONTROL_AT_ONCE (128u << 10)
#define DATA_AT_ONCE	(256u << 10)
/*
 * Ends of payload on the data lane of which one acknowledgement tells, where more is there to read:
 * a fraction of TCP_SEND_MAX, for which the sender can go on without it
 */
#define DATA_ENDS (TCP_SEND_MAX / 4)
/*
 * Polls for which an acknowledgement waits for a packet that takes it along, or for more input:
 * fewer than fi_trywait makes; and one of the end of a payload, which a sender may be waiting for
 */
#define TELL_TICKS 32u
#define DATA_TICKS 4u

/*
 * Without a secret anyone may name any address: one that is not the peer's own would have this
 * process connect, and speak, to a third party.
 */
static bool may_ask(const struct tcp_conn *conn)
{
	union tcp_sockaddr from = { 0 };
	socklen_t len = sizeof(from);

	if (tcp_wire_of(conn)->hub->secret)
		return true;
	return conn->control.fd >= 0 && !getpeername(conn->control.fd, &from.sa, &len) &&
	       tcp_sockaddr_same_ip(&from, &conn->remote);
}

void tcp_session_begin(struct tcp_conn *conn, const struct hello *other)
{
	conn->session.on = conn->hello.kind == HELLO_RDM && other->kind == HELLO_RDM;
	if (conn->ours)
		return;
	list_add_tail(tcp_session_known(tcp_wire_of(conn), conn->hello.epoch), &conn->known);
	conn->session.said = *other;
	if (!tcp_sockaddr_set(&conn->remote, &conn->hello.addr))
		return;
	memcpy(conn->to, conn->hello.addr.nonce, sizeof(conn->to));
	if (!may_ask(conn))
		tcp_sockaddr_set_port(&conn->remote, 0);
}

struct list *tcp_session_known(struct tcp_wire *wire, uint64_t epoch)
{
	return &wire->known[(epoch * 0x9e3779b97f4a7c15u >> 32) % TCP_KNOWN_CNT];
}

void tcp_session_end(struct tcp_conn *conn)
{
	tcp_wire_of(conn)->lost_cnt -= conn->session.counted;
	conn->session.counted = false;
}

void tcp_session_turn(struct tcp_conn *conn)
{
	/* The packets keep their alignment, however much has been acknowledged. */
	uint32_t to = conn->kept & 7, by = conn->kept - to, len = conn->tail - conn->kept;

	if (!by || (len > conn->kept &&
		    conn->tail + sizeof(struct packet) <= TCP_OUT_LEN + TCP_OUT_SPARE))
		return;
	memmove(conn->out + to, conn->out + conn->kept, len);
	conn->out_pos += by;
	conn->kept -= by;
	conn->head -= by;
	conn->tail -= by;
}

/* An acknowledgement is due: within this poll, or with what is sent, or when nothing comes. */
static void tell_soon(struct tcp_conn *conn, bool at_once)
{
	struct tcp_wire *wire = tcp_wire_of(conn);

	conn->session.ack_due = true;
	conn->session.ack_tick = wire->tick;
	if (at_once)
		tcp_conn_dirty(conn);
	else if (list_empty(&conn->telling))
		list_add_tail(&wire->telling, &conn->telling);
}

void tcp_session_arrived(struct tcp_conn *conn)
{
	struct tcp_session *session = &conn->session;
	uint64_t untold = session->control.in - session->control.in_told;

	if (likely(untold < TCP_ACK_LEN) || !session->on || conn->dead)
		return;
	tell_soon(conn, untold >= CONTROL_AT_ONCE);
}

void tcp_session_due(struct tcp_conn *conn)
{
	struct tcp_session *session = &conn->session;
	uint64_t untold = session->data.in - session->data.in_told;

	if (!session->on)
		return;
	if (!session->ends++)
		session->data_tick = tcp_wire_of(conn)->tick;
	tell_soon(conn, session->ends >= DATA_ENDS || untold >= DATA_AT_ONCE);
}

void tcp_session_drained(struct tcp_conn *conn)
{
	if (conn->session.ends)
		tcp_conn_dirty(conn);
}

bool tcp_session_ready(const struct tcp_conn *conn)
{
	const struct tcp_session *session = &conn->session;
	uint32_t tick = tcp_wire_of(conn)->tick;

	return tick - session->ack_tick >= TELL_TICKS ||
	       (session->ends && tick - session->data_tick >= DATA_TICKS);
}

void tcp_session_tell(struct tcp_conn *conn)
{
	struct tcp_session *session = &conn->session;
	bool owed = session->control.in - session->control.in_told >= TCP_ACK_LEN;

	/* A side that only receives claims nothing: the buffer is turned here. */
	if (!tcp_session_room(conn, sizeof(struct packet)) && !owed)
		return;
	if (!tcp_control_own(conn, TCP_OP_ACK, session->control.in, session->data.in))
		return;
	session->control.in_told = session->control.in;
	session->data.in_told = session->data.in;
	session->ends = 0;
	session->ack_due = false;
	list_remove(&conn->telling);
}

static uint64_t control_acked_len(const struct tcp_conn *conn)
{
	return conn->out_pos + conn->kept;
}

/* Returns 0, or -FI_EINVAL. */
static int control_acked(struct tcp_conn *conn, uint64_t count)
{
	if (count > conn->out_pos + conn->head)
		return -FI_EINVAL;
	if (count <= control_acked_len(conn))
		return 0;
	conn->kept = (uint32_t)(count - conn->out_pos);
	tcp_session_wrote(conn);
	return 0;
}

static uint64_t frame_len(const struct tcp_bulk *bulk)
{
	return sizeof(struct packet) + bulk->sends[bulk->acked % TCP_SEND_MAX].header.len;
}

static int data_acked(struct tcp_conn *conn, uint64_t count)
{
	struct tcp_bulk *bulk = conn->bulk;

	if (!bulk)
		return count ? -FI_EINVAL : 0;
	if (count > bulk->out_len)
		return -FI_EINVAL;
	if (count <= bulk->acked_len)
		return 0;
	bulk->acked_len = count;
	while (bulk->acked != bulk->written && count - bulk->acked_pos >= frame_len(bulk)) {
		bulk->acked_pos += frame_len(bulk);
		bulk->acked++;
	}
	tcp_finished(conn);
	return 0;
}

int tcp_session_acked(struct tcp_conn *conn, uint64_t control, uint64_t data)
{
	if (!conn->session.on || control_acked(conn, control) || data_acked(conn, data))
		return -FI_EINVAL;
	if (unlikely(conn->session.ack_due)) /* it may have waited for room */
		tcp_conn_dirty(conn);
	return 0;
}

int tcp_session_rewind(struct tcp_conn *conn, const struct tcp_lane *lane, uint64_t count)
{
	struct tcp_bulk *bulk = conn->bulk;

	if (lane == &conn->control) {
		if (count < control_acked_len(conn) || control_acked(conn, count))
			return -FI_EINVAL;
		conn->head = conn->kept;
		return 0;
	}
	if (!bulk || count < bulk->acked_len || data_acked(conn, count))
		return -FI_EINVAL;
	bulk->written = bulk->acked;
	bulk->part = count - bulk->acked_pos;
	bulk->out_len = count;
	return 0;
}

/* Returns true for a lane without a socket, or of which reading will find that it has broken. */
static bool is_broken(const struct tcp_conn *conn, const struct tcp_lane *lane)
{
	if (lane->state == TCP_LANE_UP)
		return lane->write_failed && !conn->err;
	return lane->state == TCP_LANE_BROKEN || lane->state == TCP_LANE_CONNECTING ||
	       lane->state == TCP_LANE_GREETING;
}

bool tcp_session_unsettled(const struct tcp_conn *conn)
{
	const struct tcp_bulk *bulk = conn->bulk;

	if (!conn->session.on || conn->shut)
		return false;
	if (is_broken(conn, &conn->control))
		return conn->kept != conn->tail || (bulk && bulk->acked != bulk->queued);
	return is_broken(conn, &conn->data) && bulk && bulk->acked != bulk->queued;
}
