/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sendv() on the control lane: payload of medium size, as long as the peer answers each before the
 * next one is sent. Header and payload leave with one system call, behind gathered packets; the
 * part that the kernel does not take is copied. Called by sendv and from the wire's poll, on the
 * thread that holds the endpoint's domain.
 */
#include <errno.h>
#include <sys/socket.h>
#include "tcp_carry.h"
#include "tcp_conn.h"
#include "tcp_control.h"
#include "tcp_data.h"
#include "tcp_wire.h"

/*
 * At most one such payload is sent before a control packet: a second one before the first is
 * answered takes the data lane, and so do all in a stream of them, where one answer says little
 * about the others. Payload on both lanes is copied once more if it arrives before its turn.
 */
static bool worth_it(struct tcp_conn *conn, size_t len)
{
	bool alone = !conn->carry_cnt++ && !conn->carry_rest;

	return alone && len <= TCP_CARRY_MAX && conn->control.state == TCP_LANE_UP &&
	       !conn->control.want_out && !conn->control.write_failed &&
	       !tcp_wire_of(conn)->hub->forked && tcp_control_room(conn) &&
	       conn->tail + tcp_frame_len(len) <= TCP_OUT_LEN;
}

/* Appends the bytes of @iov behind its first @skip bytes. */
static void keep_rest(struct tcp_conn *conn, const struct iovec *iov, int cnt, size_t skip)
{
	size_t off;
	int i;

	for (i = 0; i < cnt; i++) {
		off = skip < iov[i].iov_len ? skip : iov[i].iov_len;
		skip -= off;
		memcpy(conn->out + conn->tail, (char *)iov[i].iov_base + off,
		       iov[i].iov_len - off);
		conn->tail += (uint32_t)(iov[i].iov_len - off);
	}
}

/* Writes the gathered packets and then the frame, which begins at iov[1]. */
static void write_frame(struct tcp_conn *conn, struct iovec *iov, int cnt, size_t total)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = (size_t)cnt };
	size_t gathered = conn->tail - conn->head, took;
	ssize_t n;

	iov[0] = (struct iovec){ conn->out + conn->head, gathered };
	do
		n = sendmsg(conn->control.fd, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	conn->held = false;
	if (n < 0 && errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM) {
		if (errno == EFAULT) /* the caller's memory is not mapped */
			tcp_conn_fail(conn, -FI_EFAULT);
		conn->control.write_failed = true; /* the reader finds the reason */
		conn->head = conn->tail = 0;
		return;
	}
	took = n < 0 ? 0 : (size_t)n;
	if (took >= gathered)
		conn->head = conn->tail = 0;
	else
		conn->head += (uint32_t)took;
	if (took == gathered + total)
		return;
	if (took > gathered) /* the next packet follows the frame, and is aligned */
		conn->head = conn->tail = -(uint32_t)(gathered + total - took) & 7;
	keep_rest(conn, iov + 1, cnt - 1, took > gathered ? took - gathered : 0);
	tcp_control_full(conn);
}

bool tcp_carry(struct tcp_conn *conn, const struct packet *hdr, const struct iovec *iov,
	       size_t iov_cnt, struct wire_op *op)
{
	static uint8_t zeroes[8];
	size_t len = hdr->len, i;
	struct iovec all[WIRE_IOV_MAX + 3];
	int cnt = 1;

	if (len > TCP_CARRY_MAX || iov_cnt > WIRE_IOV_MAX || !worth_it(conn, len))
		return false;
	all[cnt++] = (struct iovec){ (void *)(uintptr_t)hdr, sizeof(*hdr) };
	for (i = 0; i < iov_cnt && len; i++) {
		all[cnt] = iov[i];
		if (all[cnt].iov_len > len)
			all[cnt].iov_len = len;
		len -= all[cnt++].iov_len;
	}
	if (len)
		return false; /* fewer bytes than the header says: sendv() refuses it */
	all[cnt++] = (struct iovec){ zeroes, -hdr->len & 7 };
	write_frame(conn, all, cnt, tcp_frame_len(hdr->len));
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
