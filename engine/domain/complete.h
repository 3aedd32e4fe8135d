/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completions: all entries of completion queues, including errors, are written here.
 *
 * The caller holds the domain, and so is the only writer of the queue.
 */
#ifndef WEFT_COMPLETE_H
#define WEFT_COMPLETE_H

#include "cntr.h"
#include "peers.h"

/*
 * engine_complete - write an entry to @cq, not NULL; without memory it is lost, and the queue is
 * overrun
 */
static inline void engine_complete(struct engine_cq *cq, const struct cq_entry *entry)
{
	struct cq_entry *e = cq_slot(&cq->queue);

	if (unlikely(!e))
		return;
	*e = *entry;
	cq_push(&cq->queue);
}

/*
 * engine_complete_error - write an error entry; copies @err and its data, and err->src_addr is the
 * source
 */
static inline void engine_complete_error(struct engine_cq *cq, const struct fi_cq_err_entry *err)
{
	cq_push_error(&cq->queue, err);
}

/*
 * engine_complete_op - write an entry that says nothing but which operation has ended
 * @kind: flags of the entry
 */
static inline void engine_complete_op(struct engine_cq *cq, void *context, uint64_t kind)
{
	struct cq_entry *e = cq_slot(&cq->queue);

	if (unlikely(!e))
		return;
	*e = (struct cq_entry){
		.context = context,
		.flags = kind,
		.src = FI_ADDR_NOTAVAIL,
	};
	cq_push(&cq->queue);
}

/*
 * engine_send_done - count a send of @len bytes that succeeded; with ENGINE_COMPLETE, write its
 * completion
 */
static inline void engine_send_done(struct engine_tx_ctx *tx, void *context, uint32_t flags,
				    size_t len)
{
	engine_count(tx->cntr[ENGINE_CNTR_SEND], 0, len);
	if (flags & ENGINE_COMPLETE)
		engine_complete_op(tx->cq, context,
				   FI_SEND | (flags & PACKET_TAGGED ? FI_TAGGED : FI_MSG));
}

/*
 * engine_fetch_end - count an atomic with results that has ended; with ENGINE_COMPLETE, write its
 * completion
 */
static inline void engine_fetch_end(struct engine_tx_ctx *ctx, void *context, uint32_t flags,
				    size_t len)
{
	engine_count(ctx->cntr[ENGINE_CNTR_READ], 0, len);
	if (flags & ENGINE_COMPLETE)
		engine_complete_op(ctx->cq, context, FI_ATOMIC | FI_READ);
}

/*
 * engine_quiet_end - count a small one-sided request that was sent; with ENGINE_COMPLETE, write its
 * completion
 * @op: PACKET_WRITE or PACKET_ATOMIC
 */
static inline void engine_quiet_end(struct engine_tx_ctx *ctx, void *context, uint8_t op,
				    uint32_t flags, size_t len)
{
	engine_count(ctx->cntr[ENGINE_CNTR_WRITE], 0, len);
	if (flags & ENGINE_COMPLETE)
		engine_complete_op(ctx->cq, context,
				   (op == PACKET_ATOMIC ? FI_ATOMIC : FI_RMA) | FI_WRITE);
}

/* Flags of the completion of a receive, by PACKET_TAGGED and PACKET_CQ_DATA of its message. */
static const uint64_t engine_recv_flags[] = {
	[0] = FI_RECV | FI_MSG,
	[PACKET_TAGGED] = FI_RECV | FI_TAGGED,
	[PACKET_CQ_DATA] = FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA,
	[PACKET_TAGGED | PACKET_CQ_DATA] = FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA,
};

/* engine_recv_kind - the same, by @flags that may have others too */
static inline uint64_t engine_recv_kind(uint32_t flags)
{
	return engine_recv_flags[flags & (PACKET_TAGGED | PACKET_CQ_DATA)];
}

/*
 * engine_recv_entry - write the completion of a receive; @more: flags besides those of the message
 */
static inline void engine_recv_entry(const struct engine_rx *rx, uint64_t more)
{
	struct cq *q = &rx->ctx->cq->queue;
	struct cq_entry *e = cq_slot(q);

	if (unlikely(!e))
		return;
	*e = (struct cq_entry){
		.context = rx->context,
		.flags = engine_recv_kind(rx->flags) | more,
		.len = rx->len,
		.buf = rx->iov[0].iov_base,
		.data = rx->data,
		.tag = rx->tag,
		.src = rx->peer->cq_addr,
	};
	cq_push(q);
}

/*
 * engine_packet_entry - write the completion of a message that arrived whole in @packet, whose
 * flags are an index of engine_recv_flags
 */
static inline void engine_packet_entry(struct cq *q, const struct engine_rx *rx,
				       const struct engine_peer *peer,
				       const struct packet *packet)
{
	struct cq_entry *e = cq_slot(q);

	if (unlikely(!e))
		return;
	e->context = rx->context;
	e->flags = engine_recv_flags[packet->flags];
	e->len = packet->len;
	e->buf = rx->iov[0].iov_base;
	e->data = packet->data;
	e->tag = packet->tag;
	e->src = peer->cq_addr;
	cq_push(q);
}

#endif
