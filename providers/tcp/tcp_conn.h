/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A conn from its creation to its end, orderly or not. tcp_disconnect(), tcp_check(): see wire.h.
 */
#ifndef WEFT_TCP_CONN_H
#define WEFT_TCP_CONN_H

#include "tcp_wire.h"

/* tcp_conn_create - returns a conn without sockets, linked, or NULL without memory */
struct tcp_conn *tcp_conn_create(struct tcp_wire *wire);

/* tcp_conn_up - report the conn, whose control lane is greeted, to the engine with the peer's @hello. Only from poll */
void tcp_conn_up(struct tcp_conn *conn, const struct hello *hello);

/*
 * tcp_conn_bury - close the sockets; tcp_reap() frees the memory: at the end of poll, else by the
 * caller
 */
void tcp_conn_bury(struct tcp_conn *conn);

/* tcp_conn_down - bury the conn and report it to the engine. Only from poll */
void tcp_conn_down(struct tcp_conn *conn, int err);

/*
 * tcp_lane_ended - nothing more arrives on this lane
 * @err: 0 for an end of file, else -FI_E*
 *
 * A lane that has broken is made again. Else the conn goes down when the other lane has ended too,
 * or when TCP_END_NS have passed in which nothing more arrived there. Only from poll.
 */
void tcp_lane_ended(struct tcp_conn *conn, struct tcp_lane *lane, int err);

/*
 * tcp_lane_vain - a lane can't be made, or made again, for @err (-FI_E*): the conn ends
 * What is in the socket of the control lane is read before: the peer may have ended after it had
 * sent that. Only from poll, unless the control lane is up.
 */
void tcp_lane_vain(struct tcp_conn *conn, struct tcp_lane *lane, int err);

/* tcp_conn_end - returns how a conn ended whose lanes have ended: 0 in order, or -FI_E* */
int tcp_conn_end(const struct tcp_conn *conn);

/* tcp_conn_timer - do what has been due at conn->due_ns. Only from poll */
void tcp_conn_timer(struct tcp_conn *conn, uint64_t now);

/* tcp_conn_fail - end the conn with @err in the next poll; for callers outside of poll */
void tcp_conn_fail(struct tcp_conn *conn, int err);

/* tcp_conn_dirty - have the next poll, or the end of the current one, handle the conn */
void tcp_conn_dirty(struct tcp_conn *conn);

/* names, part, join and drop of wire_ops */
int tcp_names(struct wire_conn *conn, struct weft_addr *local, struct weft_addr *remote);
void tcp_part(struct wire_conn *conn);
int tcp_join(struct wire_conn *conn, struct wire *wire);
void tcp_drop(struct wire_conn *conn);

void tcp_disconnect(struct wire_conn *conn);
int tcp_check(struct wire_conn *conn);

/*
 * tcp_conn_drained - one step of an orderly end: after all packets and sendv() operations a
 * TCP_OP_BYE, then the end of both lanes
 *
 * Returns true when the peer's kernel has all packets and operations, and this one has the end that
 * was sent behind them; or when the peer's kernel can't get them any more.
 */
bool tcp_conn_drained(struct tcp_conn *conn);

/*
 * tcp_conn_over - returns true if all packets, and the orderly end behind them, are with the peer's
 * kernel: then a break is no news
 */
bool tcp_conn_over(const struct tcp_conn *conn);

#endif
