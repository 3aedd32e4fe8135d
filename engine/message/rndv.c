/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rendezvous: the payload of a large message stays with its sender until a receive matches.
 *
 *	sender				receiver
 *	RTS (length, id)	->	a receive matches: asks for as much as fits
 *			<-  CTS (sender's id, receiver's id, length wanted)
 *	DATA (receiver's id, offset) ->	repeated until the length wanted has arrived
 *
 *	or, if the wire has get(),
 *
 *	RTS (length, id, address)  ->	a receive matches: reads the sender's memory
 *			<-  FIN (sender's id), or CTS if the memory can't be read, or if the rest
 *			    arrives faster as DATA
 *
 * A payload in several pieces is read in two steps: the list of pieces, then the pieces.
 *
 * In either case a send with PACKET_DELIVERY ends with FIN. So does a large write (access.h), whose
 * payload goes to registered memory instead of the buffer of a receive.
 *
 * Called from receive calls and from progress; the caller holds the domain.
 */
#include "in_order.h"
#include "recv.h"
#include "send.h"

#define DATA_MAX (1u << 30) /* largest payload of one DATA packet, bytes */

static size_t engine_rndv_want(const struct engine_rx *rx)
{
	return rx->len < rx->cap ? rx->len : rx->cap;
}

/* Returns the memory for the payload: the buffer of a receive, or the target of a large write. */
static const struct iovec *engine_rndv_iov(const struct engine_rx *rx, uint32_t *cnt)
{
	*cnt = rx->landing ? rx->landing->iov_cnt : rx->iov_cnt;
	return rx->landing ? rx->landing->iov : rx->iov;
}

/* End a receive: the whole wanted payload has arrived. @send_fin: the sender waits for a FIN */
static void engine_rndv_finish(struct engine_rx *rx, bool send_fin)
{
	struct engine_peer *peer = rx->peer;
	uint64_t id = rx->peer_id, want = engine_rndv_want(rx);

	list_remove(&rx->link);
	if (rx->landing)
		rx->landing->ops->arrived(rx);
	else
		engine_recv_done(peer->ep->domain, rx);
	if (send_fin)
		engine_ctl(peer, PACKET_FIN, id, want, NULL);
}

static void engine_rndv_send_cts(struct engine_rx *rx)
{
	struct packet_cts cts = { .len = engine_rndv_want(rx), .from = rx->got };

	rx->flags |= ENGINE_CTS_SENT;
	engine_ctl(rx->peer, PACKET_CTS, rx->peer_id, pool_id(rx), &cts);
}

static void engine_rndv_pulled(struct wire_op *op, int status)
{
	struct engine_rx *rx = container_of(op, struct engine_rx, op);
	struct engine_peer *peer = rx->peer;

	rx->got = !status ? engine_rndv_want(rx) : status == -FI_EBUSY ? op->moved : 0;
	if (peer->conn)
		peer->conn->rx_bytes += rx->got;
	if (status)
		engine_rndv_send_cts(rx);
	else
		engine_rndv_finish(rx, true);
}

/*
 * Read the sender's memory. Returns false if the wire can't read it; otherwise @done is called
 * once, possibly before the return.
 */
static bool engine_rndv_get(struct engine_rx *rx, const struct wire_source *from,
			    const struct iovec *to, uint32_t to_cnt, size_t len,
			    void (*done)(struct wire_op *op, int status))
{
	struct engine_peer *peer = rx->peer;
	struct iovec iov[WIRE_DEST_MAX];
	size_t cnt;
	int ret;

	if (!peer->conn || !peer->wire->get)
		return false;
	cnt = iov_slice(to, to_cnt, 0, len, iov);
	if (cnt > WIRE_IOV_MAX)
		return false;
	rx->op.done = done;
	rx->op.moved = 0;
	ret = peer->wire->get(peer->conn, from, iov, cnt, &rx->op);
	if (ret < 0)
		return false;
	if (ret)
		done(&rx->op, 0);
	return true;
}

static bool engine_rndv_pull(struct engine_rx *rx, const struct wire_source *from)
{
	uint32_t cnt;
	const struct iovec *to = engine_rndv_iov(rx, &cnt);

	return engine_rndv_get(rx, from, to, cnt, engine_rndv_want(rx), engine_rndv_pulled);
}

/*
 * struct wire_op.done: the list of pieces was read. Only the total length of the pieces is checked:
 * their addresses are in the sender's own memory.
 */
static void engine_rndv_pieces(struct wire_op *op, int status)
{
	struct engine_rx *rx = container_of(op, struct engine_rx, op);
	struct wire_source from = { .id = rx->peer_id };
	uint64_t len = 0;

	while (!status && len < rx->len && from.iov_cnt < PACKET_PIECE_CNT) {
		const struct packet_piece *piece = &rx->pieces[from.iov_cnt];

		if (piece->len > rx->len - len)
			break;
		from.iov[from.iov_cnt++] = (struct iovec){ (void *)(uintptr_t)piece->addr,
							   piece->len };
		len += piece->len;
	}
	if (len != rx->len || !engine_rndv_pull(rx, &from))
		engine_rndv_send_cts(rx);
}

/*
 * Begin to read the payload from the sender's memory, if @packet allows it. @addr: packet_rts.addr.
 * Returns false if the receiver has to ask for the payload.
 */
static bool engine_rndv_begin(struct engine_rx *rx, const struct packet *packet, uint64_t addr)
{
	struct wire_source from = { .id = rx->peer_id, .iov_cnt = 1 };
	struct iovec to = { rx->pieces, sizeof(rx->pieces) };

	if (!(packet->flags & PACKET_PULL))
		return false;
	from.iov[0] = (struct iovec){ (void *)(uintptr_t)addr, engine_rndv_want(rx) };
	if (!(packet->flags & PACKET_PIECES))
		return engine_rndv_pull(rx, &from);
	memset(rx->pieces, 0, sizeof(rx->pieces));
	from.iov[0].iov_len = sizeof(rx->pieces);
	return engine_rndv_get(rx, &from, &to, 1, sizeof(rx->pieces), engine_rndv_pieces);
}

void engine_rndv_receive(struct engine_ep *ep, struct engine_peer *peer, struct engine_rx *rx,
			 const struct packet *packet, const struct packet_rts *rts)
{
	rx->peer = peer;
	rx->len = rts->len;
	rx->peer_id = rts->id;
	rx->flags |= packet->flags & PACKET_DELIVERY;
	rx->got = rx->incoming = 0;
	list_add_tail(&peer->receiving, &rx->link);
	engine_rx_order(rx);
	if (!engine_rndv_want(rx))
		engine_rndv_pulled(&rx->op, 0);
	else if (!engine_rndv_begin(rx, packet, rts->addr))
		engine_rndv_send_cts(rx);
}

size_t engine_offered(const struct wire_conn *conn, uint64_t id, uint64_t skip, uint64_t len,
		      struct iovec *iov)
{
	const struct engine_peer *peer = conn->peer;
	const struct engine_tx *tx = pool_find(&peer->ep->tx_pool, id);

	if (!tx || tx->peer != peer || tx->state != TX_RTS || skip > tx->len ||
	    len > tx->len - skip)
		return 0;
	return iov_slice(tx->iov, tx->iov_cnt, skip, len, iov);
}

/* Returns true if an operation whose payload was sent ends with the receiver's FIN. */
static bool engine_rndv_waits(const struct engine_tx *tx)
{
	return tx->kind != PACKET_EAGER || tx->flags & PACKET_DELIVERY;
}

static void engine_rndv_pushed(struct wire_op *op, int status)
{
	struct engine_tx *tx = container_of(op, struct engine_tx, op);

	tx->sent += tx->chunk;
	tx->chunk = 0;
	if (!status && tx->sent == tx->want && engine_rndv_waits(tx) &&
	    !(tx->flags & ENGINE_FINISHED)) {
		tx->state = TX_FIN;
		return;
	}
	list_remove(&tx->link);
	if (status || tx->sent == tx->want) {
		engine_tx_end(tx, status);
		return;
	}
	list_add_tail(&tx->peer->pushing, &tx->link);
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
	list_add_tail(&peer->started, &tx->link);
	return true;
}

int engine_rndv_cts(struct engine_peer *peer, const struct packet *packet,
		    const struct packet_cts *cts)
{
	struct engine_tx *tx = pool_find(&peer->ep->tx_pool, packet->tag);

	if (!tx || tx->peer != peer || tx->state != TX_RTS || cts->len > tx->len ||
	    cts->from >= cts->len)
		return -FI_EINVAL;
	if (peer->conn)
		peer->conn->tx_bytes += cts->from;
	tx->state = TX_DATA;
	tx->want = cts->len;
	tx->sent = cts->from;
	tx->peer_id = packet->data;
	list_remove(&tx->link);
	list_add_tail(&peer->pushing, &tx->link);
	if (!engine_rndv_push(tx))
		engine_peer_block(peer);
	return 0;
}

/*
 * Handle the FIN of the eager message with sequence number @seq, which has PACKET_DELIVERY. Returns
 * 0, or -FI_EINVAL if no such message waits for a FIN.
 */
static int engine_delivered(struct engine_peer *peer, uint32_t seq)
{
	struct engine_tx *tx;

	list_for_each_entry(tx, &peer->started, link) {
		if (tx->kind != PACKET_EAGER || tx->seq != seq || !(tx->flags & PACKET_DELIVERY))
			continue;
		if (tx->flags & ENGINE_FINISHED)
			return -FI_EINVAL;
		if (tx->state == TX_EAGER) {
			tx->flags |= ENGINE_FINISHED;
			return 0;
		}
		if (tx->state != TX_FIN)
			continue;
		list_remove(&tx->link);
		engine_tx_end(tx, 0);
		return 0;
	}
	return -FI_EINVAL;
}

int engine_rndv_fin(struct wire_conn *conn, const struct packet *packet)
{
	struct engine_peer *peer = conn->peer;
	struct engine_tx *tx;

	if (!(packet->tag >> 32))
		return engine_delivered(peer, (uint32_t)packet->tag);
	tx = pool_find(&peer->ep->tx_pool, packet->tag);
	if (!tx || tx->peer != peer || packet->data > tx->len || tx->flags & ENGINE_FINISHED)
		return -FI_EINVAL;
	if (tx->state == TX_RTS) {
		conn->tx_bytes += packet->data; /* the receiver has read them */
	} else if (tx->state == TX_DATA && engine_rndv_waits(tx) && tx->chunk &&
		   tx->sent + tx->chunk == tx->want) {
		/* The receiver has the whole payload; done() of the wire is still to come. */
		tx->flags |= ENGINE_FINISHED;
		return 0;
	} else if (tx->state != TX_FIN) {
		return -FI_EINVAL;
	}
	list_remove(&tx->link);
	engine_tx_end(tx, 0);
	return 0;
}

int engine_rndv_data(struct engine_peer *peer, const struct packet *packet, const void *payload,
		     size_t avail, struct wire_dest *dest)
{
	struct engine_rx *rx = pool_find(&peer->ep->domain->rx_pool, packet->tag);
	const struct iovec *iov;
	uint32_t cnt;
	size_t want;

	if (!rx || rx->peer != peer || !(rx->flags & ENGINE_CTS_SENT))
		return -FI_EINVAL;
	want = engine_rndv_want(rx);
	if (packet->data != rx->got || !packet->len || packet->len > want - rx->got)
		return -FI_EINVAL;
	/* Counted now: the wire may hand on the next DATA packet while it still writes this one. */
	rx->got += packet->len;
	rx->incoming++;
	iov = engine_rndv_iov(rx, &cnt);
	if (avail == packet->len) {
		engine_land(peer, iov, cnt, packet->data, payload, avail);
		engine_rndv_arrived(rx);
		return 0;
	}
	dest->iov_cnt = (uint32_t)iov_slice(iov, cnt, packet->data, packet->len, dest->iov);
	dest->cookie = rx;
	return 0;
}

void engine_rndv_arrived(struct engine_rx *rx)
{
	if (!--rx->incoming && rx->got == engine_rndv_want(rx))
		engine_rndv_finish(rx, rx->landing || rx->flags & PACKET_DELIVERY);
}
