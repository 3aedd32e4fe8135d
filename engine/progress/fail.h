/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the loss of a peer does to the operations of its endpoint.
 */
#ifndef WEFT_FAIL_H
#define WEFT_FAIL_H

#include "peers.h"

/*
 * engine_peer_fail - fail what was under way with a peer whose conns have ended
 * @err:     -FI_E* that the operations complete with
 * @orderly: the peer closed: directed receives stay posted
 */
void engine_peer_fail(struct engine_peer *peer, int err, bool orderly);

#endif
