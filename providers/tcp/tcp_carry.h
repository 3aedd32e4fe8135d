/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sendv() payload on the control lane.
 */
#ifndef WEFT_TCP_CARRY_H
#define WEFT_TCP_CARRY_H

#include "tcp_wire.h"

/*
 * tcp_carry - send a header and its payload on the control lane, if that is faster
 * @hdr, @iov, @op: as of sendv(), with a lane that is up
 *
 * Returns true if it has sent them: done() is due.
 */
bool tcp_carry(struct tcp_conn *conn, const struct packet *hdr, const struct iovec *iov,
	       size_t iov_cnt, struct wire_op *op);

/*
 * tcp_carry_complete - call done() of operations on the control lane. Only from poll. Returns
 * operations
 */
int tcp_carry_complete(struct tcp_conn *conn);

/* tcp_answered - a packet has arrived: the peer answers */
static inline void tcp_answered(struct tcp_conn *conn)
{
	if (conn->carry_cnt > 1)
		conn->carry_rest = TCP_CARRY_REST;
	else if (conn->carry_cnt && conn->carry_rest)
		conn->carry_rest--;
	conn->carry_cnt = 0;
}

#endif
