/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Liveness checks of peers.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_LIVENESS_H
#define WEFT_LIVENESS_H

#include "endpoint.h"

/*
 * engine_peers_check - check that peers are alive: those with work pending, and some of the others
 * @rounds: number of checks that are due since the last call, at least 1
 *
 * Each call examines a bounded part of ep->all, in proportion to @rounds, and the next call
 * continues behind it. Peers that nothing refers to any more are freed.
 */
void engine_peers_check(struct engine_ep *ep, uint64_t rounds);

#endif
