/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The target's side of reads. A small response is copied into the wire, or kept as a copy until the
 * wire has room. A large one is sent from the memory that is read. Called with the domain held, by
 * progress.
 */
#include <rdma/fi_errno.h>
#include "reply.h"
#include "copy.h"
#include "request.h"
#include "target.h"

/* Largest payload of one RESPONSE, bytes */
#define REPLY_MAX (1u << 30)

/* Free a reply that is in no list, and release the memory that it was sent from. */
static void reply_free(struct engine_reply *reply)
{
	struct engine_ep *ep = reply->peer->ep;

	if (reply->source)
		engine_landing_drop(ep, reply->source);
	reply->peer->reply_cnt--;
	platform_free(reply->copy);
	pool_put(&ep->reply_pool, reply);
}

/* The wire has sent a piece of a large response; see struct wire_op. */
static void reply_sent(struct wire_op *op, int status)
{
	struct engine_reply *reply = container_of(op, struct engine_reply, op);
	struct engine_peer *peer = reply->peer;

	list_remove(&reply->link);
	reply->sent += reply->chunk;
	reply->chunk = 0;
	if (status || reply->sent == reply->len) {
		reply_free(reply);
		return;
	}
	list_add_tail(&peer->replies, &reply->link);
	engine_peer_block(peer);
}

/*
 * Send the next piece of a large response, over no more pieces of memory than a wire takes. Returns
 * 0 or -FI_EAGAIN.
 */
static int reply_push(struct engine_peer *peer, struct engine_reply *reply)
{
	struct packet packet = { .tag = reply->id, .data = reply->sent };
	struct iovec all[WIRE_DEST_MAX], one = { reply->copy, reply->len };
	const struct iovec *iov = reply->source ? reply->source->iov : &one;
	size_t cnt = reply->source ? reply->source->iov_cnt : 1, chunk = 0;
	size_t left = reply->len - reply->sent;

	cnt = iov_slice(iov, cnt, reply->sent, left < REPLY_MAX ? left : REPLY_MAX, all);
	if (cnt > WIRE_IOV_MAX)
		cnt = WIRE_IOV_MAX;
	for (size_t i = 0; i < cnt; i++)
		chunk += all[i].iov_len;
	engine_header(peer, &packet, PACKET_RESPONSE, 0, (uint32_t)chunk);
	reply->op.done = reply_sent;
	reply->chunk = chunk;
	if (peer->wire->sendv(peer->conn, &packet, all, cnt, &reply->op)) {
		engine_credits_back(peer, packet.credits);
		reply->chunk = 0;
		return -FI_EAGAIN;
	}
	list_remove(&reply->link);
	list_add_tail(&peer->replying, &reply->link);
	answer_sent(peer, chunk);
	return 0;
}

bool engine_replies_push(struct engine_peer *peer)
{
	while (!list_empty(&peer->replies)) {
		struct engine_reply *reply = container_of(peer->replies.next,
							  struct engine_reply, link);
		struct packet *packet;
		void *at;

		if (!peer->conn)
			return false;
		if (reply->source) {
			if (reply_push(peer, reply))
				return false;
			continue;
		}
		packet = peer->wire->claim(peer->conn, reply->len, &at);
		if (!packet)
			return false;
		engine_header(peer, packet, PACKET_RESPONSE, 0, (uint32_t)reply->len);
		packet->tag = reply->id;
		packet->data = 0;
		memcpy(at, reply->copy, reply->len);
		peer->wire->publish(peer->conn, packet, false);
		answer_sent(peer, reply->len);
		list_remove(&reply->link);
		reply_free(reply);
	}
	return true;
}

void engine_replies_drop(struct engine_peer *peer)
{
	struct list *node;

	while ((node = list_pop(&peer->replies)))
		reply_free(container_of(node, struct engine_reply, link));
	while ((node = list_pop(&peer->replying)))
		reply_free(container_of(node, struct engine_reply, link));
}

/*
 * Answer a read that is too large to be copied. Its regions stay acquired until the response is
 * sent. Takes the regions of @source on success. Returns 0 or -FI_ENOMEM.
 */
static int reply_large(struct engine_peer *peer, uint64_t id,
		       const struct engine_landing *source, size_t len)
{
	struct engine_landing *held = pool_get(&peer->ep->landing_pool);
	struct engine_reply *reply = held ? pool_get(&peer->ep->reply_pool) : NULL;

	if (!reply) {
		if (held)
			pool_put(&peer->ep->landing_pool, held);
		return -FI_ENOMEM;
	}
	memcpy(held->mr, source->mr, sizeof(held->mr));
	memcpy(held->iov, source->iov, sizeof(held->iov));
	held->mr_cnt = source->mr_cnt;
	held->iov_cnt = source->iov_cnt;
	peer->reply_cnt++;
	reply->peer = peer;
	reply->id = id;
	reply->len = len;
	reply->sent = reply->chunk = 0;
	reply->copy = NULL;
	reply->source = held;
	list_add_tail(&peer->replies, &reply->link);
	if (!engine_replies_push(peer))
		engine_peer_block(peer);
	return 0;
}

/*
 * Answer a read by a copy of the memory, which is sent now or when there is room. Returns 0 or
 * -FI_ENOMEM.
 */
static int reply_small(struct engine_peer *peer, uint64_t id,
		       const struct engine_landing *source, size_t len)
{
	struct answer answer;

	if (!answer_claim(peer, id, len, &answer))
		return -FI_ENOMEM;
	if (answer.packet)
		engine_fill(peer->conn, answer.at, source->iov, source->iov_cnt, len,
			    peer->wire);
	else
		copy_from_iov(answer.at, source->iov, source->iov_cnt, 0, len);
	answer_send(peer, &answer);
	return 0;
}

int engine_request_get(struct engine_rx_ctx *ctx, struct engine_peer *peer,
		       const struct packet *packet, const void *payload)
{
	struct engine_landing landing;
	struct packet_read read;
	struct request r;
	uint64_t bytes;
	bool large;
	int ret;

	if (packet->len < sizeof(read) || packet->flags & (PACKET_CQ_DATA | PACKET_ACKED))
		return -FI_EINVAL;
	memcpy(&read, payload, sizeof(read));
	if (engine_request_read(packet, payload, sizeof(read), read.len, &r) || r.len ||
	    !(read.id >> 32))
		return -FI_EINVAL;
	if (!request_bytes(&r, &bytes) || bytes != read.len)
		return -FI_EINVAL;
	ret = engine_request_land(peer->ep, &r, FI_REMOTE_READ, &landing);
	if (ret) {
		engine_request_refuse(peer, read.id, ret);
		return 0;
	}
	large = bytes > WIRE_REQUEST_MAX;
	ret = large ? reply_large(peer, read.id, &landing, bytes)
		    : reply_small(peer, read.id, &landing, bytes);
	if (ret)
		engine_request_refuse(peer, read.id, ret);
	else
		engine_request_completed(ctx, &landing, FI_REMOTE_READ);
	if (ret || !large)
		landing_release(&landing);
	return 0;
}
