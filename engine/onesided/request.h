/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A request of a peer, as the target takes it apart and answers it: what target.c, reply.c and
 * update.c share. What a request says is believed in nothing: a key leads to a region or nowhere,
 * and what does not make sense at all ends the conn.
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
 * Answers to one peer that wait: it has at most ENGINE_ASKED_MAX requests under way, and may know
 * of an end before we do.
 */
#define ANSWER_CNT_MAX (2 * ENGINE_ASKED_MAX)

/* A request, taken apart. */
struct request {
	struct packet_target targets[PACKET_TARGET_MAX];
	uint32_t target_cnt;
	/* what follows: memory that the other side may change */
	const char *carried;
	/* bytes of it */
	size_t len;
};

/*
 * engine_request_read - what a request names
 * @own_len: bytes of its own struct
 * @bytes:   that its one target has when it has no list of targets, or SIZE_MAX for all that it carries
 * Returns 0, or -FI_EINVAL for what no peer of this version sends.
 */
int engine_request_read(const struct packet *packet, const void *payload, size_t own_len,
			uint64_t bytes, struct request *r);

/*
 * engine_request_land - hold the memory that a request names
 * @access:  FI_REMOTE_READ, FI_REMOTE_WRITE or both
 * @landing: out: landing_release() lets go of it
 * Returns 0, or -FI_E* that the initiator is told (nothing is held).
 */
int engine_request_land(struct engine_ep *ep, const struct request *r, uint64_t access,
			struct engine_landing *landing);

/*
 * engine_request_completed_of - tell the program what a peer has done to its memory: the endpoint,
 * that it was read or written, by @kind, and the regions, what it needed
 * engine_request_completed - the same, where @access is both
 * Source: fi_endpoint(3), fi_ep_bind; fi_mr(3), fi_mr_bind.
 */
void engine_request_completed_of(struct engine_rx_ctx *ctx, const struct engine_landing *landing,
				 uint64_t kind, uint64_t access);
void engine_request_completed(struct engine_rx_ctx *ctx, const struct engine_landing *landing,
			      uint64_t access);

/*
 * engine_request_completed_data - a write or atomic came with data, which the queue tells; @flags:
 * FI_RMA or FI_ATOMIC
 */
void engine_request_completed_data(struct engine_rx_ctx *ctx, struct engine_peer *peer,
				   uint64_t flags, uint64_t data, size_t len);

/* engine_request_refuse - tell the initiator; @which: id or seq of the request, @err: -FI_E* */
void engine_request_refuse(struct engine_peer *peer, uint64_t which, int err);

/* Bytes of all targets; false when they overflow. */
static inline bool request_bytes(const struct request *r, uint64_t *bytes)
{
	*bytes = 0;
	for (uint32_t i = 0; i < r->target_cnt; i++)
		if (__builtin_add_overflow(*bytes, r->targets[i].len, bytes))
			return false;
	return true;
}

/* What a request carried has arrived, whatever becomes of it. */
static inline void request_counted(struct engine_peer *peer, size_t len)
{
	if (likely(peer->conn != NULL))
		peer->conn->rx_bytes += len;
}

static inline void landing_release(struct engine_landing *landing)
{
	for (uint32_t i = 0; i < landing->mr_cnt; i++)
		engine_mr_release(landing->mr[i]);
	landing->mr_cnt = 0;
}

/*
 * The memory of a request whose one place its header names, for an access that is done at once. 0,
 * or -FI_E* that the initiator is told
 */
static engine_path int request_place(struct engine_peer *peer, const struct packet *packet,
				     uint64_t len, uint64_t access, struct iovec *iov,
				     size_t *cnt, struct engine_mr **mr)
{
	int ret;

	*cnt = MR_IOV_MAX;
	ret = engine_mr_resolve(peer->ep->domain, peer->ep, packet->data, packet->tag, len,
				access, iov, cnt, mr);
	if (likely(!ret) && engine_mr_whole(*mr) &&
	    !platform_mapped(iov[0].iov_base, iov[0].iov_len))
		return -FI_EACCES;
	return ret;
}

/* @kind: FI_REMOTE_READ or FI_REMOTE_WRITE */
static inline void request_completed_bytes(struct engine_rx_ctx *ctx, uint64_t kind,
					   uint64_t len)
{
	engine_count(ctx->cntr[kind & FI_REMOTE_READ ? ENGINE_CNTR_REMOTE_READ
						     : ENGINE_CNTR_REMOTE_WRITE],
		     0, len);
}

/* Do more answers wait than a peer that keeps to the rules can want? */
static inline bool answers_overflow(const struct engine_peer *peer)
{
	return peer->reply_cnt + peer->nak_cnt > ANSWER_CNT_MAX;
}

/*
 * Room for a small answer: in the wire when there is any, else in a reply that waits. What is
 * written there is sent by answer_send(). NULL without memory.
 */
struct answer {
	/* claimed, or NULL */
	struct packet *packet;
	struct engine_reply *reply;
	void *at;
	size_t len;
};

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

/* @len bytes of an answer were given to the wire. */
static inline void answer_sent(struct engine_peer *peer, size_t len)
{
	peer->conn->tx_bytes += len;
	engine_sent(peer->ep, peer->conn, peer->wire);
}

static inline void answer_send(struct engine_peer *peer, struct answer *a)
{
	if (a->reply) {
		list_push(&peer->replies, &a->reply->link);
		engine_peer_block(peer);
		return;
	}
	peer->wire->publish(peer->conn, a->packet, false);
	answer_sent(peer, a->len);
}

#endif
