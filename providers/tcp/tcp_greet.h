/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connecting, accepting, preambles and answers: until a lane is up. tcp_connect(): see wire.h.
 */
#ifndef WEFT_TCP_GREET_H
#define WEFT_TCP_GREET_H

#include "tcp_wire.h"

int tcp_connect(struct wire *wire, struct engine_peer *peer, const struct weft_addr *addr,
		const struct hello *hello, struct wire_conn **conn);

/*
 * tcp_data_open - begin to open the data lane, or ask the peer to
 *
 * Poll finds the outcome: the lane is up, the conn fails, or for lack of descriptors it is tried
 * again later.
 */
void tcp_data_open(struct tcp_conn *conn);

/* tcp_accept - accept connections of the listener, a bounded number */
void tcp_accept(struct tcp_port *port);

/* tcp_guest_event - read the preamble; once complete the guest is in wire->arrived, or refused */
void tcp_guest_event(struct tcp_guest *guest);

/* tcp_guest_admit - make a guest of this wire a lane, or refuse it. Only from poll */
void tcp_guest_admit(struct tcp_guest *guest, struct tcp_wire *wire);
void tcp_guest_drop(struct tcp_guest *guest);

/* tcp_greet_event - handle events of a lane that this side connects. Returns things moved */
int tcp_greet_event(struct tcp_conn *conn, struct tcp_lane *lane);

#endif
