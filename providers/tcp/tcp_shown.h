/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the conns of a hub count, for tools (include/weft/mem_stats.h): on the process's page of counters from the
 * first conn on that comes up, or is refused, as long as there is the hub. Called by the other files of the wire, on the thread
 * that holds the hub's domain.
 */
#ifndef WEFT_TCP_SHOWN_H
#define WEFT_TCP_SHOWN_H

#include "tcp_wire.h"

/* tcp_shown_up, tcp_shown_down - the conn has come up, which may fail to be shown; it is buried, up or not */
void tcp_shown_up(struct tcp_conn *conn);
void tcp_shown_down(struct tcp_conn *conn);

/* tcp_shown_broken, tcp_shown_resumed - a lane has lost its socket; it has one, which need not be news */
void tcp_shown_broken(struct tcp_conn *conn, struct tcp_stream *stream);
void tcp_shown_resumed(struct tcp_conn *conn, struct tcp_stream *stream);

/* tcp_shown_refused - a lane is refused; @why: one of WEFT_MEM_TCP_REFUSED_SECRET, _NONE and _TLS */
void tcp_shown_refused(struct tcp_hub *hub, enum weft_mem_tcp_count why);

/* tcp_shown_failed - reading a lane failed with @err, which is a refusal if TLS found what the peer has not sent */
void tcp_shown_failed(struct tcp_hub *hub, const struct tcp_lane *lane, int err);

/* tcp_shown_sample - take up what changes with each message, now and then */
void tcp_shown_sample(struct tcp_conn *conn);

/* tcp_shown_end - the hub ends */
void tcp_shown_end(struct tcp_hub *hub);

#endif
