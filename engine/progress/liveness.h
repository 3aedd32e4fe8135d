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
 * engine_peers_check - liveness checks: peers with work pending, and some of the others
 * @rounds: how many are due, one or more: so many times as many peers are looked at
 */
void engine_peers_check(struct engine_ep *ep, uint64_t rounds);

#endif
