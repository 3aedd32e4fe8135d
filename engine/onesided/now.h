/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The fast path of a small one-sided operation, which is written straight into the wire. Each
 * provider instantiates it over its wire, for wire_ops.access. A struct engine_tx is allocated only
 * if the operation ends with an answer of the target. Called by now.c with the domain held.
 */
#ifndef WEFT_NOW_H
#define WEFT_NOW_H

#include "access.h"
#include "copy.h"
#include "quiet.h"
#include "send.h"

/*
 * Returns the struct engine_tx of an operation that ends with the target's answer, or NULL without
 * memory.
 */
static inline struct engine_tx *engine_now_kept(struct engine_ctx *ctx, struct engine_peer *peer,
						const struct engine_access *access, bool atomic)
{
	struct engine_tx *tx = engine_tx_new(peer, ctx->tx);

	if (unlikely(!tx))
		return NULL;
	engine_tx_access(tx, access, access->targets[0].len, 1, 1);
	if (atomic)
		engine_tx_update(tx, access->update);
	tx->rx_idx = 0;
	return tx;
}

/*
 * The packet of the operation was published: record what ends it. @tx: NULL if it is quiet;
 * @fetches: it ends with a RESPONSE
 */
static engine_path void engine_now_left(struct engine_ctx *ctx, struct engine_peer *peer,
					const struct engine_access *access,
					struct engine_tx *tx, bool fetches)
{
	uint32_t seq = (uint32_t)peer->tx_seq++;

	peer->request_cnt++;
	if (!tx) {
		engine_quiet_add(peer, ctx->tx, seq);
		engine_quiet_end(ctx->tx, access->context, access->op, access->flags,
				 access->targets[0].len);
		return;
	}
	tx->seq = seq;
	if (fetches)
		engine_await_response(peer, tx, tx->len);
	else
		engine_unacked(peer, tx);
	peer->outstanding_cnt++;
	ctx->ep->access_cnt++;
}

/*
 * Fill a claimed packet. @asks: it asks for an ACK; @head: length of struct packet_atomic, or 0 for
 * a write; @tx: NULL if the operation is quiet
 */
static engine_path void engine_now_fill(struct engine_peer *peer,
					const struct engine_access *access,
					const struct engine_tx *tx, bool asks, size_t head,
					struct packet *packet, char *payload)
{
	const struct packet_target *target = access->targets;
	struct packet_atomic atomic;

	engine_header(peer, packet, access->op, asks ? PACKET_ACKED : 0,
		      (uint32_t)(head + target->len));
	packet->tag = target->addr;
	packet->data = target->key;
	if (head) {
		atomic = engine_atomic_head(access->update, tx ? pool_id(tx) : 0);
		memcpy(payload, &atomic, sizeof(atomic));
	}
	copy_bytes(payload + head, access->iov->iov_base, target->len);
}

/*
 * Send the operation. @head: length of struct packet_atomic, or 0 for a write; a constant, like
 * @wire. Returns false without room or memory (nothing happened).
 */
static engine_path bool engine_now_to(struct engine_ctx *ctx, struct engine_peer *peer,
				      const struct engine_access *access, size_t head,
				      const struct wire_ops *wire)
{
	bool fetches = head && access->update->result_cnt;
	bool quiet = !fetches && engine_is_quiet(access->flags, wire);
	size_t len = access->targets[0].len;
	struct wire_conn *conn = peer->conn;
	struct engine_tx *tx = NULL;
	struct packet *packet;
	void *payload;

	if (!quiet) {
		tx = engine_now_kept(ctx, peer, access, head);
		if (unlikely(!tx))
			return false;
	}
	packet = wire->claim(conn, head + len, &payload);
	if (unlikely(!packet)) {
		if (tx)
			pool_put(&ctx->ep->tx_pool, tx);
		return false;
	}
	engine_now_fill(peer, access, tx, quiet ? engine_quiet_wants_ack(peer) : !fetches, head,
			packet, payload);
	wire->publish(conn, packet, access->flags & ENGINE_MORE);
	engine_sent(ctx->ep, conn, wire);
	conn->tx_msgs++;
	conn->tx_bytes += len;
	engine_now_left(ctx, peer, access, tx, fetches);
	return true;
}

/*
 * engine_access_on - send a small operation to a peer that is ready, over the wire of its route
 * @access: engine_access_small()
 * @wire:   ops of that wire; a constant where the provider instantiates this
 * Returns false if there is no room or memory (nothing happened).
 */
static engine_path bool engine_access_on(struct engine_ctx *ctx, struct engine_peer *peer,
					 const struct engine_access *access,
					 const struct wire_ops *wire)
{
	if (access->op == PACKET_WRITE)
		return engine_now_to(ctx, peer, access, 0, wire);
	return engine_now_to(ctx, peer, access, sizeof(struct packet_atomic), wire);
}

#endif
