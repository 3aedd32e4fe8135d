/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receiving: the fast path that a wire's poll() instantiates for each packet. A small message
 * that is the next of its sender and finds a posted receive goes straight to the user's buffer
 * and the completion queue; everything else goes to engine_packet() in arrive.c. What finds no
 * receive is kept in held.c, until one of the calls in recv.c or peek.c asks for it.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_RECV_H
#define WEFT_RECV_H

#include "complete.h"
#include "copy.h"
#include "credit.h"
#include "peer.h"
#include "rxq.h"
#include "tx.h"

/*
 * One receive, as the calls express it.
 */
struct engine_want {
	const struct iovec *iov;
	size_t cnt;
	fi_addr_t src;
	uint64_t tag, ignore;
	void *context;
	/* PACKET_TAGGED, ENGINE_COMPLETE */
	uint32_t flags;
};

/* One that is not posted at once. */
struct engine_want_later {
	/* ENGINE_DEFERRED: also is valid */
	struct engine_want want;
	/* counts its end; NULL or held */
	struct engine_cntr *work_cntr;
};

/*
 * engine_want_of, engine_want_of_tagged - what a call with flags asks for, where it may wait
 * @want: out: borrows the buffers, and the iovec of the call
 * Returns 0, -FI_ENOSYS for flags of calls that can't wait, or another -FI_E*. Source: fi_msg(3),
 * fi_tagged(3).
 */
int engine_want_of(const struct engine_ctx *ctx, const struct fi_msg *msg, uint64_t flags,
		   struct engine_want *want);
int engine_want_of_tagged(const struct engine_ctx *ctx, const struct fi_msg_tagged *msg,
			  uint64_t flags, struct engine_want *want);

/*
 * engine_post - post a receive, or have it meet a message that is here. 0, -FI_EAGAIN or another
 * -FI_E*
 */
ssize_t engine_post(struct engine_ctx *ctx, const struct engine_want *want);

/* engine_recv_later - post what such a call asked for; takes later->also on success. 0 or -FI_E* */
ssize_t engine_recv_later(struct engine_ctx *ctx, const struct engine_want_later *later);

/*
 * engine_rx_put - give a receive back to the pool One in the pool has no message: it is cleared
 * here, since a receive that ends plainly never had what is cleared.
 */
static inline void engine_rx_put(struct engine_domain *domain, struct engine_rx *rx)
{
	rx->peer = NULL;
	rx->len = rx->got = rx->incoming = 0;
	rx->tag = rx->data = rx->peer_id = 0;
	rx->landing = NULL;
	pool_put(&domain->rx_pool, rx);
}

/* engine_rx_free - give a receive back that nobody is told of; it is linked nowhere */
static inline void engine_rx_free(struct engine_domain *domain, struct engine_rx *rx)
{
	if (unlikely(rx->flags & ENGINE_DEFERRED))
		engine_cntr_release(rx->work_cntr);
	engine_rx_put(domain, rx);
}

/* engine_recv_error - end a receive with a completion error; takes rx, which is linked nowhere */
void engine_recv_error(struct engine_domain *domain, struct engine_rx *rx, int err);

/* A cookie is a struct engine_rx, or with one of these bits a struct engine_held or engine_tx. */
#define ENGINE_COOKIE_HELD ((uintptr_t)1)
#define ENGINE_COOKIE_TX   ((uintptr_t)2)

/*
 * engine_recv_finish - engine_recv_done(), and tell a sender that waits for it; takes rx, linked
 * nowhere
 */
void engine_recv_finish(struct engine_domain *domain, struct engine_rx *rx);

/* engine_recv_sender - what a receive has to know of its message beside what its completion says */
static inline void engine_recv_sender(struct engine_rx *rx, const struct packet *packet)
{
	rx->flags |= packet->flags & PACKET_DELIVERY;
	rx->peer_id = packet->seq;
}

/*
 * From held.c: messages for which there is no receive yet, or that came before their turn.
 *
 * engine_hold_stored - keep a whole one that is the next of its sender. 0 or -FI_ENOMEM
 * engine_hold - keep one whose payload may still be arriving: into @dest, then. NULL without memory
 * engine_held_store - it had its turn and found no receive: wait for one
 * engine_held_receive - @rx has met it; it is linked nowhere but, perhaps, among the arriving.
 * Takes both
 * engine_held_fill - the payload of one is whole, and goes to @rx, linked nowhere. Takes both
 * engine_held_deliver - tell the sender that it is delivered, where that is so
 * engine_held_drop - nobody wants it any more; it is linked nowhere but, perhaps, among the
 * arriving
 * engine_held_free - release it without a word to its sender
 */
int engine_hold_stored(struct engine_rx_ctx *ctx, struct engine_peer *peer,
		       const struct packet *packet, const void *payload);
struct engine_held *engine_hold(struct engine_rx_ctx *ctx, struct engine_peer *peer,
				const struct packet *packet, const void *payload, size_t avail,
				struct wire_dest *dest);
void engine_held_store(struct engine_held *held);
void engine_held_receive(struct engine_held *held, struct engine_rx *rx);
void engine_held_fill(struct engine_held *held, struct engine_rx *rx);
void engine_held_deliver(struct engine_held *held);
void engine_held_drop(struct engine_ep *ep, struct engine_held *held);
void engine_held_free(struct engine_ep *ep, struct engine_held *held);

/* engine_held_len - bytes of the message that is held */
static inline size_t engine_held_len(const struct engine_held *held)
{
	return held->packet.op == PACKET_RTS ? held->rts.len : held->packet.len;
}

/*
 * From multi.c: receives whose buffer takes several messages (ENGINE_MULTI), and the messages in
 * them (ENGINE_PART). Source: fi_msg(3), fi_cq(3), FI_MULTI_RECV.
 *
 * engine_multi_init - @whole, otherwise set up, is one of them, and takes messages until less than
 *	@min_free bytes are left
 * engine_multi_part - the receive of the next message, of @len bytes, in what is left of @whole;
 * looks
 *	whether that was the last (whole->spent). NULL without memory: nothing happened
 * engine_multi_take - the same for a posted one, which is taken out of the matcher when it is spent
 * engine_multi_close - @whole, which is linked nowhere, takes no more: release it with its last
 * part
 * engine_part_flags - what the entry of a part has to say of its buffer: FI_MULTI_RECV or 0
 * engine_part_free - takes a part; @told: an entry with those flags was written
 * engine_recv_end - engine_recv_done() of a part, of deferred work, of a message that is too long,
 * and of
 *	those of groups
 * engine_rx_drop - forget a matched receive that is linked nowhere: its endpoint ends
 */
void engine_multi_init(struct engine_rx *whole, size_t min_free);
struct engine_rx *engine_multi_part(struct engine_domain *domain, struct engine_rx *whole,
				    size_t len);
struct engine_rx *engine_multi_take(struct engine_domain *domain, struct engine_rxq *q,
				    struct engine_rx *whole, size_t len);
void engine_multi_close(struct engine_domain *domain, struct engine_rx *whole);
uint64_t engine_part_flags(const struct engine_rx *part);
void engine_part_free(struct engine_domain *domain, struct engine_rx *part, bool told);
void engine_recv_end(struct engine_domain *domain, struct engine_rx *rx);
void engine_rx_drop(struct engine_domain *domain, struct engine_rx *rx);

/* engine_recv_done - the message of a receive is there whole; takes rx, which is linked nowhere */
static inline void engine_recv_done(struct engine_domain *domain, struct engine_rx *rx)
{
	if (unlikely(rx->len > rx->cap ||
		     rx->flags & (ENGINE_PART | ENGINE_DEFERRED | PACKET_GROUP))) {
		engine_recv_end(domain, rx);
		return;
	}
	engine_count(rx->ctx->cntr[ENGINE_CNTR_RECV], 0, rx->len);
	if (rx->flags & ENGINE_COMPLETE)
		engine_recv_entry(rx, 0);
	engine_rx_put(domain, rx);
}

/*
 * engine_recv_plain - does a posted receive end with a message of @len bytes for @ctx, in one
 * piece and at once, and is nobody told but @ctx?
 */
static inline bool engine_recv_plain(const struct engine_rx *rx,
				     const struct engine_rx_ctx *ctx, size_t len)
{
	return !(rx->flags & (ENGINE_MULTI | ENGINE_DEFERRED | PACKET_GROUP)) &&
	       rx->ctx == ctx && len <= rx->cap && rx->iov_cnt == 1;
}

/*
 * engine_recv_plain_done - that message is there: @packet has all that is to be told. Takes rx,
 * linked nowhere
 */
static inline void engine_recv_plain_done(struct engine_rx *rx, const struct engine_rx_ctx *ctx,
					  const struct engine_peer *peer,
					  const struct packet *packet)
{
	engine_count(ctx->cntr[ENGINE_CNTR_RECV], 0, packet->len);
	if (rx->flags & ENGINE_COMPLETE)
		engine_packet_entry(&ctx->cq->queue, rx, peer, packet);
	pool_put(&ctx->ep->domain->rx_pool, rx);
}

/*
 * engine_recv_met - take a posted receive out of the matcher, for a message of @len bytes
 * Returns the receive of that message, linked nowhere, or NULL without memory (it is posted still).
 */
static inline struct engine_rx *engine_recv_met(struct engine_domain *domain,
						struct engine_rxq *q, struct match_recv *recv,
						size_t len)
{
	struct engine_rx *rx = container_of(recv, struct engine_rx, match);

	if (unlikely(rx->flags & ENGINE_MULTI))
		return engine_multi_take(domain, q, rx, len);
	match_unpost(engine_matcher(q, rx->flags), recv);
	return rx;
}

/* @rx, posted to a context that is shared, has a message for @ctx */
void engine_recv_move(struct engine_rx *rx, struct engine_rx_ctx *ctx);

/* engine_rx_wants - ENGINE_COMPLETE, when success of a receive with these flags is told of */
static inline uint32_t engine_rx_wants(const struct engine_rx_ctx *rx, uint64_t flags)
{
	if (!rx->ep) /* engine_recv_move() will look where it is told */
		return flags & FI_COMPLETION ? ENGINE_COMPLETE : 0;
	return rx->cq && (!rx->selective || flags & FI_COMPLETION) ? ENGINE_COMPLETE : 0;
}

/* engine_recv_take - engine_recv_met() of an arriving message: what the completion will say of it */
static inline struct engine_rx *engine_recv_take(struct match_recv *recv,
						 struct engine_rx_ctx *ctx,
						 struct engine_peer *peer,
						 const struct packet *packet, size_t len)
{
	struct engine_rx *rx = engine_recv_met(peer->ep->domain, ctx->q, recv, len);

	if (unlikely(!rx))
		return NULL;
	if (unlikely(rx->ctx != ctx))
		engine_recv_move(rx, ctx);
	rx->peer = peer;
	rx->tag = packet->tag;
	rx->data = packet->data;
	rx->len = len;
	rx->flags |= packet->flags & PACKET_CQ_DATA;
	return rx;
}

/*
 * engine_land - payload that came whole, to the bytes of @iov from @skip on; they are enough
 * (recv.c)
 */
void engine_land(const struct engine_peer *peer, const struct iovec *iov, size_t cnt,
		 size_t skip, const void *payload, size_t len);

/* engine_recv_copy - that of a message, to its receive (recv.c) */
void engine_recv_copy(struct engine_rx *rx, const void *payload, size_t len);

/* From rndv.c: a receive, or a write of a peer's, has met an RTS. Takes rx, linked nowhere. */
void engine_rndv_receive(struct engine_ep *ep, struct engine_peer *peer, struct engine_rx *rx,
			 const struct packet *packet, const struct packet_rts *rts);

/*
 * From rndv.c, for engine_packet(): the other packets of a rendezvous. 0 or -FI_E* to end the
 * conn.
 */
int engine_rndv_cts(struct engine_peer *peer, const struct packet *packet,
		    const struct packet_cts *cts);
int engine_rndv_data(struct engine_peer *peer, const struct packet *packet, const void *payload,
		     size_t avail, struct wire_dest *dest);
int engine_rndv_fin(struct wire_conn *conn, const struct packet *packet);

/* From rndv.c: what the wire was writing for @rx is there */
void engine_rndv_arrived(struct engine_rx *rx);

/* From rndv.c, for flush.c: send payload that waits for room; false when there is none still */
bool engine_rndv_push(struct engine_tx *tx);

/*
 * From peek.c: engine_cancel_message - end the receive or unsent send with that context. 0 or
 * -FI_ENOENT
 */
int engine_cancel_message(struct engine_ctx *ctx, void *context);

#endif
