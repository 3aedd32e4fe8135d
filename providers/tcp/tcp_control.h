/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The control lane when it is up. tcp_claim(), tcp_publish(), tcp_hold(): see wire.h.
 */
#ifndef WEFT_TCP_CONTROL_H
#define WEFT_TCP_CONTROL_H

#include "tcp_wire.h"

struct packet *tcp_claim(struct wire_conn *conn, size_t len, void **payload);
void tcp_publish(struct wire_conn *conn, struct packet *packet, bool more);
void tcp_hold(struct wire_conn *conn, struct packet *packet);

/* tcp_control_flush - write gathered packets, as many as the kernel takes */
void tcp_control_flush(struct tcp_conn *conn);

/*
 * tcp_control_own - append one of the wire's own packets
 * @tag, @data: as enum tcp_op says, else 0
 *
 * It may use the room beyond TCP_OUT_LEN. Returns false without memory.
 */
bool tcp_control_own(struct tcp_conn *conn, enum tcp_op op, uint64_t tag, uint64_t data);

/*
 * tcp_control_full - the kernel takes no more for now: write the rest when epoll reports room
 * tcp_control_timer - a timer of the conn has expired: write it, if epoll could not be asked
 */
void tcp_control_full(struct tcp_conn *conn);
void tcp_control_timer(struct tcp_conn *conn);

/*
 * tcp_control_read - read packets and pass them to the engine. Only from poll. Returns their
 * number
 */
int tcp_control_read(struct tcp_conn *conn);

/*
 * tcp_control_discard - the endpoint closes: of what tcp_control_read() reads from now on only the wire's
 * own packets count. With wire->closing
 */
void tcp_control_discard(struct tcp_conn *conn);

#endif
