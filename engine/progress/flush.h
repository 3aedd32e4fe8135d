/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The peers for which something is queued.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_FLUSH_H
#define WEFT_FLUSH_H

#include "endpoint.h"

/* engine_peer_flush - send what is queued, as far as it goes */
void engine_peer_flush(struct engine_peer *peer);

/* engine_peers_service - connect, retry and flush the peers of ep->blocked */
void engine_peers_service(struct engine_ep *ep);

#endif
