/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-sided operations by this processor's own loads and stores, where the wire has the target's
 * memory mapped (wire_ops.reach). They are done, and have been delivered, when the call returns.
 *
 * Such an operation has no sequence number. It is carried out only when the target has carried out
 * everything that was sent to it before: so it keeps any order, and what is sent later is behind it.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_REACH_H
#define WEFT_REACH_H

#include "access.h"
#include "send.h"

/* Largest operation that is carried out within its call, bytes; longer ones take turns (direct.c). */
#define ENGINE_REACH_MAX 16384u

/*
 * engine_reach_settle - find out whether the target has carried out all that was sent to it, and note
 * it in peer->reach_seq
 * Returns true if so; false also while that is not known.
 */
bool engine_reach_settle(struct engine_peer *peer);

static inline bool engine_reach_settled(struct engine_peer *peer)
{
	return likely(peer->reach_seq == peer->tx_seq) || engine_reach_settle(peer);
}

/*
 * engine_reach - carry out an operation of any kind; the first towards its peer that is not sent
 * @tx: freed if true is returned
 * Returns false if that is not possible: nothing has happened, and it has to be sent.
 */
bool engine_reach(struct engine_peer *peer, struct engine_tx *tx);

/*
 * engine_reach_atomic - update one element or an array
 * @here: where the wire has it mapped; any alignment
 * Returns false if only the target may do that (nothing happened).
 */
bool engine_reach_atomic(const struct engine_update *update, void *here, const void *operand,
			 const void *compare, void *result);

/*
 * engine_reach_lost - report an atomic that may have been lost, since the peer took its memory back
 * meanwhile: it can't be made again
 */
void engine_reach_lost(struct engine_ctx *ctx, const struct engine_access *access);

/*
 * engine_reach_small - carry out a small operation; for wire_ops.access
 * @access: engine_access_small()
 * @wire:   ops of the peer's route, with reach; a constant
 * Returns as engine_reach() does.
 */
static engine_path bool engine_reach_small(struct engine_ctx *ctx, struct engine_peer *peer,
					   const struct engine_access *access,
					   const struct wire_ops *wire)
{
	const struct packet_target *target = access->targets;
	const struct iovec *local = access->iov;
	struct wire_conn *conn = peer->conn;
	const struct engine_update *update = access->op == PACKET_WRITE ? NULL : access->update;
	uint64_t kind = FI_REMOTE_WRITE;
	bool fetches = update && update->result_cnt;
	bool done = true, valid;
	void *here;

	if (fetches && (update->result_cnt > 1 || update->op == FI_ATOMIC_READ))
		return false;
	if (!engine_reach_settled(peer))
		return false;
	if (fetches)
		kind |= FI_REMOTE_READ;
	here = wire->reach(conn, target, kind);
	if (!here)
		return false;
	if (!update)
		copy_bytes(here, local->iov_base, target->len);
	else
		done = engine_reach_atomic(update, here, local->iov_base, NULL,
					   fetches ? update->result[0].iov_base : NULL);
	valid = wire->reached(conn, kind);
	if (!done || (unlikely(!valid) && !update))
		return false;
	if (unlikely(!valid)) {
		engine_reach_lost(ctx, access);
		return true;
	}
	conn->tx_msgs++;
	conn->tx_bytes += target->len;
	if (fetches) {
		conn->rx_bytes += target->len;
		engine_fetch_end(ctx->tx, access->context, access->flags, target->len);
	} else {
		engine_quiet_end(ctx->tx, access->context, access->op, access->flags,
				 target->len);
	}
	return true;
}

#endif
