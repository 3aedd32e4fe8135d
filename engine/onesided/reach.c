/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations by loads and stores, whatever their kind and shape. Called with the domain held, by
 * the initiator's side of one-sided operations (access.c).
 */
#include <rdma/fi_errno.h>
#include "atomics.h"
#include "reach.h"

bool engine_reach_settle(struct engine_peer *peer)
{
	if (peer->acked != (uint32_t)peer->tx_seq &&
	    (peer->outstanding_cnt || peer->multi_conn || !peer->wire->taken(peer->conn)))
		return false;
	peer->reach_seq = peer->tx_seq;
	return true;
}

bool engine_reach_atomic(const struct engine_update *update, void *here, const void *operand,
			 const void *compare, void *result)
{
	struct atomics_update u = {
		.kind = (enum atomics_kind)update->kind,
		.datatype = (enum fi_datatype)update->datatype,
		.op = (enum fi_op)update->op,
		.target = here,
		.operand = operand,
		.compare = compare,
		.result = result,
		.cnt = update->cnt,
	};

	return atomics_aligned(here, u.datatype) && atomics_lock_free(here, u.datatype) &&
	       !atomics_apply(&u);
}

void engine_reach_lost(struct engine_ctx *ctx, const struct engine_access *access)
{
	bool fetches = access->update->result_cnt;
	bool named = access->flags & ENGINE_COMPLETE || !(access->flags & ENGINE_INJECT);
	struct fi_cq_err_entry err = {
		.op_context = named ? access->context : ctx->ep->ctx.fid.fid.context,
		.flags = FI_ATOMIC | (fetches ? FI_READ : FI_WRITE),
		.len = access->targets[0].len,
		.err = FI_EIO,
		.prov_errno = FI_EIO,
	};

	engine_count(ctx->tx->cntr[fetches ? ENGINE_CNTR_READ : ENGINE_CNTR_WRITE], -FI_EIO,
		     err.len);
	if (ctx->tx->cq)
		engine_complete_error(ctx->tx->cq, &err);
}

/* Returns the access to the region that an operation needs. */
static uint64_t reach_kind(const struct engine_tx *tx)
{
	if (tx->kind == PACKET_WRITE)
		return FI_REMOTE_WRITE;
	if (tx->kind == PACKET_READ)
		return FI_REMOTE_READ;
	if (!tx->update.result_cnt)
		return FI_REMOTE_WRITE;
	return tx->update.op == FI_ATOMIC_READ ? FI_REMOTE_READ
					       : FI_REMOTE_READ | FI_REMOTE_WRITE;
}

/* Returns true if the operation has a shape that is carried out here, and nothing at the target counts it. */
static bool reach_fits(const struct engine_tx *tx)
{
	const struct engine_update *update = &tx->update;

	if (tx->target_cnt != 1 || tx->targets[0].len > ENGINE_REACH_MAX ||
	    !tx->targets[0].len || tx->flags & (PACKET_CQ_DATA | ENGINE_BY_PACKET))
		return false;
	if (tx->kind != PACKET_ATOMIC)
		return true;
	return tx->iov_cnt <= 1 && update->compare_cnt <= 1 && update->result_cnt <= 1 &&
	       tx->targets[0].len ==
		       update->cnt * atomics_element((enum atomics_kind)update->kind,
						     (enum fi_datatype)update->datatype,
						     (enum fi_op)update->op);
}

/* Loads and stores. Returns false if only the target may do that. */
static bool reach_do(const struct engine_tx *tx, void *here)
{
	const struct engine_update *update = &tx->update;

	switch (tx->kind) {
	case PACKET_WRITE:
		copy_from_iov(here, tx->iov, tx->iov_cnt, 0, tx->len);
		return true;
	case PACKET_READ:
		copy_to_iov(tx->iov, tx->iov_cnt, 0, here, tx->len);
		return true;
	default:
		return engine_reach_atomic(
			update, here, tx->iov_cnt ? tx->iov[0].iov_base : NULL,
			update->compare_cnt ? update->compare[0].iov_base : NULL,
			update->result_cnt ? update->result[0].iov_base : NULL);
	}
}

/* Counts the operation as if it had been sent, and its result had come back. */
static void reach_count(struct wire_conn *conn, const struct engine_tx *tx)
{
	conn->tx_msgs++;
	if (tx->kind != PACKET_READ)
		conn->tx_bytes += tx->len;
	if (tx->kind == PACKET_ATOMIC && tx->update.compare_cnt)
		conn->tx_bytes += tx->len;
	if (tx->kind == PACKET_READ || (tx->kind == PACKET_ATOMIC && tx->update.result_cnt))
		conn->rx_bytes += tx->targets[0].len;
}

bool engine_reach(struct engine_peer *peer, struct engine_tx *tx)
{
	const struct wire_ops *wire = peer->wire;
	struct wire_conn *conn = peer->conn;
	bool done, valid, once;
	uint64_t kind;
	void *here;

	if (!wire->reach || !reach_fits(tx))
		return false;
	/*
	 * Before the wire says that the target lets us: what was sent to a target that ends that meanwhile, as a fork
	 * does, is not where we would look.
	 */
	if (!engine_reach_settled(peer))
		return false;
	kind = reach_kind(tx);
	here = wire->reach(conn, tx->targets, kind);
	if (!here)
		return false;
	done = reach_do(tx, here);
	valid = wire->reached(conn, kind);
	/* what changes memory only once can't be made again if it may have been lost */
	once = tx->kind == PACKET_ATOMIC && kind & FI_REMOTE_WRITE;
	if (!done || (!valid && !once))
		return false;
	reach_count(conn, tx);
	tx->want = tx->targets[0].len;
	list_remove(&tx->link);
	engine_tx_end(tx, valid ? 0 : -FI_EIO);
	return true;
}
