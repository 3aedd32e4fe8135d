/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The data lane when it is up: payload moves from the sender's memory to the receiver's without a
 * copy in the library. Called by the engine (sendv) and by the wire's poll, on the thread that
 * holds the endpoint's domain.
 */
#include "copy.h"
#include "tcp_bell.h"
#include "tcp_carry.h"
#include "tcp_conn.h"
#include "tcp_data.h"
#include "tcp_flow.h"
#include "tcp_greet.h"
#include "tcp_hub.h"
#include "tcp_lane.h"
#include "tcp_session.h"
#include "tcp_wire.h"

#define WRITE_MAX   16 /* system calls of one flush of a lane */
#define READ_MAX    16
#define READ_LEN    (1u << 20) /* bytes read from one lane in one poll */
#define OUT_IOV_MAX 32	       /* pieces of several operations in one call */

/* Sets what epoll watches of the lane. It is not read while a header waits for its turn. */
void tcp_data_watch(struct tcp_conn *conn)
{
	uint32_t in = list_empty(&conn->waiting) ? EPOLLIN : 0;
	uint32_t out = conn->data.want_out ? EPOLLOUT : 0;

	/* One that was not watched, and for which epoll has no memory now */
	if (tcp_watch(tcp_wire_of(conn)->hub, &conn->data, in | out))
		tcp_due(conn, platform_now_ns() + TCP_RETRY_NS);
}

void tcp_data_timer(struct tcp_conn *conn)
{
	if (conn->data.state == TCP_LANE_UP)
		tcp_data_watch(conn);
}

static void want_out(struct tcp_conn *conn, bool want)
{
	if (conn->data.want_out == want)
		return;
	conn->data.want_out = want;
	tcp_data_watch(conn);
}

static struct tcp_send *send_at(struct tcp_bulk *bulk, uint32_t idx)
{
	return &bulk->sends[idx % TCP_SEND_MAX];
}

/* Collects what is to be written next, of as many operations as fit. Returns the number of pieces. */
static size_t gather(struct tcp_bulk *bulk, struct iovec *iov, size_t *total)
{
	size_t skip = bulk->part, cnt = 0;
	struct tcp_send *send;
	uint32_t idx;
	bool ok;

	for (idx = bulk->written; idx != bulk->queued && cnt + WIRE_IOV_MAX < OUT_IOV_MAX;
	     idx++) {
		send = send_at(bulk, idx);
		cnt += iov_slice(send->iov, send->iov_cnt, skip, SIZE_MAX, iov + cnt);
		skip = 0;
	}
	*total = iov_len(iov, cnt, &ok);
	return cnt;
}

/* The kernel has taken @len bytes. */
static void advance(struct tcp_conn *conn, size_t len)
{
	struct tcp_bulk *bulk = conn->bulk;
	size_t whole;

	bulk->out_len += len;
	bulk->part += len;
	while (bulk->written != bulk->queued) {
		whole = sizeof(struct packet) + send_at(bulk, bulk->written)->header.len;
		if (bulk->part < whole)
			break;
		bulk->part -= whole;
		bulk->written++;
	}
	if (!conn->session.on)
		bulk->acked = bulk->written;
}

void tcp_finished(struct tcp_conn *conn)
{
	struct tcp_bulk *bulk = conn->bulk;

	if (!conn->carried && (!bulk || bulk->completed == bulk->acked))
		return;
	if (!list_empty(&conn->finished))
		return;
	list_add_tail(&tcp_wire_of(conn)->finished, &conn->finished);
	tcp_wake(tcp_wire_of(conn));
}

void tcp_data_flush(struct tcp_conn *conn)
{
	struct tcp_bulk *bulk = conn->bulk;
	struct iovec iov[OUT_IOV_MAX];
	size_t total, cnt;
	bool full = false;
	ssize_t n;
	int round;

	for (round = 0; round < WRITE_MAX && !full && !conn->data.write_failed &&
			bulk->written != bulk->queued;
	     round++) {
		cnt = gather(bulk, iov, &total);
		n = tcp_lane_sendv(&conn->data, iov, cnt);
		if (n >= 0) {
			advance(conn, (size_t)n);
			full = (size_t)n < total;
		} else if (tcp_no_room((int)n)) {
			full = true;
		} else if (n == -FI_EFAULT) {
			tcp_conn_fail(conn, -FI_EFAULT); /* the caller's memory is not mapped */
			conn->data.write_failed = true;
		} else if (n != -FI_EINTR) {
			conn->data.write_failed = true; /* reading finds the reason */
		}
	}
	want_out(conn, !conn->data.write_failed && bulk->written != bulk->queued);
	tcp_finished(conn);
}

int tcp_sendv(struct wire_conn *out, const struct packet *hdr, const struct iovec *iov,
	      size_t iov_cnt, struct wire_op *op)
{
	struct tcp_conn *conn = tcp_conn_from(out);
	struct tcp_bulk *bulk = conn->bulk;
	struct tcp_send *send;
	bool ok;

	if (iov_cnt > WIRE_IOV_MAX || iov_len(iov, iov_cnt, &ok) < hdr->len)
		return -FI_EINVAL;
	if (tcp_carry(conn, hdr, iov, iov_cnt, op))
		return 0;
	if (unlikely(!bulk)) {
		bulk = conn->bulk = calloc(1, sizeof(*bulk));
		if (!bulk)
			return -FI_EAGAIN;
	}
	if (bulk->queued - bulk->completed == TCP_SEND_MAX || conn->data.write_failed ||
	    tcp_wire_of(conn)->hub->forked)
		return -FI_EAGAIN;
	send = send_at(bulk, bulk->queued);
	send->header = *hdr;
	send->iov[0] = (struct iovec){ &send->header, sizeof(send->header) };
	send->iov_cnt = 1 + iov_slice(iov, iov_cnt, 0, hdr->len, &send->iov[1]);
	send->op = op;
	bulk->queued++;
	if (conn->data.state != TCP_LANE_UP)
		tcp_data_open(conn);
	else if (!conn->data.want_out)
		tcp_data_flush(conn);
	return 0;
}

static void complete_one(struct tcp_bulk *bulk)
{
	struct wire_op *op = send_at(bulk, bulk->completed++)->op;

	op->done(op, 0);
}

int tcp_data_complete(struct tcp_conn *conn)
{
	struct tcp_bulk *bulk = conn->bulk;
	int cnt = 0;

	if (tcp_wire_of(conn)->closing) {
		conn->carried = NULL;
		if (bulk)
			bulk->completed = bulk->acked;
		return 0;
	}
	if (conn->carried)
		cnt = tcp_carry_complete(conn);
	/* done() may send again, and that may be written at once: the number of calls is bounded. */
	while (bulk && bulk->completed != bulk->acked && cnt < (int)TCP_SEND_MAX && !conn->dead) {
		complete_one(bulk);
		cnt++;
	}
	if (!conn->dead)
		tcp_finished(conn);
	return cnt;
}

void tcp_data_settle(struct tcp_conn *conn)
{
	struct tcp_bulk *bulk = conn->bulk;
	uint32_t acked = bulk ? bulk->acked : 0;

	if (tcp_wire_of(conn)->closing || tcp_wire_of(conn)->hub->forked)
		return;
	if (conn->carried)
		tcp_carry_complete(conn);
	while (bulk && bulk->completed != acked && !conn->dead)
		complete_one(bulk);
}

/*
 * Collects where to read to: the payload, the part that is discarded, then the next header.
 * Returns the number of pieces, and in @total their bytes: about READ_LEN at most.
 */
static int in_pieces(struct tcp_conn *conn, struct iovec *iov, size_t *total)
{
	struct tcp_bulk *bulk = conn->bulk;
	int cnt = tcp_flow_pieces(conn, &bulk->flow, iov, READ_LEN, total);

	if (*total < bulk->flow.left)
		return cnt;
	iov[cnt].iov_base = (char *)&bulk->header + bulk->header_len;
	iov[cnt].iov_len = sizeof(bulk->header) - bulk->header_len;
	*total += iov[cnt].iov_len;
	return cnt + 1;
}

/*
 * @len bytes were read into the pieces. Returns operations and headers completed; the conn may be
 * dead.
 */
static int arrived(struct tcp_conn *conn, size_t len)
{
	struct tcp_bulk *bulk = conn->bulk;
	size_t payload = len < bulk->flow.left ? len : bulk->flow.left;
	int moved = 0, err;

	bulk->header_len += (uint32_t)(len - payload);
	if (payload) {
		tcp_flow_take(&bulk->flow, NULL, payload);
		if (!bulk->flow.left) {
			moved++;
			tcp_session_due(conn);
			tcp_flow_end(conn, &bulk->flow);
		}
	}
	if (conn->dead || bulk->header_len < sizeof(bulk->header))
		return moved;
	err = tcp_flow_begin(conn, &bulk->flow, &bulk->header);
	if (err == -FI_EAGAIN && conn->control.state == TCP_LANE_ENDED && !conn->bye_received) {
		/* It waits for a packet of the control lane, which has ended without it. */
		tcp_conn_down(conn, conn->err);
		return moved;
	}
	if (err == -FI_EAGAIN) {
		list_add_tail(&tcp_wire_of(conn)->waiting, &conn->waiting);
		return moved;
	}
	bulk->header_len = 0;
	if (err)
		tcp_conn_down(conn, err);
	return moved + 1;
}

int tcp_data_resume(struct tcp_conn *conn)
{
	int moved = tcp_wire_of(conn)->closing ? 0 : arrived(conn, 0);

	if (conn->dead || conn->data.state != TCP_LANE_UP)
		return moved;
	tcp_data_watch(conn);
	return moved && list_empty(&conn->waiting) ? moved + tcp_data_read(conn) : moved;
}

/* Discards the input of an endpoint that is being closed. */
static void read_away(struct tcp_conn *conn)
{
	struct tcp_wire *wire = tcp_wire_of(conn);
	ssize_t n;
	int round;

	for (round = 0; round < READ_MAX; round++) {
		n = tcp_lane_recv(&conn->data, wire->hub->in, TCP_IN_LEN);
		if (tcp_none_yet(n))
			return;
		if (n <= 0) {
			tcp_lane_ended(conn, &conn->data, (int)n);
			return;
		}
		conn->session.data.in += (size_t)n;
	}
	tcp_lane_rest(conn, &conn->data);
}

int tcp_data_read(struct tcp_conn *conn)
{
	struct iovec iov[WIRE_DEST_MAX + 2];
	size_t taken = 0, room;
	int moved = 0, round, cnt;
	bool empty = false;
	ssize_t n;

	if (tcp_wire_of(conn)->closing) {
		read_away(conn);
		return 0;
	}
	for (round = 0; round < READ_MAX && taken < READ_LEN && list_empty(&conn->waiting);
	     round++) {
		cnt = in_pieces(conn, iov, &room);
		n = tcp_lane_recvv(&conn->data, iov, (size_t)cnt);
		if (n <= 0) {
			empty = tcp_none_yet(n);
			if (!empty)
				tcp_lane_ended(conn, &conn->data, (int)n);
			break;
		}
		taken += (size_t)n;
		conn->session.data.in += (size_t)n;
		moved += arrived(conn, (size_t)n);
		empty = (size_t)n < room;
		if (conn->dead || empty)
			break;
	}
	tcp_lane_rest(conn, &conn->data);
	if (conn->dead)
		return moved;
	/* Who has sent the last payload may wait for its acknowledgement. */
	if (empty && !conn->bulk->flow.left && !conn->bulk->header_len)
		tcp_session_drained(conn);
	if (taken)
		tcp_answered(conn);
	return moved;
}
