/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connections that this process requests. On the thread that holds the domain. */
#ifndef WEFT_SHM_CONNECT_H
#define WEFT_SHM_CONNECT_H

#include "conn.h"

/* connect of wire_ops */
int pshm_connect(struct wire *wire, struct engine_peer *peer, const struct weft_addr *addr,
		 const struct hello *hello, struct wire_conn **conn);

/*
 * pshm_connecting - check requested connections for answers; from poll()
 * @all: check also for requests that will never be answered
 * Returns how many came up or went down.
 */
int pshm_connecting(struct pshm_wire *wire, bool all);

/*
 * pshm_connecting_yield - the endpoint with that nonce requests a connection, too: give up the own
 * request unless it is posted
 */
void pshm_connecting_yield(struct pshm_wire *wire, const uint8_t nonce[PSHM_NONCE]);

/* pshm_small_pair - sizes of a pair that is offered through /proc */
extern const struct pshm_sizes pshm_small_pair;

#endif
