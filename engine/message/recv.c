/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receive calls that post a receive, and the end of a receive that failed. Calls that search for a
 * message are in peek.c.
 *
 * The caller holds the domain, except for the slots of op tables: they enter it (guard.h), or it is
 * held already by the slots of object/safe.c.
 */
#include "recv.h"
#include "in_order.h"
#include "refuse.h"
#include "guard.h"
#include "post.h"
#include "send.h"

void engine_land(const struct engine_peer *peer, const struct iovec *iov, size_t cnt,
		 size_t skip, const void *payload, size_t len)
{
	if (peer->wire && peer->wire->payload_local)
		copy_local_to_iov(iov, cnt, skip, payload, len);
	else
		copy_to_iov(iov, cnt, skip, payload, len);
}

void engine_recv_copy(struct engine_rx *rx, const void *payload, size_t len)
{
	size_t take = len < rx->cap ? len : rx->cap;

	engine_land(rx->peer, rx->iov, rx->iov_cnt, 0, payload, take);
}

static void engine_recv_write_error(const struct engine_rx *rx, int err, fi_addr_t src)
{
	size_t got = rx->len < rx->cap ? rx->len : rx->cap;
	uint64_t more = rx->flags & ENGINE_PART ? engine_part_flags(rx) : 0;
	struct fi_cq_err_entry entry = {
		.op_context = rx->context,
		.flags = engine_recv_kind(rx->flags) |
			 (rx->flags & ENGINE_MULTI ? FI_MULTI_RECV : more),
		.len = err == -FI_ETRUNC ? got : 0,
		.buf = rx->iov[0].iov_base,
		.data = rx->data,
		.tag = rx->tag,
		.olen = err == -FI_ETRUNC ? rx->len - got : 0,
		.err = -err,
		.prov_errno = -err,
		.src_addr = src,
	};

	if (rx->ctx->cq)
		engine_complete_error(rx->ctx->cq, &entry);
}

void engine_recv_error(struct engine_domain *domain, struct engine_rx *rx, int err)
{
	fi_addr_t src = rx->peer		   ? rx->peer->cq_addr
			: rx->flags & ENGINE_MULTI ? rx->src
						   : FI_ADDR_NOTAVAIL;

	if (rx->flags & ENGINE_ORDERED) {
		engine_rx_out_of_turn(domain, rx, err);
		return;
	}
	if (rx->landing) {
		/* A large write of the peer: the initiator reports its end. */
		rx->landing->ops->drop(rx->peer, rx->landing);
		rx->landing = NULL;
		engine_rx_put(domain, rx);
		return;
	}
	if (rx->flags & PACKET_GROUP) {
		rx->ctx->ep->group_ops->received(rx, err);
		return;
	}
	if (rx->flags & ENGINE_MULTI && rx->parts_cnt) {
		/* The buffer ends after its last part; the peer may be gone by then. */
		rx->spent = true;
		rx->err = err;
		rx->src = src;
		rx->peer = NULL;
		return;
	}
	if (rx->flags & ENGINE_DEFERRED)
		engine_deferred_end(rx->ctx->cntr[ENGINE_CNTR_RECV], rx->work_cntr, rx->flags,
				    err, 0);
	else
		engine_count(rx->ctx->cntr[ENGINE_CNTR_RECV], err, 0);
	engine_recv_write_error(rx, err, src);
	if (rx->flags & ENGINE_PART)
		engine_part_free(domain, rx, true);
	else
		engine_rx_put(domain, rx);
}

void engine_recv_finish(struct engine_domain *domain, struct engine_rx *rx)
{
	struct engine_peer *peer = rx->peer;
	uint64_t id = rx->peer_id, len = rx->len;
	bool send_fin = rx->flags & PACKET_DELIVERY;

	if (unlikely(!list_empty(&peer->rx_order)))
		engine_rx_order(rx);
	engine_recv_done(domain, rx);
	if (send_fin)
		engine_ctl(peer, PACKET_FIN, id, len, NULL);
}

void engine_recv_move(struct engine_rx *rx, struct engine_rx_ctx *ctx)
{
	rx->ctx = ctx;
	if (!ctx->cq)
		rx->flags &= ~ENGINE_COMPLETE;
	else if (!ctx->selective)
		rx->flags |= ENGINE_COMPLETE;
}

/* Returns true if a receive of a shared context may name @src as its source. */
static bool engine_srx_has_source(const struct engine_ctx *ctx, fi_addr_t src)
{
	const struct engine_srx *srx = container_of(ctx->base, struct engine_srx, ctx);
	const struct engine_ep *ep = container_of(srx->eps.next, struct engine_ep, srx_link);

	return src < UINT64_MAX - 1 &&
	       (list_empty(&srx->eps) || !ep->av || av_get(&ep->av->table, src));
}

inline int engine_recv_source(struct engine_ctx *ctx, fi_addr_t src, uint64_t *source)
{
	struct engine_ep *ep = ctx->ep;
	struct engine_peer *peer;
	uint32_t ignored = 0;

	*source = MATCH_ANY_SOURCE;
	if (!ctx->directed_recv || src == FI_ADDR_UNSPEC)
		return 0;
	if (ctx->rx->q->shared) {
		if (!engine_srx_has_source(ctx, src))
			return -FI_EINVAL;
		*source = src + 1;
		return 0;
	}
	peer = engine_peer_named(ep, src, &ignored);
	if (!peer)
		return (int)engine_peer_refused(ep, src);
	*source = (uintptr_t)peer;
	return 0;
}

static inline void engine_rx_set(struct engine_rx *rx, const struct engine_ctx *ctx,
				 void *context, uint32_t flags)
{
	rx->ctx = ctx->rx;
	rx->context = context;
	rx->flags = flags;
}

/* Create a receive without a buffer. Returns NULL without memory. */
static inline struct engine_rx *engine_rx_begin(struct engine_ctx *ctx, void *context,
						uint32_t flags)
{
	struct engine_rx *rx = pool_get(&ctx->domain->rx_pool);

	if (likely(rx != NULL))
		engine_rx_set(rx, ctx, context, flags);
	return rx;
}

static inline void engine_rx_buffer(struct engine_rx *rx, void *buf, size_t len)
{
	rx->iov[0].iov_base = buf;
	rx->iov[0].iov_len = len;
	rx->iov_cnt = 1;
	rx->cap = len;
}

struct engine_rx *engine_rx_new(struct engine_ctx *ctx, const struct engine_want *want)
{
	struct engine_rx *rx = engine_rx_begin(ctx, want->context, want->flags);
	bool ok;

	if (!rx)
		return NULL;
	if (likely(want->cnt == 1)) {
		engine_rx_buffer(rx, want->iov->iov_base, want->iov->iov_len);
	} else {
		rx->iov[0] = (struct iovec){ 0 };
		if (want->cnt)
			memcpy(rx->iov, want->iov, want->cnt * sizeof(*want->iov));
		rx->iov_cnt = (uint32_t)want->cnt;
		rx->cap = iov_len(want->iov, want->cnt, &ok);
	}
	if (unlikely(want->flags & ENGINE_MULTI))
		engine_multi_init(rx, ctx->rx->q->min_multi_recv);
	rx->work_cntr = want->work_cntr;
	return rx;
}

/* Post a receive for which no message is stored; or end it, where none can come. */
static inline void engine_post_unmatched(struct engine_ctx *ctx, struct match *m,
					 struct engine_rx *rx)
{
	if (unlikely(ctx->rx->ended))
		engine_recv_error(ctx->domain, rx, -FI_ECANCELED);
	else
		match_post(m, &rx->match);
}

void engine_post_multi(struct engine_ctx *ctx, struct engine_rx *rx)
{
	struct match *m = engine_matcher(ctx->rx->q, rx->flags);
	uint64_t source = rx->match.source, tag = rx->match.tag, ignore = rx->match.ignore;
	struct engine_held *held;
	struct match_msg *msg;
	struct engine_rx *part;
	bool spent = rx->spent;

	while (!spent && (msg = match_find(m, source, tag, ignore))) {
		held = container_of(msg, struct engine_held, match);
		part = engine_multi_part(ctx->domain, rx, engine_held_len(held));
		if (!part) {
			engine_multi_close(ctx->domain, rx);
			return;
		}
		match_take(m, msg);
		spent = rx->spent; /* rx may be freed with its last part */
		engine_held_receive(held, part);
	}
	if (!spent)
		engine_post_unmatched(ctx, m, rx);
}

/*
 * Match a receive with a stored message, or post it if there is none. Takes rx, whose source, tag
 * and ignore are set.
 */
static inline void engine_post_rx(struct engine_ctx *ctx, struct engine_rx *rx)
{
	struct match *m = engine_matcher(ctx->rx->q, rx->flags);
	struct match_msg *msg = match_find(m, rx->match.source, rx->match.tag, rx->match.ignore);

	if (likely(!msg)) {
		engine_post_unmatched(ctx, m, rx);
		return;
	}
	match_take(m, msg);
	engine_held_receive(container_of(msg, struct engine_held, match), rx);
}

inline int engine_want_check(const struct engine_ctx *ctx, const struct engine_want *want)
{
	bool ok;

	if (unlikely(want->cnt > ENGINE_IOV_MAX || (want->cnt && !want->iov)))
		return -FI_EINVAL;
	if (unlikely(want->cnt && !want->iov[0].iov_base && want->iov[0].iov_len))
		return -FI_EINVAL;
	if (unlikely(want->flags & ENGINE_MULTI && want->cnt != 1))
		return -FI_EINVAL;
	if (unlikely(want->cnt > 1)) {
		iov_len(want->iov, want->cnt, &ok);
		if (!ok)
			return -FI_EINVAL;
	}
	return 0;
}

ssize_t engine_post(struct engine_ctx *ctx, const struct engine_want *want)
{
	struct engine_rx *rx;
	uint64_t source;
	int ret;

	ret = engine_want_check(ctx, want);
	if (likely(!ret))
		ret = engine_recv_source(ctx, want->src, &source);
	if (unlikely(ret))
		return engine_refuse_call(ctx, "a receive", ret);
	rx = engine_rx_new(ctx, want);
	if (unlikely(!rx))
		return -FI_EAGAIN;
	engine_rx_match(rx, source, want->tag, want->ignore);
	if (unlikely(want->flags & ENGINE_MULTI))
		engine_post_multi(ctx, rx);
	else
		engine_post_rx(ctx, rx);
	return 0;
}

/* Add the flags of a call to a receive. Returns 0 or -FI_EBADFLAGS. */
static int engine_want_flags(const struct engine_ctx *ctx, struct engine_want *want,
			     uint64_t flags)
{
	if (flags & ~((ENGINE_RX_OP_FLAGS & ~FI_TRIGGER) | FI_MORE | FI_PEEK | FI_CLAIM |
		      FI_DISCARD | FI_RECV | FI_TAGGED | FI_MSG))
		return -FI_EBADFLAGS;
	if (flags & FI_MULTI_RECV) {
		if (flags & (FI_PEEK | FI_DISCARD))
			return -FI_EBADFLAGS;
		want->flags |= ENGINE_MULTI;
	}
	want->flags |= engine_rx_wants(ctx->rx, flags);
	return 0;
}

static ssize_t engine_post_flags(struct engine_ctx *ctx, struct engine_want *want,
				 uint64_t flags)
{
	const char *call = want->flags & PACKET_TAGGED ? "fi_trecvmsg" : "fi_recvmsg";
	int ret = engine_want_flags(ctx, want, flags);

	if (ret)
		return engine_refuse_call(ctx, call, ret);
	if (!(flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)))
		return engine_post(ctx, want);
	return engine_refuse_call(ctx, call, engine_look(ctx, want, flags));
}

static struct engine_want engine_want_tagged(const struct fi_msg_tagged *msg)
{
	return (struct engine_want){ .iov = msg->msg_iov,
				     .cnt = msg->iov_count,
				     .src = msg->addr,
				     .tag = msg->tag,
				     .ignore = msg->ignore,
				     .context = msg->context,
				     .flags = PACKET_TAGGED };
}

static struct engine_want engine_want_msg(const struct fi_msg *msg)
{
	return (struct engine_want){ .iov = msg->msg_iov,
				     .cnt = msg->iov_count,
				     .src = msg->addr,
				     .context = msg->context };
}

/* Check a receive of deferred work, and add the flags of its call. Returns 0 or -FI_E*. */
static int engine_want_deferred(const struct engine_ctx *ctx, uint64_t flags,
				struct engine_want *want)
{
	int ret = engine_want_flags(ctx, want, flags);

	if (ret)
		return ret;
	if (flags & (FI_PEEK | FI_CLAIM | FI_DISCARD))
		return -FI_ENOSYS;
	return engine_want_check(ctx, want);
}

int engine_want_of(const struct engine_ctx *ctx, const struct fi_msg *msg, uint64_t flags,
		   struct engine_want *want)
{
	if (!msg)
		return -FI_EINVAL;
	*want = engine_want_msg(msg);
	return engine_want_deferred(ctx, flags, want);
}

int engine_want_of_tagged(const struct engine_ctx *ctx, const struct fi_msg_tagged *msg,
			  uint64_t flags, struct engine_want *want)
{
	if (!msg)
		return -FI_EINVAL;
	*want = engine_want_tagged(msg);
	return engine_want_deferred(ctx, flags, want);
}

/* engine_post() and engine_post_flags() as data calls: they enter the domain. */
static inline ssize_t engine_post_call(struct engine_ctx *ctx, const struct engine_want *want)
{
	ssize_t ret;

	engine_guard_enter(ctx->domain);
	ret = engine_post(ctx, want);
	engine_guard_leave(ctx->domain);
	return ret;
}

static ssize_t engine_post_flags_call(struct engine_ctx *ctx, struct engine_want *want,
				      uint64_t flags)
{
	ssize_t ret;

	engine_guard_enter(ctx->domain);
	ret = engine_post_flags(ctx, want, flags);
	engine_guard_leave(ctx->domain);
	return ret;
}

/*
 * engine_post() of a receive with one buffer and default flags. A program that answers messages
 * posts such a receive for each of them, so this is inlined into both slots.
 */
static inline __attribute__((always_inline)) ssize_t engine_post_one(
	struct engine_ctx *ctx, struct iovec buf, fi_addr_t src, uint64_t tag, uint64_t ignore,
	void *context, uint32_t flags)
{
	struct engine_rx *rx;
	uint64_t source;
	int ret;

	if (unlikely(!buf.iov_base && buf.iov_len)) {
		if (!ctx->domain->connects)
			return engine_refuse_call(ctx, "a receive", -FI_EINVAL);
		buf.iov_len =
			0; /* programs of MSG endpoints do that for messages without payload */
	}
	ret = engine_recv_source(ctx, src, &source);
	if (unlikely(ret))
		return engine_refuse_call(ctx, "a receive", ret);
	rx = engine_rx_begin(ctx, context, flags);
	if (unlikely(!rx))
		return -FI_EAGAIN;
	engine_rx_buffer(rx, buf.iov_base, buf.iov_len);
	engine_rx_match(rx, source, tag, ignore);
	if (likely(!(flags & ENGINE_MULTI))) {
		engine_post_rx(ctx, rx);
	} else {
		engine_multi_init(rx, ctx->rx->q->min_multi_recv);
		engine_post_multi(ctx, rx);
	}
	return 0;
}

/* With the domain entered, which it leaves. */
static __attribute__((noinline)) ssize_t engine_trecv_any(struct engine_ctx *ctx, void *buf,
							  size_t len, fi_addr_t src,
							  uint64_t tag, uint64_t ignore,
							  void *context)
{
	struct iovec iov = { buf, len };
	ssize_t ret = engine_post_one(ctx, iov, src, tag, ignore, context,
				      engine_trx_defaults(ctx));

	engine_guard_leave(ctx->domain);
	return ret;
}

/* Another call has claimed the domain. */
static __attribute__((noinline)) ssize_t engine_trecv_waits(struct engine_ctx *ctx, void *buf,
							    size_t len, fi_addr_t src,
							    uint64_t tag, uint64_t ignore,
							    void *context)
{
	engine_guard_wait(ctx->domain);
	return engine_trecv_any(ctx, buf, len, src, tag, ignore, context);
}

/*
 * Get the id that the matcher compares for the source, without a call. Returns false if that takes
 * engine_recv_source().
 */
static engine_path bool engine_source_known(const struct engine_ctx *ctx, fi_addr_t src,
					    uint64_t *source)
{
	struct engine_peer *peer;

	*source = MATCH_ANY_SOURCE;
	if (!ctx->directed_recv || src == FI_ADDR_UNSPEC)
		return true;
	if (unlikely(ctx->rx->q->shared))
		return false;
	peer = engine_peer_lookup(ctx->ep, src);
	*source = (uintptr_t)peer;
	return likely(peer != NULL);
}

/*
 * The straight line of a receive that is the only one posted, while no message is stored: nothing
 * in it is a call, so that it needs no stack frame.
 */
ssize_t engine_trecv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
		     uint64_t tag, uint64_t ignore, void *context)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_rx *rx;
	struct match *m;
	uint64_t source;
	uint32_t flags;

	if (unlikely(!engine_guard_begin(ctx->domain)))
		return engine_trecv_waits(ctx, buf, len, src, tag, ignore, context);
	m = ctx->rx->q->tagged;
	flags = engine_trx_defaults(ctx);
	if (unlikely(!buf || flags & (ENGINE_MULTI | ENGINE_ENDED) || !match_idle(m) ||
		     !engine_source_known(ctx, src, &source)))
		return engine_trecv_any(ctx, buf, len, src, tag, ignore, context);
	rx = pool_take(&ctx->domain->rx_pool);
	if (unlikely(!rx))
		return engine_trecv_any(ctx, buf, len, src, tag, ignore, context);
	engine_rx_set(rx, ctx, context, flags);
	engine_rx_buffer(rx, buf, len);
	engine_rx_match(rx, source, tag, ignore);
	match_post_first(m, &rx->match);
	engine_guard_leave(ctx->domain);
	return 0;
}

ssize_t engine_trecvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt,
		      fi_addr_t src, uint64_t tag, uint64_t ignore, void *context)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_want want = { .iov = iov,
				    .cnt = cnt,
				    .src = src,
				    .tag = tag,
				    .ignore = ignore,
				    .context = context,
				    .flags = engine_trx_defaults(ctx) };

	return engine_post_call(ctx, &want);
}

ssize_t engine_trecvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_want want;

	if (!msg)
		return engine_refuse_call(ctx, "fi_trecvmsg", -FI_EINVAL);
	want = engine_want_tagged(msg);
	return engine_post_flags_call(ctx, &want, flags);
}

ssize_t engine_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
		    void *context)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct iovec iov = { buf, len };
	ssize_t ret;

	engine_guard_enter(ctx->domain);
	ret = engine_post_one(ctx, iov, src, 0, 0, context, engine_rx_defaults(ctx));
	engine_guard_leave(ctx->domain);
	return ret;
}

ssize_t engine_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt,
		     fi_addr_t src, void *context)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_want want = { .iov = iov,
				    .cnt = cnt,
				    .src = src,
				    .context = context,
				    .flags = engine_rx_defaults(ctx) };

	return engine_post_call(ctx, &want);
}

ssize_t engine_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_want want;

	if (!msg)
		return engine_refuse_call(ctx, "fi_recvmsg", -FI_EINVAL);
	want = engine_want_msg(msg);
	return engine_post_flags_call(ctx, &want, flags);
}
