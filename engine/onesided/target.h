/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What progress asks of the target of one-sided operations.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_TARGET_H
#define WEFT_TARGET_H

#include "requests.h"

struct engine_peer;

/*
 * engine_request - carry out a request that has its turn
 * @ctx: receive context that is told of it
 * Returns 0 (the initiator was answered) or -FI_E* for one that no peer of this version sends.
 */
int engine_request(struct engine_rx_ctx *ctx, struct engine_peer *peer,
		   const struct packet *packet, const void *payload);

/* engine_request_write - engine_request() for such a one, all of it there */
int engine_request_write(struct engine_rx_ctx *ctx, struct engine_peer *peer,
			 const struct packet *packet, const void *payload);

/* engine_request_atomic - engine_request() for any PACKET_ATOMIC (update.c) */
int engine_request_atomic(struct engine_rx_ctx *ctx, struct engine_peer *peer,
			  const struct packet *packet, const void *payload);

/*
 * engine_request_stream - begin a write that has its turn and whose payload is still to come
 * @dest: out: where it goes
 * Returns what engine_request() does.
 */
int engine_request_stream(struct engine_rx_ctx *ctx, struct engine_peer *peer,
			  const struct packet *packet, struct wire_dest *dest);

/* engine_landed - the payload of a large write is there; takes rx, linked nowhere */
void engine_landed(struct engine_rx *rx);
/* engine_landing_drop - give up a large write or the source of a read; takes landing */
void engine_landing_drop(struct engine_ep *ep, struct engine_landing *landing);

#endif
