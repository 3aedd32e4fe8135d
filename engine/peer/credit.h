/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Credit: what a peer may send ahead of its receives, and what it is granted again (engine_peer.window,
 * rx_window, credit_due, credit). A header carries a grant in units of CREDIT_UNIT bytes; where nothing is sent
 * to the peer, a packet of its own does.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_CREDIT_H
#define WEFT_CREDIT_H

#include "peer.h"

/* engine_credit_take - credits for the next packet to this peer, in CREDIT_UNIT bytes */
uint16_t engine_credit_take(struct engine_peer *peer);
/* engine_credits_back - the packet that carried them was not sent */
void engine_credits_back(struct engine_peer *peer, uint16_t credits);

/* engine_grant - payload that took credit was freed: grant it to this peer again, now or later */
void engine_grant(struct engine_peer *peer, size_t len);

/*
 * engine_credited - a packet has brought credits
 * Returns false when they are more than the peer can have.
 */
static inline bool engine_credited(struct engine_peer *peer, uint32_t credits)
{
	if (unlikely(credits * CREDIT_UNIT > peer->credit_max - peer->credit))
		return false;
	peer->credit += credits * CREDIT_UNIT;
	if (unlikely(!list_empty(&peer->queued)))
		engine_peer_block(peer);
	return true;
}

/* engine_owe - payload of an eager message was freed, which took credit unless it is small */
static inline void engine_owe(struct engine_peer *peer, size_t len)
{
	if (len > ENGINE_FREE_MAX)
		engine_grant(peer, len);
}

#endif
