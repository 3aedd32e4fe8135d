/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The data lane when it is up. tcp_sendv(): see wire.h.
 */
#ifndef WEFT_TCP_DATA_H
#define WEFT_TCP_DATA_H

#include "tcp_wire.h"

int tcp_sendv(struct wire_conn *conn, const struct packet *hdr, const struct iovec *iov,
	      size_t iov_cnt, struct wire_op *op);

/* tcp_data_flush - write queued operations, as much as the kernel takes */
void tcp_data_flush(struct tcp_conn *conn);

/*
 * tcp_data_watch - have epoll report what the lane waits for; when it is up
 * tcp_data_timer - a timer of the conn has expired: do that, if epoll could not be asked
 */
void tcp_data_watch(struct tcp_conn *conn);
void tcp_data_timer(struct tcp_conn *conn);

/*
 * tcp_data_resume - continue to read a data lane that waits: its header may be due
 *
 * The conn is in wire->waiting, and leaves it or waits there again. Only from poll. Returns
 * packets moved.
 */
int tcp_data_resume(struct tcp_conn *conn);

/* tcp_data_read - read headers and payload. Only from poll. Returns packets moved */
int tcp_data_read(struct tcp_conn *conn);

/* tcp_finished - operations of sendv() may have left: have poll call done() */
void tcp_finished(struct tcp_conn *conn);

/*
 * tcp_data_complete - call done() of operations that were written. Only from poll. Returns
 * operations
 */
int tcp_data_complete(struct tcp_conn *conn);

/*
 * tcp_data_settle - call done() of what the peer has acknowledged, or need not: the conn ends. That may
 * have ended it already
 */
void tcp_data_settle(struct tcp_conn *conn);

#endif
