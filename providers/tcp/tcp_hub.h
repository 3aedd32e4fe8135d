/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the endpoints of a domain share: epoll, ports, who has just come.
 */
#ifndef WEFT_TCP_HUB_H
#define WEFT_TCP_HUB_H

#include "tcp_wire.h"

/*
 * tcp_hub_join - be one of the wires of a domain
 * @domain: NULL: of none, which takes a hub of its own
 * Sets wire->hub and returns 0, or -FI_E*.
 */
int tcp_hub_join(struct tcp_wire *wire, const void *domain);

/* tcp_hub_leave - the last one closes it; nothing for a wire that has not joined */
void tcp_hub_leave(struct tcp_wire *wire);

/*
 * tcp_port_join - listen at @wish, whose port may be 0
 * @share: together with others of the hub that wish the same, unless a port is asked for
 * Sets wire->port and returns 0, or -FI_E*. Whom the port stands for is port->owner.
 */
int tcp_port_join(struct tcp_wire *wire, const union tcp_sockaddr *wish, bool share);

/* tcp_port_leave - the last one closes it; who has come for this wire is sent away */
void tcp_port_leave(struct tcp_wire *wire);

/*
 * tcp_hub_look - ask epoll, unless another wire has just now, and hand out what it says: lanes to the
 * wires of their conns, guests to those that they are for
 */
void tcp_hub_look(struct tcp_wire *wire);

/* tcp_hub_bury - free guests that are dead; not while events are looked at */
void tcp_hub_bury(struct tcp_hub *hub);

/* tcp_port_rest - not watched for a while: epoll would tell of what we can't take again and again */
void tcp_port_rest(struct tcp_port *port, uint64_t now);

/* tcp_hub_rearm - watch listeners again whose time has come */
void tcp_hub_rearm(struct tcp_hub *hub);

/* tcp_hub_due - when that is next; UINT64_MAX: all are watched */
uint64_t tcp_hub_due(const struct tcp_hub *hub);

/*
 * tcp_watch - have epoll tell of these events of the lane; 0: of none. 0 or -FI_E*
 * Not in the child of a fork, which shares epoll with its parent.
 */
int tcp_watch(struct tcp_hub *hub, struct tcp_lane *lane, uint32_t events);

/* tcp_watch_move - the socket of @from is @to's from here on, with what epoll watches */
void tcp_watch_move(struct tcp_hub *hub, struct tcp_lane *from, struct tcp_lane *to);

/* tcp_lane_close - close the socket; the lane is NONE afterwards, and no event of it is left */
void tcp_lane_close(struct tcp_hub *hub, struct tcp_lane *lane);

/* tcp_starved - no descriptors or memory for a socket: say so once */
void tcp_starved(struct tcp_hub *hub, const char *what, int err);

#endif
