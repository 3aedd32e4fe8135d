/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sends and one-sided operations that have a struct engine_tx, from their creation to their
 * completion.
 *
 * Called from data calls and from progress; the caller holds the domain.
 */
#include <rdma/fi_errno.h>
#include "complete.h"
#include "conns.h"
#include "in_order.h"
#include "peer.h"
#include "tx.h"

struct engine_tx *engine_tx_new(struct engine_peer *peer, struct engine_tx_ctx *ctx)
{
	struct engine_tx *tx = pool_get(&peer->ep->tx_pool);

	if (unlikely(!tx))
		return NULL;
	list_init(&tx->link);
	tx->peer = peer;
	tx->ctx = ctx;
	tx->want = tx->sent = tx->chunk = 0;
	tx->peer_id = 0;
	tx->error = 0;
	tx->state = TX_QUEUED;
	tx->copy = NULL;
	return tx;
}

static void engine_tx_free(struct engine_tx *tx)
{
	struct engine_ep *ep = tx->peer->ep;
	bool waits = tx->state == TX_QUEUED || tx->state == TX_DIRECT;

	ep->queued_cnt -= waits;
	if (tx->kind != PACKET_EAGER) {
		ep->access_cnt--;
		tx->peer->outstanding_cnt -= !waits;
	}
	platform_free(tx->copy);
	pool_put(&ep->tx_pool, tx);
}

/*
 * Returns the flags that the completion of an operation has. @cntr: out: which counter counts the
 * operation
 */
static uint64_t engine_tx_kind(const struct engine_tx *tx, enum engine_tx_cntr *cntr)
{
	switch (tx->kind) {
	case PACKET_WRITE:
		*cntr = ENGINE_CNTR_WRITE;
		return FI_RMA | FI_WRITE;
	case PACKET_READ:
		*cntr = ENGINE_CNTR_READ;
		return FI_RMA | FI_READ;
	case PACKET_ATOMIC:
		*cntr = tx->update.result_cnt ? ENGINE_CNTR_READ : ENGINE_CNTR_WRITE;
		return FI_ATOMIC | (tx->update.result_cnt ? FI_READ : FI_WRITE);
	default:
		*cntr = ENGINE_CNTR_SEND;
		return FI_SEND | (tx->flags & PACKET_TAGGED ? FI_TAGGED : FI_MSG);
	}
}

static void engine_tx_count(struct engine_tx *tx, struct engine_cntr *cntr, int status)
{
	/* An atomic operation with results is counted with their length. */
	size_t len = tx->kind == PACKET_ATOMIC && tx->update.result_cnt ? tx->want : tx->len;

	if (likely(!(tx->flags & ENGINE_DEFERRED)))
		engine_count(cntr, status, len);
	else
		engine_deferred_end(cntr, tx->work_cntr, tx->flags, status, len);
}

/* Counts an operation that has ended, writes its completion and frees it. */
static void engine_tx_report(struct engine_tx *tx, int status)
{
	struct engine_tx_ctx *ctx = tx->ctx;
	void *context = tx->context;
	enum engine_tx_cntr cntr;
	uint64_t kind;

	if (unlikely(tx->flags & PACKET_GROUP)) {
		const struct engine_group_ops *ops = tx->peer->ep->group_ops;

		engine_tx_free(tx);
		ops->sent(context, status);
		return;
	}
	kind = engine_tx_kind(tx, &cntr);
	engine_tx_count(tx, ctx->cntr[cntr], status);
	if (!status && tx->flags & ENGINE_COMPLETE) {
		engine_complete_op(ctx->cq, context, kind);
	} else if (status && ctx->cq) {
		bool named = tx->flags & ENGINE_COMPLETE || !(tx->flags & ENGINE_INJECT);
		struct fi_cq_err_entry err = {
			.op_context = named ? context : tx->peer->ep->ctx.fid.fid.context,
			.flags = kind,
			.len = tx->len,
			.buf = (void *)(uintptr_t)tx->buf,
			.data = tx->data,
			.tag = tx->tag,
			.err = -status,
			.prov_errno = -status,
			.src_addr = tx->peer->cq_addr,
		};

		engine_complete_error(ctx->cq, &err);
	}
	engine_tx_free(tx);
}

void engine_tx_end(struct engine_tx *tx, int status)
{
	if (unlikely(tx->flags & ENGINE_ORDERED))
		engine_tx_in_turn(tx, status, engine_tx_report);
	else
		engine_tx_report(tx, status);
}

/* struct wire_op.done: the wire has sent the payload from the caller's memory, or failed. */
static void engine_tx_sent(struct wire_op *op, int status)
{
	struct engine_tx *tx = container_of(op, struct engine_tx, op);
	bool waits = tx->kind == PACKET_EAGER ? tx->flags & (PACKET_DELIVERY | PACKET_ACKED)
					      : tx->flags & ENGINE_DELIVERED;

	tx->peer->leaving_cnt--;
	if (!status && waits && !(tx->flags & ENGINE_FINISHED)) {
		tx->state = tx->flags & PACKET_DELIVERY ? TX_FIN : TX_ACK;
		return;
	}
	list_remove(&tx->link);
	engine_tx_end(tx, status ? status : tx->error);
}

int engine_tx_leave(struct engine_peer *peer, struct engine_tx *tx, const struct packet *packet,
		    bool lane)
{
	int ret;

	tx->op.done = engine_tx_sent;
	ret = peer->wire->sendv(peer->conn, packet, tx->iov, tx->iov_cnt, &tx->op);
	if (ret) {
		engine_credits_back(peer, packet->credits);
		return ret;
	}
	if (lane)
		peer->lane_seq = (uint32_t)peer->tx_seq + 1;
	peer->leaving_cnt++;
	return 0;
}

void engine_tx_queue(struct engine_peer *peer, struct engine_tx *tx)
{
	peer->ready = 0;
	list_add_tail(&peer->queued, &tx->link);
	engine_peer_block(peer);
	if (peer->state == PEER_UP)
		peer->ep->domain->ops->flush(peer);
	else
		engine_peer_connect(peer);
}

int engine_tx_flags(const struct engine_tx_ctx *tx, uint64_t flags, uint64_t known,
		    uint32_t *out)
{
	*out = 0;
	if (flags & ~known)
		return -FI_EBADFLAGS;
	if (flags & FI_INJECT)
		*out |= ENGINE_INJECT;
	if (flags & FI_REMOTE_CQ_DATA)
		*out |= PACKET_CQ_DATA;
	if (flags & FI_MORE)
		*out |= ENGINE_MORE;
	if (flags & FI_FENCE)
		*out |= ENGINE_FENCE;
	/*
	 * FI_COMMIT_COMPLETE is served by a match: no memory of this provider outlives its process,
	 * so data counts as committed when the program at the target has it.
	 */
	if (flags & (FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE))
		*out |= PACKET_DELIVERY | PACKET_MATCH;
	else if (flags & FI_DELIVERY_COMPLETE)
		*out |= PACKET_DELIVERY;
	else if (flags & FI_TRANSMIT_COMPLETE)
		*out |= PACKET_ACKED;
	if (tx->cq && (!tx->selective || flags & FI_COMPLETION))
		*out |= ENGINE_COMPLETE;
	return 0;
}
