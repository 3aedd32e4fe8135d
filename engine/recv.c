/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arriving packets outside the common case, messages that wait for a receive or for their
 * turn, and the receive calls. Called with the domain held: from the op tables' slots, and by
 * wires from progress.
 */
#include "recv.h"
#include "progress.h"
#include "send.h"

#define EAGER_LIMIT (1u << 20) /* eager payload that is believed, bytes */

/* A cookie is a struct engine_rx, or a struct engine_held with this bit. */
#define COOKIE_HELD ((uintptr_t)1)

void engine_recv_error(struct engine_ep *ep, struct engine_rx *rx, int err)
{
	size_t got = rx->len < rx->cap ? rx->len : rx->cap;
	fi_addr_t src = rx->peer ? rx->peer->addr : FI_ADDR_NOTAVAIL;
	struct fi_cq_err_entry entry = {
		.op_context = rx->context,
		.flags = FI_RECV | (rx->flags & PACKET_TAGGED ? FI_TAGGED : FI_MSG) |
			 (rx->flags & PACKET_CQ_DATA ? FI_REMOTE_CQ_DATA : 0),
		.len = err == -FI_ETRUNC ? got : 0,
		.buf = rx->iov[0].iov_base,
		.data = rx->data,
		.tag = rx->tag,
		.olen = err == -FI_ETRUNC ? rx->len - got : 0,
		.err = -err,
		.prov_errno = -err,
		.src_addr = src,
	};

	if (ep->rx_cq)
		cq_push_error(&ep->rx_cq->queue, &entry, src);
	pool_put(&ep->rx_pool, rx);
}

void engine_owe(struct engine_peer *peer, size_t len)
{
	if (len <= ENGINE_INJECT_MAX)
		return;
	peer->owed += (uint32_t)len;
	if (peer->owed >= peer->window / 2 && peer->owed >= CREDIT_UNIT && peer->conn)
		engine_ctl(peer, PACKET_CREDIT, 0, 0, NULL);
}

static struct match *engine_matcher(struct engine_ep *ep, uint32_t flags)
{
	return flags & PACKET_TAGGED ? ep->tagged : ep->msg;
}

static struct engine_held *engine_held_new(struct engine_ep *ep, struct engine_peer *peer,
					   const struct packet *packet)
{
	struct engine_held *held;
	bool pooled = packet->len <= ENGINE_HELD_SMALL;

	held = pooled ? pool_get(&ep->held_pool) : platform_alloc(sizeof(*held) + packet->len);
	if (!held)
		return NULL;
	held->peer = peer;
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

static void engine_held_store(struct engine_ep *ep, struct engine_held *held)
{
	held->state = HELD_STORED;
	held->match.source = (uintptr_t)held->peer;
	held->match.tag = held->packet.tag;
	match_store(engine_matcher(ep, held->packet.flags), &held->match);
}

int engine_hold_stored(struct engine_ep *ep, struct engine_peer *peer, const struct packet *packet,
		       const void *payload)
{
	struct engine_held *held = engine_held_new(ep, peer, packet);

	if (!held)
		return -FI_ENOMEM;
	copy_bytes(held->bytes, payload, packet->len);
	engine_held_store(ep, held);
	return 0;
}

/* Keep a packet whose payload may still be arriving. */
static struct engine_held *engine_hold(struct engine_ep *ep, struct engine_peer *peer, const struct packet *packet,
				       const void *payload, size_t avail, struct wire_dest *dest)
{
	struct engine_held *held = engine_held_new(ep, peer, packet);

	if (!held)
		return NULL;
	if (packet->op == PACKET_RTS) {
		memcpy(&held->rts, payload, sizeof(held->rts));
	} else if (avail == packet->len) {
		memcpy(held->bytes, payload, avail);
	} else {
		held->whole = false;
		list_push(&peer->arriving, &held->arriving);
		dest->iov[0] = (struct iovec){ held->bytes, packet->len };
		dest->iov_cnt = 1;
		dest->cookie = (void *)((uintptr_t)held | COOKIE_HELD);
	}
	return held;
}

/* A receive has met a held message, which is linked nowhere but, perhaps, among the arriving. */
static void engine_held_receive(struct engine_ep *ep, struct engine_held *held, struct engine_rx *rx)
{
	struct engine_peer *peer = held->peer;

	rx->peer = peer;
	rx->tag = held->packet.tag;
	rx->data = held->packet.data;
	rx->len = held->packet.op == PACKET_RTS ? held->rts.len : held->packet.len;
	rx->flags |= held->packet.flags & PACKET_CQ_DATA;
	if (held->lost) {
		engine_held_free(ep, held);
		engine_recv_error(ep, rx, -FI_ECONNRESET);
	} else if (held->packet.op == PACKET_RTS) {
		engine_rndv_receive(ep, peer, rx, &held->packet, &held->rts);
		engine_held_free(ep, held);
	} else if (held->whole) {
		engine_recv_copy(rx, held->bytes, held->packet.len);
		if (held->counted)
			engine_owe(peer, held->packet.len);
		engine_held_free(ep, held);
		engine_recv_done(ep, rx);
	} else {
		held->state = HELD_MATCHED;
		held->rx = rx;
		list_push(&peer->receiving, &rx->link);
	}
}

/* Nobody wants a held message any more. */
static void engine_held_drop(struct engine_ep *ep, struct engine_held *held)
{
	if (!held->whole) {
		held->state = HELD_MATCHED;
		held->rx = NULL;
		return;
	}
	if (held->packet.op == PACKET_RTS && !held->lost)
		engine_ctl(held->peer, PACKET_FIN, held->rts.id, 0, NULL);
	if (held->packet.op == PACKET_EAGER && held->counted)
		engine_owe(held->peer, held->packet.len);
	engine_held_free(ep, held);
}

/* A message that waited for its turn has it. */
static void engine_early_turn(struct engine_ep *ep, struct engine_held *held)
{
	struct engine_peer *peer = held->peer;
	struct match_recv *recv;
	struct engine_rx *rx;

	list_remove(&held->link);
	peer->early_cnt--;
	peer->rx_seq++;
	recv = match_arrive(engine_matcher(ep, held->packet.flags), (uintptr_t)peer, held->packet.tag);
	if (!recv) {
		engine_held_store(ep, held);
		return;
	}
	rx = container_of(recv, struct engine_rx, match);
	list_remove(&rx->link);
	engine_held_receive(ep, held, rx);
}

/* A message overtook another: keep it in its place. */
static int engine_early(struct engine_ep *ep, struct engine_peer *peer, const struct packet *packet,
			const void *payload, size_t avail, struct wire_dest *dest)
{
	struct engine_held *held;
	struct list *at = peer->early.prev;

	if ((int32_t)(packet->seq - peer->rx_seq) < 0)
		return -FI_EINVAL;
	while (at != &peer->early) {
		uint32_t seq = container_of(at, struct engine_held, link)->packet.seq;

		if (seq == packet->seq)
			return -FI_EINVAL;
		if (seq - peer->rx_seq < packet->seq - peer->rx_seq)
			break;
		at = at->prev;
	}
	held = engine_hold(ep, peer, packet, payload, avail, dest);
	if (!held)
		return -FI_ENOMEM;
	held->state = HELD_EARLY;
	list_insert_after(at, &held->link);
	peer->early_cnt++;
	return 0;
}

/* A message that is the next of its sender. */
static int engine_in_turn(struct engine_ep *ep, struct engine_peer *peer, const struct packet *packet,
			  const void *payload, size_t avail, struct wire_dest *dest)
{
	struct match_recv *recv;
	struct engine_held *held;
	struct packet_rts rts;
	struct engine_rx *rx;

	peer->rx_seq++;
	recv = match_arrive(engine_matcher(ep, packet->flags), (uintptr_t)peer, packet->tag);
	if (!recv) {
		held = engine_hold(ep, peer, packet, payload, avail, dest);
		if (!held)
			return -FI_ENOMEM;
		engine_held_store(ep, held);
		return 0;
	}
	rx = engine_recv_take(recv, peer, packet, packet->len);
	if (packet->op == PACKET_RTS) {
		memcpy(&rts, payload, sizeof(rts));
		engine_rndv_receive(ep, peer, rx, packet, &rts);
	} else if (avail == packet->len) {
		engine_recv_copy(rx, payload, avail);
		engine_owe(peer, avail);
		engine_recv_done(ep, rx);
	} else {
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
	struct list *first;
	int ret;

	if (packet->op == PACKET_EAGER && packet->len > ENGINE_INJECT_MAX) {
		if (packet->len > EAGER_LIMIT || packet->len > peer->allowed)
			return -FI_EINVAL;
		peer->allowed -= packet->len;
	}
	if (packet->seq != peer->rx_seq) {
		ret = engine_early(ep, peer, packet, payload, avail, dest);
	} else {
		ret = engine_in_turn(ep, peer, packet, payload, avail, dest);
		while (!ret && peer->early_cnt) {
			first = peer->early.next;
			if (container_of(first, struct engine_held, link)->packet.seq != peer->rx_seq)
				break;
			engine_early_turn(ep, container_of(first, struct engine_held, link));
		}
	}
	if (!ret) {
		conn->rx_msgs++;
		conn->rx_bytes += packet->op == PACKET_RTS ? 0 : packet->len;
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
	switch (packet->op) {
	case PACKET_EAGER:
		ret = engine_message(ep, conn, packet, payload, avail, dest);
		break;
	case PACKET_RTS:
		if (packet->len == sizeof(struct packet_rts) && avail == packet->len)
			ret = engine_message(ep, conn, packet, payload, avail, dest);
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

	if (!((uintptr_t)cookie & COOKIE_HELD)) {
		if (rx->flags & ENGINE_ASKED) {
			engine_rndv_arrived(rx);
			return;
		}
		list_remove(&rx->link);
		engine_owe(rx->peer, rx->incoming);
		engine_recv_done(ep, rx);
		return;
	}
	held = (struct engine_held *)((uintptr_t)cookie & ~COOKIE_HELD);
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
	engine_held_free(ep, held);
	if (rx)
		engine_recv_done(ep, rx);
}

/*
 * One receive, as the calls express it.
 */
struct engine_want {
	const struct iovec *iov;
	size_t cnt;
	fi_addr_t src;
	uint64_t tag, ignore;
	void *context;
	uint32_t flags; /* PACKET_TAGGED, ENGINE_COMPLETE */
};

/* The id that the matcher knows the source by; 0 for any. -FI_E* when there is no such source. */
static int engine_source(struct engine_ep *ep, fi_addr_t src, uint64_t *source)
{
	struct engine_peer *peer;

	*source = MATCH_ANY_SOURCE;
	if (!ep->directed_recv || src == FI_ADDR_UNSPEC)
		return 0;
	peer = engine_peer_at(ep, src);
	if (!peer)
		return (int)engine_peer_refused(ep, src);
	*source = (uintptr_t)peer;
	return 0;
}

static struct engine_rx *engine_rx_new(struct engine_ep *ep, const struct engine_want *want)
{
	struct engine_rx *rx = pool_get(&ep->rx_pool);
	bool ok;

	if (!rx)
		return NULL;
	rx->peer = NULL;
	rx->context = want->context;
	rx->len = rx->got = rx->incoming = 0;
	rx->tag = rx->data = rx->peer_id = 0;
	rx->flags = want->flags;
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
	return rx;
}

static ssize_t engine_post(struct engine_ep *ep, const struct engine_want *want)
{
	struct match *m = engine_matcher(ep, want->flags);
	struct match_msg *msg;
	struct engine_rx *rx;
	uint64_t source;
	bool ok;
	int ret;

	if (unlikely(!ep->rx_cq))
		return -FI_ENOCQ;
	if (unlikely(want->cnt > ENGINE_IOV_MAX || (want->cnt && !want->iov)))
		return -FI_EINVAL;
	if (unlikely(want->cnt && !want->iov[0].iov_base && want->iov[0].iov_len))
		return -FI_EINVAL;
	if (unlikely(want->cnt > 1)) {
		iov_len(want->iov, want->cnt, &ok);
		if (!ok)
			return -FI_EINVAL;
	}
	ret = engine_source(ep, want->src, &source);
	if (unlikely(ret))
		return ret;
	rx = engine_rx_new(ep, want);
	if (unlikely(!rx))
		return -FI_EAGAIN;
	msg = match_find(m, source, want->tag, want->ignore);
	if (msg) {
		match_take(m, msg);
		engine_held_receive(ep, container_of(msg, struct engine_held, match), rx);
		return 0;
	}
	rx->match.source = source;
	rx->match.tag = want->tag;
	rx->match.ignore = want->ignore;
	match_post(m, &rx->match);
	list_push(&ep->posted, &rx->link);
	return 0;
}

/* Completion of a FI_PEEK or FI_DISCARD: what the message is, and no data. */
static void engine_peek_done(struct engine_ep *ep, const struct engine_want *want, const struct engine_held *held)
{
	struct cq_entry *e;

	if (!(want->flags & ENGINE_COMPLETE))
		return;
	e = cq_slot(&ep->rx_cq->queue);
	if (!e)
		return;
	*e = (struct cq_entry){
		.context = want->context,
		.flags = FI_RECV | (want->flags & PACKET_TAGGED ? FI_TAGGED : FI_MSG) |
			 (held->packet.flags & PACKET_CQ_DATA ? FI_REMOTE_CQ_DATA : 0),
		.len = held->packet.op == PACKET_RTS ? held->rts.len : held->packet.len,
		.data = held->packet.data,
		.tag = held->packet.tag,
		.src = held->peer->addr,
	};
	cq_push(&ep->rx_cq->queue);
}

static void engine_peek_failed(struct engine_ep *ep, const struct engine_want *want)
{
	struct fi_cq_err_entry err = {
		.op_context = want->context,
		.flags = FI_RECV | (want->flags & PACKET_TAGGED ? FI_TAGGED : FI_MSG),
		.tag = want->tag,
		.err = FI_ENOMSG,
		.prov_errno = FI_ENOMSG,
		.src_addr = FI_ADDR_NOTAVAIL,
	};

	cq_push_error(&ep->rx_cq->queue, &err, FI_ADDR_NOTAVAIL);
}

static ssize_t engine_peek(struct engine_ep *ep, const struct engine_want *want, uint64_t flags)
{
	struct match *m = engine_matcher(ep, want->flags);
	struct engine_held *held;
	struct match_msg *msg;
	uint64_t source;
	int ret;

	ret = engine_source(ep, want->src, &source);
	if (ret)
		return ret;
	msg = match_find(m, source, want->tag, want->ignore);
	if (!msg) {
		engine_progress(ep);
		msg = match_find(m, source, want->tag, want->ignore);
	}
	if (!msg) {
		engine_peek_failed(ep, want);
		return 0;
	}
	held = container_of(msg, struct engine_held, match);
	engine_peek_done(ep, want, held);
	if (flags & (FI_CLAIM | FI_DISCARD))
		match_take(m, msg);
	if (flags & FI_DISCARD) {
		engine_held_drop(ep, held);
	} else if (flags & FI_CLAIM) {
		held->state = HELD_CLAIMED;
		held->claim = want->context;
		list_push(&ep->claimed, &held->link);
	}
	return 0;
}

static ssize_t engine_claim(struct engine_ep *ep, const struct engine_want *want, uint64_t flags)
{
	struct engine_held *held;
	struct list *node, *after;
	struct engine_rx *rx;

	list_for_each(node, after, &ep->claimed) {
		held = container_of(node, struct engine_held, link);
		if (held->claim != want->context)
			continue;
		if (flags & FI_DISCARD) {
			list_remove(&held->link);
			engine_peek_done(ep, want, held);
			engine_held_drop(ep, held);
			return 0;
		}
		if (want->cnt > ENGINE_IOV_MAX || (want->cnt && !want->iov))
			return -FI_EINVAL;
		rx = engine_rx_new(ep, want);
		if (!rx)
			return -FI_EAGAIN;
		list_remove(&held->link);
		engine_held_receive(ep, held, rx);
		return 0;
	}
	return -FI_EINVAL;
}

static ssize_t engine_post_flags(struct engine_ep *ep, struct engine_want *want, uint64_t flags)
{
	if (flags & ~(FI_COMPLETION | FI_MORE | FI_PEEK | FI_CLAIM | FI_DISCARD | FI_RECV | FI_TAGGED | FI_MSG))
		return -FI_EBADFLAGS;
	if (!ep->rx_selective || flags & FI_COMPLETION)
		want->flags |= ENGINE_COMPLETE;
	if (!(flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)))
		return engine_post(ep, want);
	if (!ep->rx_cq)
		return -FI_ENOCQ;
	want->flags |= ENGINE_COMPLETE;
	if (flags & FI_PEEK)
		return engine_peek(ep, want, flags);
	return flags & FI_CLAIM ? engine_claim(ep, want, flags) : -FI_EBADFLAGS;
}

ssize_t engine_trecv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src, uint64_t tag,
		     uint64_t ignore, void *context)
{
	struct engine_ep *ep = container_of(fid, struct engine_ep, fid);
	struct iovec iov = { buf, len };
	struct engine_want want = { .iov = &iov, .cnt = 1, .src = src, .tag = tag, .ignore = ignore,
				    .context = context, .flags = PACKET_TAGGED | ep->rx_flags };

	return engine_post(ep, &want);
}

ssize_t engine_trecvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t src,
		      uint64_t tag, uint64_t ignore, void *context)
{
	struct engine_ep *ep = container_of(fid, struct engine_ep, fid);
	struct engine_want want = { .iov = iov, .cnt = cnt, .src = src, .tag = tag, .ignore = ignore,
				    .context = context, .flags = PACKET_TAGGED | ep->rx_flags };

	return engine_post(ep, &want);
}

ssize_t engine_trecvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct engine_ep *ep = container_of(fid, struct engine_ep, fid);
	struct engine_want want;

	if (!msg)
		return -FI_EINVAL;
	want = (struct engine_want){ .iov = msg->msg_iov, .cnt = msg->iov_count, .src = msg->addr,
				     .tag = msg->tag, .ignore = msg->ignore, .context = msg->context,
				     .flags = PACKET_TAGGED };
	return engine_post_flags(ep, &want, flags);
}

ssize_t engine_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src, void *context)
{
	struct engine_ep *ep = container_of(fid, struct engine_ep, fid);
	struct iovec iov = { buf, len };
	struct engine_want want = { .iov = &iov, .cnt = 1, .src = src, .context = context, .flags = ep->rx_flags };

	return engine_post(ep, &want);
}

ssize_t engine_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t src,
		     void *context)
{
	struct engine_ep *ep = container_of(fid, struct engine_ep, fid);
	struct engine_want want = { .iov = iov, .cnt = cnt, .src = src, .context = context, .flags = ep->rx_flags };

	return engine_post(ep, &want);
}

ssize_t engine_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct engine_ep *ep = container_of(fid, struct engine_ep, fid);
	struct engine_want want;

	if (!msg)
		return -FI_EINVAL;
	want = (struct engine_want){ .iov = msg->msg_iov, .cnt = msg->iov_count, .src = msg->addr,
				     .context = msg->context };
	return engine_post_flags(ep, &want, flags);
}

static int engine_cancel_send(struct engine_ep *ep, void *context)
{
	struct list *node, *after, *tnode, *tafter;

	list_for_each(node, after, &ep->blocked) {
		struct engine_peer *peer = container_of(node, struct engine_peer, blocked);

		list_for_each(tnode, tafter, &peer->queued) {
			struct engine_tx *tx = container_of(tnode, struct engine_tx, link);

			if (tx->context != context || tx->flags & ENGINE_INJECT)
				continue;
			list_remove(&tx->link);
			engine_tx_end(tx, -FI_ECANCELED);
			return 0;
		}
	}
	return -FI_ENOENT;
}

int engine_cancel(struct engine_ep *ep, void *context)
{
	struct list *node, *after;
	struct engine_rx *rx;

	list_for_each(node, after, &ep->posted) {
		rx = container_of(node, struct engine_rx, link);
		if (rx->context != context)
			continue;
		match_cancel(engine_matcher(ep, rx->flags), &rx->match);
		list_remove(&rx->link);
		engine_recv_error(ep, rx, -FI_ECANCELED);
		return 0;
	}
	return engine_cancel_send(ep, context);
}
