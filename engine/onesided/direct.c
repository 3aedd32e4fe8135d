/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads and writes without the target: the wire looks up the target's keys and moves the bytes, and
 * the target's engine does not take part. Called with the domain held, by the initiator's side of
 * one-sided operations (access.c), and by progress.
 *
 * Such an access has no sequence number, but its effect is as if it were carried out in its turn:
 * it begins only when the target has taken all messages before it, and until it ends it stays the
 * first of peer->queued, so that no operation behind it is sent. An access that the wire can't
 * carry out, for any reason, is sent by packet, and the target's answer reports what is wrong with
 * it.
 */
#include <rdma/fi_errno.h>
#include "access.h"
#include "peer.h"
#include "recv.h"
#include "send.h"

/* Returns true if the operation may be carried out without the target. */
static bool engine_direct_fits(const struct engine_peer *peer, const struct engine_tx *tx)
{
	const struct wire_ops *wire = peer->wire;

	return wire->direct && tx->len >= wire->direct_min && tx->len > ENGINE_ORDER_MAX &&
	       tx->kind != PACKET_ATOMIC && !(tx->flags & (PACKET_CQ_DATA | ENGINE_BY_PACKET));
}

/*
 * Returns true if the peer is known to have taken all messages. A wire knows that of the packets of
 * its conn only; once several conns have reached the peer, the wire is not asked. Requests may be
 * under way: their order among each other is kept up to ENGINE_ORDER_MAX bytes, and a direct access
 * is larger.
 */
static bool engine_settled(struct engine_peer *peer)
{
	uint64_t messages = peer->tx_seq - peer->request_cnt;

	if (peer->acked == (uint32_t)peer->tx_seq || peer->settled_cnt == messages)
		return true;
	if (peer->multi_conn || !peer->wire->taken(peer->conn))
		return false;
	peer->settled_cnt = messages;
	return true;
}

/* The wire has carried out the operation. Takes @tx. */
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

/* The wire has carried out the operation, or could not; see struct wire_op. */
static void engine_direct_done(struct wire_op *op, int status)
{
	struct engine_tx *tx = container_of(op, struct engine_tx, op);
	struct engine_peer *peer = tx->peer;

	tx->state = TX_QUEUED;
	if (status)
		tx->flags |= ENGINE_BY_PACKET;
	else
		engine_direct_end(tx);
	/* Operations waited behind this one. */
	engine_peer_block(peer);
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
