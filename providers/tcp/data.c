/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The data lane when it is up: payload from the sender's memory to the receiver's without a
 * stop between. Called by the engine (sendv) and by the wire's poll, on the thread that holds
 * the endpoint's domain.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include "tcp_wire.h"

#define WRITE_MAX   16 /* system calls for one lane in one go */
#define READ_MAX    16
#define READ_LEN    (1u << 20) /* of one lane in one poll */
#define OUT_IOV_MAX 32	       /* of several operations in one call */

static void want_out(struct tcp_conn *conn, bool want)
{
	if (conn->data.want_out == want)
		return;
	conn->data.want_out = want;
	tcp_watch(tcp_wire_of(conn)->hub, &conn->data, want ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static struct tcp_send *send_at(struct tcp_bulk *bulk, uint32_t idx)
{
	return &bulk->sends[idx % TCP_SEND_MAX];
}

/* Append a piece of memory from which @skip bytes are left out (and counted down). */
static int add_piece(struct iovec *iov, int cnt, void *base, size_t len, size_t *skip)
{
	size_t off = *skip < len ? *skip : len;

	*skip -= off;
	if (off == len)
		return cnt;
	iov[cnt].iov_base = (char *)base + off;
	iov[cnt].iov_len = len - off;
	return cnt + 1;
}

/* What is to be written next, of as many operations as fit. Returns the number of pieces. */
static int gather(struct tcp_bulk *bulk, struct iovec *iov, size_t *total)
{
	size_t skip = bulk->part;
	struct tcp_send *send;
	uint32_t idx, i;
	int cnt = 0, k;

	for (idx = bulk->written; idx != bulk->queued && cnt + WIRE_IOV_MAX < OUT_IOV_MAX;
	     idx++) {
		send = send_at(bulk, idx);
		cnt = add_piece(iov, cnt, &send->header, sizeof(send->header), &skip);
		for (i = 0; i < send->iov_cnt; i++)
			cnt = add_piece(iov, cnt, send->iov[i].iov_base, send->iov[i].iov_len,
					&skip);
	}
	*total = 0;
	for (k = 0; k < cnt; k++)
		*total += iov[k].iov_len;
	return cnt;
}

/* The kernel has taken @len bytes. */
static void advance(struct tcp_bulk *bulk, size_t len)
{
	size_t whole;

	bulk->part += len;
	while (bulk->written != bulk->queued) {
		whole = sizeof(struct packet) + send_at(bulk, bulk->written)->header.len;
		if (bulk->part < whole)
			return;
		bulk->part -= whole;
		bulk->written++;
	}
}

static void mark_finished(struct tcp_conn *conn)
{
	if (conn->bulk->told == conn->bulk->written || !list_empty(&conn->finished))
		return;
	list_push(&tcp_wire_of(conn)->finished, &conn->finished);
	tcp_rouse(tcp_wire_of(conn));
}

void tcp_data_flush(struct tcp_conn *conn)
{
	struct tcp_bulk *bulk = conn->bulk;
	struct iovec iov[OUT_IOV_MAX];
	struct msghdr msg = { .msg_iov = iov };
	bool full = false;
	size_t total;
	ssize_t n;
	int round;

	for (round = 0;
	     round < WRITE_MAX && !full && !conn->data.mute && bulk->written != bulk->queued;
	     round++) {
		msg.msg_iovlen = (size_t)gather(bulk, iov, &total);
		n = sendmsg(conn->data.fd, &msg, MSG_NOSIGNAL);
		if (n >= 0) {
			advance(bulk, (size_t)n);
			full = (size_t)n < total;
		} else if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) {
			full = true;
		} else if (errno == EFAULT) {
			tcp_conn_fail(conn, -FI_EFAULT); /* the caller's memory is not there */
			conn->data.mute = true;
		} else if (errno != EINTR) {
			conn->data.mute = true; /* the reader finds the reason */
		}
	}
	want_out(conn, !conn->data.mute && bulk->written != bulk->queued);
	mark_finished(conn);
}

/* The first @len bytes of @iov. Returns false when it has fewer. */
static bool copy_iov(struct tcp_send *send, const struct iovec *iov, size_t cnt, size_t len)
{
	size_t i;

	send->iov_cnt = 0;
	for (i = 0; i < cnt && len; i++) {
		send->iov[i].iov_base = iov[i].iov_base;
		send->iov[i].iov_len = iov[i].iov_len < len ? iov[i].iov_len : len;
		len -= send->iov[i].iov_len;
		send->iov_cnt++;
	}
	return !len;
}

int tcp_sendv(struct wire_conn *out, const struct packet *hdr, const struct iovec *iov,
	      size_t iov_cnt, struct wire_op *op)
{
	struct tcp_conn *conn = tcp_conn_from(out);
	struct tcp_bulk *bulk = conn->bulk;
	struct tcp_send *send;

	if (unlikely(!bulk)) {
		bulk = conn->bulk = calloc(1, sizeof(*bulk));
		if (!bulk)
			return -FI_EAGAIN;
	}
	if (bulk->queued - bulk->told == TCP_SEND_MAX || conn->data.mute ||
	    tcp_wire_of(conn)->hub->forked)
		return -FI_EAGAIN;
	send = send_at(bulk, bulk->queued);
	if (iov_cnt > WIRE_IOV_MAX || !copy_iov(send, iov, iov_cnt, hdr->len))
		return -FI_EINVAL;
	send->header = *hdr;
	send->op = op;
	bulk->queued++;
	if (conn->data.state != TCP_LANE_UP)
		tcp_data_open(conn);
	else if (!conn->data.want_out)
		tcp_data_flush(conn);
	return 0;
}

int tcp_get(struct wire_conn *conn, const struct wire_source *from, const struct iovec *iov,
	    size_t iov_cnt, struct wire_op *op)
{
	return -FI_ENOSYS;
}

int tcp_data_tell(struct tcp_conn *conn)
{
	struct tcp_bulk *bulk = conn->bulk;
	struct wire_op *op;
	int cnt = 0;

	if (tcp_wire_of(conn)->closing) {
		bulk->told = bulk->written;
		return 0;
	}
	/* done() may send again, and that may be written at once: what is due now is enough. */
	while (bulk->told != bulk->written && cnt < (int)TCP_SEND_MAX && !conn->dead) {
		op = send_at(bulk, bulk->told)->op;
		bulk->told++;
		cnt++;
		op->done(op, 0);
	}
	if (!conn->dead)
		mark_finished(conn);
	return cnt;
}

/* A header is whole: where does its payload go? Returns 0 or -FI_E* that ends the conn. */
static int take_header(struct tcp_conn *conn)
{
	struct tcp_bulk *bulk = conn->bulk;
	struct packet packet = bulk->header;
	struct wire_dest dest = { .iov_cnt = 0 };
	uint32_t i;
	int err;

	if (packet.op >= TCP_OP_BYE)
		return -FI_EINVAL;
	err = engine_packet(conn->conn.wire->ep, &conn->conn, &packet,
			    tcp_wire_of(conn)->hub->in, 0, &dest);
	if (err < 0)
		return err;
	bulk->header_len = 0;
	bulk->left = packet.len;
	bulk->cookie = packet.len ? dest.cookie : NULL;
	bulk->iov_cnt = packet.len ? dest.iov_cnt : 0;
	bulk->iov_at = 0;
	for (i = 0; i < bulk->iov_cnt; i++)
		bulk->iov[i] = dest.iov[i];
	return 0;
}

/*
 * Payload, then what is beyond the engine's iov, then the next header.
 * Returns the pieces, and in @total their bytes: about @max at most.
 */
static int in_pieces(struct tcp_conn *conn, struct iovec *iov, size_t max, size_t *total)
{
	struct tcp_bulk *bulk = conn->bulk;
	uint64_t left = bulk->left;
	size_t room = max;
	uint32_t i;
	int cnt = 0, k;

	for (i = bulk->iov_at; i < bulk->iov_cnt && left && room; i++) {
		iov[cnt] = bulk->iov[i];
		if (iov[cnt].iov_len > left)
			iov[cnt].iov_len = left;
		if (iov[cnt].iov_len > room)
			iov[cnt].iov_len = room;
		left -= iov[cnt].iov_len;
		room -= iov[cnt].iov_len;
		cnt++;
	}
	if (left && room) {
		iov[cnt].iov_base = tcp_wire_of(conn)->hub->in;
		iov[cnt].iov_len = left < TCP_IN_LEN ? left : TCP_IN_LEN;
		left -= iov[cnt].iov_len;
		cnt++;
	}
	if (!left) {
		iov[cnt].iov_base = (char *)&bulk->header + bulk->header_len;
		iov[cnt].iov_len = sizeof(bulk->header) - bulk->header_len;
		cnt++;
	}
	*total = 0;
	for (k = 0; k < cnt; k++)
		*total += iov[k].iov_len;
	return cnt;
}

/* @len bytes have come into the pieces. Returns true when they end the payload. */
static bool advance_in(struct tcp_bulk *bulk, size_t len)
{
	size_t step, payload = len < bulk->left ? len : bulk->left;
	bool whole = bulk->left && payload == bulk->left;

	bulk->header_len += (uint32_t)(len - payload);
	bulk->left -= payload;
	while (payload && bulk->iov_at < bulk->iov_cnt) {
		struct iovec *v = &bulk->iov[bulk->iov_at];

		step = payload < v->iov_len ? payload : v->iov_len;
		v->iov_base = (char *)v->iov_base + step;
		v->iov_len -= step;
		payload -= step;
		if (!v->iov_len)
			bulk->iov_at++;
	}
	return whole;
}

/* Input of an endpoint that is being closed: nobody is there to take it. */
static void read_away(struct tcp_conn *conn)
{
	struct tcp_wire *wire = tcp_wire_of(conn);
	ssize_t n;
	int round;

	for (round = 0; round < READ_MAX; round++) {
		n = recv(conn->data.fd, wire->hub->in, TCP_IN_LEN, 0);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			tcp_lane_ended(conn, &conn->data, n ? -errno : 0);
			return;
		}
	}
}

int tcp_data_read(struct tcp_conn *conn)
{
	struct engine_ep *ep = conn->conn.wire->ep;
	struct tcp_bulk *bulk = conn->bulk;
	struct iovec iov[WIRE_DEST_MAX + 2];
	struct msghdr msg = { .msg_iov = iov };
	int moved = 0, round, err;
	size_t taken = 0, room;
	ssize_t n;

	if (tcp_wire_of(conn)->closing) {
		read_away(conn);
		return 0;
	}
	for (round = 0; round < READ_MAX && taken < READ_LEN; round++) {
		msg.msg_iovlen = (size_t)in_pieces(conn, iov, READ_LEN, &room);
		n = recvmsg(conn->data.fd, &msg, 0);
		if (n <= 0) {
			if (n < 0 && (errno == EAGAIN || errno == EINTR))
				break;
			conn->cut = conn->cut || bulk->left || bulk->header_len;
			tcp_lane_ended(conn, &conn->data, n ? -errno : 0);
			break;
		}
		taken += (size_t)n;
		if (advance_in(bulk, (size_t)n)) {
			moved++;
			if (bulk->cookie)
				engine_payload_done(ep, &conn->conn, bulk->cookie);
			if (conn->dead)
				break;
		}
		if (bulk->header_len == sizeof(bulk->header)) {
			moved++;
			err = take_header(conn);
			if (err)
				tcp_conn_down(conn, err);
			if (conn->dead)
				break;
		}
		if ((size_t)n < room)
			break; /* that was all there is */
	}
	return moved;
}
