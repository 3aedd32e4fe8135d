/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The initiator's side of one-sided operations: requests that are kept until they end. Called with
 * the domain held, by calls (now.c), by progress and by deferred work that is triggered.
 */
#include <rdma/fi_errno.h>
#include "access.h"
#include "conns.h"
#include "copy.h"
#include "peer.h"
#include "quiet.h"
#include "reach.h"
#include "recv.h"
#include "send.h"

/* Largest payload of one packet, bytes */
#define STREAM_MAX (1u << 30)

int engine_access_check(const struct engine_access *access, size_t *len)
{
	size_t there = 0;
	bool ok;

	if (access->iov_cnt > ENGINE_IOV_MAX || (access->iov_cnt && !access->iov))
		return -FI_EINVAL;
	if (!access->target_cnt || access->target_cnt > PACKET_TARGET_MAX)
		return -FI_EINVAL;
	*len = iov_len(access->iov, access->iov_cnt, &ok);
	if (!ok)
		return -FI_EINVAL;
	for (size_t i = 0; i < access->target_cnt; i++)
		if (__builtin_add_overflow(there, access->targets[i].len, &there))
			return -FI_EINVAL;
	/* FI_ATOMIC_READ has no operands. */
	if (there != *len && !(access->op == PACKET_ATOMIC && !access->iov_cnt))
		return -FI_EINVAL;
	if (access->flags & ENGINE_INJECT && *len > ENGINE_INJECT_MAX)
		return -FI_EMSGSIZE;
	return 0;
}

/*
 * Copy the payload or operands of an injected operation that is queued, because the caller may
 * change its buffers after the call. Returns 0 or -FI_ENOMEM.
 */
static int engine_tx_keep(struct engine_tx *tx)
{
	struct engine_update *update = &tx->update;
	bool compare = tx->kind == PACKET_ATOMIC && update->compare_cnt;
	size_t len = tx->len;
	char *copy;

	if (!len)
		return 0;
	copy = platform_alloc(compare ? 2 * len : len);
	if (!copy)
		return -FI_ENOMEM;
	copy_from_iov(copy, tx->iov, tx->iov_cnt, 0, len);
	tx->iov[0] = (struct iovec){ copy, len };
	tx->iov_cnt = 1;
	if (compare) {
		copy_from_iov(copy + len, update->compare, update->compare_cnt, 0, len);
		update->compare[0] = (struct iovec){ copy + len, len };
		update->compare_cnt = 1;
	}
	tx->copy = copy;
	return 0;
}

/*
 * Keep the order that the program has asked for (ep->order_max). An operation of more than
 * ENGINE_ORDER_MAX bytes waits for all operations before it, and the next operation waits for it.
 */
static void engine_access_order(struct engine_peer *peer, struct engine_tx *tx)
{
	bool large = tx->len > ENGINE_ORDER_MAX && tx->len <= peer->ep->order_max;

	if (large || peer->after_large)
		tx->flags |= ENGINE_FENCE;
	peer->after_large = large;
}

/*
 * Take back an operation that could not be queued. The next operation waits as this one would have
 * done.
 */
static void engine_access_undo(struct engine_peer *peer, struct engine_tx *tx)
{
	struct engine_ep *ep = peer->ep;

	ep->access_cnt--;
	ep->queued_cnt--;
	peer->after_large |= !!(tx->flags & ENGINE_FENCE);
	pool_put(&ep->tx_pool, tx);
}

ssize_t engine_access(struct engine_ctx *ctx, const struct engine_access *access)
{
	struct engine_ep *ep = ctx->ep;
	uint32_t rx_idx = 0;
	struct engine_peer *peer;
	struct engine_tx *tx;
	size_t len;
	int ret;

	ret = engine_access_check(access, &len);
	if (unlikely(ret))
		return ret;
	peer = engine_peer_named(ep, access->dest, &rx_idx);
	if (unlikely(!peer))
		return engine_peer_refused(ep, access->dest);
	/* Work that is due waits by itself: a round of progress could free it. */
	if (access->flags & ENGINE_INJECT && !ep->domain->running && engine_inject_early(peer))
		return -FI_EAGAIN;
	if (unlikely(ep->access_cnt >= ep->tx_size))
		return -FI_EAGAIN;
	tx = engine_tx_new(peer, ctx->tx);
	if (unlikely(!tx))
		return -FI_EAGAIN;
	engine_tx_access(tx, access, len, access->iov_cnt, access->target_cnt);
	if (access->update)
		engine_tx_update(tx, access->update);
	tx->rx_idx = rx_idx;
	if (unlikely(ep->order_max))
		engine_access_order(peer, tx);
	ep->access_cnt++;
	ep->queued_cnt++;
	if (likely(peer->ready) && !engine_access_start(peer, tx))
		return 0;
	if (access->flags & ENGINE_INJECT && engine_tx_keep(tx)) {
		engine_access_undo(peer, tx);
		return -FI_EAGAIN;
	}
	engine_tx_queue(peer, tx);
	return 0;
}

/* Returns true if the request has a list of targets, because its header can't name them. */
static bool engine_request_listed(const struct engine_tx *tx)
{
	return tx->target_cnt > 1 || tx->flags & PACKET_CQ_DATA;
}

/*
 * Returns the length of a request's payload before its data, bytes. @head: length of the request's
 * own struct
 */
static size_t engine_request_head(const struct engine_tx *tx, size_t head)
{
	return engine_request_listed(tx) ? head + packet_targets_len(tx->target_cnt) : head;
}

/*
 * Returns PACKET_ACKED if the target has to send an ACK at once: the operation ends with it, later
 * operations may wait for it to keep their order, or engine_quiet_wants_ack(). Otherwise returns 0.
 */
static uint32_t engine_request_ack_flag(const struct engine_peer *peer,
					const struct engine_tx *tx)
{
	bool waits = !engine_is_quiet(tx->flags, peer->wire) || peer->ep->order_max;

	if (tx->kind == PACKET_READ || (tx->kind == PACKET_ATOMIC && tx->update.result_cnt))
		return 0;
	return waits || engine_quiet_wants_ack(peer) ? PACKET_ACKED : 0;
}

/*
 * Claim a packet for a request, and fill its header, its own struct and its list of targets.
 * @own: the request's own struct; @len: length of its data, bytes; @at: out: where the caller
 * writes the data. Returns the packet, or NULL without room (nothing happened).
 */
static struct packet *engine_request_claim(struct engine_peer *peer, struct engine_tx *tx,
					   const void *own, size_t own_len, size_t len,
					   char **at)
{
	bool listed = engine_request_listed(tx);
	struct packet_targets targets = { .cnt = tx->target_cnt };
	size_t head = engine_request_head(tx, own_len);
	struct packet *packet;
	void *payload;

	packet = peer->wire->claim(peer->conn, head + len, &payload);
	if (!packet)
		return NULL;
	engine_header_to(peer, packet, tx->rx_idx, tx->kind,
			 engine_request_ack_flag(peer, tx) | (listed ? PACKET_TARGETS : 0),
			 (uint32_t)(head + len));
	if (own_len)
		memcpy(payload, own, own_len);
	if (listed) {
		packet->flags |= tx->flags & PACKET_CQ_DATA;
		packet->tag = 0;
		packet->data = tx->data;
		memcpy(targets.target, tx->targets, tx->target_cnt * sizeof(*tx->targets));
		memcpy((char *)payload + own_len, &targets, packet_targets_len(tx->target_cnt));
	} else {
		packet->tag = tx->targets[0].addr;
		packet->data = tx->targets[0].key;
	}
	*at = (char *)payload + head;
	return packet;
}

/* Returns the largest payload of a request over this wire, bytes. */
static size_t engine_request_max(const struct wire_ops *wire)
{
	return wire->claim_max > WIRE_REQUEST_MAX ? wire->claim_max : WIRE_REQUEST_MAX;
}

/*
 * Returns true if the request may arrive before its turn when it is sent now, and is too large to
 * be held by the target without credit.
 */
static bool engine_may_overtake(const struct engine_peer *peer, const struct engine_tx *tx)
{
	return tx->len > ENGINE_REORDER_LEN && engine_lane_busy(peer);
}

/* Returns true if the payload of a write fits into one packet with its header. */
static bool engine_write_fits(const struct engine_peer *peer, const struct engine_tx *tx)
{
	return engine_request_head(tx, 0) + tx->len <= engine_request_max(peer->wire);
}

/* Returns true if the write may use credit, so that the target can hold it until its turn. */
static bool engine_write_counts(const struct engine_peer *peer, const struct engine_tx *tx)
{
	return tx->len <= peer->credit && !engine_request_listed(tx);
}

/*
 * A request without a response was published. @tx ends with its ACK, or at once if it is quiet; a
 * quiet one is freed.
 */
static void engine_request_left(struct engine_peer *peer, struct engine_tx *tx)
{
	list_remove(&tx->link);
	engine_unacked(peer, tx);
	if (!engine_is_quiet(tx->flags, peer->wire))
		return;
	engine_quiet_add(peer, tx->ctx, tx->seq);
	list_remove(&tx->link);
	engine_tx_end(tx, 0);
}

/* Send a write in one packet. Returns 0 or -FI_EAGAIN. */
static int engine_write_inline(struct engine_peer *peer, struct engine_tx *tx)
{
	bool early = engine_may_overtake(peer, tx);
	struct packet *packet;
	char *at;

	if (early && !engine_write_counts(peer, tx)) {
		engine_ack_request(peer);
		return -FI_EAGAIN;
	}
	packet = engine_request_claim(peer, tx, NULL, 0, tx->len, &at);
	if (!packet)
		return -FI_EAGAIN;
	if (early) {
		packet->flags |= PACKET_COUNTED;
		peer->credit -= (uint32_t)tx->len;
	}
	engine_fill(peer->conn, at, tx->iov, tx->iov_cnt, tx->len, peer->wire);
	peer->wire->publish(peer->conn, packet, tx->flags & ENGINE_MORE);
	engine_request_left(peer, tx);
	return 0;
}

/* Returns true if the write waits on the wire when it arrives before its turn. */
static bool engine_write_waits(const struct engine_peer *peer, const struct engine_tx *tx)
{
	return peer->wire->waits_min && tx->len >= peer->wire->waits_min &&
	       tx->len <= STREAM_MAX;
}

/*
 * Returns true if a write that does not fit into one packet is sent by sendv, and not by a
 * rendezvous.
 */
static bool engine_write_streams(const struct engine_peer *peer, const struct engine_tx *tx)
{
	if (peer->wire->get || engine_request_listed(tx))
		return false;
	return engine_write_waits(peer, tx) ||
	       (tx->len <= peer->wire->eager_max && engine_write_counts(peer, tx));
}

/*
 * Send a write by sendv: the payload goes straight from the caller's memory to the target's. The
 * header alone has a turn. Returns 0 or -FI_EAGAIN.
 */
static int engine_write_stream(struct engine_peer *peer, struct engine_tx *tx)
{
	bool counted = !engine_write_waits(peer, tx);
	struct packet packet = { .tag = tx->targets[0].addr, .data = tx->targets[0].key };
	int ret;

	engine_header_to(peer, &packet, tx->rx_idx, PACKET_WRITE,
			 engine_request_ack_flag(peer, tx) | (counted ? PACKET_COUNTED : 0),
			 (uint32_t)tx->len);
	ret = engine_tx_leave(peer, tx, &packet, !peer->wire->in_order);
	if (ret)
		return ret;
	if (counted)
		peer->credit -= (uint32_t)tx->len;
	list_remove(&tx->link);
	engine_unacked(peer, tx);
	/* Even a quiet write does not complete before the wire has read the caller's memory. */
	tx->state = TX_EAGER;
	if (engine_is_quiet(tx->flags, peer->wire))
		engine_quiet_add(peer, tx->ctx, tx->seq);
	else
		tx->flags |= ENGINE_DELIVERED;
	return 0;
}

/*
 * Send a write, by the way that suits its length. @gone: out: bytes of payload that are sent with
 * the request, or by the wire behind it. Returns 0 or -FI_EAGAIN.
 */
static int engine_write_start(struct engine_peer *peer, struct engine_tx *tx, size_t *gone)
{
	*gone = tx->len;
	if (engine_write_fits(peer, tx))
		return engine_write_inline(peer, tx);
	if (engine_write_streams(peer, tx))
		return engine_write_stream(peer, tx);
	*gone = 0;
	return engine_tx_rts(peer, tx);
}

/* Send a READ. Returns 0 or -FI_EAGAIN. */
static int engine_read_start(struct engine_peer *peer, struct engine_tx *tx)
{
	struct packet_read read = { .id = pool_id(tx), .len = tx->len };
	struct packet *packet;
	char *at;

	packet = engine_request_claim(peer, tx, &read, sizeof(read), 0, &at);
	if (!packet)
		return -FI_EAGAIN;
	peer->wire->publish(peer->conn, packet, tx->flags & ENGINE_MORE);
	engine_await_response(peer, tx, tx->len);
	return 0;
}

/* Send an ATOMIC. Returns 0 or -FI_EAGAIN. */
static int engine_atomic_start(struct engine_peer *peer, struct engine_tx *tx)
{
	const struct engine_update *update = &tx->update;
	struct packet_atomic atomic = engine_atomic_head(update, pool_id(tx));
	size_t compare = update->compare_cnt ? tx->len : 0;
	struct packet *packet;
	size_t bytes = 0;
	char *at;

	if (engine_may_overtake(peer, tx)) {
		engine_ack_request(peer);
		return -FI_EAGAIN;
	}
	packet = engine_request_claim(peer, tx, &atomic, sizeof(atomic), tx->len + compare, &at);
	if (!packet)
		return -FI_EAGAIN;
	copy_from_iov(at, tx->iov, tx->iov_cnt, 0, tx->len);
	if (compare)
		copy_from_iov(at + tx->len, update->compare, update->compare_cnt, 0, compare);
	peer->wire->publish(peer->conn, packet, tx->flags & ENGINE_MORE);
	if (update->result_cnt) {
		for (uint32_t i = 0; i < tx->target_cnt; i++)
			bytes += tx->targets[i].len;
		engine_await_response(peer, tx, bytes);
	} else {
		engine_request_left(peer, tx);
	}
	return 0;
}

int engine_access_start(struct engine_peer *peer, struct engine_tx *tx)
{
	struct wire_conn *conn = peer->conn;
	size_t gone = 0;
	int ret;

	if (tx->flags & ENGINE_FENCE && engine_fenced(peer))
		return -FI_EAGAIN;
	if (tx->state == TX_DIRECT)
		return -FI_EAGAIN; /* the wire is carrying it out */
	if (engine_reach(peer, tx))
		return 0;
	ret = engine_direct(peer, tx);
	if (unlikely(ret))
		return ret > 0 ? 0 : ret;
	if (unlikely(engine_requests_full(peer)))
		return -FI_EAGAIN;
	tx->seq = (uint32_t)peer->tx_seq;
	switch (tx->kind) {
	case PACKET_WRITE:
		ret = engine_write_start(peer, tx, &gone);
		break;
	case PACKET_READ:
		ret = engine_read_start(peer, tx);
		break;
	default:
		gone = tx->update.compare_cnt ? 2 * tx->len : tx->len;
		ret = engine_atomic_start(peer, tx);
		break;
	}
	if (ret)
		return ret;
	/* @tx may have been freed. */
	peer->ep->queued_cnt--;
	peer->tx_seq++;
	peer->request_cnt++;
	peer->outstanding_cnt++;
	engine_sent(peer->ep, conn, conn->wire->ops);
	conn->tx_msgs++;
	conn->tx_bytes += gone;
	return 0;
}
