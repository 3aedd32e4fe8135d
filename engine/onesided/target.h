/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The target's side of one-sided operations, as progress calls it.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_TARGET_H
#define WEFT_TARGET_H

#include "requests.h"

struct engine_peer;

/*
 * engine_request - carry out a request whose turn has come
 * @ctx:     receive context that reports it
 * @packet:  untrusted, like @payload
 * @payload: packet->len bytes
 * Returns 0 if the request was carried out, begun or refused, or -FI_E* if no peer of this version
 * sends such a request: the caller ends the conn.
 */
int engine_request(struct engine_rx_ctx *ctx, struct engine_peer *peer,
		   const struct packet *packet, const void *payload);

/* engine_request_write - engine_request() for a request that is engine_request_plain() */
int engine_request_write(struct engine_rx_ctx *ctx, struct engine_peer *peer,
			 const struct packet *packet, const void *payload);

/* engine_request_atomic - engine_request() for a PACKET_ATOMIC (update.c) */
int engine_request_atomic(struct engine_rx_ctx *ctx, struct engine_peer *peer,
			  const struct packet *packet, const void *payload);

/*
 * engine_request_stream - begin a write whose turn has come, before its payload has arrived
 * @dest: out: where the wire writes the payload; unchanged if the write was refused
 * Returns as engine_request() does.
 */
int engine_request_stream(struct engine_rx_ctx *ctx, struct engine_peer *peer,
			  const struct packet *packet, struct wire_dest *dest);

/* engine_landed - the payload of a large write has arrived; takes @rx, linked nowhere */
void engine_landed(struct engine_rx *rx);
/* engine_landing_drop - release the memory of a large write or large read; takes @landing */
void engine_landing_drop(struct engine_ep *ep, struct engine_landing *landing);

#endif
