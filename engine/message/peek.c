/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls that search for a message or an operation: FI_PEEK finds a stored message, which the call
 * may keep for a later receive (FI_CLAIM) or drop (FI_DISCARD); fi_cancel finds an operation.
 *
 * The caller holds the domain. Source: fi_msg(3), fi_tagged(3), fi_cancel in fi_endpoint(3).
 */
#include "complete.h"
#include "post.h"

/* Write the completion of FI_PEEK or FI_DISCARD: it describes the message, without its payload. */
static void engine_peek_done(const struct engine_want *want, const struct engine_held *held)
{
	struct cq_entry entry = {
		.context = want->context,
		.flags = engine_recv_kind(held->packet.flags),
		.len = engine_held_len(held),
		.data = held->packet.data,
		.tag = held->packet.tag,
		.src = held->peer->cq_addr,
	};

	if (want->flags & ENGINE_COMPLETE && held->ctx->cq)
		engine_complete(held->ctx->cq, &entry);
}

static void engine_peek_failed(struct engine_rx_ctx *ctx, const struct engine_want *want)
{
	struct fi_cq_err_entry err = {
		.op_context = want->context,
		.flags = engine_recv_kind(want->flags),
		.tag = want->tag,
		.err = FI_ENOMSG,
		.prov_errno = FI_ENOMSG,
		.src_addr = FI_ADDR_NOTAVAIL,
	};

	engine_complete_error(ctx->cq, &err);
}

static ssize_t engine_peek(struct engine_ctx *ctx, const struct engine_want *want,
			   uint64_t flags)
{
	struct engine_rxq *q = ctx->rx->q;
	struct match *m = engine_matcher(q, want->flags);
	struct engine_held *held;
	struct match_msg *msg;
	uint64_t source;
	int ret;

	ret = engine_recv_source(ctx, want->src, &source);
	if (ret)
		return ret;
	msg = match_find(m, source, want->tag, want->ignore);
	if (!msg) {
		ctx->domain->ops->progress(ctx->domain);
		msg = match_find(m, source, want->tag, want->ignore);
	}
	if (!msg) {
		engine_peek_failed(ctx->rx, want);
		return 0;
	}
	held = container_of(msg, struct engine_held, match);
	engine_peek_done(want, held);
	if (flags & (FI_CLAIM | FI_DISCARD))
		match_take(m, msg);
	if (flags & FI_DISCARD) {
		engine_held_drop(held->peer->ep, held);
	} else if (flags & FI_CLAIM) {
		held->state = HELD_CLAIMED;
		held->claim = want->context;
		list_add_tail(&q->claimed, &held->link);
	}
	return 0;
}

/* Receive a claimed message as the first part of a multi-receive buffer, and post the buffer. */
static ssize_t engine_claim_multi(struct engine_ctx *ctx, const struct engine_want *want,
				  struct engine_held *held)
{
	struct engine_rx *rx, *part;
	uint64_t source;
	bool spent;
	int ret;

	ret = engine_recv_source(ctx, want->src, &source);
	if (ret)
		return ret;
	rx = engine_rx_new(ctx, want);
	part = rx ? engine_multi_part(ctx->domain, rx, engine_held_len(held)) : NULL;
	if (!part) {
		if (rx)
			engine_rx_put(ctx->domain, rx);
		return -FI_EAGAIN;
	}
	list_remove(&held->link);
	spent = rx->spent; /* rx may be freed with its last part */
	engine_held_receive(held, part);
	if (!spent) {
		engine_rx_match(rx, source, want->tag, want->ignore);
		engine_post_multi(ctx, rx);
	}
	return 0;
}

static ssize_t engine_claim(struct engine_ctx *ctx, const struct engine_want *want,
			    uint64_t flags)
{
	struct engine_held *held = NULL;
	struct engine_rx *rx;
	int ret;

	list_for_each_entry(held, &ctx->rx->q->claimed, link) {
		if (held->claim == want->context)
			break;
		held = NULL;
	}
	if (!held)
		return -FI_EINVAL;
	if (flags & FI_DISCARD) {
		list_remove(&held->link);
		engine_peek_done(want, held);
		engine_held_drop(held->peer->ep, held);
		return 0;
	}
	ret = engine_want_check(ctx, want);
	if (ret)
		return ret;
	if (want->flags & ENGINE_MULTI)
		return engine_claim_multi(ctx, want, held);
	rx = engine_rx_new(ctx, want);
	if (!rx)
		return -FI_EAGAIN;
	list_remove(&held->link);
	engine_held_receive(held, rx);
	return 0;
}

ssize_t engine_look(struct engine_ctx *ctx, struct engine_want *want, uint64_t flags)
{
	if (!ctx->rx->cq)
		return -FI_ENOCQ;
	want->flags |= ENGINE_COMPLETE;
	if (flags & FI_PEEK)
		return engine_peek(ctx, want, flags);
	return flags & FI_CLAIM ? engine_claim(ctx, want, flags) : -FI_EBADFLAGS;
}

static int engine_cancel_send(struct engine_ctx *ctx, void *context)
{
	struct engine_ep *ep = ctx->ep;
	struct engine_peer *peer;
	struct engine_tx *tx;

	list_for_each_entry(peer, &ep->blocked, blocked) {
		list_for_each_entry(tx, &peer->queued, link) {
			if (tx->ctx != ctx->tx || tx->context != context ||
			    tx->flags & ENGINE_INJECT || tx->state == TX_DIRECT)
				continue;
			list_remove(&tx->link);
			engine_tx_end(tx, -FI_ECANCELED);
			return 0;
		}
	}
	return -FI_ENOENT;
}

int engine_cancel_message(struct engine_ctx *ctx, void *context)
{
	struct engine_rxq *q = ctx->rx ? ctx->rx->q : NULL;
	struct engine_rx *rx;

	if (!q)
		return engine_cancel_send(ctx, context);
	for (rx = engine_rxq_next(q, NULL); rx; rx = engine_rxq_next(q, rx)) {
		if (rx->context != context)
			continue;
		match_unpost(engine_matcher(q, rx->flags), &rx->match);
		engine_recv_error(ctx->domain, rx, -FI_ECANCELED);
		return 0;
	}
	return ctx->tx ? engine_cancel_send(ctx, context) : -FI_ENOENT;
}
