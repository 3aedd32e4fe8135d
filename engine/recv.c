/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arriving packets outside the common case, messages that wait for a receive or for their
 * turn, and the receive calls. Called with the domain held: from the op tables' slots, and by
 * wires from progress.
 */
#include "recv.h"
#include "access.h"
#include "progress.h"
#include "send.h"
#include "trigger.h"

#define EAGER_LIMIT (1u << 20) /* eager payload that is believed, bytes */

void engine_recv_error(struct engine_domain *domain, struct engine_rx *rx, int err)
{
	size_t got = rx->len < rx->cap ? rx->len : rx->cap;
	uint64_t more = rx->flags & ENGINE_PART ? engine_part_flags(rx) : 0;
	fi_addr_t src = rx->peer ? rx->peer->told : rx->flags & ENGINE_MULTI ? rx->src : FI_ADDR_NOTAVAIL;
	struct fi_cq_err_entry entry = {
		.op_context = rx->context,
		.flags = FI_RECV | (rx->flags & PACKET_TAGGED ? FI_TAGGED : FI_MSG) |
			 (rx->flags & PACKET_CQ_DATA ? FI_REMOTE_CQ_DATA : 0) |
			 (rx->flags & ENGINE_MULTI ? FI_MULTI_RECV : more),
		.len = err == -FI_ETRUNC ? got : 0,
		.buf = rx->iov[0].iov_base,
		.data = rx->data,
		.tag = rx->tag,
		.olen = err == -FI_ETRUNC ? rx->len - got : 0,
		.err = -err,
		.prov_errno = -err,
		.src_addr = src,
	};

	if (rx->landing) {
		/* A peer's write: it is not ours to tell of. */
		engine_landing_drop(rx->peer->ep, rx->landing);
		rx->landing = NULL;
		pool_put(&domain->rx_pool, rx);
		return;
	}
	if (rx->flags & PACKET_COLL) {
		engine_coll_received(rx, err);
		return;
	}
	if (rx->flags & ENGINE_MULTI && rx->parts_cnt) {
		/* after what is under way in it */
		rx->spent = true;
		rx->err = err;
		rx->src = src;
		rx->peer = NULL; /* may be gone by then */
		return;
	}
	if (rx->flags & ENGINE_DEFERRED)
		engine_deferred_end(rx->ctx->cntr[ENGINE_CNTR_RECV], rx->also, rx->flags, err, 0);
	else
		engine_count(rx->ctx->cntr[ENGINE_CNTR_RECV], err, 0);
	if (rx->ctx->cq)
		cq_push_error(&rx->ctx->cq->queue, &entry, src);
	if (rx->flags & ENGINE_PART)
		engine_part_free(domain, rx, true);
	else
		pool_put(&domain->rx_pool, rx);
}

void engine_recv_finish(struct engine_domain *domain, struct engine_rx *rx)
{
	struct engine_peer *peer = rx->peer;
	uint64_t id = rx->peer_id, len = rx->len;
	bool tell = rx->flags & PACKET_DELIVERY;

	engine_recv_done(domain, rx);
	if (tell)
		engine_ctl(peer, PACKET_FIN, id, len, NULL);
}

/* What a receive has to know of its message beside what its completion says. */
static void engine_recv_sender(struct engine_rx *rx, const struct packet *packet)
{
	rx->flags |= packet->flags & PACKET_DELIVERY;
	rx->peer_id = packet->seq;
}

void engine_owe(struct engine_peer *peer, size_t len)
{
	if (len <= ENGINE_INJECT_MAX)
		return;
	peer->owed += (uint32_t)len;
	if (peer->owed >= peer->window / 2 && peer->owed >= CREDIT_UNIT && peer->conn)
		engine_ctl(peer, PACKET_CREDIT, 0, 0, NULL);
}

int engine_rxq_init(struct engine_rxq *q, bool shared)
{
	q->tagged = match_create();
	q->msg = match_create();
	if (!q->tagged || !q->msg) {
		match_destroy(q->tagged);
		match_destroy(q->msg);
		q->tagged = q->msg = NULL;
		return -FI_ENOMEM;
	}
	list_init(&q->posted);
	list_init(&q->claimed);
	q->shared = shared;
	return 0;
}

void engine_rxq_unpost(struct engine_domain *domain, struct engine_rxq *q)
{
	struct list *node;

	while ((node = list_pop(&q->posted))) {
		struct engine_rx *rx = container_of(node, struct engine_rx, link);

		match_cancel(engine_matcher(q, rx->flags), &rx->match);
		if (rx->flags & ENGINE_MULTI && rx->parts_cnt)
			rx->spent = true; /* goes with the last message in it */
		else
			engine_rx_free(domain, rx);
	}
}

void engine_rxq_fini(struct engine_domain *domain, struct engine_rxq *q)
{
	struct list *node;

	if (!q->tagged)
		return;
	while ((node = list_pop(&q->posted)))
		engine_rx_free(domain, container_of(node, struct engine_rx, link));
	match_destroy(q->tagged);
	match_destroy(q->msg);
	q->tagged = q->msg = NULL;
}

static void engine_matcher_drop(struct engine_ep *ep, struct match *m)
{
	struct match_msg *msg, *after;

	for (msg = match_next_msg(m, NULL); msg; msg = after) {
		struct engine_held *held = container_of(msg, struct engine_held, match);

		after = match_next_msg(m, msg);
		if (held->peer->ep != ep)
			continue;
		match_take(m, msg);
		engine_held_free(ep, held);
	}
}

void engine_rxq_drop(struct engine_ep *ep, struct engine_rxq *q)
{
	struct list *node, *after;

	if (!q->tagged)
		return;
	engine_matcher_drop(ep, q->tagged);
	engine_matcher_drop(ep, q->msg);
	list_for_each(node, after, &q->claimed) {
		struct engine_held *held = container_of(node, struct engine_held, link);

		if (held->peer->ep != ep)
			continue;
		list_remove(&held->link);
		engine_held_free(ep, held);
	}
}

static struct engine_held *engine_held_new(struct engine_rx_ctx *ctx, struct engine_peer *peer,
					   const struct packet *packet)
{
	struct engine_ep *ep = peer->ep;
	struct engine_held *held;
	bool pooled = packet->len <= ENGINE_HELD_SMALL;

	held = pooled ? pool_get(&ep->held_pool) : platform_alloc(sizeof(*held) + packet->len);
	if (!held)
		return NULL;
	held->peer = peer;
	held->ctx = ctx;
	held->packet = *packet;
	held->rx = NULL;
	held->claim = NULL;
	held->whole = true;
	held->pooled = pooled;
	held->lost = false;
	held->counted = true;
	peer->held_cnt++;
	list_init(&held->link);
	list_init(&held->arriving);
	return held;
}

void engine_held_free(struct engine_ep *ep, struct engine_held *held)
{
	list_remove(&held->arriving);
	held->peer->held_cnt--;
	if (held->pooled)
		pool_put(&ep->held_pool, held);
	else
		platform_free(held);
}

static void engine_held_store(struct engine_held *held)
{
	struct engine_rxq *q = held->ctx->q;

	if (held->packet.flags & PACKET_COLL && engine_coll_stray(held->peer, &held->packet)) {
		engine_held_drop(held->peer->ep, held);
		return;
	}
	held->state = HELD_STORED;
	held->match.source = engine_source_id(q, held->peer);
	held->match.tag = held->packet.tag;
	match_store(engine_matcher(q, held->packet.flags), &held->match);
}

int engine_hold_stored(struct engine_rx_ctx *ctx, struct engine_peer *peer, const struct packet *packet,
		       const void *payload)
{
	struct engine_held *held = engine_held_new(ctx, peer, packet);

	if (!held)
		return -FI_ENOMEM;
	copy_bytes(held->bytes, payload, packet->len);
	engine_held_store(held);
	return 0;
}

/* Keep a packet whose payload may still be arriving. */
static struct engine_held *engine_hold(struct engine_rx_ctx *ctx, struct engine_peer *peer, const struct packet *packet,
				       const void *payload, size_t avail, struct wire_dest *dest)
{
	struct engine_held *held = engine_held_new(ctx, peer, packet);

	if (!held)
		return NULL;
	if (PACKET_OP(packet->op) == PACKET_RTS && !(packet->flags & PACKET_TARGETS)) {
		memcpy(&held->rts, payload, sizeof(held->rts));
	} else if (avail == packet->len) {
		memcpy(held->bytes, payload, avail);
	} else {
		held->whole = false;
		list_push(&peer->arriving, &held->arriving);
		dest->iov[0] = (struct iovec){ held->bytes, packet->len };
		dest->iov_cnt = 1;
		dest->cookie = (void *)((uintptr_t)held | ENGINE_COOKIE_HELD);
	}
	return held;
}

/* Bytes of the message that is held. */
static size_t engine_held_len(const struct engine_held *held)
{
	return PACKET_OP(held->packet.op) == PACKET_RTS ? held->rts.len : held->packet.len;
}

/* A receive has met a held message, which is linked nowhere but, perhaps, among the arriving. */
static void engine_held_receive(struct engine_held *held, struct engine_rx *rx)
{
	struct engine_peer *peer = held->peer;
	struct engine_ep *ep = peer->ep;

	if (rx->ctx != held->ctx)
		engine_recv_move(rx, held->ctx);
	rx->peer = peer;
	rx->tag = held->packet.tag;
	rx->data = held->packet.data;
	rx->len = engine_held_len(held);
	rx->flags |= held->packet.flags & PACKET_CQ_DATA;
	engine_recv_sender(rx, &held->packet);
	if (held->lost) {
		engine_held_free(ep, held);
		engine_recv_error(ep->domain, rx, -FI_ECONNRESET);
	} else if (PACKET_OP(held->packet.op) == PACKET_RTS) {
		engine_rndv_receive(ep, peer, rx, &held->packet, &held->rts);
		engine_held_free(ep, held);
	} else if (held->whole) {
		engine_recv_copy(rx, held->bytes, held->packet.len);
		if (held->counted)
			engine_owe(peer, held->packet.len);
		engine_held_free(ep, held);
		engine_recv_finish(ep->domain, rx);
	} else {
		held->state = HELD_MATCHED;
		held->rx = rx;
		list_push(&peer->receiving, &rx->link);
	}
}

void engine_recv_move(struct engine_rx *rx, struct engine_rx_ctx *ctx)
{
	rx->ctx = ctx;
	if (!ctx->cq)
		rx->flags &= ~ENGINE_COMPLETE;
	else if (!ctx->selective)
		rx->flags |= ENGINE_COMPLETE;
}

/* A message that is stored has a source that receives may name. */
static void engine_held_renamed(struct engine_rxq *q, struct match *m, struct engine_held *held)
{
	uint64_t source = engine_source_id(q, held->peer);
	struct match_recv *recv;
	struct engine_rx *rx;

	match_rename(m, &held->match, source);
	recv = match_arrive(m, source, held->packet.tag);
	if (!recv)
		return;
	match_take(m, &held->match);
	rx = engine_recv_met(held->peer->ep->domain, q, recv, engine_held_len(held));
	if (rx)
		engine_held_receive(held, rx);
	else
		match_store(m, &held->match);
}

void engine_rxq_rename(struct engine_rxq *q, struct engine_peer *peer)
{
	struct match *matchers[] = { q->tagged, q->msg };
	struct match_msg *msg, *after;

	for (int i = 0; i < 2; i++) {
		for (msg = match_next_msg(matchers[i], NULL); msg; msg = after) {
			struct engine_held *held = container_of(msg, struct engine_held, match);

			after = match_next_msg(matchers[i], msg);
			if (held->peer == peer)
				engine_held_renamed(q, matchers[i], held);
		}
	}
}

/* Nobody wants a held message any more. */
void engine_held_drop(struct engine_ep *ep, struct engine_held *held)
{
	if (!held->whole) {
		held->state = HELD_MATCHED;
		held->rx = NULL;
		return;
	}
	if (PACKET_OP(held->packet.op) == PACKET_RTS && !held->lost)
		engine_ctl(held->peer, PACKET_FIN, held->rts.id, 0, NULL);
	else if (held->packet.flags & PACKET_DELIVERY && !held->lost)
		engine_ctl(held->peer, PACKET_FIN, held->packet.seq, 0, NULL);
	if (PACKET_OP(held->packet.op) == PACKET_EAGER && held->counted)
		engine_owe(held->peer, held->packet.len);
	engine_held_free(ep, held);
}

/* A message that waited for its turn has it. 0 or -FI_ENOMEM */
static int engine_early_turn(struct engine_ep *ep, struct engine_held *held)
{
	struct engine_peer *peer = held->peer;
	struct engine_rxq *q = held->ctx->q;
	struct match_recv *recv;
	struct engine_rx *rx;
	int ret;

	list_remove(&held->link);
	peer->early_cnt--;
	peer->rx_seq++;
	if (engine_is_request(&held->packet)) {
		peer->early_large -= held->packet.len > ENGINE_EARLY_MAX;
		ret = engine_request(held->ctx, peer, &held->packet, held->bytes);
		engine_held_free(ep, held);
		return ret;
	}
	if (held->packet.flags & PACKET_ACKED)
		engine_ack_due(peer);
	recv = match_arrive(engine_matcher(q, held->packet.flags), engine_source_id(q, peer), held->packet.tag);
	if (!recv) {
		engine_held_store(held);
		return 0;
	}
	rx = engine_recv_met(ep->domain, q, recv, engine_held_len(held));
	if (!rx) {
		engine_held_store(held);
		return -FI_ENOMEM;
	}
	engine_held_receive(held, rx);
	return 0;
}

/*
 * Is this a request that no sender lets overtake anything? Only what was sent before a change of
 * route can come after it: then it is kept, at most as many as a peer has under way.
 */
static bool engine_early_refused(struct engine_peer *peer, const struct packet *packet)
{
	if (!engine_is_request(packet) || packet->len <= ENGINE_EARLY_MAX)
		return false;
	return !peer->several || peer->early_large >= ENGINE_TX_SIZE;
}

/* A message overtook another: keep it in its place. */
static int engine_early(struct engine_rx_ctx *ctx, struct engine_peer *peer, const struct packet *packet,
			const void *payload, size_t avail, struct wire_dest *dest)
{
	struct engine_held *held;
	struct list *at = peer->early.prev;

	if ((int32_t)(packet->seq - peer->rx_seq) < 0)
		return -FI_EINVAL;
	if (engine_early_refused(peer, packet))
		return -FI_EINVAL;
	while (at != &peer->early) {
		uint32_t seq = container_of(at, struct engine_held, link)->packet.seq;

		if (seq == packet->seq)
			return -FI_EINVAL;
		if (seq - peer->rx_seq < packet->seq - peer->rx_seq)
			break;
		at = at->prev;
	}
	held = engine_hold(ctx, peer, packet, payload, avail, dest);
	if (!held)
		return -FI_ENOMEM;
	held->state = HELD_EARLY;
	list_insert_after(at, &held->link);
	peer->early_large += engine_is_request(packet) && packet->len > ENGINE_EARLY_MAX;
	peer->early_cnt++;
	return 0;
}

/* A message that is the next of its sender. */
static int engine_in_turn(struct engine_rx_ctx *ctx, struct engine_peer *peer, const struct packet *packet,
			  const void *payload, size_t avail, struct wire_dest *dest)
{
	struct engine_ep *ep = peer->ep;
	struct engine_rxq *q = ctx->q;
	struct match_recv *recv;
	struct engine_held *held;
	struct packet_rts rts;
	struct engine_rx *rx;

	peer->rx_seq++;
	if (engine_is_request(packet))
		return engine_request(ctx, peer, packet, payload);
	if (packet->flags & PACKET_ACKED)
		engine_ack_due(peer);
	recv = match_arrive(engine_matcher(q, packet->flags), engine_source_id(q, peer), packet->tag);
	if (!recv) {
		held = engine_hold(ctx, peer, packet, payload, avail, dest);
		if (!held)
			return -FI_ENOMEM;
		engine_held_store(held);
		return 0;
	}
	if (PACKET_OP(packet->op) == PACKET_RTS)
		memcpy(&rts, payload, sizeof(rts));
	rx = engine_recv_take(recv, ctx, peer, packet, PACKET_OP(packet->op) == PACKET_RTS ? rts.len : packet->len);
	if (!rx)
		return -FI_ENOMEM;
	engine_recv_sender(rx, packet);
	if (PACKET_OP(packet->op) == PACKET_RTS) {
		engine_rndv_receive(ep, peer, rx, packet, &rts);
	} else if (avail == packet->len) {
		engine_recv_copy(rx, payload, avail);
		engine_owe(peer, avail);
		engine_recv_finish(ep->domain, rx);
	} else {
		peer->filling_cnt++;
		rx->got = 0;
		rx->incoming = packet->len;
		list_push(&peer->receiving, &rx->link);
		dest->iov_cnt = (uint32_t)iov_slice(rx->iov, rx->iov_cnt, 0, packet->len, dest->iov);
		dest->cookie = rx;
	}
	return 0;
}

static int engine_message(struct engine_ep *ep, struct wire_conn *conn, const struct packet *packet,
			  const void *payload, size_t avail, struct wire_dest *dest)
{
	struct engine_peer *peer = conn->peer;
	bool eager = PACKET_OP(packet->op) == PACKET_EAGER;
	struct engine_rx_ctx *ctx;
	struct list *first;
	int ret;

	if (PACKET_RX_IDX(packet->op) >= ep->rx_cnt)
		return -FI_EINVAL;
	ctx = ep->rxs[PACKET_RX_IDX(packet->op)];
	if (packet->flags & PACKET_COLL) {
		if (engine_is_request(packet) || !(packet->flags & PACKET_TAGGED))
			return -FI_EINVAL;
		ctx = engine_coll_rx(ep);
		if (!ctx)
			return -FI_ENOMEM;
	}
	if (eager && packet->len > ENGINE_INJECT_MAX) {
		if (packet->len > EAGER_LIMIT || packet->len > peer->allowed)
			return -FI_EINVAL;
		peer->allowed -= packet->len;
	}
	if (packet->seq != peer->rx_seq) {
		ret = engine_early(ctx, peer, packet, payload, avail, dest);
	} else {
		ret = engine_in_turn(ctx, peer, packet, payload, avail, dest);
		while (!ret && peer->early_cnt) {
			first = peer->early.next;
			if (container_of(first, struct engine_held, link)->packet.seq != peer->rx_seq)
				break;
			ret = engine_early_turn(ep, container_of(first, struct engine_held, link));
		}
	}
	if (!ret) {
		conn->rx_msgs++;
		conn->rx_bytes += eager ? packet->len : 0;
	}
	return ret;
}

int engine_packet(struct engine_ep *ep, struct wire_conn *conn, const struct packet *packet, const void *payload,
		  size_t avail, struct wire_dest *dest)
{
	struct engine_peer *peer = conn->peer;
	struct packet_cts cts;
	int ret = -FI_EINVAL;

	dest->iov_cnt = 0;
	dest->cookie = NULL;
	if (packet->epoch != peer->rx_epoch || packet->flags & ~PACKET_FLAGS_KNOWN)
		return -FI_EINVAL;
	if (packet->credits) {
		if (packet->credits * CREDIT_UNIT > peer->credit_max - peer->credit)
			return -FI_EINVAL;
		peer->credit += packet->credits * CREDIT_UNIT;
		if (!list_empty(&peer->queued))
			engine_peer_block(peer);
	}
	if (PACKET_RX_IDX(packet->op) && PACKET_OP(packet->op) != PACKET_EAGER &&
	    PACKET_OP(packet->op) != PACKET_RTS && !engine_is_request(packet))
		return -FI_EINVAL;
	switch (PACKET_OP(packet->op)) {
	case PACKET_EAGER:
		if (!(packet->flags & (PACKET_TARGETS | PACKET_PULL)))
			ret = engine_message(ep, conn, packet, payload, avail, dest);
		break;
	case PACKET_RTS:
		if ((packet->len == sizeof(struct packet_rts) || packet->flags & PACKET_TARGETS) && avail == packet->len)
			ret = engine_message(ep, conn, packet, payload, avail, dest);
		break;
	case PACKET_WRITE:
	case PACKET_READ:
	case PACKET_ATOMIC:
		if (avail == packet->len)
			ret = engine_message(ep, conn, packet, payload, avail, dest);
		break;
	case PACKET_RESPONSE:
		ret = engine_response(peer, packet, payload, avail, dest);
		conn->rx_bytes += packet->len;
		break;
	case PACKET_ACK:
		ret = engine_acked(peer, packet);
		break;
	case PACKET_NAK:
		ret = engine_nacked(peer, packet);
		break;
	case PACKET_CTS:
		if (packet->len != sizeof(cts) || avail != packet->len)
			break;
		memcpy(&cts, payload, sizeof(cts));
		ret = engine_rndv_cts(peer, packet, &cts);
		break;
	case PACKET_DATA:
		ret = engine_rndv_data(peer, packet, payload, avail, dest);
		conn->rx_bytes += packet->len;
		break;
	case PACKET_FIN:
		ret = packet->len ? -FI_EINVAL : engine_rndv_fin(conn, packet);
		break;
	case PACKET_CREDIT:
		ret = packet->len ? -FI_EINVAL : 0;
		break;
	}
	return ret;
}

void engine_payload_done(struct engine_ep *ep, struct wire_conn *conn, void *cookie)
{
	struct engine_held *held;
	struct engine_rx *rx = cookie;
	size_t len;

	if ((uintptr_t)cookie & ENGINE_COOKIE_TX) {
		engine_response_arrived((struct engine_tx *)((uintptr_t)cookie & ~ENGINE_COOKIE_TX));
		return;
	}
	if (!((uintptr_t)cookie & ENGINE_COOKIE_HELD)) {
		if (rx->flags & ENGINE_ASKED) {
			engine_rndv_arrived(rx);
			return;
		}
		list_remove(&rx->link);
		rx->peer->filling_cnt--;
		engine_owe(rx->peer, rx->incoming);
		engine_recv_finish(ep->domain, rx);
		return;
	}
	held = (struct engine_held *)((uintptr_t)cookie & ~ENGINE_COOKIE_HELD);
	held->whole = true;
	list_remove(&held->arriving);
	if (held->state != HELD_MATCHED)
		return;
	rx = held->rx;
	len = held->packet.len;
	if (rx) {
		list_remove(&rx->link);
		engine_recv_copy(rx, held->bytes, len);
	}
	engine_owe(held->peer, len);
	if (!rx && held->packet.flags & PACKET_DELIVERY)
		engine_ctl(held->peer, PACKET_FIN, held->packet.seq, 0, NULL);
	engine_held_free(ep, held);
	if (rx)
		engine_recv_finish(ep->domain, rx);
}

/* May a receive that is posted to a shared context name that source? */
static bool engine_srx_knows(const struct engine_ctx *ctx, fi_addr_t src)
{
	const struct engine_srx *srx = container_of(ctx->base, struct engine_srx, ctx);
	const struct engine_ep *ep = container_of(srx->eps.next, struct engine_ep, srx_link);

	return src < UINT64_MAX - 1 && (list_empty(&srx->eps) || !ep->av || av_get(&ep->av->table, src));
}

/* The id that the matcher knows the source by; 0 for any. -FI_E* when there is no such source. */
static int engine_source(struct engine_ctx *ctx, fi_addr_t src, uint64_t *source)
{
	struct engine_ep *ep = ctx->ep;
	struct engine_peer *peer;
	uint32_t ignored;

	*source = MATCH_ANY_SOURCE;
	if (!ctx->directed_recv || src == FI_ADDR_UNSPEC)
		return 0;
	if (ctx->rx->q->shared) {
		if (!engine_srx_knows(ctx, src))
			return -FI_EINVAL;
		*source = src + 1;
		return 0;
	}
	peer = engine_peer_at(ep, src);
	if (!peer)
		peer = engine_peer_ctx(ep, src, &ignored);
	if (!peer)
		return (int)engine_peer_refused(ep, src);
	*source = (uintptr_t)peer;
	return 0;
}

static struct engine_rx *engine_rx_new(struct engine_ctx *ctx, const struct engine_want *want)
{
	struct engine_rx *rx = pool_get(&ctx->domain->rx_pool);
	bool ok;

	if (!rx)
		return NULL;
	rx->ctx = ctx->rx;
	rx->peer = NULL;
	rx->context = want->context;
	rx->len = rx->got = rx->incoming = 0;
	rx->tag = rx->data = rx->peer_id = 0;
	rx->flags = want->flags;
	rx->landing = NULL;
	if (likely(want->cnt == 1)) {
		rx->iov[0] = want->iov[0];
		rx->iov_cnt = 1;
		rx->cap = rx->iov[0].iov_len;
	} else {
		rx->iov[0] = (struct iovec){ 0 };
		if (want->cnt)
			memcpy(rx->iov, want->iov, want->cnt * sizeof(*want->iov));
		rx->iov_cnt = (uint32_t)want->cnt;
		rx->cap = iov_len(want->iov, want->cnt, &ok);
	}
	if (unlikely(want->flags & ENGINE_MULTI))
		engine_multi_init(rx, ctx->rx->q->min_multi_recv);
	if (unlikely(want->flags & ENGINE_DEFERRED))
		rx->also = container_of(want, struct engine_want_later, want)->also;
	return rx;
}

static void engine_post_new(struct engine_rxq *q, const struct engine_want *want, uint64_t source,
			    struct engine_rx *rx)
{
	rx->match.source = source;
	rx->match.tag = want->tag;
	rx->match.ignore = want->ignore;
	match_post(engine_matcher(q, want->flags), &rx->match);
	list_push(&q->posted, &rx->link);
}

/* Post a buffer for several messages: first for those that are here. Takes rx, which may have parts. */
static void engine_post_multi(struct engine_ctx *ctx, const struct engine_want *want, uint64_t source,
			      struct engine_rx *rx)
{
	struct engine_rxq *q = ctx->rx->q;
	struct match *m = engine_matcher(q, want->flags);
	struct engine_held *held;
	struct match_msg *msg;
	struct engine_rx *part;
	bool spent = rx->spent;

	while (!spent && (msg = match_find(m, source, want->tag, want->ignore))) {
		held = container_of(msg, struct engine_held, match);
		part = engine_multi_part(ctx->domain, rx, engine_held_len(held));
		if (!part) {
			engine_multi_close(ctx->domain, rx);
			return;
		}
		match_take(m, msg);
		spent = rx->spent; /* with its last part rx is gone */
		engine_held_receive(held, part);
	}
	if (!spent)
		engine_post_new(q, want, source, rx);
}

/* Can such a receive be posted? */
static inline int engine_want_check(const struct engine_ctx *ctx, const struct engine_want *want)
{
	bool ok;

	if (unlikely(!ctx->receives))
		return -FI_ENOCQ;
	if (unlikely(want->cnt > ENGINE_IOV_MAX || (want->cnt && !want->iov)))
		return -FI_EINVAL;
	if (unlikely(want->cnt && !want->iov[0].iov_base && want->iov[0].iov_len))
		return -FI_EINVAL;
	if (unlikely(want->flags & ENGINE_MULTI && want->cnt != 1))
		return -FI_EINVAL;
	if (unlikely(want->cnt > 1)) {
		iov_len(want->iov, want->cnt, &ok);
		if (!ok)
			return -FI_EINVAL;
	}
	return 0;
}

static ssize_t engine_post(struct engine_ctx *ctx, const struct engine_want *want)
{
	struct engine_rxq *q = ctx->rx->q;
	struct match *m = engine_matcher(q, want->flags);
	struct match_msg *msg;
	struct engine_rx *rx;
	uint64_t source;
	int ret;

	ret = engine_want_check(ctx, want);
	if (unlikely(ret))
		return ret;
	ret = engine_source(ctx, want->src, &source);
	if (unlikely(ret))
		return ret;
	rx = engine_rx_new(ctx, want);
	if (unlikely(!rx))
		return -FI_EAGAIN;
	if (unlikely(want->flags & ENGINE_MULTI)) {
		engine_post_multi(ctx, want, source, rx);
		return 0;
	}
	msg = match_find(m, source, want->tag, want->ignore);
	if (msg) {
		match_take(m, msg);
		engine_held_receive(container_of(msg, struct engine_held, match), rx);
		return 0;
	}
	engine_post_new(q, want, source, rx);
	return 0;
}

/* Completion of a FI_PEEK or FI_DISCARD: what the message is, and no data. */
static void engine_peek_done(const struct engine_want *want, const struct engine_held *held)
{
	struct cq_entry *e;

	if (!(want->flags & ENGINE_COMPLETE) || !held->ctx->cq)
		return;
	e = cq_slot(&held->ctx->cq->queue);
	if (!e)
		return;
	*e = (struct cq_entry){
		.context = want->context,
		.flags = FI_RECV | (want->flags & PACKET_TAGGED ? FI_TAGGED : FI_MSG) |
			 (held->packet.flags & PACKET_CQ_DATA ? FI_REMOTE_CQ_DATA : 0),
		.len = engine_held_len(held),
		.data = held->packet.data,
		.tag = held->packet.tag,
		.src = held->peer->told,
	};
	cq_push(&held->ctx->cq->queue);
}

static void engine_peek_failed(struct engine_rx_ctx *ctx, const struct engine_want *want)
{
	struct fi_cq_err_entry err = {
		.op_context = want->context,
		.flags = FI_RECV | (want->flags & PACKET_TAGGED ? FI_TAGGED : FI_MSG),
		.tag = want->tag,
		.err = FI_ENOMSG,
		.prov_errno = FI_ENOMSG,
		.src_addr = FI_ADDR_NOTAVAIL,
	};

	cq_push_error(&ctx->cq->queue, &err, FI_ADDR_NOTAVAIL);
}

static ssize_t engine_peek(struct engine_ctx *ctx, const struct engine_want *want, uint64_t flags)
{
	struct engine_rxq *q = ctx->rx->q;
	struct match *m = engine_matcher(q, want->flags);
	struct engine_held *held;
	struct match_msg *msg;
	uint64_t source;
	int ret;

	ret = engine_source(ctx, want->src, &source);
	if (ret)
		return ret;
	msg = match_find(m, source, want->tag, want->ignore);
	if (!msg) {
		engine_domain_progress(ctx->domain);
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
		list_push(&q->claimed, &held->link);
	}
	return 0;
}

/* The claimed message is the first in a buffer for several. */
static ssize_t engine_claim_multi(struct engine_ctx *ctx, const struct engine_want *want, struct engine_held *held)
{
	struct engine_rx *rx, *part;
	uint64_t source;
	bool spent;
	int ret;

	if (want->cnt != 1)
		return -FI_EINVAL;
	ret = engine_source(ctx, want->src, &source);
	if (ret)
		return ret;
	rx = engine_rx_new(ctx, want);
	part = rx ? engine_multi_part(ctx->domain, rx, engine_held_len(held)) : NULL;
	if (!part) {
		if (rx)
			pool_put(&ctx->domain->rx_pool, rx);
		return -FI_EAGAIN;
	}
	list_remove(&held->link);
	spent = rx->spent; /* with its last part rx is gone */
	engine_held_receive(held, part);
	if (!spent)
		engine_post_multi(ctx, want, source, rx);
	return 0;
}

static ssize_t engine_claim(struct engine_ctx *ctx, const struct engine_want *want, uint64_t flags)
{
	struct engine_held *held = NULL;
	struct list *node, *after;
	struct engine_rx *rx;

	list_for_each(node, after, &ctx->rx->q->claimed) {
		held = container_of(node, struct engine_held, link);
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
	if (want->cnt > ENGINE_IOV_MAX || (want->cnt && !want->iov))
		return -FI_EINVAL;
	if (want->flags & ENGINE_MULTI)
		return engine_claim_multi(ctx, want, held);
	rx = engine_rx_new(ctx, want);
	if (!rx)
		return -FI_EAGAIN;
	list_remove(&held->link);
	engine_held_receive(held, rx);
	return 0;
}

/* What the flags of a call say of a receive. 0 or -FI_EBADFLAGS */
static int engine_want_flags(const struct engine_ctx *ctx, struct engine_want *want, uint64_t flags)
{
	if (flags & ~(FI_COMPLETION | FI_MORE | FI_PEEK | FI_CLAIM | FI_DISCARD | FI_RECV | FI_TAGGED | FI_MSG |
		      FI_MULTI_RECV))
		return -FI_EBADFLAGS;
	if (flags & FI_MULTI_RECV) {
		if (flags & (FI_PEEK | FI_DISCARD))
			return -FI_EBADFLAGS;
		want->flags |= ENGINE_MULTI;
	}
	want->flags |= engine_rx_wants(ctx->rx, flags);
	return 0;
}

static ssize_t engine_post_flags(struct engine_ctx *ctx, struct engine_want *want, uint64_t flags)
{
	int ret = engine_want_flags(ctx, want, flags);

	if (ret)
		return ret;
	if (!(flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)))
		return engine_post(ctx, want);
	if (!ctx->rx->cq)
		return -FI_ENOCQ;
	want->flags |= ENGINE_COMPLETE;
	if (flags & FI_PEEK)
		return engine_peek(ctx, want, flags);
	return flags & FI_CLAIM ? engine_claim(ctx, want, flags) : -FI_EBADFLAGS;
}

static struct engine_want engine_want_tagged(const struct fi_msg_tagged *msg)
{
	return (struct engine_want){ .iov = msg->msg_iov, .cnt = msg->iov_count, .src = msg->addr, .tag = msg->tag,
				     .ignore = msg->ignore, .context = msg->context, .flags = PACKET_TAGGED };
}

static struct engine_want engine_want_msg(const struct fi_msg *msg)
{
	return (struct engine_want){ .iov = msg->msg_iov, .cnt = msg->iov_count, .src = msg->addr,
				     .context = msg->context };
}

/* A receive that is not posted at once. */
static int engine_want_later(const struct engine_ctx *ctx, uint64_t flags, struct engine_want *want)
{
	int ret = engine_want_flags(ctx, want, flags);

	if (ret)
		return ret;
	if (flags & (FI_PEEK | FI_CLAIM | FI_DISCARD))
		return -FI_ENOSYS;
	return engine_want_check(ctx, want);
}

int engine_want_of(const struct engine_ctx *ctx, const struct fi_msg *msg, uint64_t flags, struct engine_want *want)
{
	if (!msg)
		return -FI_EINVAL;
	*want = engine_want_msg(msg);
	return engine_want_later(ctx, flags, want);
}

int engine_want_of_tagged(const struct engine_ctx *ctx, const struct fi_msg_tagged *msg, uint64_t flags,
			  struct engine_want *want)
{
	if (!msg)
		return -FI_EINVAL;
	*want = engine_want_tagged(msg);
	return engine_want_later(ctx, flags, want);
}

ssize_t engine_recv_later(struct engine_ctx *ctx, const struct engine_want_later *later)
{
	return engine_post(ctx, &later->want);
}

ssize_t engine_trecv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src, uint64_t tag,
		     uint64_t ignore, void *context)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct iovec iov = { buf, len };
	struct engine_want want = { .iov = &iov, .cnt = 1, .src = src, .tag = tag, .ignore = ignore,
				    .context = context, .flags = ctx->trx_flags };

	return engine_post(ctx, &want);
}

ssize_t engine_trecvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t src,
		      uint64_t tag, uint64_t ignore, void *context)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_want want = { .iov = iov, .cnt = cnt, .src = src, .tag = tag, .ignore = ignore,
				    .context = context, .flags = ctx->trx_flags };

	return engine_post(ctx, &want);
}

ssize_t engine_trecvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_want want;

	if (!msg)
		return -FI_EINVAL;
	if (unlikely(flags & FI_TRIGGER))
		return engine_trigger_trecv(fid, msg, flags);
	want = engine_want_tagged(msg);
	return engine_post_flags(ctx, &want, flags);
}

ssize_t engine_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src, void *context)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct iovec iov = { buf, len };
	struct engine_want want = { .iov = &iov, .cnt = 1, .src = src, .context = context, .flags = ctx->rx_flags };

	return engine_post(ctx, &want);
}

ssize_t engine_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t src,
		     void *context)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_want want = { .iov = iov, .cnt = cnt, .src = src, .context = context, .flags = ctx->rx_flags };

	return engine_post(ctx, &want);
}

ssize_t engine_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_want want;

	if (!msg)
		return -FI_EINVAL;
	if (unlikely(flags & FI_TRIGGER))
		return engine_trigger_recv(fid, msg, flags);
	want = engine_want_msg(msg);
	return engine_post_flags(ctx, &want, flags);
}

static int engine_cancel_send(struct engine_ctx *ctx, void *context)
{
	struct engine_ep *ep = ctx->ep;
	struct list *node, *after, *tnode, *tafter;

	list_for_each(node, after, &ep->blocked) {
		struct engine_peer *peer = container_of(node, struct engine_peer, blocked);

		list_for_each(tnode, tafter, &peer->queued) {
			struct engine_tx *tx = container_of(tnode, struct engine_tx, link);

			if (tx->ctx != ctx->tx || tx->context != context || tx->flags & ENGINE_INJECT)
				continue;
			list_remove(&tx->link);
			engine_tx_end(tx, -FI_ECANCELED);
			return 0;
		}
	}
	return -FI_ENOENT;
}

static int engine_cancel_message(struct engine_ctx *ctx, void *context)
{
	struct engine_rxq *q = ctx->rx ? ctx->rx->q : NULL;
	struct list *node, *after;
	struct engine_rx *rx;

	if (!list_empty(&ctx->domain->works) && !engine_trigger_cancel(ctx, context))
		return 0;
	if (!q)
		return engine_cancel_send(ctx, context);
	list_for_each(node, after, &q->posted) {
		rx = container_of(node, struct engine_rx, link);
		if (rx->context != context)
			continue;
		match_cancel(engine_matcher(q, rx->flags), &rx->match);
		list_remove(&rx->link);
		engine_recv_error(ctx->domain, rx, -FI_ECANCELED);
		return 0;
	}
	return ctx->tx ? engine_cancel_send(ctx, context) : -FI_ENOENT;
}

int engine_cancel(struct engine_ctx *ctx, void *context)
{
	int ret = engine_cancel_message(ctx, context);

	return ret == -FI_ENOENT ? engine_coll_cancel(ctx, context) : ret;
}
