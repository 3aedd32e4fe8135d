/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations that fail when a peer is lost.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_FAIL_H
#define WEFT_FAIL_H

#include "peers.h"

/*
 * engine_peer_fail - fail the operations under way with a peer whose conns have ended
 * @err:     -FI_E* with which they complete
 * @orderly: the peer was closed: directed receives stay posted, except those of groups
 * Called by engine_peer_lost() through domain->ops->lost.
 */
void engine_peer_fail(struct engine_peer *peer, int err, bool orderly);

#endif
