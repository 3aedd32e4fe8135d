/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sendv() on the control lane: payload of medium size, as long as the peer answers each before the
 * next one is sent. Header and payload leave with one system call, behind gathered packets. They
 * are copied afterwards, while the peer receives them: what is retained for a peer that has lost
 * its connection, or what the kernel has not taken. Called by sendv and from the wire's poll, on
 * the thread that holds the endpoint's domain.
 */
#include "copy.h"
#include "net_socket.h"
#include "tcp_carry.h"
#include "tcp_conn.h"
#include "tcp_control.h"
#include "tcp_data.h"
#include "tcp_lane.h"
#include "tcp_session.h"
#include "tcp_wire.h"

#define CARRY_HALVES (48u << 10) /* bytes that are sent in two parts */

/*
 * At most one such payload is under way on the control lane. A second one takes the data lane if the
 * first is not answered yet. So do all in a stream of them, where one answer says little about the
 * others: payload on both lanes is copied once more if it arrives before its turn.
 */
static bool worth_it(struct tcp_conn *conn, size_t len)
{
	bool alone = !conn->carry_cnt++ && !conn->carry_rest;

	return alone && conn->control.state == TCP_LANE_UP && !conn->control.want_out &&
	       !conn->control.write_failed && !tcp_wire_of(conn)->hub->forked &&
	       /* an acknowledgement may go first */
	       tcp_session_room(conn, tcp_frame_len(len) + sizeof(struct packet));
}

/*
 * Sends @len bytes of the pieces; in two parts from CARRY_HALVES on, so that a peer of the same
 * host reads the first one while the kernel copies the second. Returns the bytes sent; @err: out:
 * 0, or if they are fewer -FI_E* of what has ended it.
 */
static size_t send_parts(struct tcp_lane *lane, const struct iovec *iov, size_t cnt, size_t len,
			 int *err)
{
	size_t part = len < CARRY_HALVES ? len : len / 2, at = 0, want;
	struct iovec some[WIRE_IOV_MAX + 3];
	ssize_t n;

	do {
		want = len - at > part + 1 ? part : len - at;
		n = tcp_lane_sendv(lane, some, iov_slice(iov, cnt, at, want, some));
		at += n > 0 ? (size_t)n : 0;
	} while (at < len && (n >= 0 || n == -FI_EINTR));
	*err = at < len ? (int)n : 0;
	return at;
}

/*
 * Writes the gathered packets and then the frame, which begins at iov[1]. Returns false if the conn
 * fails for it.
 */
static bool write_frame(struct tcp_conn *conn, struct iovec *iov, size_t cnt, size_t total)
{
	size_t gathered = conn->tail - conn->head, took;
	int err;

	iov[0] = (struct iovec){ conn->out + conn->head, gathered };
	took = send_parts(&conn->control, iov, cnt, gathered + total, &err);
	conn->held = false;
	if (err && !tcp_no_room(err))
		conn->control.write_failed = true; /* the reader finds the reason */
	if (err == -FI_EFAULT) { /* the caller's memory is not mapped: it must not be read here */
		tcp_conn_fail(conn, -FI_EFAULT);
		return false;
	}
	if (conn->session.on || err)
		copy_from_iov(conn->out + conn->tail, iov + 1, cnt - 1, 0, total);
	conn->head += (uint32_t)took;
	conn->tail += (uint32_t)total;
	tcp_session_wrote(conn);
	if (err && !conn->control.write_failed)
		tcp_control_full(conn);
	return true;
}

bool tcp_carry(struct tcp_conn *conn, const struct packet *hdr, const struct iovec *iov,
	       size_t iov_cnt, struct wire_op *op)
{
	static uint8_t zeroes[8];
	struct iovec all[WIRE_IOV_MAX + 3];
	size_t cnt;

	if (hdr->len > TCP_CARRY_MAX || !worth_it(conn, hdr->len))
		return false;
	if (unlikely(conn->session.ack_due))
		tcp_session_tell(conn);
	all[1] = (struct iovec){ (void *)(uintptr_t)hdr, sizeof(*hdr) };
	cnt = 2 + iov_slice(iov, iov_cnt, 0, hdr->len, &all[2]);
	all[cnt++] = (struct iovec){ zeroes, -hdr->len & 7 };
	/* Operations of a conn that goes down are the engine's: this one has not been sent. */
	if (!write_frame(conn, all, cnt, tcp_frame_len(hdr->len)))
		return true;
	op->next = NULL;
	if (conn->carried)
		conn->carried_last->next = op;
	else
		conn->carried = op;
	conn->carried_last = op;
	tcp_finished(conn);
	return true;
}

int tcp_carry_complete(struct tcp_conn *conn)
{
	struct wire_op *op = conn->carried, *next;
	int cnt = 0;

	conn->carried = NULL;
	for (; op && !conn->dead; op = next, cnt++) {
		next = op->next;
		op->done(op, 0);
	}
	return cnt;
}
