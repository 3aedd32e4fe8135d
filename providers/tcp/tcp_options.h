/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the kernel is told of sockets.
 */
#ifndef WEFT_TCP_OPTIONS_H
#define WEFT_TCP_OPTIONS_H

#include "tcp_wire.h"

/*
 * tcp_set_connecting, tcp_set_connected - congestion control of a lane of ours, before and after
 * tcp_set_listening, tcp_set_accepted - ... of those that others make
 * Reno where a connection stays inside this host; elsewhere it keeps the system's choice, or that of its route.
 */
void tcp_set_connecting(int fd, const union tcp_sockaddr *to);
void tcp_set_connected(int fd);
void tcp_set_listening(struct tcp_hub *hub, int fd);
void tcp_set_accepted(const struct tcp_hub *hub, int fd);

/* tcp_set_options - small packets leave at once, and a dead host is noticed while nothing is under way */
void tcp_set_options(int fd);

/* tcp_set_window - a receive buffer for @len bytes to begin with */
void tcp_set_window(int fd, int len);

/* tcp_set_timeout - how long data may stay without acknowledgement; 0: as long as the kernel likes */
void tcp_set_timeout(int fd, unsigned int ms);

#endif
