/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sending: the fast path that a provider instantiates over its wire, and the functions behind the
 * slots of the op tables. The fast path publishes a small message at once. A message that can't be
 * published (no connection yet, no room, no credit, a large payload) goes to engine_send_slow() in
 * send.c.
 *
 * The caller holds the domain, except for the functions that are slots or take a struct fid_ep, and
 * engine_send_to(): they enter it.
 */
#ifndef WEFT_SEND_H
#define WEFT_SEND_H

#include "brief.h"
#include "complete.h"
#include "contexts.h"
#include "control.h"
#include "copy.h"
#include "endpoint.h"
#include "guard.h"
#include "peer.h"
#include "refuse.h"
#include "tx.h"

/*
 * engine_send_slow - queue a message that can't be published at once
 * @msg: copied; its buffers are borrowed until the send completes, or copied with ENGINE_INJECT
 * One that is injected before the peer is connected makes a round of progress
 * (engine_inject_early()).
 * Returns 0, or -FI_EAGAIN: nothing happened.
 */
ssize_t engine_send_slow(struct engine_ep *ep, struct engine_peer *peer,
			 const struct engine_msg *msg);

/*
 * engine_msg_of, engine_msg_of_tagged - convert the arguments of a send call with flags
 * @msg: out: the message, without its transmit context and receive context index; borrows the
 *       buffers and the iovec of the call
 * Returns 0, -FI_EBADFLAGS, -FI_EINVAL or -FI_EMSGSIZE.
 * Source: fi_msg(3), fi_tagged(3).
 */
int engine_msg_of(const struct engine_ctx *ctx, const struct fi_msg *m, uint64_t flags,
		  struct engine_msg *msg);
int engine_msg_of_tagged(const struct engine_ctx *ctx, const struct fi_msg_tagged *m,
			 uint64_t flags, struct engine_msg *msg);

/*
 * engine_send_later - send a message of deferred work, when its time has come
 * @msg:       from engine_msg_of() or engine_msg_of_tagged()
 * @work_cntr: counter of the deferred work, or NULL; takes the reference on success
 * Returns 0, -FI_EAGAIN (nothing happened) or another -FI_E*.
 */
ssize_t engine_send_later(struct engine_ctx *ctx, fi_addr_t dest, struct engine_msg *msg,
			  struct engine_cntr *work_cntr);

/*
 * engine_tx_start - send the first message in peer->queued; for progress/flush.c
 * @tx: may be gone on success
 * Returns 0, or -FI_EAGAIN: nothing was sent.
 */
int engine_tx_start(struct engine_peer *peer, struct engine_tx *tx);

/*
 * engine_tx_rts - send the RTS of a large message or write
 * Returns 0, or -FI_EAGAIN: nothing happened.
 */
int engine_tx_rts(struct engine_peer *peer, struct engine_tx *tx);

/*
 * engine_fill - copy the first @len bytes of @iov to the payload of a claimed packet
 * @to:   the address that claim() returned, or one behind it
 * @wire: ops of the wire of @conn
 */
static inline void engine_fill(struct wire_conn *conn, void *to, const struct iovec *iov,
			       size_t iov_cnt, size_t len, const struct wire_ops *wire)
{
	if (unlikely(len >= WIRE_FILL_MIN && wire->fill))
		wire->fill(conn, to, iov, iov_cnt, len);
	else if (likely(iov_cnt == 1))
		copy_bytes(to, iov->iov_base, len);
	else
		copy_from_iov(to, iov, iov_cnt, 0, len);
}

/* engine_fill_msg - the same with the payload of a message */
static inline void engine_fill_msg(struct wire_conn *conn, void *to,
				   const struct engine_msg *msg, const struct wire_ops *wire)
{
	struct iovec iov = { (void *)(uintptr_t)msg->buf, msg->len };

	engine_fill(conn, to, msg->iov_cnt ? msg->iov : &iov, msg->iov_cnt ? msg->iov_cnt : 1,
		    msg->len, wire);
}

/*
 * engine_send_aside - engine_send_slow() for the fast path
 * Copies the message field by field, so that the address of the caller's message is not taken:
 * where everything is inlined, that message stays in registers.
 */
static engine_path ssize_t engine_send_aside(struct engine_ep *ep, struct engine_peer *peer,
					     const struct engine_msg *msg)
{
	struct engine_msg copy = { .buf = msg->buf,
				   .len = msg->len,
				   .tag = msg->tag,
				   .data = msg->data,
				   .context = msg->context,
				   .tx = msg->tx,
				   .iov = msg->iov,
				   .iov_cnt = msg->iov_cnt,
				   .flags = msg->flags,
				   .rx_idx = msg->rx_idx };

	return engine_send_slow(ep, peer, &copy);
}

/* engine_lends - returns true if the payload of a message is sent by sendv though it fits a packet */
static inline bool engine_lends(struct wire_conn *conn, const struct engine_msg *msg,
				const struct wire_ops *wire)
{
	return !msg->iov_cnt && !(msg->flags & ENGINE_INJECT) &&
	       wire->lends(conn, msg->buf, msg->len);
}

/*
 * engine_send_on - send one message over the wire that is the peer's route: the fast path
 * @wire: ops of that wire; a constant where the provider instantiates this
 * Returns 0, or -FI_EAGAIN: nothing happened.
 */
static engine_path ssize_t engine_send_on(struct engine_ep *ep, struct engine_peer *peer,
					  const struct engine_msg *msg,
					  const struct wire_ops *wire)
{
	struct wire_conn *conn = peer->conn;
	size_t len = msg->len;
	struct packet *packet;
	void *payload;

	if (wire->brief_max && !msg->iov_cnt && engine_is_brief(peer, msg, wire)) {
		if (unlikely(engine_brief_publish(peer, msg, wire)))
			wire->wake(conn);
		engine_send_done(msg->tx, msg->context, msg->flags, len);
		return 0;
	}
	if (unlikely(!peer->ready || len > wire->claim_max || msg->flags & ENGINE_SLOW))
		return engine_send_aside(ep, peer, msg);
	if (len > ENGINE_FREE_MAX && unlikely(peer->credit < len))
		return engine_send_aside(ep, peer, msg);
	if (wire->lends && len >= wire->lends_min && engine_lends(conn, msg, wire))
		return engine_send_aside(ep, peer, msg);
	packet = wire->claim(conn, len, &payload);
	if (unlikely(!packet))
		return engine_send_aside(ep, peer, msg);

	engine_header_to(peer, packet, msg->rx_idx, PACKET_EAGER, msg->flags, (uint32_t)len);
	packet->tag = msg->tag;
	packet->data = msg->data;
	if (likely(!msg->iov_cnt && len < WIRE_FILL_MIN))
		copy_bytes(payload, msg->buf, len);
	else
		engine_fill_msg(conn, payload, msg, wire);
	conn->tx_bytes += len;
	wire->publish(conn, packet, msg->flags & ENGINE_MORE);
	engine_sent(ep, conn, wire);

	if (len > ENGINE_FREE_MAX)
		peer->credit -= (uint32_t)len;
	peer->tx_seq++;
	conn->tx_msgs++;
	engine_send_done(msg->tx, msg->context, msg->flags, len);
	return 0;
}

/* engine_injects - returns the flags of a call that injects */
static inline uint32_t engine_injects(const struct engine_ctx *ctx)
{
	return ENGINE_INJECT | (engine_tx_defaults(ctx) & ENGINE_INJECT_KEEPS);
}

/*
 * engine_tagged_on - send a tagged message from one buffer, as wire_ops.tsend and its like: it leaves
 * the domain
 * @flags: engine_tsend_flags() or engine_tinject_flags(), and PACKET_CQ_DATA if there is @data
 * @wire:  the route, whose send is inlined; NULL: call the send of the route's wire
 */
static engine_path ssize_t engine_tagged_on(struct engine_ctx *ctx, struct engine_peer *peer,
					    const void *buf, size_t len, uint64_t tag,
					    void *context, uint64_t data, uint32_t flags,
					    const struct wire_ops *wire)
{
	struct engine_msg msg = { .buf = buf,
				  .len = len,
				  .tag = tag,
				  .data = data,
				  .context = context,
				  .tx = ctx->tx,
				  .flags = flags };
	ssize_t ret = wire ? engine_send_on(ctx->ep, peer, &msg, wire)
			   : peer->wire->send(ctx->ep, peer, &msg);

	engine_guard_leave(ctx->domain);
	return ret;
}

/*
 * engine_send_on_route - look up the peer, and send a message over its route
 * @msg:  its transmit context and receive context index are set here
 * @wire: the likely route: its send is inlined; NULL: call the send of the route's wire
 * Returns 0, -FI_EAGAIN (nothing happened) or another -FI_E*.
 */
static engine_path ssize_t engine_send_on_route(struct engine_ctx *ctx, fi_addr_t dest,
						struct engine_msg *msg,
						const struct wire_ops *wire)
{
	struct engine_ep *ep = ctx->ep;
	struct engine_peer *peer;

	msg->tx = ctx->tx;
	peer = engine_peer_named(ep, dest, &msg->rx_idx);
	if (unlikely(!peer))
		return engine_refuse_call(ctx, "a send", engine_peer_refused(ep, dest));
	if (unlikely(!msg->buf && msg->len && !msg->iov_cnt))
		return engine_refuse_call(ctx, "a send", -FI_EINVAL);
	if (wire && likely(peer->wire == wire))
		return engine_send_on(ep, peer, msg, wire);
	if (!wire && likely(peer->wire != NULL))
		return peer->wire->send(ep, peer, msg);
	return engine_send_aside(ep, peer, msg);
}

/* engine_send_to - engine_send_on_route() as a data call: enters the domain */
static engine_path ssize_t engine_send_to(struct engine_ctx *ctx, fi_addr_t dest,
					  struct engine_msg *msg, const struct wire_ops *wire)
{
	struct engine_domain *domain = ctx->domain;
	ssize_t ret;

	engine_guard_enter(domain);
	ret = engine_send_on_route(ctx, dest, msg, wire);
	engine_guard_leave(domain);
	return ret;
}

/*
 * engine_inject_refuse - log that a call that injects is refused, because its payload is too long
 * @call: name of the call
 * @len:  length of the payload, bytes
 * Returns -FI_EINVAL. Called before the domain is entered.
 */
ssize_t engine_inject_refuse(const struct engine_ctx *ctx, const char *call, size_t len);

/*
 * engine_wire_tsend and its like - wire_ops.tsend and its like of a wire without brief_max, by its
 * send. They leave the domain
 */
ssize_t engine_wire_tsend(struct engine_ctx *ctx, struct engine_peer *peer, const void *buf,
			  size_t len, uint64_t tag, void *context);
ssize_t engine_wire_tinject(struct engine_ctx *ctx, struct engine_peer *peer, const void *buf,
			    size_t len, uint64_t tag);
ssize_t engine_wire_tsenddata(struct engine_ctx *ctx, struct engine_peer *peer, const void *buf,
			      size_t len, uint64_t tag, void *context, uint64_t data);
ssize_t engine_wire_tinjectdata(struct engine_ctx *ctx, struct engine_peer *peer,
				const void *buf, size_t len, uint64_t tag, uint64_t data);

/*
 * engine_tsend_aside and its like - the call of that name, when another one has claimed the domain,
 * or its destination has no peer or no route yet, names a receive context of the peer, or is to be
 * refused
 * The domain may have been entered; they leave it. Return 0, -FI_EAGAIN or another -FI_E*.
 */
ssize_t engine_tsend_aside(struct engine_ctx *ctx, const void *buf, size_t len, fi_addr_t dest,
			   uint64_t tag, void *context);
ssize_t engine_tinject_aside(struct engine_ctx *ctx, const void *buf, size_t len,
			     fi_addr_t dest, uint64_t tag);
ssize_t engine_tsenddata_aside(struct engine_ctx *ctx, const void *buf, size_t len,
			       fi_addr_t dest, uint64_t tag, void *context, uint64_t data);
ssize_t engine_tinjectdata_aside(struct engine_ctx *ctx, const void *buf, size_t len,
				 fi_addr_t dest, uint64_t tag, uint64_t data);

/*
 * engine_tagged_route - enter the domain, and find what sends a tagged message to @dest
 * @wire: constant ops of the likely route; NULL: those of the route's wire
 * @peer: out: the destination
 * Returns ops, or NULL: engine_tsend_aside() or its like has to send, which the caller returns.
 */
static engine_path const struct wire_ops *engine_tagged_route(const struct engine_ctx *ctx,
							      const void *buf, fi_addr_t dest,
							      const struct wire_ops *wire,
							      struct engine_peer **peer)
{
	const struct wire_ops *route;

	if (unlikely(!engine_guard_begin(ctx->domain)))
		return NULL;
	*peer = engine_peer_lookup(ctx->ep, dest);
	route = likely(*peer != NULL) ? (*peer)->wire : NULL;
	if (unlikely(!buf || (wire && route != wire)))
		return NULL;
	return wire ? wire : route;
}

/*
 * engine_tsend, engine_tinject, engine_tsenddata, engine_tinjectdata - slots of struct
 * fi_ops_tagged. Each provider wraps them for its wire. Nothing in them is a call, but for the last
 * step: they need no stack frame.
 * @wire: constant ops of the likely route, whose slot is inlined, or NULL
 * Source: fi_tagged(3).
 */
static engine_path ssize_t engine_tsend(struct fid_ep *fid, const void *buf, size_t len,
					fi_addr_t dest, uint64_t tag, void *context,
					const struct wire_ops *wire)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_peer *peer;
	const struct wire_ops *route = engine_tagged_route(ctx, buf, dest, wire, &peer);

	if (unlikely(!route))
		return engine_tsend_aside(ctx, buf, len, dest, tag, context);
	return route->tsend(ctx, peer, buf, len, tag, context);
}

static engine_path ssize_t engine_tinject(struct fid_ep *fid, const void *buf, size_t len,
					  fi_addr_t dest, uint64_t tag,
					  const struct wire_ops *wire)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	const struct wire_ops *route;
	struct engine_peer *peer;

	if (unlikely(len > ENGINE_INJECT_MAX))
		return engine_inject_refuse(ctx, "fi_tinject", len);
	route = engine_tagged_route(ctx, buf, dest, wire, &peer);
	if (unlikely(!route))
		return engine_tinject_aside(ctx, buf, len, dest, tag);
	return route->tinject(ctx, peer, buf, len, tag);
}

static engine_path ssize_t engine_tsenddata(struct fid_ep *fid, const void *buf, size_t len,
					    uint64_t data, fi_addr_t dest, uint64_t tag,
					    void *context, const struct wire_ops *wire)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_peer *peer;
	const struct wire_ops *route = engine_tagged_route(ctx, buf, dest, wire, &peer);

	if (unlikely(!route))
		return engine_tsenddata_aside(ctx, buf, len, dest, tag, context, data);
	return route->tsenddata(ctx, peer, buf, len, tag, context, data);
}

static engine_path ssize_t engine_tinjectdata(struct fid_ep *fid, const void *buf, size_t len,
					      uint64_t data, fi_addr_t dest, uint64_t tag,
					      const struct wire_ops *wire)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	const struct wire_ops *route;
	struct engine_peer *peer;

	if (unlikely(len > ENGINE_INJECT_MAX))
		return engine_inject_refuse(ctx, "fi_tinjectdata", len);
	route = engine_tagged_route(ctx, buf, dest, wire, &peer);
	if (unlikely(!route))
		return engine_tinjectdata_aside(ctx, buf, len, dest, tag, data);
	return route->tinjectdata(ctx, peer, buf, len, tag, data);
}

/*
 * The slots of struct fi_ops_msg that send from one buffer. Each provider wraps them for its wire.
 * @wire: constant ops of the likely route, or NULL: call the send of the route's wire
 * Source: fi_msg(3), fi_tagged(3).
 */
static inline ssize_t engine_msend(struct fid_ep *fid, const void *buf, size_t len,
				   fi_addr_t dest, void *context, const struct wire_ops *wire)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_msg msg = {
		.buf = buf, .len = len, .context = context, .flags = engine_tx_defaults(ctx)
	};

	return engine_send_to(ctx, dest, &msg, wire);
}

static inline ssize_t engine_minject(struct fid_ep *fid, const void *buf, size_t len,
				     fi_addr_t dest, const struct wire_ops *wire)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_msg msg = { .buf = buf, .len = len, .flags = engine_injects(ctx) };

	if (unlikely(len > ENGINE_INJECT_MAX))
		return engine_inject_refuse(ctx, "fi_inject", len);
	return engine_send_to(ctx, dest, &msg, wire);
}

static inline ssize_t engine_msenddata(struct fid_ep *fid, const void *buf, size_t len,
				       uint64_t data, fi_addr_t dest, void *context,
				       const struct wire_ops *wire)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_msg msg = { .buf = buf,
				  .len = len,
				  .data = data,
				  .context = context,
				  .flags = PACKET_CQ_DATA | engine_tx_defaults(ctx) };

	return engine_send_to(ctx, dest, &msg, wire);
}

static inline ssize_t engine_minjectdata(struct fid_ep *fid, const void *buf, size_t len,
					 uint64_t data, fi_addr_t dest,
					 const struct wire_ops *wire)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_msg msg = { .buf = buf,
				  .len = len,
				  .data = data,
				  .flags = PACKET_CQ_DATA | engine_injects(ctx) };

	if (unlikely(len > ENGINE_INJECT_MAX))
		return engine_inject_refuse(ctx, "fi_injectdata", len);
	return engine_send_to(ctx, dest, &msg, wire);
}

/*
 * The slots that all op tables have in common; receives are defined in recv.c. Source: fi_msg(3),
 * fi_tagged(3).
 */
ssize_t engine_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t cnt,
		     fi_addr_t dest, void *context);
ssize_t engine_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags);
ssize_t engine_tsendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t cnt,
		      fi_addr_t dest, uint64_t tag, void *context);
ssize_t engine_tsendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags);

ssize_t engine_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
		    void *context);
ssize_t engine_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t cnt,
		     fi_addr_t src, void *context);
ssize_t engine_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags);
ssize_t engine_trecv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
		     uint64_t tag, uint64_t ignore, void *context);
ssize_t engine_trecvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t cnt,
		      fi_addr_t src, uint64_t tag, uint64_t ignore, void *context);
ssize_t engine_trecvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags);

#endif
