/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The hot conn of a wire: its control lane is read without asking epoll whether something is there. All of it
 * is called with the endpoint's domain held.
 */
#ifndef WEFT_TCP_HOT_H
#define WEFT_TCP_HOT_H

#include "tcp_wire.h"

/*
 * tcp_hot_read - read the hot conn's control lane, if there is one and this poll need not ask epoll
 * @moved: in, out: grows by the packets handled
 *
 * Returns false if the poll has to ask epoll. Only from poll; the conn may be dead afterwards.
 */
bool tcp_hot_read(struct tcp_wire *wire, int *moved);

/*
 * tcp_hot_lane - a lane that epoll reported had something, and is not dead
 *
 * The conn gets hot if it is the second time in a row, and the lane is its control lane.
 */
void tcp_hot_lane(struct tcp_conn *conn, const struct tcp_lane *lane);

/*
 * tcp_hot_watch - have epoll watch the hot conn's control lane again, before a thread sleeps
 *
 * Returns false if the kernel does not: then the lane has to be polled.
 */
bool tcp_hot_watch(struct tcp_wire *wire);

/* tcp_hot_forget - the conn ends */
void tcp_hot_forget(struct tcp_conn *conn);

#endif
