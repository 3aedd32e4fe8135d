/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What outlives the sockets of a conn: counts of the bytes of its lanes, what is retained until it
 * is acknowledged, and acknowledgements. They are packets like any other: counted, retained, and
 * acknowledged in turn, at a cost of 32 bytes for 16 KiB. Called by the other files of the wire, on
 * the thread that holds the endpoint's domain.
 *
 * Acknowledgements always find room, so that two sides whose buffers are full do not wait for each
 * other. Those of the control lane may use TCP_OUT_SPARE, which has room for 128 of them. Suppose
 * that a side has used it up: then it has received 2 MiB since its buffer became full. The peer can
 * have sent these only because acknowledgements from the spare room have reached it, and with them
 * everything in front of them. It owes an acknowledgement of that, for which it has room, since it
 * has used up less of its own. The end of an operation of the data lane is acknowledged from the
 * ordinary room only: that acknowledgement waits until there is some.
 */
#include "net_socket.h"
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
 * Ends of payload on the data lane of which one acknowledgement tells, where more is there to read: a
 * fraction of TCP_SEND_MAX, the operations that a sender has under way without one
 */
#define DATA_ENDS (TCP_SEND_MAX / 4)
/*
 * Polls for which an acknowledgement waits for a packet that takes it along, or for more input; fewer
 * than fi_trywait makes. DATA_TICKS: of the end of a payload, for which a sender may be waiting
 */
#define TELL_TICKS 32u
#define DATA_TICKS 4u

/* Returns true if the peer names another address than its socket came from. */
static bool names_another(const struct tcp_conn *conn)
{
	union ip_sockaddr from = { 0 };
	socklen_t len = sizeof(from);

	return conn->control.fd < 0 || sys_socket_peer(conn->control.fd, &from.sa, &len) ||
	       !ip_sockaddr_same_ip(&from, &conn->remote);
}

void tcp_session_begin(struct tcp_conn *conn, const struct hello *other)
{
	conn->session.on = conn->hello.kind == HELLO_RDM && other->kind == HELLO_RDM;
	if (conn->ours)
		return;
	list_add_tail(tcp_session_known(tcp_wire_of(conn), conn->hello.epoch), &conn->known);
	conn->session.said = *other;
	if (!ip_sockaddr_set(&conn->remote, &conn->hello.addr))
		return;
	memcpy(conn->to, conn->hello.addr.nonce, sizeof(conn->to));
	conn->session.elsewhere = names_another(conn);
	/*
	 * Without a secret anyone may name any address: one that is not the peer's own would have this
	 * process connect, and speak, to a third party.
	 */
	if (conn->session.elsewhere && !tcp_wire_of(conn)->hub->secret)
		ip_sockaddr_set_port(&conn->remote, 0);
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

/*
 * Moves what is retained to the front of @out, which may be the buffer itself. The packets keep
 * their alignment, however much has been acknowledged.
 */
static void move_to(struct tcp_conn *conn, uint8_t *out)
{
	uint32_t to = conn->kept & 7, by = conn->kept - to, len = conn->tail - conn->kept;

	if (len)
		memmove(out + to, conn->out + conn->kept, len);
	conn->out_pos += by;
	conn->kept -= by;
	conn->head -= by;
	conn->tail -= by;
}

void tcp_session_turn(struct tcp_conn *conn)
{
	uint32_t len = conn->tail - conn->kept;

	if (conn->kept < 8 || (len > conn->kept && conn->tail + sizeof(struct packet) <=
							   TCP_OUT_LEN + TCP_OUT_SPARE))
		return;
	move_to(conn, conn->out);
}

/* Returns the size of a buffer for @len bytes. The largest one has the spare room. */
static uint32_t size_for(size_t len)
{
	uint32_t size = TCP_OUT_FIRST;

	while (size < len && size < TCP_OUT_LEN)
		size *= 4;
	return size < TCP_OUT_LEN ? size : TCP_OUT_LEN + TCP_OUT_SPARE;
}

/* Returns false without memory; nothing has happened then. */
static bool resize(struct tcp_conn *conn, uint32_t size)
{
	uint8_t *out = aligned_alloc(CACHE_LINE, size);

	if (!out)
		return false;
	move_to(conn, out);
	free(conn->out);
	conn->out = out;
	conn->out_size = size;
	conn->out_turn = size < TCP_OUT_TURN ? size : TCP_OUT_TURN;
	return true;
}

static bool has_room(const struct tcp_conn *conn, size_t len)
{
	uint32_t most = conn->out_size < TCP_OUT_LEN ? conn->out_size : TCP_OUT_LEN;

	return conn->tail + len <= most;
}

bool tcp_session_grow(struct tcp_conn *conn, size_t len)
{
	uint32_t size;

	tcp_session_turn(conn);
	if (has_room(conn, len))
		return true;
	/*
	 * A buffer that could be turned, at a price, grows instead. Were it left as it is, both
	 * sides would wait: a peer to which less than TCP_ACK_LEN was sent owes no acknowledgement.
	 */
	size = size_for((conn->kept & 7) + conn->tail - conn->kept + len);
	if (size <= conn->out_size)
		size = size_for(conn->out_size + 1);
	if (size > conn->out_size && !resize(conn, size))
		move_to(conn, conn->out);
	return has_room(conn, len);
}

void tcp_session_shrink(struct tcp_conn *conn)
{
	uint32_t size = size_for((conn->kept & 7) + conn->tail - conn->kept);

	if (!conn->part_len) {
		free(conn->part);
		conn->part = NULL;
	}
	if (conn->head == conn->tail && size < conn->out_size)
		resize(conn, size);
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

/* Tells the peer of everything that has arrived. Returns false without memory. */
static bool say_counts(struct tcp_conn *conn, enum tcp_op op)
{
	struct tcp_session *session = &conn->session;

	if (!tcp_control_own(conn, op, session->control.in, session->data.in))
		return false;
	session->control.in_told = session->control.in;
	session->data.in_told = session->data.in;
	session->ends = 0;
	session->ack_due = false;
	list_remove(&conn->telling);
	return true;
}

static void tell(struct tcp_conn *conn)
{
	if (say_counts(conn, TCP_OP_ACK))
		tcp_wire_of(conn)->hub->counts[WEFT_MEM_TCP_ACKS_SENT]++;
}

void tcp_session_tell(struct tcp_conn *conn)
{
	const struct tcp_session *session = &conn->session;
	bool owed = session->control.in - session->control.in_told >= TCP_ACK_LEN;

	/* A side that only receives claims nothing: the buffer is turned here. */
	if (tcp_session_room(conn, sizeof(struct packet)) || owed)
		tell(conn);
}

void tcp_session_last(struct tcp_conn *conn)
{
	if (conn->session.ack_due)
		tell(conn);
	/* What is read from now on is discarded. */
	conn->session.ack_due = false;
}

bool tcp_session_idle(struct tcp_conn *conn)
{
	return say_counts(conn, TCP_OP_IDLE);
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
	tcp_wire_of(conn)->hub->counts[WEFT_MEM_TCP_ACKS_RECEIVED]++;
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

	if (!conn->session.on)
		return false;
	if (is_broken(conn, &conn->control))
		return conn->kept != conn->tail || (bulk && bulk->acked != bulk->queued);
	return !conn->bye_sent && is_broken(conn, &conn->data) && bulk &&
	       bulk->acked != bulk->queued;
}
