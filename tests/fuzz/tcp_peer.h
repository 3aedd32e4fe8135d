/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The other end of a socket of the TCP wire, which says what the input says: preambles and answers
 * as an honest peer has them, to be changed byte by byte. The wire's own engine is the test double of
 * providers/tcp. One thread.
 */
#ifndef WEFT_FUZZ_TCP_PEER_H
#define WEFT_FUZZ_TCP_PEER_H

#include "mock_engine.h"

#define TCP_PEER_SAYS_MAX 512 /* bytes said at once */

/* tcp_peer_listen - a socket that listens at loopback, and its address */
int tcp_peer_listen(struct weft_addr *at);

/*
 * tcp_peer_connect - a socket that is connected to the port of @side
 *
 * Its end is a reset, which leaves no port behind: a search uses them faster than they return.
 */
int tcp_peer_connect(const struct side *side);

/* tcp_peer_take - the next connection of a listener, whose end is a reset too; -1: there is none */
int tcp_peer_take(int listener);

/* tcp_peer_preamble - what an honest peer says first on a lane of kind @lane */
struct tcp_preamble tcp_peer_preamble(uint8_t lane);

/* tcp_peer_answer - what an honest peer answers */
struct tcp_answer tcp_peer_answer(void);

/*
 * tcp_peer_bend - change up to three bytes, or none, and a word that is a length or a version
 * @word: offset of that word
 */
void tcp_peer_bend(void *bytes, size_t len, size_t word);

/* tcp_peer_say - send, without waiting. Returns false once the other side has ended */
bool tcp_peer_say(int fd, const void *bytes, size_t len);

/* tcp_peer_says - send bytes of the input as they are */
bool tcp_peer_says(int fd);

/* tcp_peer_hears - read what has come, up to @room bytes. Returns their number */
size_t tcp_peer_hears(int fd, void *bytes, size_t room);

/*
 * tcp_peer_rest - poll until @side has no conn, no guest and no request left; what it received is
 * freed. The sockets of the peer are closed
 */
void tcp_peer_rest(struct side *side);

#endif
