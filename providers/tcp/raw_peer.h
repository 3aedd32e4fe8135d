/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer of the TCP wire made of plain sockets, which sends whatever a test wants. Every function
 * fails the test when it can't do what it says. Sockets are the caller's to close.
 */
#ifndef WEFT_TCP_RAW_PEER_H
#define WEFT_TCP_RAW_PEER_H

#include "mock_engine.h"

/* Port of hellos; at first one where nobody listens */
extern uint16_t raw_home_port;

/* raw_hello - the hello of an RDM endpoint of epoch 999 at raw_home_port of this host */
struct hello raw_hello(void);

/* raw_preamble - the preamble of a new conn, or of the first data lane of some conn */
struct tcp_preamble raw_preamble(uint8_t lane);

/* raw_member - the same with the cookie of the session of an answer */
struct tcp_preamble raw_member(uint8_t lane, const struct tcp_answer *answer);

/* raw_connect - a plain blocking socket to a side's port */
int raw_connect(const struct side *side);

/* raw_send - send @len bytes */
void raw_send(int fd, const void *bytes, size_t len);

/*
 * raw_recv - receive bytes until @len are there or the other side ends, and poll @side meanwhile
 * Returns their number.
 */
size_t raw_recv(int fd, struct side *side, void *bytes, size_t len);

/* raw_peer - connect as a peer does. Returns the socket of the control lane, up */
int raw_peer(struct side *side, struct tcp_answer *answer);

/* raw_packet - send a header and @payload zero bytes behind it, at most 8192 */
void raw_packet(int fd, uint8_t op, uint32_t len, size_t payload);

/* raw_listen - returns a listening socket; @addr: out: where */
int raw_listen(struct weft_addr *addr);

/*
 * raw_reserve - returns a socket that listens nowhere and has a port of 127.0.0.1; @addr: out: where
 * A wire may listen there, again and again: until the socket is closed the kernel gives the port to nobody.
 */
int raw_reserve(struct weft_addr *addr);

#endif
