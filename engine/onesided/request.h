/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parsing and answering a request of a peer: what target.c, reply.c and update.c share. A request
 * is untrusted: a NAK refuses an access that no region grants, and a malformed request ends the
 * conn.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_REQUEST_H
#define WEFT_REQUEST_H

#include "cntr.h"
#include "peer.h"
#include "resolve.h"
#include "send.h"

/*
 * Bound of the answers that wait to be sent to one peer, and of its large writes whose payload is
 * not there. The peer has at most ENGINE_REQUESTS_MAX requests under way, and may learn of the end
 * of a request before this side does.
 */
#define ANSWER_CNT_MAX (2 * ENGINE_REQUESTS_MAX)

/* A parsed request. */
struct request {
	struct packet_target targets[PACKET_TARGET_MAX];
	uint32_t target_cnt;
	/* Data behind the structs of the request, in memory that the peer may change */
	const char *carried;
	/* Length of @carried, bytes */
	size_t len;
};

/*
 * engine_request_read - parse the targets of a request
 * @payload: packet->len bytes
 * @own_len: length of the request's own struct, at the start of the payload, bytes
 * @bytes:   length of the target in the header, if the request has no list of targets; SIZE_MAX:
 *           all that the request carries
 * @r:       out
 * Returns 0, or -FI_EINVAL for a request that no peer of this version sends.
 */
int engine_request_read(const struct packet *packet, const void *payload, size_t own_len,
			uint64_t bytes, struct request *r);

/*
 * engine_request_land - acquire the memory that a request names
 * @access:  FI_REMOTE_READ, FI_REMOTE_WRITE or both
 * @landing: out: the regions and their memory, until landing_release()
 * Returns 0, or the -FI_E* to refuse the request with (nothing is acquired).
 */
int engine_request_land(struct engine_ep *ep, const struct request *r, uint64_t access,
			struct engine_landing *landing);

/*
 * engine_request_completed_of - count a request that was carried out
 * @kind:   FI_REMOTE_READ or FI_REMOTE_WRITE: counter of the receive context
 * @access: access that the request needed: counters of the regions
 * engine_request_completed - the same, for a request whose @kind is its @access
 * Source: fi_endpoint(3), fi_ep_bind; fi_mr(3), fi_mr_bind.
 */
void engine_request_completed_of(struct engine_rx_ctx *ctx, const struct engine_landing *landing,
				 uint64_t kind, uint64_t access);
void engine_request_completed(struct engine_rx_ctx *ctx, const struct engine_landing *landing,
			      uint64_t access);

/*
 * engine_request_completed_data - report a write or atomic with remote CQ data in the queue
 * @flags: FI_RMA or FI_ATOMIC
 * @data:  the remote CQ data
 * @len:   length of what was written, or of the elements, bytes
 */
void engine_request_completed_data(struct engine_rx_ctx *ctx, struct engine_peer *peer,
				   uint64_t flags, uint64_t data, size_t len);

/*
 * engine_request_refuse - send a NAK to the initiator
 * @which: id or seq of the request
 * @err:   -FI_E*
 */
void engine_request_refuse(struct engine_peer *peer, uint64_t which, int err);

/* Compute the length of all targets, bytes. Returns false if the sum overflows. */
static inline bool request_bytes(const struct request *r, uint64_t *bytes)
{
	*bytes = 0;
	for (uint32_t i = 0; i < r->target_cnt; i++)
		if (__builtin_add_overflow(*bytes, r->targets[i].len, bytes))
			return false;
	return true;
}

/* Count @len bytes that a request carried as received, whether it is carried out or refused. */
static inline void request_counted(struct engine_peer *peer, size_t len)
{
	if (likely(peer->conn != NULL))
		peer->conn->rx_bytes += len;
}

/* Release the regions that engine_request_land() has acquired. */
static inline void landing_release(struct engine_landing *landing)
{
	for (uint32_t i = 0; i < landing->mr_cnt; i++)
		engine_mr_release(landing->mr[i]);
	landing->mr_cnt = 0;
}

/*
 * Find the memory of a request whose one target is in its header, for an access that is carried
 * out at once, with the registrar out. Parameters as in engine_mr_resolve(). Returns 0, or the
 * -FI_E* to refuse the request with.
 */
static engine_path int request_place(struct engine_peer *peer, const struct packet *packet,
				     uint64_t len, uint64_t access, struct iovec *iov,
				     size_t *cnt, struct engine_mr **mr)
{
	return engine_mr_resolve(peer->ep->domain, peer->ep, packet->data, packet->tag, len,
				 access, iov, cnt, mr);
}

/* Count an access of @len bytes in the context's counter of FI_REMOTE_READ or FI_REMOTE_WRITE. */
static inline void request_completed_bytes(struct engine_rx_ctx *ctx, uint64_t kind,
					   uint64_t len)
{
	engine_count(ctx->cntr[kind & FI_REMOTE_READ ? ENGINE_CNTR_REMOTE_READ
						     : ENGINE_CNTR_REMOTE_WRITE],
		     0, len);
}

/* Returns true if more requests are not answered, or not told so, than a correct peer can have. */
static inline bool answers_overflow(const struct engine_peer *peer)
{
	return peer->reply_cnt + peer->nak_cnt + peer->landing_cnt > ANSWER_CNT_MAX;
}

/* A small answer: in a packet that was claimed, or, without room, in a reply that waits. */
struct answer {
	/* Claimed, or NULL */
	struct packet *packet;
	/* If @packet is NULL: owned until answer_send() */
	struct engine_reply *reply;
	/* Where the payload is written */
	void *at;
	/* Length of the payload, bytes */
	size_t len;
};

/*
 * Reserve room for an answer of @len bytes to the operation @id of the peer. The caller writes the
 * payload to a->at and calls answer_send(). Returns false without memory (nothing is reserved).
 */
static inline bool answer_claim(struct engine_peer *peer, uint64_t id, size_t len,
				struct answer *a)
{
	*a = (struct answer){ .len = len };
	if (list_empty(&peer->replies) && peer->conn)
		a->packet = peer->wire->claim(peer->conn, len, &a->at);
	if (a->packet) {
		engine_header(peer, a->packet, PACKET_RESPONSE, 0, (uint32_t)len);
		a->packet->tag = id;
		a->packet->data = 0;
		return true;
	}
	a->reply = pool_get(&peer->ep->reply_pool);
	if (!a->reply)
		return false;
	a->reply->copy = platform_alloc(len ? len : 1);
	if (!a->reply->copy) {
		pool_put(&peer->ep->reply_pool, a->reply);
		return false;
	}
	peer->reply_cnt++;
	a->reply->peer = peer;
	a->reply->id = id;
	a->reply->len = len;
	a->reply->sent = a->reply->chunk = 0;
	a->reply->source = NULL;
	a->at = a->reply->copy;
	return true;
}

/* Count @len bytes of an answer that were passed to the wire. */
static inline void answer_sent(struct engine_peer *peer, size_t len)
{
	peer->conn->tx_bytes += len;
	engine_sent(peer->ep, peer->conn, peer->wire);
}

/* Publish an answer, or queue it in peer->replies. */
static inline void answer_send(struct engine_peer *peer, struct answer *a)
{
	if (a->reply) {
		list_add_tail(&peer->replies, &a->reply->link);
		engine_peer_block(peer);
		return;
	}
	peer->wire->publish(peer->conn, a->packet, false);
	answer_sent(peer, a->len);
}

#endif
