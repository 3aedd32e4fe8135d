/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The data lane when it is up. tcp_sendv(), tcp_get(): see wire.h.
 */
#ifndef WEFT_TCP_DATA_H
#define WEFT_TCP_DATA_H

#include "tcp_wire.h"

int tcp_sendv(struct wire_conn *conn, const struct packet *hdr, const struct iovec *iov,
	      size_t iov_cnt, struct wire_op *op);
int tcp_get(struct wire_conn *conn, const struct wire_source *from, const struct iovec *iov,
	    size_t iov_cnt, struct wire_op *op);

/* tcp_data_flush - write what is queued, as far as the kernel takes it */
void tcp_data_flush(struct tcp_conn *conn);

/*
 * tcp_data_resume - the header at which the data lane waits is due perhaps: go on reading
 * A conn in wire->waiting, which it leaves, perhaps to wait there again. Only from poll. Returns packets
 * moved
 */
int tcp_data_resume(struct tcp_conn *conn);

/* tcp_data_read - read headers and payload. Only from poll. Returns packets moved */
int tcp_data_read(struct tcp_conn *conn);

/* tcp_finished - what sendv() took may have left: have poll tell of it */
void tcp_finished(struct tcp_conn *conn);

/* tcp_data_tell - call done() of what was written. Only from poll. Returns operations */
int tcp_data_tell(struct tcp_conn *conn);

#endif
