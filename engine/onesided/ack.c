/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Acknowledgement of one-sided requests by their target: ACKs that are due are sent. Called with
 * the domain held, by progress, and before the endpoint closes.
 */
#include "ack.h"
#include "control.h"

/*
 * Returns the sequence number before which everything that the peer sent has arrived, and all
 * requests have been carried out or refused.
 */
static uint32_t engine_arrived(const struct engine_peer *peer)
{
	uint32_t seq = peer->rx_seq;
	const struct engine_held *held;

	if (!list_empty(&peer->filling))
		seq = (uint32_t)container_of(peer->filling.next, struct engine_rx, filling)
			      ->peer_id;
	list_for_each_entry(held, &peer->arriving, arriving) {
		if ((int32_t)(held->packet.seq - seq) < 0)
			seq = held->packet.seq;
	}
	return seq;
}

/* Send the ACKs in ep->acks. @hold: they may be sent together with the program's answers */
static void engine_acks_flush(struct engine_ep *ep, bool hold)
{
	struct engine_peer *peer;

	list_for_each_entry(peer, &ep->acks, ack_link) {
		uint32_t seq = engine_arrived(peer);

		/* Queued control packets are sent first: there may be a NAK among them. */
		if (!list_empty(&peer->ctl))
			continue;
		if (seq == peer->rx_seq) {
			list_remove(&peer->ack_link);
			peer->ack_due = ACK_NONE;
		}
		if (seq != peer->ack_sent)
			engine_ack(peer, seq, hold);
	}
}

void engine_acks_send(struct engine_ep *ep)
{
	engine_acks_flush(ep, true);
}

void engine_acks_hurry(struct engine_ep *ep)
{
	/* In the child of a fork the conns belong to the parent. */
	if (ep->ctx.copied)
		return;
	while (!list_empty(&ep->acks_later))
		engine_ack_list(container_of(ep->acks_later.next, struct engine_peer, ack_link),
				ACK_NOW);
	engine_acks_flush(ep, false);
}

uint64_t engine_acks_wait(struct engine_ep *ep, uint64_t now)
{
	if (list_empty(&ep->acks_later))
		return UINT64_MAX;
	if (now - ep->acks_ns < ENGINE_ACKS_NS)
		return ENGINE_ACKS_NS - (now - ep->acks_ns);
	ep->acks_ns = now;
	engine_acks_hurry(ep);
	return UINT64_MAX;
}
