/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The end of all that connects a peer.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_LOST_H
#define WEFT_LOST_H

#include "peers.h"

/*
 * engine_peer_lost - the peer is given up: end every conn, and fail what was under way
 * @err:     -FI_E* that the operations complete with
 * @orderly: it closed: directed receives stay posted
 */
void engine_peer_lost(struct engine_peer *peer, int err, bool orderly);

#endif
