/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Credit: the eager payload that a peer may send before receives are posted, and the return of
 * credit (engine_peer.window, rx_window, credit_due, credit). Every header carries a grant in units
 * of CREDIT_UNIT bytes; PACKET_CREDIT carries it when no other packet is sent to the peer.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_CREDIT_H
#define WEFT_CREDIT_H

#include "peer.h"

/*
 * engine_credit_take - returns the credits for the next packet to the peer, in units of CREDIT_UNIT
 * bytes
 * They are granted from then on.
 */
uint16_t engine_credit_take(struct engine_peer *peer);

/* engine_credit_ready - returns true if at least one unit of credit is due */
static inline bool engine_credit_ready(const struct engine_peer *peer)
{
	return peer->credit_due >= CREDIT_UNIT;
}
/* engine_credits_back - take back @credits of a packet that was not sent */
void engine_credits_back(struct engine_peer *peer, uint16_t credits);

/*
 * engine_grant - payload of @len bytes that used credit was freed: grant it to the peer again, now
 * or later
 */
void engine_grant(struct engine_peer *peer, size_t len);

/*
 * engine_credited - a packet of the peer has brought credits
 * @credits: in units of CREDIT_UNIT bytes; untrusted
 * Returns false if that is more than the peer can grant.
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

/*
 * engine_credit_return - eager payload of @len bytes was freed; it used credit if it is above
 * ENGINE_FREE_MAX
 */
static inline void engine_credit_return(struct engine_peer *peer, size_t len)
{
	if (len > ENGINE_FREE_MAX)
		engine_grant(peer, len);
}

#endif
