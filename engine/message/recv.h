/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receiving: the steps from an arriving message to the completion of its receive. Those of the fast
 * path are inline; each wire instantiates that path in its poll() (progress/arrive.h). There a
 * small message that is the next of its sender and matches a posted receive is copied to the user's
 * buffer and reported to the completion queue. All other packets go to engine_packet() in
 * progress/arrive.c. A message without a receive is held (held.c) until a call in recv.c or peek.c
 * asks for it.
 *
 * A receive is not linked when it is in no matcher and in none of the lists of a peer. The caller
 * holds the domain.
 */
#ifndef WEFT_RECV_H
#define WEFT_RECV_H

#include "complete.h"
#include "copy.h"
#include "credit.h"
#include "peer.h"
#include "rxq.h"
#include "tx.h"

/* One receive, as a call expresses it. */
struct engine_want {
	const struct iovec *iov;
	size_t cnt;
	fi_addr_t src;
	uint64_t tag, ignore;
	void *context;
	/* PACKET_TAGGED, PACKET_GROUP, enum engine_flag */
	uint32_t flags;
	/* ENGINE_DEFERRED: counter of the deferred work, referenced, taken on success; or NULL */
	struct engine_cntr *work_cntr;
};

/*
 * engine_want_of, engine_want_of_tagged - convert the arguments of a receive call with flags whose
 * receive is posted later
 * @want: out: borrows the buffers and the iovec of the call
 * Returns 0, -FI_ENOSYS for FI_PEEK, FI_CLAIM and FI_DISCARD, which can't be deferred, or another
 * -FI_E*.
 * Source: fi_msg(3), fi_tagged(3).
 */
int engine_want_of(const struct engine_ctx *ctx, const struct fi_msg *msg, uint64_t flags,
		   struct engine_want *want);
int engine_want_of_tagged(const struct engine_ctx *ctx, const struct fi_msg_tagged *msg,
			  uint64_t flags, struct engine_want *want);

/*
 * engine_post - match a receive with a stored message, or post it if there is none
 * Returns 0, -FI_EAGAIN without memory (nothing happened), or another -FI_E*.
 */
ssize_t engine_post(struct engine_ctx *ctx, const struct engine_want *want);

/*
 * engine_rx_put - return a receive to the pool
 * The fields of a message are zero in every receive of the pool. They are cleared here and not when
 * a receive is created: a plain receive (engine_recv_plain_done()) never sets them, and so is
 * returned without clearing them.
 */
static inline void engine_rx_put(struct engine_domain *domain, struct engine_rx *rx)
{
	rx->peer = NULL;
	rx->len = rx->got = rx->incoming = 0;
	rx->tag = rx->data = rx->peer_id = 0;
	rx->landing = NULL;
	pool_put(&domain->rx_pool, rx);
}

/* engine_rx_free - free a receive without a completion; takes rx, which is not linked */
static inline void engine_rx_free(struct engine_domain *domain, struct engine_rx *rx)
{
	if (unlikely(rx->flags & ENGINE_DEFERRED))
		engine_cntr_release(rx->work_cntr);
	engine_rx_put(domain, rx);
}

/*
 * engine_recv_error - end a receive with an error, and report it
 * @rx:  takes it; not linked
 * @err: -FI_E*
 * A multi-receive buffer with parts ends after its last part. A large write of the peer ends
 * without a completion here.
 */
void engine_recv_error(struct engine_domain *domain, struct engine_rx *rx, int err);

/*
 * wire_dest.cookie is the address of a struct engine_rx, or, with one of these bits, of a struct
 * engine_held or a struct engine_tx.
 */
#define ENGINE_COOKIE_HELD ((uintptr_t)1)
#define ENGINE_COOKIE_TX   ((uintptr_t)2)

/*
 * engine_recv_finish - engine_recv_done(), and send a FIN if the sender waits for it; takes rx,
 * which is not linked
 */
void engine_recv_finish(struct engine_domain *domain, struct engine_rx *rx);

/* engine_recv_sender - record in the receive what a FIN for @packet needs: flag and id */
static inline void engine_recv_sender(struct engine_rx *rx, const struct packet *packet)
{
	rx->flags |= packet->flags & PACKET_DELIVERY;
	rx->peer_id = packet->seq;
}

/*
 * Held messages: they have no receive yet, or have arrived before their turn. Defined in held.c.
 */

/*
 * engine_hold_stored - hold a whole message that is the next of its sender and matches no receive,
 * and store it in the matcher
 * Returns 0 or -FI_ENOMEM.
 */
int engine_hold_stored(struct engine_rx_ctx *ctx, struct engine_peer *peer,
		       const struct packet *packet, const void *payload);

/*
 * engine_hold - hold a message or request whose payload may still be arriving
 * @avail: bytes of the payload that have arrived
 * @dest:  out: memory of the held message, if @avail is less than packet->len
 * Returns the held message in no list but, while its payload arrives, peer->arriving; or NULL
 * without memory.
 */
struct engine_held *engine_hold(struct engine_rx_ctx *ctx, struct engine_peer *peer,
				const struct packet *packet, const void *payload, size_t avail,
				struct wire_dest *dest);

/*
 * engine_held_store - store a message in the matcher: its turn has come, and it matches no receive
 * Takes held. Sends the FIN as engine_held_deliver() does; drops a message that its group does not
 * want.
 */
void engine_held_store(struct engine_held *held);

/*
 * engine_held_receive - receive a held message into @rx, which it matches
 * @held: takes it; in no list but, possibly, peer->arriving
 * @rx:   takes it; not linked
 */
void engine_held_receive(struct engine_held *held, struct engine_rx *rx);

/*
 * engine_held_fill - copy the whole payload of a held message to @rx, and complete the receive
 * @held: takes it; in no list
 * @rx:   takes it; not linked
 */
void engine_held_fill(struct engine_held *held, struct engine_rx *rx);

/*
 * engine_held_deliver - send the FIN of a held message, if it counts as delivered without a receive
 */
void engine_held_deliver(struct engine_held *held);

/*
 * engine_held_drop - discard a message that no receive will take
 * @held: takes it; in no list but, possibly, peer->arriving: then it is freed when it is whole
 * The sender gets the FIN that it waits for.
 */
void engine_held_drop(struct engine_ep *ep, struct engine_held *held);

/* engine_held_free - free a held message; sends nothing to its sender */
void engine_held_free(struct engine_ep *ep, struct engine_held *held);

/* engine_held_len - returns the length of a held message, bytes */
static inline size_t engine_held_len(const struct engine_held *held)
{
	return held->packet.op == PACKET_RTS ? held->rts.len : held->packet.len;
}

/*
 * Multi-receive buffers (ENGINE_MULTI), and the messages in them, called parts (ENGINE_PART).
 * Defined in multi.c. Source: fi_msg(3), fi_cq(3), FI_MULTI_RECV.
 */

/*
 * engine_multi_init - make a receive a multi-receive buffer
 * @whole:    the other fields are set
 * @min_free: the buffer is spent when fewer bytes are left; 0 counts as 1
 */
void engine_multi_init(struct engine_rx *whole, size_t min_free);

/*
 * engine_multi_part - create the receive of the next message, in the free bytes of @whole
 * @len: length of the message, bytes
 * Sets whole->spent if too few bytes are left for another message.
 * Returns the part, not linked, or NULL without memory: nothing happened.
 */
struct engine_rx *engine_multi_part(struct engine_domain *domain, struct engine_rx *whole,
				    size_t len);

/*
 * engine_multi_take - engine_multi_part() of a posted buffer, which is unposted when it is spent
 */
struct engine_rx *engine_multi_take(struct engine_domain *domain, struct engine_rxq *q,
				    struct engine_rx *whole, size_t len);

/*
 * engine_multi_close - let a buffer take no more messages; takes @whole, which is not linked
 * It is released with its last part, or at once if it has none.
 */
void engine_multi_close(struct engine_domain *domain, struct engine_rx *whole);

/*
 * engine_part_flags - returns the flag by which the completion of a part releases its buffer:
 * FI_MULTI_RECV if it is the last part of a spent buffer, or 0
 */
uint64_t engine_part_flags(const struct engine_rx *part);

/*
 * engine_part_free - free a part, and its buffer if it was the last part of a spent one
 * @part: takes it
 * @reported: a completion with engine_part_flags() was written; otherwise the buffer is released by
 *            a completion of its own
 */
void engine_part_free(struct engine_domain *domain, struct engine_rx *part, bool reported);

/*
 * engine_recv_end - engine_recv_done() of the receives that are not inlined: parts, deferred work,
 * receives of groups and of connected endpoints, and messages that are longer than their buffer
 */
void engine_recv_end(struct engine_domain *domain, struct engine_rx *rx);

/*
 * engine_rx_drop - free a matched receive because its endpoint is closed; takes rx, which is not
 * linked
 * No completion is written, except for a shared multi-receive buffer that is released.
 */
void engine_rx_drop(struct engine_domain *domain, struct engine_rx *rx);

/*
 * engine_recv_done - complete a receive whose whole message has arrived; takes rx, which is not
 * linked
 * A message that is longer than the buffer completes with -FI_ETRUNC.
 */
static inline void engine_recv_done(struct engine_domain *domain, struct engine_rx *rx)
{
	if (unlikely(rx->len > rx->cap || rx->flags & (ENGINE_PART | ENGINE_DEFERRED |
						       ENGINE_ORDERED | PACKET_GROUP))) {
		engine_recv_end(domain, rx);
		return;
	}
	engine_count(rx->ctx->cntr[ENGINE_CNTR_RECV], 0, rx->len);
	if (rx->flags & ENGINE_COMPLETE)
		engine_recv_entry(rx, 0);
	engine_rx_put(domain, rx);
}

/*
 * engine_recv_plain - returns true if engine_recv_plain_done() can complete a posted receive
 * @ctx: receive context of the message
 * @len: length of the message, bytes
 * It can if the message fits in the buffer, which has one piece and takes no other message, and if
 * only @ctx reports the completion.
 */
static inline bool engine_recv_plain(const struct engine_rx *rx,
				     const struct engine_rx_ctx *ctx, size_t len)
{
	return !(rx->flags & (ENGINE_MULTI | ENGINE_DEFERRED | PACKET_GROUP)) &&
	       rx->ctx == ctx && len <= rx->cap && rx->iov_cnt == 1;
}

/*
 * engine_recv_plain_done - complete a plain receive (engine_recv_plain()) whose payload was copied
 * @rx:     takes it; not linked, and its fields of a message are not set
 * @packet: header of the message, from which the completion is written
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
 * engine_recv_matched - take the receive of a message out of the matcher
 * @recv: posted receive that the message matches
 * @len:  length of the message, bytes
 * Returns the receive, or a part of a multi-receive buffer, not linked; or NULL without memory for
 * a part: the buffer stays posted.
 */
static inline struct engine_rx *engine_recv_matched(struct engine_domain *domain,
						    struct engine_rxq *q,
						    struct match_recv *recv, size_t len)
{
	struct engine_rx *rx = container_of(recv, struct engine_rx, match);

	if (unlikely(rx->flags & ENGINE_MULTI))
		return engine_multi_take(domain, q, rx, len);
	match_unpost(engine_matcher(q, rx->flags), recv);
	return rx;
}

/*
 * engine_recv_move - make @ctx the context of a receive, which reports it: its message is for @ctx
 * @rx: was posted to a shared receive context
 */
void engine_recv_move(struct engine_rx *rx, struct engine_rx_ctx *ctx);

/*
 * engine_rx_wants - returns ENGINE_COMPLETE if a receive writes a completion when it succeeds, or 0
 * @flags: flags of the call, FI_COMPLETION among them
 * For a shared receive context only FI_COMPLETION counts: engine_recv_move() decides again for the
 * context of the message.
 */
static inline uint32_t engine_rx_wants(const struct engine_rx_ctx *rx, uint64_t flags)
{
	if (!rx->ep)
		return flags & FI_COMPLETION ? ENGINE_COMPLETE : 0;
	return rx->cq && (!rx->selective || flags & FI_COMPLETION) ? ENGINE_COMPLETE : 0;
}

/*
 * engine_recv_take - engine_recv_matched() for an arriving message; sets what the completion
 * reports
 * @packet: header of the message
 * @len:    length of the message, bytes
 */
static inline struct engine_rx *engine_recv_take(struct match_recv *recv,
						 struct engine_rx_ctx *ctx,
						 struct engine_peer *peer,
						 const struct packet *packet, size_t len)
{
	struct engine_rx *rx = engine_recv_matched(peer->ep->domain, ctx->q, recv, len);

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

/* Copying payload, defined in recv.c. */

/*
 * engine_land - copy payload from the memory of a wire to @iov
 * @skip: offset of the destination in @iov, bytes
 * @len:  length of the payload, bytes; @iov has at least @skip + @len
 */
void engine_land(const struct engine_peer *peer, const struct iovec *iov, size_t cnt,
		 size_t skip, const void *payload, size_t len);

/* engine_recv_copy - copy the payload of a message to its receive, as much of it as fits */
void engine_recv_copy(struct engine_rx *rx, const void *payload, size_t len);

/* Rendezvous, defined in rndv.c. */

/*
 * engine_rndv_receive - begin to receive the payload of an RTS
 * @rx:     takes it; not linked. A receive, or a large write of the peer
 * @packet: header of the RTS; @rts: its payload
 */
void engine_rndv_receive(struct engine_ep *ep, struct engine_peer *peer, struct engine_rx *rx,
			 const struct packet *packet, const struct packet_rts *rts);

/*
 * engine_rndv_cts, engine_rndv_data, engine_rndv_fin - handle a CTS, DATA or FIN
 * @avail, @dest: as in engine_packet(), which calls these
 * Return 0, or -FI_E* if the packet is invalid: the conn is ended.
 */
int engine_rndv_cts(struct engine_peer *peer, const struct packet *packet,
		    const struct packet_cts *cts);
int engine_rndv_data(struct engine_peer *peer, const struct packet *packet, const void *payload,
		     size_t avail, struct wire_dest *dest);
int engine_rndv_fin(struct wire_conn *conn, const struct packet *packet);

/*
 * engine_rndv_arrived - the payload of a DATA packet is in the memory of @rx
 * @rx: ends if all of its payload has arrived
 */
void engine_rndv_arrived(struct engine_rx *rx);

/*
 * engine_rndv_push - send the next payload of a send in peer->pushing; for progress/flush.c
 * Returns false if the wire has no room: @tx stays in the list.
 */
bool engine_rndv_push(struct engine_tx *tx);

/*
 * engine_cancel_message - cancel a posted receive, or a send that was not sent, with that context
 * It completes with -FI_ECANCELED. Defined in peek.c.
 * Returns 0, or -FI_ENOENT if there is none.
 * Source: fi_endpoint(3), fi_cancel.
 */
int engine_cancel_message(struct engine_ctx *ctx, void *context);

#endif
