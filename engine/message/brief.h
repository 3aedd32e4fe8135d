/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The straight line of a message of a few bytes that fits into one line of the wire's ring:
 * claim, fill, publish, count. It calls nothing, so that a slot that ends with it has no stack
 * frame; what takes a call is at its beginning, where another function sends the message, or at
 * its end.
 *
 * A wire with wire_ops.brief_max instantiates it in its slots tsend and tinject.
 */
#ifndef WEFT_BRIEF_H
#define WEFT_BRIEF_H

#include "complete.h"
#include "contexts.h"
#include "control.h"
#include "copy.h"
#include "guard.h"
#include "peer.h"
#include "tx.h"

/* Functions that are part of each slot that sends one buffer: inlined whatever their size is. */
#define engine_path inline __attribute__((always_inline))

/*
 * engine_brief_end - the end of a brief send that takes a call: wake the peer, count, complete
 * @wake: publish_brief() has returned true
 * Leaves the domain. Returns 0.
 */
ssize_t engine_brief_end(struct engine_ctx *ctx, struct engine_peer *peer, void *context,
			 size_t len, uint32_t flags, bool wake);

/*
 * engine_is_brief - returns true if engine_brief_send() may send the message to a peer that is
 * routed over @wire
 * @msg: without an iovec
 */
static engine_path bool engine_is_brief(const struct engine_peer *peer,
					const struct engine_msg *msg,
					const struct wire_ops *wire)
{
	return likely(peer->ready && msg->len <= wire->brief_max &&
		      !(msg->flags & ENGINE_SLOW) && !engine_credit_ready(peer) &&
		      wire->has_brief(peer->conn));
}

/*
 * engine_brief_publish - publish a message for which engine_is_brief()
 * Returns true if the peer has to be woken; then, or before that, the message is completed.
 */
static engine_path bool engine_brief_publish(struct engine_peer *peer,
					     const struct engine_msg *msg,
					     const struct wire_ops *wire)
{
	struct wire_conn *conn = peer->conn;
	struct packet *packet;
	void *payload;
	bool wake;

	packet = wire->claim_brief(conn, &payload);
	packet->tag = msg->tag;
	packet->data = msg->data;
	engine_header_brief(peer, packet, msg->rx_idx, PACKET_EAGER, msg->flags,
			    (uint32_t)msg->len);
	copy_brief(payload, msg->buf, msg->len);
	wake = wire->publish_brief(conn, packet);
	conn->tx_bytes += msg->len;
	conn->tx_msgs++;
	peer->tx_seq++;
	return wake;
}

/* engine_brief_send - send a message for which engine_is_brief(). Leaves the domain. Returns 0 */
static engine_path ssize_t engine_brief_send(struct engine_ctx *ctx, struct engine_peer *peer,
					     const struct engine_msg *msg,
					     const struct wire_ops *wire)
{
	bool wake = engine_brief_publish(peer, msg, wire);

	if (unlikely(wake || msg->flags & (ENGINE_COMPLETE | ENGINE_COUNTED)))
		return engine_brief_end(ctx, peer, msg->context, msg->len, msg->flags, wake);
	engine_guard_leave(ctx->domain);
	return 0;
}

#endif
