/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A send or one-sided operation that is kept: made, queued, given to the wire and ended, whatever
 * its kind.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_TX_H
#define WEFT_TX_H

#include "control.h"
#include "endpoint.h"

/*
 * engine_tx_flags - what the flags of a call ask for, in the engine's terms
 * @known: flags that the call may have
 * Returns 0 or -FI_EBADFLAGS.
 */
int engine_tx_flags(const struct engine_tx_ctx *tx, uint64_t flags, uint64_t known,
		    uint32_t *out);

/*
 * engine_tx_new - a send or request that is not under way yet; the rest is the caller's to fill.
 * NULL without memory
 */
struct engine_tx *engine_tx_new(struct engine_peer *peer, struct engine_tx_ctx *ctx);

/* engine_tx_queue - send it when its turn comes; takes tx, which counts as queued */
void engine_tx_queue(struct engine_peer *peer, struct engine_tx *tx);

/* engine_lane_busy - may a request that is sent now overtake the header of a sendv */
static inline bool engine_lane_busy(const struct engine_peer *peer)
{
	return peer->leaving_cnt || (int32_t)(peer->lane_seq - peer->acked) > 0;
}

/*
 * engine_tx_leave - give a message or write to the wire, from the caller's memory, behind @packet
 * @lane: requests that are sent later may overtake the header until it is acknowledged
 * Returns 0, or what sendv said (nothing happened).
 */
int engine_tx_leave(struct engine_peer *peer, struct engine_tx *tx, const struct packet *packet,
		    bool lane);

/* engine_outstanding - has anything that was posted to this peer, and sent, not ended yet */
static inline bool engine_outstanding(const struct engine_peer *peer)
{
	return !list_empty(&peer->started) || !list_empty(&peer->pushing) ||
	       !list_empty(&peer->unacked) || engine_quiet_open(peer);
}

/*
 * engine_fenced - does a fence have to wait? The peer is asked how far it is where nothing else
 * will tell
 */
static inline bool engine_fenced(struct engine_peer *peer)
{
	if (engine_quiet_open(peer))
		engine_ask(peer);
	return engine_outstanding(peer);
}

/* engine_tx_end - end it with 0 or -FI_E*; takes tx, linked nowhere */
void engine_tx_end(struct engine_tx *tx, int status);

#endif
