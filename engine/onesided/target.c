/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The target's side of one-sided operations: requests of peers for registered memory. Writes are
 * carried out here, reads in reply.c, atomics in update.c. Called with the domain held, by
 * progress.
 */
#include <rdma/fi_errno.h>
#include "target.h"
#include "ack.h"
#include "copy.h"
#include "recv.h"
#include "reply.h"
#include "request.h"

/* Carry out a write, whose packet was counted; engine_request_write() returns what it does. */
static engine_path int write_place(struct engine_rx_ctx *ctx, struct engine_peer *peer,
				   const struct packet *packet, const void *payload)
{
	struct iovec iov[MR_IOV_MAX];
	struct engine_mr *mr;
	size_t cnt;
	int ret = request_place(peer, packet, packet->len, FI_REMOTE_WRITE, iov, &cnt, &mr);

	if (unlikely(ret)) {
		engine_request_refuse(peer, packet->seq, ret);
		return 0;
	}
	if (likely(cnt == 1 && packet->len < COPY_WIDE_MIN))
		copy_bytes(iov[0].iov_base, payload, packet->len);
	else
		engine_land(peer, iov, cnt, 0, payload, packet->len);
	engine_mr_count(mr, FI_REMOTE_WRITE, packet->len);
	request_completed_bytes(ctx, FI_REMOTE_WRITE, packet->len);
	return 0;
}

/* write_place() where the registrar has to leave first */
static __attribute__((noinline)) int write_place_alone(struct engine_rx_ctx *ctx,
						       struct engine_peer *peer,
						       const struct packet *packet,
						       const void *payload)
{
	engine_registrar_look(peer->ep->domain);
	return write_place(ctx, peer, packet, payload);
}

int engine_request_write(struct engine_rx_ctx *ctx, struct engine_peer *peer,
			 const struct packet *packet, const void *payload)
{
	if (unlikely(answers_overflow(peer)))
		return -FI_EINVAL;
	request_counted(peer, packet->len);
	if (unlikely(packet->flags & PACKET_COUNTED))
		engine_grant(peer, packet->len);
	engine_ack_due(peer, packet->flags);
	if (unlikely(!engine_registrar_is_out(peer->ep->domain)))
		return write_place_alone(ctx, peer, packet, payload);
	return write_place(ctx, peer, packet, payload);
}

/* engine_request() for a PACKET_WRITE that has wholly arrived */
static int request_write(struct engine_rx_ctx *ctx, struct engine_peer *peer,
			 const struct packet *packet, const void *payload)
{
	struct engine_landing landing;
	struct request r;
	uint64_t bytes;
	int ret;

	if (likely(engine_request_plain(packet)))
		return engine_request_write(ctx, peer, packet, payload);
	if (engine_request_read(packet, payload, 0, SIZE_MAX, &r))
		return -FI_EINVAL;
	if (!request_bytes(&r, &bytes) || bytes != r.len)
		return -FI_EINVAL;
	request_counted(peer, r.len);
	engine_ack_due(peer, packet->flags);
	ret = engine_request_land(peer->ep, &r, FI_REMOTE_WRITE, &landing);
	if (ret) {
		engine_request_refuse(peer, packet->seq, ret);
		return 0;
	}
	engine_land(peer, landing.iov, landing.iov_cnt, 0, r.carried, r.len);
	engine_request_completed(ctx, &landing, FI_REMOTE_WRITE);
	if (packet->flags & PACKET_CQ_DATA)
		engine_request_completed_data(ctx, peer, FI_RMA, packet->data, r.len);
	landing_release(&landing);
	return 0;
}

void engine_landing_drop(struct engine_ep *ep, struct engine_landing *landing)
{
	landing_release(landing);
	pool_put(&ep->landing_pool, landing);
}

/* A large write of the peer has ended. */
static void landing_drop(struct engine_peer *peer, struct engine_landing *landing)
{
	peer->landing_cnt--;
	engine_landing_drop(peer->ep, landing);
}

void engine_landed(struct engine_rx *rx)
{
	struct engine_peer *peer = rx->peer;

	engine_request_completed(rx->ctx, rx->landing, FI_REMOTE_WRITE);
	if (rx->flags & PACKET_CQ_DATA)
		engine_request_completed_data(rx->ctx, peer, FI_RMA, rx->data, rx->len);
	landing_drop(peer, rx->landing);
	rx->landing = NULL;
	engine_rx_put(peer->ep->domain, rx);
}

static const struct engine_landing_ops landing_ops = {
	.arrived = engine_landed,
	.drop = landing_drop,
};

/*
 * Acquire the memory for the payload of a large write of @len bytes. @out: out: stands for the
 * receive, in no list. Returns 0, or the -FI_E* to refuse the request with.
 */
static int landing_open(struct engine_rx_ctx *ctx, struct engine_peer *peer,
			const struct packet *packet, const struct request *r, uint64_t len,
			struct engine_rx **out)
{
	struct engine_domain *domain = peer->ep->domain;
	struct engine_landing *landing = pool_get(&peer->ep->landing_pool);
	struct engine_rx *rx = landing ? pool_get(&domain->rx_pool) : NULL;
	int ret = rx ? engine_request_land(peer->ep, r, FI_REMOTE_WRITE, landing) : -FI_ENOMEM;

	if (ret) {
		if (rx)
			engine_rx_put(domain, rx);
		if (landing)
			pool_put(&peer->ep->landing_pool, landing);
		return ret;
	}
	rx->ctx = ctx;
	rx->peer = peer;
	rx->context = NULL;
	rx->tag = 0;
	rx->data = packet->data;
	rx->len = rx->cap = len;
	rx->flags = packet->flags & (PACKET_CQ_DATA | PACKET_COUNTED);
	rx->iov_cnt = 0;
	landing->ops = &landing_ops;
	rx->landing = landing;
	peer->landing_cnt++;
	*out = rx;
	return 0;
}

/* engine_request() for a PACKET_RTS: begin a large write, whose payload arrives by rendezvous. */
static int request_rts(struct engine_rx_ctx *ctx, struct engine_peer *peer,
		       const struct packet *packet, const void *payload)
{
	struct packet_rts rts;
	struct engine_rx *rx;
	struct request r;
	uint64_t bytes;
	int ret;

	if (packet->len < sizeof(rts) ||
	    engine_request_read(packet, payload, sizeof(rts), 0, &r))
		return -FI_EINVAL;
	memcpy(&rts, payload, sizeof(rts));
	if (r.len || !request_bytes(&r, &bytes) || bytes != rts.len || !bytes || !(rts.id >> 32))
		return -FI_EINVAL;
	ret = landing_open(ctx, peer, packet, &r, bytes, &rx);
	if (ret)
		engine_request_refuse(peer, rts.id, ret);
	else
		engine_rndv_receive(peer->ep, peer, rx, packet, &rts);
	return 0;
}

int engine_request_stream(struct engine_rx_ctx *ctx, struct engine_peer *peer,
			  const struct packet *packet, struct wire_dest *dest)
{
	struct request r = {
		.targets = { { .addr = packet->tag, .len = packet->len, .key = packet->data } },
		.target_cnt = 1,
		.len = packet->len,
	};
	struct engine_rx *rx;
	int ret;

	if (unlikely(answers_overflow(peer)))
		return -FI_EINVAL;
	request_counted(peer, r.len);
	engine_ack_due(peer, packet->flags);
	ret = landing_open(ctx, peer, packet, &r, r.len, &rx);
	if (ret) {
		if (packet->flags & PACKET_COUNTED)
			engine_grant(peer, r.len); /* the wire discards the payload */
		engine_request_refuse(peer, packet->seq, ret);
		return 0;
	}
	rx->incoming = packet->len;
	rx->peer_id = packet->seq;
	list_add_tail(&peer->filling, &rx->filling);
	list_add_tail(&peer->receiving, &rx->link);
	dest->iov_cnt = (uint32_t)iov_slice(rx->landing->iov, rx->landing->iov_cnt, 0,
					    packet->len, dest->iov);
	dest->cookie = rx;
	return 0;
}

int engine_request(struct engine_rx_ctx *ctx, struct engine_peer *peer,
		   const struct packet *packet, const void *payload)
{
	if (unlikely(answers_overflow(peer)))
		return -FI_EINVAL;
	switch (packet->op) {
	case PACKET_WRITE:
		return request_write(ctx, peer, packet, payload);
	case PACKET_READ:
		return engine_request_get(ctx, peer, packet, payload);
	case PACKET_ATOMIC:
		return engine_request_atomic(ctx, peer, packet, payload);
	default:
		return request_rts(ctx, peer, packet, payload);
	}
}
