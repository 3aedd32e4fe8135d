/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How an endpoint begins, ends and sleeps: what paths.c puts into wire_ops. On the thread that
 * holds the domain.
 */
#ifndef WEFT_SHM_SHM_ENDPOINT_H
#define WEFT_SHM_SHM_ENDPOINT_H

#include "conn.h"

/* From arm.c; bell, arm and disarm of wire_ops. */
int pshm_bell(struct wire *wire, int poll_set);
uint64_t pshm_arm(struct wire *wire);
void pshm_disarm(struct wire *wire);

/*
 * pshm_bells_close - close the pipe of the endpoint's bell, and the one of the peer that was woken
 * last
 */
void pshm_bells_close(struct pshm_wire *wire);

/*
 * pshm_access_reached - wire_conn.access towards a peer whose regions are mapped: by loads and stores,
 * else by a packet (paths.c)
 */
bool pshm_access_reached(struct engine_ctx *ctx, struct engine_peer *peer,
			 const struct engine_access *access);

/* From endpoint.c; open, close and local of wire_ops. */
int pshm_open(struct engine_ep *ep, const struct wire_attr *attr, struct weft_addr *addr,
	      struct wire **wire, char *why, size_t why_len);
void pshm_close(struct wire *wire);
void pshm_local(struct wire *wire, char *buf, size_t len);

#endif
