/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Headers of packets, and control packets: credits, acknowledgements, refusals, and the steps of a
 * rendezvous.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_CONTROL_H
#define WEFT_CONTROL_H

#include "credit.h"
#include "endpoint.h"

/*
 * engine_header_to - fill the header of a claimed packet, all but tag and data
 * @packet: published, held or sent by the caller
 * @rx_idx: index of the peer's receive context that it is for
 * @op:     enum packet_op
 * @flags:  enum packet_flag; other bits are dropped
 * @len:    length of the payload, bytes
 * engine_header - the same for receive context 0, or for none
 * engine_header_brief - engine_header_to() without credit, for a peer with !engine_credit_ready()
 */
static inline void engine_header_brief(const struct engine_peer *peer, struct packet *packet,
				       uint32_t rx_idx, uint8_t op, uint32_t flags, uint32_t len)
{
	packet->op = op;
	packet->flags = (uint8_t)flags;
	packet->epoch = (uint16_t)(peer->tx_epoch | rx_idx);
	packet->len = len;
	packet->seq = (uint32_t)peer->tx_seq;
	packet->ack = (uint16_t)peer->rx_seq;
	packet->credits = 0;
}

static inline void engine_header_to(struct engine_peer *peer, struct packet *packet,
				    uint32_t rx_idx, uint8_t op, uint32_t flags, uint32_t len)
{
	engine_header_brief(peer, packet, rx_idx, op, flags, len);
	if (unlikely(engine_credit_ready(peer)))
		packet->credits = engine_credit_take(peer);
}

static inline void engine_header(struct engine_peer *peer, struct packet *packet, uint8_t op,
				 uint32_t flags, uint32_t len)
{
	engine_header_to(peer, packet, 0, op, flags, len);
}

/* engine_sent - a packet or payload was passed to the wire of @conn; @wire: its ops */
static inline void engine_sent(struct engine_ep *ep, const struct wire_conn *conn,
			       const struct wire_ops *wire)
{
	if (!wire->polls_after_send)
		return;
	engine_expect(ep, conn->wire->idx);
	ep->domain->gathered = true;
}

/*
 * engine_ctl - send a control packet, or queue it if there is no room
 * @op:        enum packet_op
 * @tag, data: see enum packet_op
 * @cts:       NULL, or payload of a PACKET_CTS; copied
 */
void engine_ctl(struct engine_peer *peer, uint8_t op, uint64_t tag, uint64_t data,
		const struct packet_cts *cts);

/*
 * engine_ack_request - ask a connected peer for an ACK, because an operation waits for it
 * Sends at most one request for the packets sent so far, and none if there is no room. The caller
 * calls again until the ACK has come; the peer sends it in any case, if later.
 */
void engine_ack_request(struct engine_peer *peer);

/*
 * engine_ack - acknowledge everything before @seq with a PACKET_ACK; no control packet may be
 * queued
 * @hold: send it together with the program's answer, if one is likely and the wire has hold()
 */
void engine_ack(struct engine_peer *peer, uint32_t seq, bool hold);

/* engine_flush_ctl - send the queued control packets. Returns false if some found no room */
bool engine_flush_ctl(struct engine_peer *peer);

#endif
