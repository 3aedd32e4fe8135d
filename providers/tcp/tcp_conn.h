/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A conn's life once it exists: ends, orderly and not. tcp_disconnect(), tcp_check(): see wire.h.
 */
#ifndef WEFT_TCP_CONN_H
#define WEFT_TCP_CONN_H

#include "tcp_wire.h"

/* tcp_conn_create - a conn without sockets, linked; NULL without memory */
struct tcp_conn *tcp_conn_create(struct tcp_wire *wire);

/* tcp_conn_bury - close the sockets; tcp_reap() frees the memory: poll at its end, else the caller */
void tcp_conn_bury(struct tcp_conn *conn);

/* tcp_conn_down - bury it and tell the engine. Only from poll */
void tcp_conn_down(struct tcp_conn *conn, int err);

/*
 * tcp_lane_ended - nothing more comes in on this lane
 * @err: 0 for an end of file, else -FI_E*
 * The conn goes down when the other lane has ended too, or soon. Only from poll.
 */
void tcp_lane_ended(struct tcp_conn *conn, struct tcp_lane *lane, int err);

/* tcp_conn_end - how a conn whose lanes have ended has ended: 0 in order, or -FI_E* */
static inline int tcp_conn_end(const struct tcp_conn *conn)
{
	return conn->bye && !conn->cut ? 0 : conn->err;
}

/* tcp_conn_fail - the conn is to go down with @err in the next poll; for callers outside of it */
void tcp_conn_fail(struct tcp_conn *conn, int err);

/* tcp_conn_dirty - have the next poll, or the end of this one, look at the conn */
void tcp_conn_dirty(struct tcp_conn *conn);

void tcp_disconnect(struct wire_conn *conn);
int tcp_check(struct wire_conn *conn);

/*
 * tcp_conn_drained - one step of an orderly end: behind everything that was published and given
 * to sendv(), a packet that says so, then the end of both lanes
 * Returns true when the peer's kernel has all of it, or can't have it any more.
 */
bool tcp_conn_drained(struct tcp_conn *conn);

#endif
