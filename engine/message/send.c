/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sends that could not be published at once. They are queued, and sent when the peer is connected
 * and the wire has room. They end when the wire has sent an eager payload from the user's memory,
 * or when the receiver reports the end (rendezvous, rndv.c).
 *
 * Called from the slots of the op tables, and from progress. The caller holds the domain, except
 * for the slots, which enter it.
 */
#include "send.h"
#include "brief.h"
#include "conns.h"
#include "in_order.h"
#include "recv.h"

#define SEND_FLAGS                                                                      \
	(FI_COMPLETION | FI_INJECT | FI_REMOTE_CQ_DATA | FI_MORE | FI_INJECT_COMPLETE | \
	 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE |              \
	 FI_COMMIT_COMPLETE | FI_FENCE | FI_TAGGED | FI_MSG | FI_SEND)

/* A message was sent and ends later: link it to the list in which it waits, with @state. */
static void engine_tx_wait(struct engine_peer *peer, struct engine_tx *tx,
			   enum engine_tx_state state)
{
	list_remove(&tx->link);
	list_add_tail(tx->flags & PACKET_ACKED ? &peer->unacked : &peer->started, &tx->link);
	peer->ep->queued_cnt--;
	tx->seq = (uint32_t)peer->tx_seq;
	tx->state = state;
}

static int engine_tx_inline(struct engine_peer *peer, struct engine_tx *tx)
{
	struct packet *packet;
	void *payload;

	packet = peer->wire->claim(peer->conn, tx->len, &payload);
	if (!packet)
		return -FI_EAGAIN;
	engine_header_to(peer, packet, tx->rx_idx, PACKET_EAGER, tx->flags & PACKET_FLAGS_TX,
			 (uint32_t)tx->len);
	packet->tag = tx->tag;
	packet->data = tx->data;
	engine_fill(peer->conn, payload, tx->iov, tx->iov_cnt, tx->len, peer->wire);
	peer->wire->publish(peer->conn, packet, tx->flags & ENGINE_MORE);
	if (tx->flags & PACKET_DELIVERY) {
		engine_tx_wait(peer, tx, TX_FIN);
	} else if (tx->flags & PACKET_ACKED) {
		engine_tx_wait(peer, tx, TX_ACK);
	} else {
		list_remove(&tx->link);
		engine_tx_end(tx, 0);
	}
	return 0;
}

static int engine_tx_eager(struct engine_peer *peer, struct engine_tx *tx)
{
	struct packet packet = { .tag = tx->tag, .data = tx->data };
	uint32_t flags = tx->flags & PACKET_FLAGS_TX;
	int ret;

	/*
	 * One-sided requests may have to wait until they can't overtake the header: its ACK shows
	 * that.
	 */
	if (!peer->wire->in_order && peer->ep->caps & (FI_RMA | FI_ATOMIC))
		flags |= PACKET_ACKED;
	engine_header_to(peer, &packet, tx->rx_idx, PACKET_EAGER, flags, (uint32_t)tx->len);
	ret = engine_tx_leave(peer, tx, &packet, flags & PACKET_ACKED);
	if (ret)
		return ret;
	engine_tx_wait(peer, tx, TX_EAGER);
	return 0;
}

/* With PACKET_PIECES the receiver reads tx->iov as an array of struct packet_piece. */
_Static_assert(PACKET_PIECE_CNT == ENGINE_IOV_MAX, "all of struct engine_tx.iov");
_Static_assert(sizeof(struct iovec) == sizeof(struct packet_piece) &&
		       offsetof(struct iovec, iov_len) == offsetof(struct packet_piece, len),
	       "a list of pieces is an iovec");

int engine_tx_rts(struct engine_peer *peer, struct engine_tx *tx)
{
	struct packet_rts rts = { .len = tx->len, .id = pool_id(tx) };
	struct packet_targets targets = { .cnt = tx->target_cnt };
	size_t more = tx->kind == PACKET_EAGER ? 0 : packet_targets_len(tx->target_cnt);
	uint32_t flags = tx->flags & (PACKET_FLAGS_TX & ~(PACKET_ACKED | PACKET_MATCH));
	struct packet *packet;
	void *payload;

	if (peer->wire->get_by_id) {
		flags |= PACKET_PULL;
	} else if (peer->wire->get) {
		flags |= tx->iov_cnt == 1 ? PACKET_PULL : PACKET_PULL | PACKET_PIECES;
		rts.addr = tx->iov_cnt == 1 ? (uintptr_t)tx->iov[0].iov_base
					    : (uintptr_t)tx->iov;
	}
	packet = peer->wire->claim(peer->conn, sizeof(rts) + more, &payload);
	if (!packet)
		return -FI_EAGAIN;
	engine_header_to(peer, packet, tx->rx_idx, PACKET_RTS,
			 flags | (more ? PACKET_TARGETS : 0), (uint32_t)(sizeof(rts) + more));
	packet->tag = tx->tag;
	packet->data = tx->data;
	memcpy(payload, &rts, sizeof(rts));
	if (more) {
		memcpy(targets.target, tx->targets, tx->target_cnt * sizeof(*tx->targets));
		memcpy((char *)payload + sizeof(rts), &targets, more);
	}
	peer->wire->publish(peer->conn, packet, false);
	tx->flags &= ~PACKET_ACKED; /* the end of a rendezvous implies what an ACK reports */
	tx->seq = (uint32_t)peer->tx_seq;
	tx->state = TX_RTS;
	list_remove(&tx->link);
	list_add_tail(&peer->started, &tx->link);
	return 0;
}

/* Returns true if the payload is sent by sendv though it fits a packet. */
static bool engine_tx_lends(const struct engine_peer *peer, const struct engine_tx *tx)
{
	const struct wire_ops *wire = peer->wire;

	return wire->lends && tx->len >= wire->lends_min && tx->iov_cnt == 1 && !tx->copy &&
	       wire->lends(peer->conn, tx->iov[0].iov_base, tx->len);
}

int engine_tx_start(struct engine_peer *peer, struct engine_tx *tx)
{
	struct wire_conn *conn = peer->conn;
	bool counted = tx->len > ENGINE_FREE_MAX;
	size_t len = tx->len, gone = len;
	int ret;

	if (tx->flags & ENGINE_FENCE && engine_fenced(peer))
		return -FI_EAGAIN;
	if (peer->wire->arrives)
		tx->flags &= ~PACKET_ACKED;
	if (len > peer->wire->eager_max || (counted && len > peer->credit)) {
		ret = engine_tx_rts(peer, tx);
		peer->ep->queued_cnt -= !ret;
		counted = false;
		gone = 0; /* rndv.c counts the payload when it is sent or read */
	} else if (len <= peer->wire->claim_max && !engine_tx_lends(peer, tx)) {
		ret = engine_tx_inline(peer, tx);
	} else {
		ret = engine_tx_eager(peer, tx);
	}
	if (ret)
		return ret;
	/* tx may have been freed. */
	if (counted)
		peer->credit -= (uint32_t)len;
	peer->tx_seq++;
	engine_sent(peer->ep, conn, conn->wire->ops);
	conn->tx_msgs++;
	conn->tx_bytes += gone;
	return 0;
}

/*
 * Set the payload of a new operation: the user's memory, or with ENGINE_INJECT a copy of it, which
 * belongs to the operation. Returns 0 or -FI_EAGAIN.
 */
static int engine_tx_payload(struct engine_tx *tx, const struct engine_msg *msg)
{
	void *copy = NULL;

	if (msg->flags & ENGINE_INJECT && msg->len) {
		copy = platform_alloc(msg->len);
		if (!copy)
			return -FI_EAGAIN;
	}
	tx->len = msg->len;
	tx->copy = copy;
	if (msg->iov_cnt) {
		tx->iov_cnt = msg->iov_cnt;
		memcpy(tx->iov, msg->iov, msg->iov_cnt * sizeof(*msg->iov));
	} else {
		tx->iov_cnt = 1;
		tx->iov[0] = (struct iovec){ (void *)(uintptr_t)msg->buf, msg->len };
	}
	tx->buf = tx->iov[0].iov_base;
	if (copy) {
		copy_from_iov(copy, tx->iov, tx->iov_cnt, 0, msg->len);
		tx->iov_cnt = 1;
		tx->iov[0] = (struct iovec){ copy, msg->len };
	}
	return 0;
}

/*
 * Queue a message. @work_cntr: counter of deferred work, or NULL; takes the reference on success.
 * Returns 0 or -FI_EAGAIN.
 */
static ssize_t engine_send_queue(struct engine_ep *ep, struct engine_peer *peer,
				 const struct engine_msg *msg, struct engine_cntr *work_cntr)
{
	struct engine_tx *tx;

	/* tx_size bounds the messages that were not sent; the receiver bounds the others. */
	if (ep->queued_cnt >= ep->tx_size)
		return -FI_EAGAIN;
	tx = engine_tx_new(peer, msg->tx);
	if (!tx)
		return -FI_EAGAIN;
	if (engine_tx_payload(tx, msg)) {
		pool_put(&ep->tx_pool, tx);
		return -FI_EAGAIN;
	}
	tx->rx_idx = msg->rx_idx;
	tx->context = msg->context;
	tx->tag = msg->tag;
	tx->data = msg->data;
	tx->flags = msg->flags;
	tx->kind = PACKET_EAGER;
	tx->work_cntr = work_cntr;
	ep->queued_cnt++;
	engine_tx_order(tx);
	engine_tx_queue(peer, tx);
	return 0;
}

ssize_t engine_send_slow(struct engine_ep *ep, struct engine_peer *peer,
			 const struct engine_msg *msg)
{
	if (msg->flags & ENGINE_INJECT && engine_inject_early(peer))
		return -FI_EAGAIN;
	return engine_send_queue(ep, peer, msg, NULL);
}

ssize_t engine_send_later(struct engine_ctx *ctx, fi_addr_t dest, struct engine_msg *msg,
			  struct engine_cntr *work_cntr)
{
	struct engine_ep *ep = ctx->ep;
	struct engine_peer *peer;

	msg->tx = ctx->tx;
	peer = engine_peer_named(ep, dest, &msg->rx_idx);
	if (!peer)
		return engine_peer_refused(ep, dest);
	return engine_send_queue(ep, peer, msg, work_cntr);
}

ssize_t engine_inject_refuse(const struct engine_ctx *ctx, const char *call, size_t len)
{
	return engine_refuse_value(ctx->domain->family, FI_LOG_EP_DATA, -FI_EINVAL, call,
				   "more than inject_size", len);
}

/* Set the payload of a message from an iovec, which is borrowed. Returns 0 or -FI_E*. */
static int engine_msg_iov(struct engine_msg *msg, const struct iovec *iov, size_t cnt)
{
	bool ok;

	if (unlikely(cnt > ENGINE_IOV_MAX || (cnt && !iov)))
		return -FI_EINVAL;
	msg->len = iov_len(iov, cnt, &ok);
	if (!ok)
		return -FI_EINVAL;
	if (msg->flags & ENGINE_INJECT && msg->len > ENGINE_INJECT_MAX)
		return -FI_EMSGSIZE;
	if (cnt == 1) {
		msg->buf = iov[0].iov_base;
	} else {
		msg->iov = iov;
		msg->iov_cnt = (uint32_t)cnt;
	}
	return 0;
}

ssize_t engine_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt,
		     fi_addr_t dest, void *context)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_msg msg = { .context = context, .flags = engine_tx_defaults(ctx) };
	int ret = engine_msg_iov(&msg, iov, cnt);

	return unlikely(ret) ? engine_refuse_call(ctx, "fi_sendv", ret)
			     : engine_send_to(ctx, dest, &msg, NULL);
}

ssize_t engine_tsendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt,
		      fi_addr_t dest, uint64_t tag, void *context)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_msg msg = { .tag = tag,
				  .context = context,
				  .flags = PACKET_TAGGED | engine_tx_defaults(ctx) };
	int ret = engine_msg_iov(&msg, iov, cnt);

	return unlikely(ret) ? engine_refuse_call(ctx, "fi_tsendv", ret)
			     : engine_send_to(ctx, dest, &msg, NULL);
}

int engine_msg_of(const struct engine_ctx *ctx, const struct fi_msg *m, uint64_t flags,
		  struct engine_msg *msg)
{
	uint32_t mine;

	if (unlikely(!m))
		return -FI_EINVAL;
	if (engine_tx_flags(ctx->tx, flags, SEND_FLAGS, &mine))
		return -FI_EBADFLAGS;
	*msg = (struct engine_msg){ .data = m->data, .context = m->context, .flags = mine };
	return engine_msg_iov(msg, m->msg_iov, m->iov_count);
}

int engine_msg_of_tagged(const struct engine_ctx *ctx, const struct fi_msg_tagged *m,
			 uint64_t flags, struct engine_msg *msg)
{
	uint32_t mine;

	if (unlikely(!m))
		return -FI_EINVAL;
	if (engine_tx_flags(ctx->tx, flags, SEND_FLAGS, &mine))
		return -FI_EBADFLAGS;
	*msg = (struct engine_msg){ .tag = m->tag,
				    .data = m->data,
				    .context = m->context,
				    .flags = mine | PACKET_TAGGED };
	return engine_msg_iov(msg, m->msg_iov, m->iov_count);
}

ssize_t engine_sendmsg(struct fid_ep *fid, const struct fi_msg *m, uint64_t flags)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_msg msg;
	int ret;

	ret = engine_msg_of(ctx, m, flags, &msg);
	return unlikely(ret) ? engine_refuse_call(ctx, "fi_sendmsg", ret)
			     : engine_send_to(ctx, m->addr, &msg, NULL);
}

ssize_t engine_tsendmsg(struct fid_ep *fid, const struct fi_msg_tagged *m, uint64_t flags)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_msg msg;
	int ret;

	ret = engine_msg_of_tagged(ctx, m, flags, &msg);
	return unlikely(ret) ? engine_refuse_call(ctx, "fi_tsendmsg", ret)
			     : engine_send_to(ctx, m->addr, &msg, NULL);
}

/* What fi_tsend() and its like do besides the paths of the wires */

static ssize_t engine_tagged_aside(struct engine_ctx *ctx, const void *buf, size_t len,
				   fi_addr_t dest, uint64_t tag, void *context, uint64_t data,
				   uint32_t flags)
{
	struct engine_msg msg = { .buf = buf,
				  .len = len,
				  .tag = tag,
				  .data = data,
				  .context = context,
				  .flags = flags };

	return engine_send_to(ctx, dest, &msg, NULL); /* entering once more does no harm */
}

ssize_t engine_tsend_aside(struct engine_ctx *ctx, const void *buf, size_t len, fi_addr_t dest,
			   uint64_t tag, void *context)
{
	return engine_tagged_aside(ctx, buf, len, dest, tag, context, 0,
				   engine_tsend_flags(ctx));
}

ssize_t engine_tinject_aside(struct engine_ctx *ctx, const void *buf, size_t len,
			     fi_addr_t dest, uint64_t tag)
{
	return engine_tagged_aside(ctx, buf, len, dest, tag, NULL, 0, engine_tinject_flags(ctx));
}

ssize_t engine_tsenddata_aside(struct engine_ctx *ctx, const void *buf, size_t len,
			       fi_addr_t dest, uint64_t tag, void *context, uint64_t data)
{
	return engine_tagged_aside(ctx, buf, len, dest, tag, context, data,
				   engine_tsend_flags(ctx) | PACKET_CQ_DATA);
}

ssize_t engine_tinjectdata_aside(struct engine_ctx *ctx, const void *buf, size_t len,
				 fi_addr_t dest, uint64_t tag, uint64_t data)
{
	return engine_tagged_aside(ctx, buf, len, dest, tag, NULL, data,
				   engine_tinject_flags(ctx) | PACKET_CQ_DATA);
}

ssize_t engine_wire_tsend(struct engine_ctx *ctx, struct engine_peer *peer, const void *buf,
			  size_t len, uint64_t tag, void *context)
{
	return engine_tagged_on(ctx, peer, buf, len, tag, context, 0, engine_tsend_flags(ctx),
				NULL);
}

ssize_t engine_wire_tinject(struct engine_ctx *ctx, struct engine_peer *peer, const void *buf,
			    size_t len, uint64_t tag)
{
	return engine_tagged_on(ctx, peer, buf, len, tag, NULL, 0, engine_tinject_flags(ctx),
				NULL);
}

ssize_t engine_wire_tsenddata(struct engine_ctx *ctx, struct engine_peer *peer, const void *buf,
			      size_t len, uint64_t tag, void *context, uint64_t data)
{
	return engine_tagged_on(ctx, peer, buf, len, tag, context, data,
				engine_tsend_flags(ctx) | PACKET_CQ_DATA, NULL);
}

ssize_t engine_wire_tinjectdata(struct engine_ctx *ctx, struct engine_peer *peer,
				const void *buf, size_t len, uint64_t tag, uint64_t data)
{
	return engine_tagged_on(ctx, peer, buf, len, tag, NULL, data,
				engine_tinject_flags(ctx) | PACKET_CQ_DATA, NULL);
}

ssize_t engine_brief_end(struct engine_ctx *ctx, struct engine_peer *peer, void *context,
			 size_t len, uint32_t flags, bool wake)
{
	if (wake)
		peer->wire->wake(peer->conn);
	engine_send_done(ctx->tx, context, flags, len);
	engine_guard_leave(ctx->domain);
	return 0;
}
