/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets of a peer that have arrived before their turn, each found by its sequence number. Their
 * sender chooses the numbers and the order: neither costs more than a few steps for each packet.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_REORDER_H
#define WEFT_REORDER_H

#include "peers.h"

/* engine_reorder_at - returns the packet with this sequence number, or NULL */
struct engine_held *engine_reorder_at(const struct engine_peer *peer, uint32_t seq);

/*
 * engine_reorder_add - keep a packet until its turn; no other one has its sequence number
 * @held: takes it, unless it fails
 * Returns 0 or -FI_ENOMEM.
 */
int engine_reorder_add(struct engine_peer *peer, struct engine_held *held);

/* engine_reorder_remove - take out a packet, whose turn has come; the caller has it */
void engine_reorder_remove(struct engine_peer *peer, struct engine_held *held);

/* engine_reorder_drop - free all of them: the peer is lost, or the endpoint is closed */
void engine_reorder_drop(struct engine_peer *peer);

#endif
