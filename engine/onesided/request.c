/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parsing of a peer's request, the memory that it names, and the reports of its end to the program
 * and to the initiator. Called with the domain held, by target.c, reply.c and update.c.
 */
#include <rdma/fi_errno.h>
#include "complete.h"
#include "request.h"

int engine_request_read(const struct packet *packet, const void *payload, size_t own_len,
			uint64_t bytes, struct request *r)
{
	uint32_t more = packet->op == PACKET_RTS ? PACKET_PULL | PACKET_PIECES : PACKET_ACKED;
	struct packet_targets head;
	size_t at = own_len, list;

	if (packet->flags & ~(PACKET_TARGETS | PACKET_CQ_DATA | PACKET_COUNTED | more))
		return -FI_EINVAL;
	if (packet->flags & PACKET_TARGETS) {
		list = packet_targets_len(0);
		if (packet->len < at + list)
			return -FI_EINVAL;
		memcpy(&head, (const char *)payload + at, list);
		if (!head.cnt || head.cnt > PACKET_TARGET_MAX || head.reserved)
			return -FI_EINVAL;
		list = packet_targets_len(head.cnt);
		if (packet->len < at + list)
			return -FI_EINVAL;
		r->target_cnt = head.cnt;
		memcpy(r->targets, (const char *)payload + at + packet_targets_len(0),
		       list - packet_targets_len(0));
		at += list;
	} else {
		if (packet->flags & PACKET_CQ_DATA || packet->len < at)
			return -FI_EINVAL;
		r->target_cnt = 1;
		r->targets[0] = (struct packet_target){
			.addr = packet->tag,
			.len = bytes == SIZE_MAX ? packet->len - at : bytes,
			.key = packet->data,
		};
	}
	r->carried = (const char *)payload + at;
	r->len = packet->len - at;
	return 0;
}

int engine_request_land(struct engine_ep *ep, const struct request *r, uint64_t access,
			struct engine_landing *landing)
{
	struct iovec iov[MR_IOV_MAX];
	int ret;

	landing->mr_cnt = landing->iov_cnt = 0;
	for (uint32_t i = 0; i < r->target_cnt; i++) {
		const struct packet_target *t = &r->targets[i];
		size_t cnt = MR_IOV_MAX;

		/* All zero names no memory: remote CQ data may come alone. */
		if (!(t->len | t->addr | t->key))
			continue;
		ret = engine_mr_acquire(ep->domain, ep, t->key, t->addr, t->len, access, iov,
					&cnt, &landing->mr[landing->mr_cnt]);
		if (ret) {
			landing_release(landing);
			return ret;
		}
		landing->len[landing->mr_cnt++] = t->len;
		/* No bytes have to be allowed too, and go nowhere. */
		if (!t->len)
			continue;
		memcpy(&landing->iov[landing->iov_cnt], iov, cnt * sizeof(*iov));
		landing->iov_cnt += (uint32_t)cnt;
	}
	return 0;
}

/* Count an operation once in each of its regions, even if several targets are in the same one. */
static void regions_count(const struct engine_landing *landing, uint64_t access)
{
	for (uint32_t i = 0; i < landing->mr_cnt; i++) {
		uint64_t len = 0;
		uint32_t first = 0;

		while (landing->mr[first] != landing->mr[i])
			first++;
		if (first < i)
			continue;
		for (uint32_t k = i; k < landing->mr_cnt; k++)
			len += landing->mr[k] == landing->mr[i] ? landing->len[k] : 0;
		engine_mr_count(landing->mr[i], access, len);
	}
}

void engine_request_completed_of(struct engine_rx_ctx *ctx, const struct engine_landing *landing,
				 uint64_t kind, uint64_t access)
{
	uint64_t len = 0;

	for (uint32_t i = 0; i < landing->mr_cnt; i++)
		len += landing->len[i];
	regions_count(landing, access);
	request_completed_bytes(ctx, kind, len);
}

void engine_request_completed(struct engine_rx_ctx *ctx, const struct engine_landing *landing,
			      uint64_t access)
{
	engine_request_completed_of(ctx, landing, access, access);
}

void engine_request_completed_data(struct engine_rx_ctx *ctx, struct engine_peer *peer,
				   uint64_t flags, uint64_t data, size_t len)
{
	struct cq_entry entry = {
		.flags = FI_REMOTE_CQ_DATA | FI_REMOTE_WRITE | flags,
		.len = len,
		.data = data,
		.src = peer->cq_addr,
	};

	if (ctx->cq)
		engine_complete(ctx->cq, &entry);
}

void engine_request_refuse(struct engine_peer *peer, uint64_t which, int err)
{
	peer->naks_sent += !(which >> 32);
	engine_ctl(peer, PACKET_NAK, which, (uint64_t)-err, NULL);
}
