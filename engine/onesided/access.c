/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The initiator's side of one-sided operations: requests that are kept until they end. Called with the
 * domain held, from calls (now.c), from progress and from what was deferred.
 */
#include <rdma/fi_errno.h>
#include "access.h"
#include "copy.h"
#include "peer.h"
#include "quiet.h"
#include "recv.h"
#include "send.h"

#define STREAM_MAX (1u << 30) /* payload of one packet, bytes */

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

/* The caller's buffers are its own again: keep what they hold. 0 or -FI_ENOMEM */
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

/* One of more bytes than keep their order anyway waits for what came before, and what comes next for it. */
static void engine_access_order(struct engine_peer *peer, struct engine_tx *tx)
{
	bool large = tx->len > ENGINE_ORDER_MAX && tx->len <= peer->ep->order_max;

	if (large || peer->after_large)
		tx->flags |= ENGINE_FENCE;
	peer->after_large = large;
}

/* One that is not begun after all: the call that comes in its place waits as it would have. */
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

/* Does the packet's header have no room for where it goes? */
static bool engine_request_listed(const struct engine_tx *tx)
{
	return tx->target_cnt > 1 || tx->flags & PACKET_CQ_DATA;
}

/* Bytes of a request's payload before what it carries: @head for its own struct. */
static size_t engine_request_head(const struct engine_tx *tx, size_t head)
{
	return engine_request_listed(tx) ? head + packet_targets_len(tx->target_cnt) : head;
}

/*
 * PACKET_ACKED when its target is to say at once that it was carried out: something waits for that, or
 * will where order is kept by waiting.
 */
static uint32_t engine_request_asks(const struct engine_peer *peer, const struct engine_tx *tx)
{
	bool waits = !engine_is_quiet(tx->flags, peer->wire) || peer->ep->order_max;

	if (tx->kind == PACKET_READ || (tx->kind == PACKET_ATOMIC && tx->update.result_cnt))
		return 0;
	return waits || engine_quiet_asks(peer) ? PACKET_ACKED : 0;
}

/*
 * Room for a request of @len bytes with its own struct, header filled but for the length.
 * @at: out: where what it carries begins
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
			 engine_request_asks(peer, tx) | (listed ? PACKET_TARGETS : 0),
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

/* Largest payload of a request over this wire. */
static size_t engine_request_max(const struct wire_ops *wire)
{
	return wire->claim_max > WIRE_REQUEST_MAX ? wire->claim_max : WIRE_REQUEST_MAX;
}

/* May it come before its turn if it is sent now, and is too large to be held without credit? */
static bool engine_may_overtake(const struct engine_peer *peer, const struct engine_tx *tx)
{
	return tx->len > ENGINE_REORDER_LEN && engine_lane_busy(peer);
}

/* Does a write travel with its header? */
static bool engine_write_fits(const struct engine_peer *peer, const struct engine_tx *tx)
{
	return engine_request_head(tx, 0) + tx->len <= engine_request_max(peer->wire);
}

/* May the receiver be asked to hold its payload until its turn? */
static bool engine_write_counts(const struct engine_peer *peer, const struct engine_tx *tx)
{
	return tx->len <= peer->credit && !engine_request_listed(tx);
}

/* A request that asks nothing back has left, all of it. Takes tx when it is quiet. */
static void engine_request_left(struct engine_peer *peer, struct engine_tx *tx)
{
	list_remove(&tx->link);
	engine_unacked(peer, tx);
	if (!engine_is_quiet(tx->flags, peer->wire))
		return;
	engine_quiet_add(peer, tx->ctx, tx->flags, tx->seq);
	list_remove(&tx->link);
	engine_tx_end(tx, 0);
}

static int engine_write_inline(struct engine_peer *peer, struct engine_tx *tx)
{
	bool early = engine_may_overtake(peer, tx);
	struct packet *packet;
	char *at;

	if (early && !engine_write_counts(peer, tx)) {
		engine_ask(peer);
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

/* Does a write wait on the wire when it comes before its turn? */
static bool engine_write_waits(const struct engine_peer *peer, const struct engine_tx *tx)
{
	return peer->wire->waits_min && tx->len >= peer->wire->waits_min &&
	       tx->len <= STREAM_MAX;
}

/* Does a write that does not fit travel behind its header all the same? */
static bool engine_write_streams(const struct engine_peer *peer, const struct engine_tx *tx)
{
	if (peer->wire->has_get || engine_request_listed(tx))
		return false;
	return engine_write_waits(peer, tx) ||
	       (tx->len <= peer->wire->eager_max && engine_write_counts(peer, tx));
}

/* From the caller's memory to the target's without a stop; only the header takes its turn. */
static int engine_write_stream(struct engine_peer *peer, struct engine_tx *tx)
{
	bool counted = !engine_write_waits(peer, tx);
	struct packet packet = { .tag = tx->targets[0].addr, .data = tx->targets[0].key };
	int ret;

	engine_header_to(peer, &packet, tx->rx_idx, PACKET_WRITE,
			 engine_request_asks(peer, tx) | (counted ? PACKET_COUNTED : 0),
			 (uint32_t)tx->len);
	ret = engine_tx_leave(peer, tx, &packet, !peer->wire->in_order);
	if (ret)
		return ret;
	if (counted)
		peer->credit -= (uint32_t)tx->len;
	list_remove(&tx->link);
	engine_unacked(peer, tx);
	/* A quiet one, too, is not complete before the caller's memory is read. */
	tx->state = TX_EAGER;
	if (engine_is_quiet(tx->flags, peer->wire))
		engine_quiet_add(peer, tx->ctx, tx->flags, tx->seq);
	else
		tx->flags |= ENGINE_DELIVERED;
	return 0;
}

/* @gone: out: bytes that go with it, or follow at once */
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

static int engine_atomic_start(struct engine_peer *peer, struct engine_tx *tx)
{
	const struct engine_update *update = &tx->update;
	struct packet_atomic atomic = engine_atomic_head(update, pool_id(tx));
	size_t compare = update->compare_cnt ? tx->len : 0;
	struct packet *packet;
	size_t bytes = 0;
	char *at;

	if (engine_may_overtake(peer, tx)) {
		engine_ask(peer);
		return -FI_EAGAIN;
	}
	packet = engine_request_claim(peer, tx, &atomic, sizeof(atomic), tx->len + compare,
				      &at);
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
	ret = engine_direct(peer, tx);
	if (unlikely(ret))
		return ret > 0 ? 0 : ret;
	if (unlikely(engine_asked_full(peer)))
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
	/* tx may be gone from here on. */
	peer->ep->queued_cnt--;
	peer->tx_seq++;
	peer->request_cnt++;
	peer->asked_cnt++;
	engine_sent(peer->ep, conn, conn->wire->ops);
	conn->tx_msgs++;
	conn->tx_bytes += gone;
	return 0;
}
