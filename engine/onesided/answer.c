/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Answers of targets, at the initiator of one-sided operations: ACK, NAK and RESPONSE. Called with
 * the domain held, by progress.
 */
#include <rdma/fi_errno.h>
#include "access.h"
#include "copy.h"
#include "peer.h"
#include "quiet.h"
#include "recv.h"

/*
 * Everything before @seq has arrived at the peer, and requests were carried out or refused: end the
 * operations that waited for that.
 */
static void engine_ack_apply(struct engine_peer *peer, uint32_t seq)
{
	if ((int32_t)(seq - peer->acked) > 0)
		peer->acked = seq;
	engine_quiet_acked(peer);
	while (!list_empty(&peer->unacked)) {
		struct engine_tx *tx = container_of(peer->unacked.next, struct engine_tx, link);

		if ((int32_t)(tx->seq - seq) >= 0)
			break;
		list_remove(&tx->link);
		/* TX_EAGER: the wire still has the payload. */
		if (tx->state == TX_EAGER) {
			tx->flags |= ENGINE_FINISHED;
			list_add_tail(&peer->started, &tx->link);
		} else {
			engine_tx_end(tx, tx->error);
		}
	}
	if (!list_empty(&peer->queued))
		engine_peer_block(peer);
}

int engine_acked(struct engine_peer *peer, const struct packet *packet)
{
	uint32_t seq = (uint32_t)packet->data, naks = (uint32_t)packet->tag;

	if (packet->len || packet->data >> 32 || packet->tag >> 32 ||
	    (int32_t)((uint32_t)peer->tx_seq - seq) < 0)
		return -FI_EINVAL;
	if ((int32_t)(naks - peer->naks_received) > 0) {
		/*
		 * After a change of route an ACK may overtake NAKs. It then waits for those
		 * that it counts.
		 */
		if (!peer->ack_waits || (int32_t)(seq - peer->ack_seq) > 0) {
			peer->ack_waits = true;
			peer->ack_seq = seq;
			peer->ack_naks = naks;
		}
		return 0;
	}
	engine_ack_apply(peer, seq);
	return 0;
}

/* Returns the -FI_E* of a NAK whose data is @err, or 0 if no target sends such an error. */
static int engine_nak_error(uint64_t err)
{
	switch (err) {
	case FI_EKEYREJECTED:
	case FI_EACCES:
	case FI_EINVAL:
	case FI_EOPNOTSUPP:
	case FI_EMSGSIZE:
	case FI_ENOMEM:
		return -(int)err;
	default:
		return 0;
	}
}

/*
 * The target has refused the request at @seq. Returns 0, or -FI_EINVAL if no request is unanswered
 * there, or if it is known to be refused.
 */
static int engine_refused(struct engine_peer *peer, uint32_t seq, int err)
{
	struct engine_tx *tx;

	list_for_each_entry(tx, &peer->unacked, link) {
		if (tx->seq != seq)
			continue;
		if (tx->kind == PACKET_EAGER || tx->error)
			return -FI_EINVAL;
		tx->error = err;
		return 0;
	}
	return engine_quiet_refused(peer, seq, err);
}

int engine_nacked(struct engine_peer *peer, const struct packet *packet)
{
	int err = engine_nak_error(packet->data);
	struct engine_tx *tx;

	if (packet->len || !err)
		return -FI_EINVAL;
	if (packet->tag >> 32) {
		tx = pool_find(&peer->ep->tx_pool, packet->tag);
		if (!tx || tx->peer != peer || tx->kind == PACKET_EAGER || tx->sent ||
		    (tx->state != TX_RESPONSE && tx->state != TX_RTS))
			return -FI_EINVAL;
		list_remove(&tx->link);
		engine_tx_end(tx, err);
		return 0;
	}
	if (engine_refused(peer, (uint32_t)packet->tag, err))
		return -FI_EINVAL;
	peer->naks_received++;
	if (peer->ack_waits && (int32_t)(peer->ack_naks - peer->naks_received) <= 0) {
		peer->ack_waits = false;
		engine_ack_apply(peer, peer->ack_seq);
	}
	return 0;
}

int engine_response(struct engine_peer *peer, const struct packet *packet, const void *payload,
		    size_t avail, struct wire_dest *dest)
{
	struct engine_tx *tx = pool_find(&peer->ep->tx_pool, packet->tag);
	const struct iovec *iov;
	uint32_t cnt;

	if (!tx || tx->peer != peer || tx->state != TX_RESPONSE)
		return -FI_EINVAL;
	if (packet->data != tx->sent || packet->len > tx->want - tx->sent ||
	    (!packet->len && tx->want))
		return -FI_EINVAL;
	iov = tx->kind == PACKET_ATOMIC ? tx->update.result : tx->iov;
	cnt = tx->kind == PACKET_ATOMIC ? tx->update.result_cnt : tx->iov_cnt;
	/* Counted first: the next piece may arrive while the wire still writes this one. */
	tx->sent += packet->len;
	tx->chunk++;
	if (avail == packet->len) {
		engine_land(peer, iov, cnt, packet->data, payload, avail);
		engine_response_arrived(tx);
		return 0;
	}
	dest->iov_cnt = (uint32_t)iov_slice(iov, cnt, packet->data, packet->len, dest->iov);
	dest->cookie = (void *)((uintptr_t)tx | ENGINE_COOKIE_TX);
	return 0;
}

void engine_response_arrived(struct engine_tx *tx)
{
	if (--tx->chunk || tx->sent < tx->want)
		return;
	list_remove(&tx->link);
	engine_tx_end(tx, 0);
}
