/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rendezvous: the payload of a large message stays with its sender until a receive is there.
 *
 *	sender				receiver
 *	RTS (length, id)	->	matched: asks for what fits
 *			<-  CTS (id, own id, length wanted)
 *	DATA (own id, offset)	->	until the length wanted is there
 *
 *	or, where the wire says that it pays,
 *
 *	RTS (length, id, address)  ->	matched: reads the sender's memory
 *			<-  FIN (id)	or CTS, when it can't be read
 *
 * Called with the domain held: from receives that are posted, and from progress.
 */
#include "recv.h"
#include "send.h"

#define DATA_MAX (1u << 30) /* payload of one DATA packet, bytes */

static size_t engine_rndv_want(const struct engine_rx *rx)
{
	return rx->len < rx->cap ? rx->len : rx->cap;
}

/* All that was wanted is there. */
static void engine_rndv_finish(struct engine_rx *rx)
{
	struct engine_peer *peer = rx->peer;

	list_remove(&rx->link);
	engine_recv_done(peer->ep, rx);
}

static void engine_rndv_ask(struct engine_rx *rx)
{
	struct packet_cts cts = { .len = engine_rndv_want(rx) };

	rx->flags |= ENGINE_ASKED;
	engine_ctl(rx->peer, PACKET_CTS, rx->peer_id, pool_id(rx), &cts);
}

static void engine_rndv_pulled(struct wire_op *op, int status)
{
	struct engine_rx *rx = container_of(op, struct engine_rx, op);
	struct engine_peer *peer = rx->peer;
	uint64_t id = rx->peer_id, want = engine_rndv_want(rx);

	if (status) {
		engine_rndv_ask(rx);
		return;
	}
	if (peer->conn)
		peer->conn->rx_bytes += want;
	engine_rndv_finish(rx);
	engine_ctl(peer, PACKET_FIN, id, want, NULL);
}

/* Read the sender's memory; false when no wire to it can. */
static bool engine_rndv_pull(struct engine_rx *rx, uint64_t addr)
{
	struct engine_peer *peer = rx->peer;
	struct iovec iov[ENGINE_IOV_MAX];
	size_t cnt = iov_slice(rx->iov, rx->iov_cnt, 0, engine_rndv_want(rx), iov);
	int ret;

	if (!peer->conn || !peer->wire->has_get)
		return false;
	rx->op.done = engine_rndv_pulled;
	ret = peer->wire->get(peer->conn, addr, iov, cnt, &rx->op);
	if (ret < 0)
		return false;
	if (ret)
		engine_rndv_pulled(&rx->op, 0);
	return true;
}

void engine_rndv_receive(struct engine_ep *ep, struct engine_peer *peer, struct engine_rx *rx,
			 const struct packet *packet, const struct packet_rts *rts)
{
	rx->peer = peer;
	rx->len = rts->len;
	rx->peer_id = rts->id;
	rx->got = rx->incoming = 0;
	list_push(&peer->receiving, &rx->link);
	if (!engine_rndv_want(rx))
		engine_rndv_pulled(&rx->op, 0);
	else if (!(packet->flags & PACKET_PULL) || !engine_rndv_pull(rx, rts->addr))
		engine_rndv_ask(rx);
}

static void engine_rndv_pushed(struct wire_op *op, int status)
{
	struct engine_tx *tx = container_of(op, struct engine_tx, op);

	tx->sent += tx->chunk;
	tx->chunk = 0;
	if (status || tx->sent == tx->want) {
		list_remove(&tx->link);
		engine_tx_end(tx, status);
		return;
	}
	list_remove(&tx->link);
	list_push(&tx->peer->pushing, &tx->link);
	engine_peer_block(tx->peer);
}

bool engine_rndv_push(struct engine_tx *tx)
{
	struct engine_peer *peer = tx->peer;
	struct packet packet = { .tag = tx->peer_id, .data = tx->sent };
	struct iovec iov[ENGINE_IOV_MAX];
	size_t chunk = tx->want - tx->sent;
	size_t cnt;

	if (!peer->conn)
		return false;
	if (chunk > DATA_MAX)
		chunk = DATA_MAX;
	cnt = iov_slice(tx->iov, tx->iov_cnt, tx->sent, chunk, iov);
	engine_header(peer, &packet, PACKET_DATA, 0, (uint32_t)chunk);
	tx->op.done = engine_rndv_pushed;
	if (peer->wire->sendv(peer->conn, &packet, iov, cnt, &tx->op)) {
		engine_credits_back(peer, packet.credits);
		return false;
	}
	engine_sent(peer->ep, peer->conn, peer->wire);
	peer->conn->tx_bytes += chunk;
	tx->chunk = chunk;
	list_remove(&tx->link);
	list_push(&peer->started, &tx->link);
	return true;
}

int engine_rndv_cts(struct engine_peer *peer, const struct packet *packet, const struct packet_cts *cts)
{
	struct engine_tx *tx = pool_find(&peer->ep->tx_pool, packet->tag);

	if (!tx || tx->peer != peer || tx->state != TX_RTS || !cts->len || cts->len > tx->len)
		return -FI_EINVAL;
	tx->state = TX_DATA;
	tx->want = cts->len;
	tx->peer_id = packet->data;
	list_remove(&tx->link);
	list_push(&peer->pushing, &tx->link);
	if (!engine_rndv_push(tx))
		engine_peer_block(peer);
	return 0;
}

int engine_rndv_fin(struct wire_conn *conn, const struct packet *packet)
{
	struct engine_peer *peer = conn->peer;
	struct engine_tx *tx = pool_find(&peer->ep->tx_pool, packet->tag);

	if (!tx || tx->peer != peer || tx->state != TX_RTS || packet->data > tx->len)
		return -FI_EINVAL;
	conn->tx_bytes += packet->data;
	list_remove(&tx->link);
	engine_tx_end(tx, 0);
	return 0;
}

int engine_rndv_data(struct engine_peer *peer, const struct packet *packet, const void *payload, size_t avail,
		     struct wire_dest *dest)
{
	struct engine_rx *rx = pool_find(&peer->ep->rx_pool, packet->tag);
	size_t want;

	if (!rx || rx->peer != peer || !(rx->flags & ENGINE_ASKED) || rx->incoming)
		return -FI_EINVAL;
	want = engine_rndv_want(rx);
	if (packet->data != rx->got || packet->len > want - rx->got)
		return -FI_EINVAL;
	rx->incoming = packet->len;
	if (avail == packet->len) {
		copy_to_iov(rx->iov, rx->iov_cnt, rx->got, payload, avail);
		engine_rndv_arrived(rx);
		return 0;
	}
	dest->iov_cnt = (uint32_t)iov_slice(rx->iov, rx->iov_cnt, rx->got, packet->len, dest->iov);
	dest->cookie = rx;
	return 0;
}

void engine_rndv_arrived(struct engine_rx *rx)
{
	rx->got += rx->incoming;
	rx->incoming = 0;
	if (rx->got == engine_rndv_want(rx))
		engine_rndv_finish(rx);
}
