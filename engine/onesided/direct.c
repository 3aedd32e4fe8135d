/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads and writes that go around the target: the wire looks its keys up and moves the bytes, and
 * the target does not notice. Called with the domain held, by the initiator's side of one-sided
 * operations (access.c), and from progress.
 *
 * Such an access has no place in the peer's sequence. It begins only when the target has taken all
 * messages before it, and while it is under way it stays the first of the queue, so that nothing behind it
 * leaves: it is as if it had been carried out in its turn. What the wire can't do, for whatever reason,
 * goes by packet, and is told there what is wrong.
 */
#include <rdma/fi_errno.h>
#include "access.h"
#include "peer.h"
#include "recv.h"
#include "send.h"

/* Could it be done so? */
static bool engine_direct_fits(const struct engine_peer *peer, const struct engine_tx *tx)
{
	const struct wire_ops *wire = peer->wire;

	return wire->direct && tx->len >= wire->direct_min && tx->len > ENGINE_ORDER_MAX &&
	       tx->kind != PACKET_ATOMIC && !(tx->flags & (PACKET_CQ_DATA | ENGINE_BY_PACKET));
}

/*
 * Has the peer taken every message? A wire knows what went over it, and of no other. Requests may be
 * under way: among them order is promised up to ENGINE_ORDER_MAX bytes, and this one is larger.
 */
static bool engine_settled(struct engine_peer *peer)
{
	uint64_t messages = peer->tx_seq - peer->request_cnt;

	if (peer->acked == (uint32_t)peer->tx_seq || peer->settled_cnt == messages)
		return true;
	if (peer->several || !peer->wire->taken(peer->conn))
		return false;
	peer->settled_cnt = messages;
	return true;
}

/* It has been done. Takes tx. */
static void engine_direct_end(struct engine_tx *tx)
{
	struct wire_conn *conn = tx->peer->conn;

	conn->tx_msgs++;
	if (tx->kind == PACKET_WRITE)
		conn->tx_bytes += tx->len;
	else
		conn->rx_bytes += tx->len;
	list_remove(&tx->link);
	engine_tx_end(tx, 0);
}

/* struct wire_op.done */
static void engine_direct_done(struct wire_op *op, int status)
{
	struct engine_tx *tx = container_of(op, struct engine_tx, op);
	struct engine_peer *peer = tx->peer;

	tx->state = TX_QUEUED;
	if (status)
		tx->flags |= ENGINE_BY_PACKET;
	else
		engine_direct_end(tx);
	engine_peer_block(peer); /* what waited behind it goes on */
}

int engine_direct(struct engine_peer *peer, struct engine_tx *tx)
{
	struct wire_access access = {
		.write = tx->kind == PACKET_WRITE,
		.targets = tx->targets,
		.target_cnt = tx->target_cnt,
		.iov = tx->iov,
		.iov_cnt = tx->iov_cnt,
	};
	int ret;

	if (tx->state == TX_DIRECT)
		return -FI_EAGAIN;
	if (likely(!engine_direct_fits(peer, tx)))
		return 0;
	if (!engine_settled(peer)) {
		tx->flags |= ENGINE_BY_PACKET;
		return 0;
	}
	tx->op.done = engine_direct_done;
	ret = peer->wire->direct(peer->conn, &access, &tx->op);
	if (ret < 0) {
		tx->flags |= ENGINE_BY_PACKET;
		return 0;
	}
	if (ret) {
		engine_direct_end(tx);
		return 1;
	}
	tx->state = TX_DIRECT;
	engine_expect(peer->ep, peer->conn->wire->idx);
	return -FI_EAGAIN;
}

void engine_direct_drop(struct engine_peer *peer)
{
	struct engine_tx *tx;

	if (list_empty(&peer->queued))
		return;
	tx = container_of(peer->queued.next, struct engine_tx, link);
	if (tx->state != TX_DIRECT)
		return;
	tx->state = TX_QUEUED;
	tx->flags |= ENGINE_BY_PACKET;
}
