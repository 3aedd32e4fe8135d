/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a side says while a lane comes up, before there is a buffer for its output. A new socket has
 * room for it, but the kernel may lack memory.
 */
#ifndef WEFT_TCP_SAY_H
#define WEFT_TCP_SAY_H

#include "tcp_wire.h"

/*
 * tcp_say - send @len bytes, behind those that have not been sent yet
 *
 * What the kernel does not take is kept, and epoll watches for room: tcp_say_rest() sends it.
 * Returns 0 or -FI_E*.
 */
int tcp_say(struct tcp_hub *hub, struct tcp_lane *lane, const void *bytes, size_t len);

/*
 * tcp_say_rest - send what is kept, if anything is; after an event, and before the next step
 * Returns 1 when all is sent, and epoll watches for input, 0 when the kernel takes no more for now,
 * or -FI_E*.
 */
int tcp_say_rest(struct tcp_hub *hub, struct tcp_lane *lane);

/* tcp_say_forget - free what is kept */
void tcp_say_forget(struct tcp_lane *lane);

#endif
