/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Socket options.
 */
#ifndef WEFT_TCP_OPTIONS_H
#define WEFT_TCP_OPTIONS_H

#include "tcp_wire.h"

/*
 * tcp_set_connecting, tcp_set_connected - congestion control of a lane that this side connects,
 * before and
 *					   after connect()
 * tcp_set_listening, tcp_set_accepted - the same for a listener and a lane that it accepted
 *
 * Reno for a connection inside this host; others keep the system's choice, or that of their route.
 */
void tcp_set_connecting(int fd, const union ip_sockaddr *to);
void tcp_set_connected(int fd);
void tcp_set_listening(struct tcp_hub *hub, int fd);
void tcp_set_accepted(const struct tcp_hub *hub, int fd);

/* tcp_within_host - returns true for a connected socket whose both ends are on this host */
bool tcp_within_host(int fd);

/* tcp_set_options - send small packets at once, and detect a dead host while nothing is under way */
void tcp_set_options(int fd);

/* tcp_set_window - begin with a receive buffer of @len bytes */
void tcp_set_window(int fd, int len);

/*
 * tcp_set_greeting - until the answer: the time that data stays unacknowledged is bounded, and the
 * peer's kernel is asked each second
 * tcp_set_greeted - from then on as tcp_set_options()
 */
void tcp_set_greeting(int fd);
void tcp_set_greeted(int fd);

#endif
