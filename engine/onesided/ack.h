/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Acknowledgement of one-sided requests, by their target.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_ACK_H
#define WEFT_ACK_H

#include "endpoint.h"

/*
 * engine_ack_list - have the peer told how far its requests have come, at the end of this round or
 * later
 */
static inline void engine_ack_list(struct engine_peer *peer, enum engine_ack_when when)
{
	struct engine_ep *ep = peer->ep;

	list_remove(&peer->ack_link);
	if (when == ACK_NOW) {
		list_push(&ep->acks, &peer->ack_link);
		ep->domain->pending = true;
	} else {
		list_push(&ep->acks_later, &peer->ack_link);
	}
	peer->ack_due = (uint8_t)when;
}

/* engine_ack_due - a packet with these flags has come, of which an ACK is to tell */
static inline void engine_ack_due(struct engine_peer *peer, uint32_t flags)
{
	enum engine_ack_when when = flags & PACKET_ACKED ? ACK_NOW : ACK_LATER;

	if (unlikely(peer->ack_due < when))
		engine_ack_list(peer, when);
}

/* engine_acks_send - tell those whose time has come; from progress */
void engine_acks_send(struct engine_ep *ep);

/* engine_acks_hurry - nobody may come by for a while: tell all the others too */
void engine_acks_hurry(struct engine_ep *ep);

#endif
