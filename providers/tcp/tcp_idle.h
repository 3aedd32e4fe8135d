/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Conns that are closed because they are idle and descriptors run out, and made again when there is
 * something to send.
 *
 * Both sides agree first: a TCP_OP_IDLE says that its sender has nothing under way, and tells as
 * TCP_OP_ACK does what has arrived. The agreement stands as long as neither side has sent or
 * received anything behind its own and the other's. Then either side closes both lanes; the engine
 * notices nothing. A side that has sent something meanwhile sees a socket that breaks, and makes it
 * again, as after any break: so nothing is lost, whatever crosses.
 *
 * What is sent later is gathered, and has the lane made again as after a break (resume.c): by the
 * side that connected, which the other side asks for it.
 */
#ifndef WEFT_TCP_IDLE_H
#define WEFT_TCP_IDLE_H

#include "net_socket.h"
#include "tcp_wire.h"

/*
 * tcp_idle_ask - ask the peers of up to @cnt conns, least recently used first, to agree
 * Returns the number of descriptors that may become free: 0: no conn is idle.
 */
uint32_t tcp_idle_ask(struct tcp_hub *hub, uint32_t cnt);

/*
 * tcp_idle_made - the socket @fd was made: ask a peer, if the process has nearly all descriptors
 * that it may have (RLIMIT_NOFILE)
 */
void tcp_idle_made(struct tcp_hub *hub, int fd);

/* tcp_idle_short - returns true if @err, -FI_E*, is a lack of descriptors */
static inline bool tcp_idle_short(int err)
{
	return err == -FI_EMFILE || err == -ENFILE;
}

/* tcp_idle_up - the control lane of a conn is up */
void tcp_idle_up(struct tcp_conn *conn);

/* tcp_idle_heard - a TCP_OP_IDLE has arrived; @at: bytes of the lane up to its end */
void tcp_idle_heard(struct tcp_conn *conn, uint64_t at);

/* tcp_idle_turn - conn->idle.due: close the conn, if both sides agree. Only from poll */
void tcp_idle_turn(struct tcp_conn *conn);

/* tcp_idle_ended - returns true if a lane that was up has ended because both sides agreed */
bool tcp_idle_ended(struct tcp_conn *conn, const struct tcp_lane *lane);

/* tcp_idle_wake - there is something to send: have poll make the lanes again, if they are closed */
void tcp_idle_wake(struct tcp_conn *conn);

/*
 * tcp_idle_look - note whether the conn is in use, a few times in a second: one that is not keeps
 * little memory
 * Not between claim and publish.
 */
void tcp_idle_look(struct tcp_conn *conn, uint64_t now);

#endif
