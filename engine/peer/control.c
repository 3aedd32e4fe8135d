/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Control packets: grants of credit, acknowledgements, refusals, and the steps of a rendezvous. A
 * packet that finds no room is queued. Called with the domain held: by slots of op tables, and by
 * progress.
 */
#include "control.h"
#include "conns.h"
#include "peer.h"

static bool engine_ctl_claim(struct engine_peer *peer, uint8_t op, uint64_t tag, uint64_t data,
			     const struct packet_cts *cts, bool hold)
{
	uint32_t len = cts ? sizeof(*cts) : 0;
	struct packet *packet;
	void *payload;

	if (!peer->conn)
		return false;
	packet = peer->wire->claim(peer->conn, len, &payload);
	if (!packet)
		return false;
	engine_header(peer, packet, op, 0, len);
	packet->tag = tag;
	packet->data = data;
	if (cts)
		memcpy(payload, cts, len);
	if (hold)
		peer->wire->hold(peer->conn, packet);
	else
		peer->wire->publish(peer->conn, packet, false);
	engine_sent(peer->ep, peer->conn, peer->wire);
	return true;
}

static void engine_ctl_queue(struct engine_peer *peer, uint8_t op, uint64_t tag, uint64_t data,
			     const struct packet_cts *cts)
{
	struct engine_ctl *ctl;

	if (op == PACKET_CREDIT && !list_empty(&peer->ctl))
		return; /* a queued packet carries the credits */
	ctl = pool_get(&peer->ep->ctl_pool);
	if (!ctl) {
		engine_conn_broken(peer, -FI_ENOMEM);
		return;
	}
	ctl->packet = (struct packet){ .op = op, .tag = tag, .data = data };
	ctl->with_cts = cts != NULL;
	if (cts)
		ctl->cts = *cts;
	list_add_tail(&peer->ctl, &ctl->link);
	peer->nak_cnt += op == PACKET_NAK;
	engine_peer_block(peer);
}

void engine_ctl(struct engine_peer *peer, uint8_t op, uint64_t tag, uint64_t data,
		const struct packet_cts *cts)
{
	if (!list_empty(&peer->ctl) || !engine_ctl_claim(peer, op, tag, data, cts, false))
		engine_ctl_queue(peer, op, tag, data, cts);
}

void engine_ack(struct engine_peer *peer, uint32_t seq, bool hold)
{
	/*
	 * A program that has sent since the last ACK is likely to answer now: the ACK waits for
	 * that.
	 */
	hold &= peer->tx_seq != peer->ack_tx_seq && peer->conn && peer->wire->hold;
	peer->ack_tx_seq = peer->tx_seq;
	peer->ack_sent = seq;
	if (!engine_ctl_claim(peer, PACKET_ACK, peer->naks_sent, seq, NULL, hold))
		engine_ctl_queue(peer, PACKET_ACK, peer->naks_sent, seq, NULL);
}

void engine_ack_request(struct engine_peer *peer)
{
	struct packet *packet;
	void *payload;

	if (peer->ack_request_seq == (uint32_t)peer->tx_seq)
		return;
	packet = peer->wire->claim(peer->conn, 0, &payload);
	if (!packet)
		return;
	engine_header(peer, packet, PACKET_CREDIT, PACKET_ACKED, 0);
	packet->tag = packet->data = 0;
	peer->wire->publish(peer->conn, packet, false);
	engine_sent(peer->ep, peer->conn, peer->wire);
	peer->ack_request_seq = (uint32_t)peer->tx_seq;
}

bool engine_flush_ctl(struct engine_peer *peer)
{
	while (!list_empty(&peer->ctl)) {
		struct engine_ctl *ctl = container_of(peer->ctl.next, struct engine_ctl, link);

		if (!engine_ctl_claim(peer, ctl->packet.op, ctl->packet.tag, ctl->packet.data,
				      ctl->with_cts ? &ctl->cts : NULL, false))
			return false;
		peer->nak_cnt -= ctl->packet.op == PACKET_NAK;
		list_remove(&ctl->link);
		pool_put(&peer->ep->ctl_pool, ctl);
	}
	return true;
}
