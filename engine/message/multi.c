/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Multi-receive buffers: a receive whose buffer takes one message after the other (FI_MULTI_RECV).
 * The buffer, "whole", keeps its place in the matcher until it is spent: fewer bytes are free than
 * min_free. Each message in it is a part: a receive of its own that points into the buffer. The
 * completion of the last part of a spent buffer has FI_MULTI_RECV, and returns the buffer to the
 * program.
 *
 * The caller holds the domain.
 */
#include "complete.h"
#include "in_order.h"
#include "recv.h"

static size_t engine_multi_free(const struct engine_rx *whole)
{
	return whole->cap - whole->used;
}

void engine_multi_init(struct engine_rx *whole, size_t min_free)
{
	whole->used = 0;
	whole->min_free = min_free ? min_free : 1;
	whole->parts_cnt = 0;
	whole->spent = false;
	whole->err = 0;
	whole->src = FI_ADDR_NOTAVAIL;
}

struct engine_rx *engine_multi_part(struct engine_domain *domain, struct engine_rx *whole,
				    size_t len)
{
	struct engine_rx *part = pool_get(&domain->rx_pool);
	size_t room = engine_multi_free(whole);

	if (!part)
		return NULL;
	if (room > len)
		room = len;
	part->ctx = whole->ctx;
	part->context = whole->context;
	part->flags = (whole->flags & ~ENGINE_MULTI) | ENGINE_PART;
	part->iov[0] = (struct iovec){ (char *)whole->iov[0].iov_base + whole->used, room };
	part->iov_cnt = 1;
	part->cap = room;
	part->whole = whole;
	whole->used += room;
	whole->parts_cnt++;
	whole->spent = engine_multi_free(whole) < whole->min_free;
	return part;
}

struct engine_rx *engine_multi_take(struct engine_domain *domain, struct engine_rxq *q,
				    struct engine_rx *whole, size_t len)
{
	struct engine_rx *part = engine_multi_part(domain, whole, len);

	if (part && whole->spent)
		match_unpost(engine_matcher(q, whole->flags), &whole->match);
	return part;
}

/* Write a completion that reports no message, only the release of a buffer. */
static void engine_multi_released(struct engine_rx_ctx *ctx, const struct engine_rx *whole)
{
	if (ctx->cq)
		engine_complete_op(ctx->cq, whole->context, FI_MULTI_RECV);
}

void engine_multi_close(struct engine_domain *domain, struct engine_rx *whole)
{
	whole->spent = true;
	if (whole->parts_cnt)
		return;
	engine_multi_released(whole->ctx, whole);
	engine_rx_put(domain, whole);
}

uint64_t engine_part_flags(const struct engine_rx *part)
{
	const struct engine_rx *whole = part->whole;

	return whole->spent && whole->parts_cnt == 1 && !whole->err ? FI_MULTI_RECV : 0;
}

void engine_part_free(struct engine_domain *domain, struct engine_rx *part, bool reported)
{
	struct engine_rx *whole = part->whole;
	struct engine_rx_ctx *ctx = part->ctx;

	engine_rx_put(domain, part);
	if (--whole->parts_cnt || !whole->spent)
		return;
	if (whole->err) {
		engine_recv_error(domain, whole, whole->err);
		return;
	}
	if (!reported)
		engine_multi_released(ctx, whole);
	engine_rx_put(domain, whole);
}

void engine_recv_end(struct engine_domain *domain, struct engine_rx *rx)
{
	bool reported = rx->flags & ENGINE_COMPLETE;

	if (rx->flags & PACKET_GROUP) {
		rx->ctx->ep->group_ops->received(rx, 0);
		return;
	}
	if (rx->flags & ENGINE_ORDERED) {
		engine_rx_in_turn(domain, rx);
		return;
	}
	if (rx->len > rx->cap) {
		engine_recv_error(domain, rx, -FI_ETRUNC);
		return;
	}
	if (rx->flags & ENGINE_DEFERRED) {
		if (rx->flags & ENGINE_EP_REPORTS && rx->ctx->cq)
			engine_recv_entry(rx, 0);
		engine_deferred_end(rx->ctx->cntr[ENGINE_CNTR_RECV], rx->work_cntr, rx->flags,
				    0, rx->len);
		engine_rx_put(domain, rx);
		return;
	}
	engine_count(rx->ctx->cntr[ENGINE_CNTR_RECV], 0, rx->len);
	if (reported)
		engine_recv_entry(rx, engine_part_flags(rx));
	engine_part_free(domain, rx, reported);
}

void engine_rx_drop(struct engine_domain *domain, struct engine_rx *rx)
{
	struct engine_rx *whole = rx->whole;

	if (rx->flags & ENGINE_ORDERED)
		engine_rx_unorder(rx);
	if (rx->landing) {
		rx->landing->ops->drop(rx->peer, rx->landing);
		rx->landing = NULL;
	}
	if (!(rx->flags & ENGINE_PART)) {
		engine_rx_free(domain, rx);
		return;
	}
	/*
	 * The buffer of a shared context outlives the endpoint, so its release has to be reported;
	 * any other ends with the endpoint.
	 */
	if (whole->ctx->q->shared) {
		rx->ctx = whole->ctx;
		engine_part_free(domain, rx, false);
		return;
	}
	engine_rx_put(domain, rx);
	if (!--whole->parts_cnt && whole->spent)
		engine_rx_put(domain, whole);
}
