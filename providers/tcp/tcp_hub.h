/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the endpoints of a domain share: epoll, ports, accepted sockets.
 */
#ifndef WEFT_TCP_HUB_H
#define WEFT_TCP_HUB_H

#include "tcp_wire.h"

/*
 * All hubs of the process. Rank 3; no function is called while it is held. Defined where it is
 * initialized.
 */
extern struct platform_lock tcp_hubs_lock;

/*
 * tcp_hub_join - join the wires of a domain
 * @domain: NULL: none, the wire gets a hub of its own
 * @why: out: the reason of an error
 *
 * Sets wire->hub and returns 0, or -FI_E*.
 */
int tcp_hub_join(struct tcp_wire *wire, const void *domain, char *why, size_t why_len);

/* tcp_hub_leave - leave the hub; the last wire closes it. No effect for a wire that has not joined */
void tcp_hub_leave(struct tcp_wire *wire);

/*
 * tcp_port_join - listen at @wish, whose port may be 0
 * @share: on a port shared with other wires of the hub that wish the same, unless a number is asked for
 *
 * Sets wire->port and returns 0, or -FI_E*. port->owner is the wire of peers without a nonce.
 */
int tcp_port_join(struct tcp_wire *wire, const union ip_sockaddr *wish, bool share);

/*
 * tcp_port_leave - stop listening; guests of this wire are dropped without an answer, and the last
 * wire closes the port
 */
void tcp_port_leave(struct tcp_wire *wire);

/*
 * tcp_hub_look - call epoll, unless another wire has just done so, and distribute its events:
 * lanes to the wires of their conns, guests to the wires that they are for
 */
void tcp_hub_look(struct tcp_wire *wire);

/*
 * tcp_port_rest - stop watching for a while: epoll would report connections that can't be accepted
 * again and again
 */
void tcp_port_rest(struct tcp_port *port, uint64_t now);

/* tcp_hub_rearm - watch listeners again whose rest is over */
void tcp_hub_rearm(struct tcp_hub *hub);

/* tcp_hub_due - time at which the next rest is over; UINT64_MAX: all listeners are watched */
uint64_t tcp_hub_due(const struct tcp_hub *hub);

/*
 * tcp_watch - set the events of the lane that epoll reports; 0: none
 *
 * No effect in the child of a fork, which shares epoll with its parent. Returns 0 or -FI_E*.
 */
int tcp_watch(struct tcp_hub *hub, struct tcp_lane *lane, uint32_t events);

/* tcp_watch_move - move the socket of @from and what epoll watches of it to @to */
void tcp_watch_move(struct tcp_hub *hub, struct tcp_lane *from, struct tcp_lane *to);

/*
 * tcp_lane_reset - drop what the kernel has sent and the peer has not received
 *
 * The kernel goes on to deliver what a closed socket has sent, for minutes, should the network heal. That would
 * be payload of operations that have failed, and that others may have replaced since.
 */
void tcp_lane_reset(struct tcp_lane *lane);

/* tcp_lane_close - close the socket; the lane is NONE afterwards, and has no events left */
void tcp_lane_close(struct tcp_hub *hub, struct tcp_lane *lane);

/*
 * tcp_starved - log once that descriptors, memory or ports for a socket are lacking
 * @what: what can't be done
 * @err: -FI_E*
 */
void tcp_starved(struct tcp_hub *hub, const char *what, int err);

#endif
