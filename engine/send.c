/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sends that could not be published at once: queued, started when the peer is connected and
 * the wire has room, finished by the wire (eager payload that it sends from the user's memory)
 * or by the receiver (rendezvous, rndv.c). Called with the domain held: from the op tables'
 * slots, and from progress.
 */
#include "send.h"
#include "recv.h"

uint16_t engine_take_owed(struct engine_peer *peer)
{
	uint32_t units = peer->owed / CREDIT_UNIT;

	if (units > UINT16_MAX)
		units = UINT16_MAX;
	peer->owed -= units * CREDIT_UNIT;
	peer->allowed += units * CREDIT_UNIT;
	return (uint16_t)units;
}

void engine_credits_back(struct engine_peer *peer, uint16_t credits)
{
	peer->owed += credits * CREDIT_UNIT;
	peer->allowed -= credits * CREDIT_UNIT;
}

static void engine_tx_free(struct engine_tx *tx)
{
	struct engine_ep *ep = tx->peer->ep;

	ep->queued_cnt -= tx->state == TX_QUEUED;
	platform_free(tx->copy);
	pool_put(&ep->tx_pool, tx);
}

void engine_tx_end(struct engine_tx *tx, int status)
{
	struct engine_ep *ep = tx->peer->ep;

	if (!status) {
		engine_send_done(ep, tx->context, tx->flags);
	} else if (ep->tx_cq && (tx->flags & ENGINE_COMPLETE || !(tx->flags & ENGINE_INJECT))) {
		struct fi_cq_err_entry err = {
			.op_context = tx->context,
			.flags = FI_SEND | (tx->flags & PACKET_TAGGED ? FI_TAGGED : FI_MSG),
			.len = tx->len,
			.buf = (void *)(uintptr_t)tx->buf,
			.data = tx->data,
			.tag = tx->tag,
			.err = -status,
			.prov_errno = -status,
			.src_addr = tx->peer->addr,
		};

		cq_push_error(&ep->tx_cq->queue, &err, tx->peer->addr);
	}
	engine_tx_free(tx);
}

/* The wire has sent an eager message from the user's memory. */
static void engine_tx_eager_done(struct wire_op *op, int status)
{
	struct engine_tx *tx = container_of(op, struct engine_tx, op);

	list_remove(&tx->link);
	engine_tx_end(tx, status);
}

static int engine_tx_inline(struct engine_peer *peer, struct engine_tx *tx)
{
	struct packet *packet;
	void *payload;

	packet = peer->wire->claim(peer->conn, tx->len, &payload);
	if (!packet)
		return -FI_EAGAIN;
	engine_header(peer, packet, PACKET_EAGER, tx->flags, (uint32_t)tx->len);
	packet->tag = tx->tag;
	packet->data = tx->data;
	copy_from_iov(payload, tx->iov, tx->iov_cnt, 0, tx->len);
	peer->wire->publish(peer->conn, packet, tx->flags & ENGINE_MORE);
	list_remove(&tx->link);
	engine_tx_end(tx, 0);
	return 0;
}

static int engine_tx_eager(struct engine_peer *peer, struct engine_tx *tx)
{
	struct packet packet = { .tag = tx->tag, .data = tx->data };
	int ret;

	engine_header(peer, &packet, PACKET_EAGER, tx->flags, (uint32_t)tx->len);
	tx->op.done = engine_tx_eager_done;
	ret = peer->wire->sendv(peer->conn, &packet, tx->iov, tx->iov_cnt, &tx->op);
	if (ret) {
		engine_credits_back(peer, packet.credits);
		return ret;
	}
	tx->state = TX_EAGER;
	peer->ep->queued_cnt--;
	list_remove(&tx->link);
	list_push(&peer->started, &tx->link);
	return 0;
}

static int engine_tx_rts(struct engine_peer *peer, struct engine_tx *tx)
{
	struct packet_rts rts = { .len = tx->len, .id = pool_id(tx) };
	struct packet *packet;
	uint32_t flags = tx->flags;
	void *payload;

	if (peer->wire->has_get && tx->len >= peer->wire->get_min && tx->iov_cnt == 1) {
		flags |= PACKET_PULL;
		rts.addr = (uintptr_t)tx->iov[0].iov_base;
	}
	packet = peer->wire->claim(peer->conn, sizeof(rts), &payload);
	if (!packet)
		return -FI_EAGAIN;
	engine_header(peer, packet, PACKET_RTS, flags, sizeof(rts));
	packet->tag = tx->tag;
	packet->data = tx->data;
	memcpy(payload, &rts, sizeof(rts));
	peer->wire->publish(peer->conn, packet, false);
	tx->state = TX_RTS;
	peer->ep->queued_cnt--;
	list_remove(&tx->link);
	list_push(&peer->started, &tx->link);
	return 0;
}

int engine_tx_start(struct engine_peer *peer, struct engine_tx *tx)
{
	struct wire_conn *conn = peer->conn;
	bool counted = tx->len > ENGINE_INJECT_MAX;
	size_t len = tx->len, gone = len;
	int ret;

	if (len > peer->wire->eager_max || (counted && len > peer->credit)) {
		ret = engine_tx_rts(peer, tx);
		counted = false;
		gone = 0; /* the payload follows, or does not */
	} else if (len <= peer->wire->claim_max) {
		ret = engine_tx_inline(peer, tx);
	} else {
		ret = engine_tx_eager(peer, tx);
	}
	if (ret)
		return ret;
	/* tx may be gone from here on. */
	if (counted)
		peer->credit -= (uint32_t)len;
	peer->tx_seq++;
	engine_sent(peer->ep, conn, conn->wire->ops);
	conn->tx_msgs++;
	conn->tx_bytes += gone;
	return 0;
}

ssize_t engine_send_slow(struct engine_ep *ep, struct engine_peer *peer, const struct engine_msg *msg)
{
	struct engine_tx *tx;
	void *copy = NULL;

	/* What a receiver knows of is its own to bound: only what has not left counts. */
	if (ep->queued_cnt >= ep->tx_size)
		return -FI_EAGAIN;
	tx = pool_get(&ep->tx_pool);
	if (!tx)
		return -FI_EAGAIN;
	if (msg->flags & ENGINE_INJECT && msg->len) {
		copy = platform_alloc(msg->len);
		if (!copy) {
			pool_put(&ep->tx_pool, tx);
			return -FI_EAGAIN;
		}
	}
	tx->peer = peer;
	tx->context = msg->context;
	tx->tag = msg->tag;
	tx->data = msg->data;
	tx->len = msg->len;
	tx->want = tx->sent = tx->chunk = 0;
	tx->peer_id = 0;
	tx->flags = msg->flags;
	tx->state = TX_QUEUED;
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
	peer->ready = 0;
	ep->queued_cnt++;
	list_push(&peer->queued, &tx->link);
	engine_peer_block(peer);
	if (peer->state == PEER_UP)
		engine_peer_flush(peer);
	else
		engine_peer_connect(peer);
	return 0;
}

/* Flags of a call with flags, as engine flags; false for one that the engine does not know. */
static bool engine_flags_of(struct engine_ep *ep, uint64_t flags, uint32_t *out)
{
	*out = 0;
	if (flags & ~(FI_COMPLETION | FI_INJECT | FI_REMOTE_CQ_DATA | FI_MORE | FI_INJECT_COMPLETE |
		      FI_TRANSMIT_COMPLETE | FI_TAGGED | FI_MSG | FI_SEND))
		return false;
	if (flags & FI_INJECT)
		*out |= ENGINE_INJECT;
	if (flags & FI_REMOTE_CQ_DATA)
		*out |= PACKET_CQ_DATA;
	if (flags & FI_MORE)
		*out |= ENGINE_MORE;
	if (ep->tx_cq && (!ep->tx_selective || flags & FI_COMPLETION))
		*out |= ENGINE_COMPLETE;
	return true;
}

/* A send from an iovec, checked. */
static ssize_t engine_send_iov(struct fid_ep *fid, const struct iovec *iov, size_t cnt, fi_addr_t dest,
			       struct engine_msg *msg)
{
	bool ok;

	if (unlikely(cnt > ENGINE_IOV_MAX || (cnt && !iov)))
		return -FI_EINVAL;
	msg->len = iov_len(iov, cnt, &ok);
	if (!ok || (msg->flags & ENGINE_INJECT && msg->len > ENGINE_INJECT_MAX))
		return -FI_EMSGSIZE;
	if (cnt == 1) {
		msg->buf = iov[0].iov_base;
	} else {
		msg->iov = iov;
		msg->iov_cnt = (uint32_t)cnt;
	}
	return engine_send_to(fid, dest, msg, NULL);
}

ssize_t engine_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t dest,
		     void *context)
{
	struct engine_msg msg = { .context = context, .flags = engine_tx_flags(fid) };

	return engine_send_iov(fid, iov, cnt, dest, &msg);
}

ssize_t engine_tsendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t dest,
		      uint64_t tag, void *context)
{
	struct engine_msg msg = { .tag = tag, .context = context, .flags = PACKET_TAGGED | engine_tx_flags(fid) };

	return engine_send_iov(fid, iov, cnt, dest, &msg);
}

ssize_t engine_sendmsg(struct fid_ep *fid, const struct fi_msg *m, uint64_t flags)
{
	struct engine_ep *ep = container_of(fid, struct engine_ep, fid);
	struct engine_msg msg;
	uint32_t mine;

	if (unlikely(!m))
		return -FI_EINVAL;
	if (!engine_flags_of(ep, flags, &mine))
		return -FI_EBADFLAGS;
	msg = (struct engine_msg){ .data = m->data, .context = m->context, .flags = mine };
	return engine_send_iov(fid, m->msg_iov, m->iov_count, m->addr, &msg);
}

ssize_t engine_tsendmsg(struct fid_ep *fid, const struct fi_msg_tagged *m, uint64_t flags)
{
	struct engine_ep *ep = container_of(fid, struct engine_ep, fid);
	struct engine_msg msg;
	uint32_t mine;

	if (unlikely(!m))
		return -FI_EINVAL;
	if (!engine_flags_of(ep, flags, &mine))
		return -FI_EBADFLAGS;
	msg = (struct engine_msg){ .tag = m->tag, .data = m->data, .context = m->context,
				   .flags = mine | PACKET_TAGGED };
	return engine_send_iov(fid, m->msg_iov, m->iov_count, m->addr, &msg);
}
