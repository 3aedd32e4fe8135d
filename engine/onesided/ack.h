/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Acknowledgement of one-sided requests by their target: when an ACK is sent to which peer.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_ACK_H
#define WEFT_ACK_H

#include "endpoint.h"

/*
 * engine_ack_list - schedule an ACK to the peer
 * @when: ACK_NOW: at the end of this round; ACK_LATER: by the next engine_acks_hurry()
 */
static inline void engine_ack_list(struct engine_peer *peer, enum engine_ack_when when)
{
	struct engine_ep *ep = peer->ep;

	list_remove(&peer->ack_link);
	if (when == ACK_NOW) {
		list_add_tail(&ep->acks, &peer->ack_link);
		ep->domain->pending = true;
	} else {
		list_add_tail(&ep->acks_later, &peer->ack_link);
	}
	peer->ack_due = (uint8_t)when;
}

/* engine_ack_due - a packet has arrived that an ACK has to cover; @flags: of the packet */
static inline void engine_ack_due(struct engine_peer *peer, uint32_t flags)
{
	enum engine_ack_when when = flags & PACKET_ACKED ? ACK_NOW : ACK_LATER;

	if (unlikely(peer->ack_due < when))
		engine_ack_list(peer, when);
}

/*
 * engine_acks_send - send the ACKs in ep->acks
 * Called by progress at the end of a round. An ACK may be held until the program answers.
 */
void engine_acks_send(struct engine_ep *ep);

/*
 * engine_acks_hurry - send all ACKs at once, also those in ep->acks_later
 * Called by progress every ENGINE_ACKS_NS, and before the endpoint closes.
 */
void engine_acks_hurry(struct engine_ep *ep);

/* Time within which ACKs that are not urgent leave */
#define ENGINE_ACKS_NS 20000000u

/*
 * engine_acks_wait - send all ACKs, if some that are not urgent have waited for ENGINE_ACKS_NS
 * Returns how long those that there are may wait, ns: until then a round is to be made, also by who sleeps
 * meanwhile. An ACK before each sleep would be a packet for each message that a sleeper is woken for.
 */
uint64_t engine_acks_wait(struct engine_ep *ep, uint64_t now);

#endif
