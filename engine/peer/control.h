/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Headers of packets, and the packets that are nothing but a header: what a peer is told of credit, of what
 * has arrived, and of a rendezvous.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_CONTROL_H
#define WEFT_CONTROL_H

#include "credit.h"
#include "endpoint.h"

/*
 * engine_header_to - fill a claimed packet for a receive context of the peer; the caller publishes it
 * engine_header - one that is for none, or for the first
 */
static inline void engine_header_to(struct engine_peer *peer, struct packet *packet,
				    uint32_t rx_idx, uint8_t op, uint32_t flags, uint32_t len)
{
	packet->op = op;
	packet->flags = (uint8_t)flags;
	packet->epoch = (uint16_t)(peer->tx_epoch | rx_idx);
	packet->len = len;
	packet->seq = (uint32_t)peer->tx_seq;
	packet->ack = (uint16_t)peer->rx_seq;
	packet->credits = unlikely(peer->credit_due >= CREDIT_UNIT) ? engine_credit_take(peer)
								    : 0;
}

static inline void engine_header(struct engine_peer *peer, struct packet *packet, uint8_t op,
				 uint32_t flags, uint32_t len)
{
	engine_header_to(peer, packet, 0, op, flags, len);
}

/* engine_sent - a packet or payload was given to a wire; @wire: its ops */
static inline void engine_sent(struct engine_ep *ep, const struct wire_conn *conn,
			       const struct wire_ops *wire)
{
	if (!wire->polls_after_send)
		return;
	engine_expect(ep, conn->wire->idx);
	ep->domain->gathered = true;
}

/* engine_ctl - send a control packet, queued when it finds no room; @cts: NULL or what follows a CTS */
void engine_ctl(struct engine_peer *peer, uint8_t op, uint64_t tag, uint64_t data,
		const struct packet_cts *cts);

/*
 * engine_ask - have a connected peer say what has arrived, since something waits for that; once for all that
 * was sent. Where there is no room now, or something overtakes the question, the caller asks again, or
 * the answer comes in time.
 */
void engine_ask(struct engine_peer *peer);

/*
 * engine_ack - send PACKET_ACK of all before @seq; no ctl is queued
 * @hold: with what the program answers, where that is likely and the wire can wait for it
 */
void engine_ack(struct engine_peer *peer, uint32_t seq, bool hold);

/* engine_flush_ctl - send those that are queued. Returns false while one finds no room */
bool engine_flush_ctl(struct engine_peer *peer);

#endif
