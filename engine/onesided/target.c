/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The target's side of one-sided operations: requests of peers on registered memory. Called with
 * the domain held, from progress. What a request says is believed in nothing: a key leads to a
 * region or nowhere, and what does not make sense at all ends the conn.
 */
#include <rdma/fi_errno.h>
#include "access.h"
#include "atomics.h"
#include "cntr.h"
#include "copy.h"
#include "peer.h"
#include "recv.h"
#include "resolve.h"
#include "send.h"

#define REPLY_MAX (1u << 30) /* payload of one RESPONSE, bytes */
/*
 * Answers to one peer that wait: it has at most ENGINE_ASKED_MAX requests under way, and may know of an end
 * before we do.
 */
#define ANSWER_CNT_MAX (2 * ENGINE_ASKED_MAX)

/* A request, taken apart. */
struct request {
	struct packet_target targets[PACKET_TARGET_MAX];
	uint32_t target_cnt;
	const char *carried; /* what follows: memory that the other side may change */
	size_t len;	     /* bytes of it */
};

/*
 * What a request names. @own_len: bytes of its own struct; @bytes: that its one target has when it
 * has no list of targets, or SIZE_MAX for all that it carries
 */
static int request_read(const struct packet *packet, const void *payload, size_t own_len,
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

/* Bytes of all targets; false when they overflow. */
static bool request_bytes(const struct request *r, uint64_t *bytes)
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

static void landing_release(struct engine_landing *landing)
{
	for (uint32_t i = 0; i < landing->mr_cnt; i++)
		engine_mr_release(landing->mr[i]);
	landing->mr_cnt = 0;
}

/* The memory that a request names, held. 0, or -FI_E* that the initiator is told. */
static int request_land(struct engine_ep *ep, const struct request *r, uint64_t access,
			struct engine_landing *landing)
{
	struct iovec iov[MR_IOV_MAX];
	int ret;

	landing->mr_cnt = landing->iov_cnt = 0;
	for (uint32_t i = 0; i < r->target_cnt; i++) {
		const struct packet_target *t = &r->targets[i];
		size_t cnt = MR_IOV_MAX;

		if (!t->len)
			continue;
		ret = engine_mr_acquire(ep->domain, ep, t->key, t->addr, t->len, access, iov,
					&cnt, &landing->mr[landing->mr_cnt]);
		if (ret) {
			landing_release(landing);
			return ret;
		}
		landing->len[landing->mr_cnt++] = t->len;
		if (engine_mr_whole(landing->mr[landing->mr_cnt - 1]) &&
		    !platform_mapped(iov[0].iov_base, iov[0].iov_len)) {
			landing_release(landing);
			return -FI_EACCES;
		}
		memcpy(&landing->iov[landing->iov_cnt], iov, cnt * sizeof(*iov));
		landing->iov_cnt += (uint32_t)cnt;
	}
	return 0;
}

/*
 * The memory of a request whose one place its header names, for an access that is done at once. 0, or -FI_E*
 * that the initiator is told
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

/* An operation counts once in each region that it is on, however many places it names there. */
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

/* @kind: FI_REMOTE_READ or FI_REMOTE_WRITE */
static inline void request_told_bytes(struct engine_rx_ctx *ctx, uint64_t kind, uint64_t len)
{
	engine_count(ctx->cntr[kind & FI_REMOTE_READ ? ENGINE_CNTR_REMOTE_READ
						     : ENGINE_CNTR_REMOTE_WRITE],
		     0, len);
}

/*
 * Tell the program what a peer has done to its memory: the endpoint, that it was read or written, by
 * @kind, and the regions, what it needed. Source: fi_endpoint(3), fi_ep_bind; fi_mr(3), fi_mr_bind.
 */
static void request_told_of(struct engine_rx_ctx *ctx, const struct engine_landing *landing,
			    uint64_t kind, uint64_t access)
{
	uint64_t len = 0;

	for (uint32_t i = 0; i < landing->mr_cnt; i++)
		len += landing->len[i];
	regions_count(landing, access);
	request_told_bytes(ctx, kind, len);
}

static void request_told(struct engine_rx_ctx *ctx, const struct engine_landing *landing,
			 uint64_t access)
{
	request_told_of(ctx, landing, access, access);
}

static void request_told_data(struct engine_rx_ctx *ctx, struct engine_peer *peer,
			      uint64_t flags, uint64_t data, size_t len)
{
	struct cq_entry *e = ctx->cq ? cq_slot(&ctx->cq->queue) : NULL;

	if (!e)
		return;
	*e = (struct cq_entry){
		.flags = FI_REMOTE_CQ_DATA | FI_REMOTE_WRITE | flags,
		.len = len,
		.data = data,
		.src = peer->told,
	};
	cq_push(&ctx->cq->queue);
}

/* @which: id or seq of the request */
static void request_refuse(struct engine_peer *peer, uint64_t which, int err)
{
	peer->naks_told += !(which >> 32);
	engine_ctl(peer, PACKET_NAK, which, (uint64_t)-err, NULL);
}

/* Do more answers wait than a peer that keeps to the rules can want? */
static bool answers_overflow(const struct engine_peer *peer)
{
	return peer->reply_cnt + peer->nak_cnt > ANSWER_CNT_MAX;
}

int engine_request_write(struct engine_rx_ctx *ctx, struct engine_peer *peer,
			 const struct packet *packet, const void *payload)
{
	struct iovec iov[MR_IOV_MAX];
	struct engine_mr *mr;
	size_t cnt;
	int ret;

	if (unlikely(answers_overflow(peer)))
		return -FI_EINVAL;
	request_counted(peer, packet->len);
	if (unlikely(packet->flags & PACKET_COUNTED))
		engine_grant(peer, packet->len);
	engine_ack_due(peer, packet->flags);
	ret = request_place(peer, packet, packet->len, FI_REMOTE_WRITE, iov, &cnt, &mr);
	if (unlikely(ret)) {
		request_refuse(peer, packet->seq, ret);
		return 0;
	}
	if (likely(cnt == 1 && packet->len < COPY_WIDE_MIN))
		copy_bytes(iov[0].iov_base, payload, packet->len);
	else
		engine_land(peer, iov, cnt, 0, payload, packet->len);
	engine_mr_count(mr, FI_REMOTE_WRITE, packet->len);
	request_told_bytes(ctx, FI_REMOTE_WRITE, packet->len);
	return 0;
}

static int request_write(struct engine_rx_ctx *ctx, struct engine_peer *peer,
			 const struct packet *packet, const void *payload)
{
	struct engine_landing landing;
	struct request r;
	uint64_t bytes;
	int ret;

	if (likely(engine_request_plain(packet)))
		return engine_request_write(ctx, peer, packet, payload);
	if (request_read(packet, payload, 0, SIZE_MAX, &r))
		return -FI_EINVAL;
	if (!request_bytes(&r, &bytes) || bytes != r.len)
		return -FI_EINVAL;
	request_counted(peer, r.len);
	engine_ack_due(peer, packet->flags);
	ret = request_land(peer->ep, &r, FI_REMOTE_WRITE, &landing);
	if (ret) {
		request_refuse(peer, packet->seq, ret);
		return 0;
	}
	engine_land(peer, landing.iov, landing.iov_cnt, 0, r.carried, r.len);
	request_told(ctx, &landing, FI_REMOTE_WRITE);
	if (packet->flags & PACKET_CQ_DATA)
		request_told_data(ctx, peer, FI_RMA, packet->data, r.len);
	landing_release(&landing);
	return 0;
}

/* Where the payload of a large write of @len bytes will go. 0, or -FI_E* that the initiator is told */
static int landing_open(struct engine_rx_ctx *ctx, struct engine_peer *peer,
			const struct packet *packet, const struct request *r, uint64_t len,
			struct engine_rx **out)
{
	struct engine_domain *domain = peer->ep->domain;
	struct engine_landing *landing = pool_get(&peer->ep->landing_pool);
	struct engine_rx *rx = landing ? pool_get(&domain->rx_pool) : NULL;
	int ret = rx ? request_land(peer->ep, r, FI_REMOTE_WRITE, landing) : -FI_ENOMEM;

	if (ret) {
		if (rx)
			pool_put(&domain->rx_pool, rx);
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
	rx->landing = landing;
	*out = rx;
	return 0;
}

/* A large write begins: its payload comes by rendezvous. */
static int request_rts(struct engine_rx_ctx *ctx, struct engine_peer *peer,
		       const struct packet *packet, const void *payload)
{
	struct packet_rts rts;
	struct engine_rx *rx;
	struct request r;
	uint64_t bytes;
	int ret;

	if (packet->len < sizeof(rts) || request_read(packet, payload, sizeof(rts), 0, &r))
		return -FI_EINVAL;
	memcpy(&rts, payload, sizeof(rts));
	if (r.len || !request_bytes(&r, &bytes) || bytes != rts.len || !bytes ||
	    !(rts.id >> 32))
		return -FI_EINVAL;
	ret = landing_open(ctx, peer, packet, &r, bytes, &rx);
	if (ret)
		request_refuse(peer, rts.id, ret);
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
			engine_grant(peer, r.len); /* the wire drops the payload */
		request_refuse(peer, packet->seq, ret);
		return 0;
	}
	rx->incoming = packet->len;
	rx->peer_id = packet->seq;
	list_push(&peer->filling, &rx->filling);
	list_push(&peer->receiving, &rx->link);
	dest->iov_cnt = (uint32_t)iov_slice(rx->landing->iov, rx->landing->iov_cnt, 0,
					    packet->len, dest->iov);
	dest->cookie = rx;
	return 0;
}

void engine_landing_drop(struct engine_ep *ep, struct engine_landing *landing)
{
	landing_release(landing);
	pool_put(&ep->landing_pool, landing);
}

void engine_landed(struct engine_rx *rx)
{
	struct engine_peer *peer = rx->peer;

	request_told(rx->ctx, rx->landing, FI_REMOTE_WRITE);
	if (rx->flags & PACKET_CQ_DATA)
		request_told_data(rx->ctx, peer, FI_RMA, rx->data, rx->len);
	engine_landing_drop(peer->ep, rx->landing);
	rx->landing = NULL;
	pool_put(&peer->ep->domain->rx_pool, rx);
}

/* Replies */

/*
 * Room for a small answer: in the wire when there is any, else in a reply that waits. What is
 * written there is sent by reply_send(). NULL without memory.
 */
struct answer {
	struct packet *packet; /* claimed, or NULL */
	struct engine_reply *reply;
	void *at;
	size_t len;
};

static bool answer_claim(struct engine_peer *peer, uint64_t id, size_t len, struct answer *a)
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
static void answer_sent(struct engine_peer *peer, size_t len)
{
	peer->conn->tx_bytes += len;
	engine_sent(peer->ep, peer->conn, peer->wire);
}

static void answer_send(struct engine_peer *peer, struct answer *a)
{
	if (a->reply) {
		list_push(&peer->replies, &a->reply->link);
		engine_peer_block(peer);
		return;
	}
	peer->wire->publish(peer->conn, a->packet, false);
	answer_sent(peer, a->len);
}

static void reply_free(struct engine_reply *reply)
{
	struct engine_ep *ep = reply->peer->ep;

	if (reply->source)
		engine_landing_drop(ep, reply->source);
	reply->peer->reply_cnt--;
	platform_free(reply->copy);
	pool_put(&ep->reply_pool, reply);
}

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
	list_push(&peer->replies, &reply->link);
	engine_peer_block(peer);
}

/* The next piece of a reply, over as few pieces of memory as a wire takes. 0 or -FI_EAGAIN */
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
	list_push(&peer->replying, &reply->link);
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

/* A read that is too large to be copied: its memory is held until it is sent. */
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
	list_push(&peer->replies, &reply->link);
	if (!engine_replies_push(peer))
		engine_peer_block(peer);
	return 0;
}

static int request_get(struct engine_rx_ctx *ctx, struct engine_peer *peer,
		       const struct packet *packet, const void *payload)
{
	struct engine_landing landing;
	struct packet_read read;
	struct answer answer;
	struct request r;
	uint64_t bytes;
	int ret;

	if (packet->len < sizeof(read) || packet->flags & (PACKET_CQ_DATA | PACKET_ACKED))
		return -FI_EINVAL;
	memcpy(&read, payload, sizeof(read));
	if (request_read(packet, payload, sizeof(read), read.len, &r) || r.len ||
	    !(read.id >> 32))
		return -FI_EINVAL;
	if (!request_bytes(&r, &bytes) || bytes != read.len)
		return -FI_EINVAL;
	ret = request_land(peer->ep, &r, FI_REMOTE_READ, &landing);
	if (ret) {
		request_refuse(peer, read.id, ret);
		return 0;
	}
	if (bytes > WIRE_REQUEST_MAX) {
		ret = reply_large(peer, read.id, &landing, bytes);
		if (!ret) {
			request_told(ctx, &landing, FI_REMOTE_READ);
			return 0;
		}
	} else if (answer_claim(peer, read.id, bytes, &answer)) {
		if (answer.packet)
			engine_fill(peer->conn, answer.at, landing.iov, landing.iov_cnt, bytes,
				    peer->wire);
		else
			copy_from_iov(answer.at, landing.iov, landing.iov_cnt, 0, bytes);
		answer_send(peer, &answer);
		request_told(ctx, &landing, FI_REMOTE_READ);
	} else {
		ret = -FI_ENOMEM;
	}
	landing_release(&landing);
	if (ret)
		request_refuse(peer, read.id, ret);
	return 0;
}

/* Atomics */

/* An atomic request, taken apart. */
struct update {
	struct packet_atomic atomic;
	size_t size, bytes; /* of an element, 0: nobody can do that; of all */
	size_t sets;	    /* of operands that it carries; values to compare with are one */
	uint64_t which;	    /* by which it is refused: id or seq */
	struct request r;   /* where it names no list: without targets */
};

/* What an atomic and its list say. 0, or -FI_EINVAL for what no peer sends */
static inline int update_read(const struct packet *packet, const void *payload,
			      struct update *u)
{
	struct packet_atomic *atomic = &u->atomic;

	if (packet->len < sizeof(*atomic))
		return -FI_EINVAL;
	memcpy(atomic, payload, sizeof(*atomic));
	if (atomic->reserved || (atomic->kind == ATOMICS_BASE) != !atomic->id)
		return -FI_EINVAL;
	if (atomic->id && (!(atomic->id >> 32) || packet->flags & PACKET_ACKED))
		return -FI_EINVAL;
	u->which = atomic->id ? atomic->id : packet->seq;
	u->size = atomics_element((enum atomics_kind)atomic->kind,
				  (enum fi_datatype)atomic->datatype, (enum fi_op)atomic->op);
	u->bytes = atomic->cnt * u->size;
	u->sets = atomic->kind == ATOMICS_COMPARE ? 2 : atomic->op != FI_ATOMIC_READ;
	if (unlikely(packet->flags & ~(uint32_t)PACKET_ACKED))
		return request_read(packet, payload, sizeof(*atomic), u->bytes, &u->r);
	u->r.carried = (const char *)payload + sizeof(*atomic);
	u->r.len = packet->len - sizeof(*atomic);
	return 0;
}

/* Does it carry what it says, and name as much? */
static inline bool update_whole(const struct packet *packet, const struct update *u)
{
	uint64_t named = u->bytes;

	if (unlikely(packet->flags & PACKET_TARGETS) && !request_bytes(&u->r, &named))
		return false;
	return u->atomic.cnt && u->bytes <= ENGINE_ATOMIC_MAX && named == u->bytes &&
	       u->r.len == u->sets * u->bytes;
}

/* Does every piece hold whole elements, where they may stand? */
static inline bool update_fits(const struct update *u, const struct iovec *iov, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		if ((cnt > 1 && iov[i].iov_len % u->size) ||
		    !atomics_aligned(iov[i].iov_base, (enum fi_datatype)u->atomic.datatype))
			return false;
	return true;
}

/*
 * @iov: update_fits(), but for a single piece without a result, which atomics_apply() looks at itself
 * Returns 0, or -FI_EINVAL for such a one (nothing happened).
 */
static inline int update_apply(const struct update *u, const struct iovec *iov, size_t cnt,
			       char *result)
{
	const char *operand = u->r.carried;
	const char *compare = u->sets == 2 ? operand + u->bytes : NULL;
	size_t at = 0;
	int ret = 0;

	for (size_t i = 0; i < cnt; i++) {
		struct atomics_update piece = {
			.kind = (enum atomics_kind)u->atomic.kind,
			.datatype = (enum fi_datatype)u->atomic.datatype,
			.op = (enum fi_op)u->atomic.op,
			.target = iov[i].iov_base,
			.operand = operand + at,
			.compare = compare ? compare + at : NULL,
			.result = result ? result + at : NULL,
			.cnt = likely(cnt == 1) ? u->atomic.cnt : iov[i].iov_len / u->size,
		};

		ret = atomics_apply(&piece);
		assert(!ret || cnt == 1);
		at += iov[i].iov_len;
	}
	return ret;
}

/* What access an operation needs, */
static inline uint64_t update_access(const struct update *u)
{
	if (likely(u->atomic.kind == ATOMICS_BASE))
		return FI_REMOTE_WRITE;
	return u->atomic.op == FI_ATOMIC_READ ? FI_REMOTE_READ
					      : FI_REMOTE_READ | FI_REMOTE_WRITE;
}

/* ... and what the endpoint counts it as. */
static inline uint64_t update_kind(const struct update *u)
{
	return u->atomic.id ? FI_REMOTE_READ : FI_REMOTE_WRITE;
}

/* Carry it out on this memory, and answer. 0, or -FI_E* that the initiator is told */
static inline int update_do(struct engine_peer *peer, const struct update *u,
			    const struct iovec *iov, size_t cnt)
{
	struct answer answer;

	if (likely(cnt == 1 && !u->atomic.id))
		return update_apply(u, iov, 1, NULL);
	if (unlikely(!update_fits(u, iov, cnt)))
		return -FI_EINVAL;
	if (!u->atomic.id)
		return update_apply(u, iov, cnt, NULL);
	if (!answer_claim(peer, u->atomic.id, u->bytes, &answer))
		return -FI_ENOMEM;
	update_apply(u, iov, cnt, answer.at);
	answer_send(peer, &answer);
	return 0;
}

/* The same on the one place that the header names, */
static engine_path int update_place(struct engine_rx_ctx *ctx, struct engine_peer *peer,
				    const struct packet *packet, const struct update *u)
{
	uint64_t access = update_access(u);
	struct iovec iov[MR_IOV_MAX];
	struct engine_mr *mr;
	size_t cnt;
	int ret = request_place(peer, packet, u->bytes, access, iov, &cnt, &mr);

	if (likely(!ret))
		ret = update_do(peer, u, iov, cnt);
	if (likely(!ret)) {
		engine_mr_count(mr, access, u->bytes);
		request_told_bytes(ctx, update_kind(u), u->bytes);
	}
	return ret;
}

/* ... or on those of the list. */
static int update_places(struct engine_rx_ctx *ctx, struct engine_peer *peer,
			 const struct packet *packet, const struct update *u)
{
	struct engine_landing landing;
	int ret = request_land(peer->ep, &u->r, update_access(u), &landing);

	if (ret)
		return ret;
	ret = update_do(peer, u, landing.iov, landing.iov_cnt);
	if (!ret) {
		request_told_of(ctx, &landing, update_kind(u), update_access(u));
		if (packet->flags & PACKET_CQ_DATA)
			request_told_data(ctx, peer, FI_ATOMIC, packet->data, u->bytes);
	}
	landing_release(&landing);
	return ret;
}

int engine_request_atomic(struct engine_rx_ctx *ctx, struct engine_peer *peer,
			  const struct packet *packet, const void *payload)
{
	struct update u;
	int ret;

	if (unlikely(answers_overflow(peer) || update_read(packet, payload, &u)))
		return -FI_EINVAL;
	request_counted(peer, u.r.len);
	if (likely(!u.atomic.id))
		engine_ack_due(peer, packet->flags);
	if (unlikely(!u.size)) {
		request_refuse(peer, u.which, -FI_EOPNOTSUPP);
		return 0;
	}
	if (unlikely(!update_whole(packet, &u)))
		return -FI_EINVAL;
	if (likely(!(packet->flags & PACKET_TARGETS)))
		ret = update_place(ctx, peer, packet, &u);
	else
		ret = update_places(ctx, peer, packet, &u);
	if (unlikely(ret))
		request_refuse(peer, u.which, ret);
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
		return request_get(ctx, peer, packet, payload);
	case PACKET_ATOMIC:
		return engine_request_atomic(ctx, peer, packet, payload);
	default:
		return request_rts(ctx, peer, packet, payload);
	}
}

/* All that the peer sent before that seq is there, and carried out if it was a request. */
static uint32_t engine_arrived(const struct engine_peer *peer)
{
	uint32_t seq = peer->rx_seq;
	const struct list *node;

	if (!list_empty(&peer->filling))
		seq = (uint32_t)container_of(peer->filling.next, struct engine_rx, filling)
			      ->peer_id;
	for (node = peer->arriving.next; node != &peer->arriving; node = node->next) {
		const struct engine_held *held = container_of(node, struct engine_held,
							      arriving);

		if ((int32_t)(held->packet.seq - seq) < 0)
			seq = held->packet.seq;
	}
	return seq;
}

void engine_ack_list(struct engine_peer *peer, enum engine_ack_when when)
{
	struct engine_ep *ep = peer->ep;

	list_remove(&peer->ack_link);
	list_push(when == ACK_NOW ? &ep->acks : &ep->acks_later, &peer->ack_link);
	peer->ack_due = (uint8_t)when;
}

/* @hold: an ACK may wait for what the program answers */
static void engine_acks_tell(struct engine_ep *ep, bool hold)
{
	struct list *node, *after;

	list_for_each(node, after, &ep->acks) {
		struct engine_peer *peer = container_of(node, struct engine_peer, ack_link);

		uint32_t seq = engine_arrived(peer);

		/* What is queued goes first, a refusal perhaps. */
		if (!list_empty(&peer->ctl))
			continue;
		if (seq == peer->rx_seq) {
			list_remove(&peer->ack_link);
			peer->ack_due = ACK_NONE;
		}
		if (seq != peer->ack_told)
			engine_ack(peer, seq, hold);
	}
}

void engine_acks_send(struct engine_ep *ep)
{
	engine_acks_tell(ep, true);
}

void engine_acks_hurry(struct engine_ep *ep)
{
	if (ep->ctx.copied) /* the conns are those of the process that forked */
		return;
	while (!list_empty(&ep->acks_later))
		engine_ack_list(container_of(ep->acks_later.next, struct engine_peer, ack_link),
				ACK_NOW);
	engine_acks_tell(ep, false);
}
