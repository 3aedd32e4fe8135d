/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sending what is queued for peers.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_FLUSH_H
#define WEFT_FLUSH_H

#include "endpoint.h"

/*
 * engine_peer_flush - send what is queued for the peer, as far as there is room
 * Removes the peer from ep->blocked when nothing is left. Has no effect unless the peer is PEER_UP.
 */
void engine_peer_flush(struct engine_peer *peer);

/* engine_peers_service - connect or flush each peer in ep->blocked; called by each round */
void engine_peers_service(struct engine_ep *ep);

#endif
