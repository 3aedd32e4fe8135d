/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers that are lost.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_LOST_H
#define WEFT_LOST_H

#include "peers.h"

/*
 * engine_peer_lost - give the peer up: end all of its conns, and fail the operations under way
 * @err:     -FI_E* with which they complete
 * @orderly: the peer was closed: directed receives stay posted
 *
 * The connection of a MSG endpoint ends with it, and operations complete with -FI_ECANCELED.
 */
void engine_peer_lost(struct engine_peer *peer, int err, bool orderly);

#endif
