/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Responses of the target to reads, and their queue, which responses to atomics share.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_REPLY_H
#define WEFT_REPLY_H

#include "requests.h"

struct engine_peer;

/*
 * engine_replies_push - send the responses that wait in peer->replies
 * Returns false if some found no room.
 */
bool engine_replies_push(struct engine_peer *peer);
/* engine_replies_drop - the peer is gone: free the responses to it */
void engine_replies_drop(struct engine_peer *peer);

/* engine_request_get - engine_request() for a PACKET_READ */
int engine_request_get(struct engine_rx_ctx *ctx, struct engine_peer *peer,
		       const struct packet *packet, const void *payload);

#endif
