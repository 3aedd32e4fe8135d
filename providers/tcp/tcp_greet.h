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
 * tcp_data_open - begin to make the data lane, or ask the other side to
 * The outcome shows in poll: the lane is up, the conn fails, or for lack of descriptors it is
 * tried again later.
 */
void tcp_data_open(struct tcp_conn *conn);

/* tcp_accept - take what waits at the listener, a bounded number */
void tcp_accept(struct tcp_port *port);

/* tcp_guest_event - read of its preamble; once that is whole the guest is in wire->arrived, or refused */
void tcp_guest_event(struct tcp_guest *guest);

/* tcp_guest_admit - what came to this wire: a lane, or none that it takes. Only from poll */
void tcp_guest_admit(struct tcp_guest *guest, struct tcp_wire *wire);
void tcp_guest_drop(struct tcp_guest *guest);

/* tcp_greet_event - something happened on a lane that we are connecting. Returns things moved */
int tcp_greet_event(struct tcp_conn *conn, struct tcp_lane *lane);

#endif
