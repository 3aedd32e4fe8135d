/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What endpoints, aliases and contexts have in common as objects for data transfer: default flags,
 * op tables, queues, aliases. Called with the domain held when they are opened, bound, enabled and
 * controlled; the slots take the domain themselves.
 */
#include <rdma/fi_errno.h>
#include "access.h"
#include "cancel.h"
#include "cntr.h"
#include "cntr_fid.h"
#include "ctx.h"
#include "directions.h"
#include "ep_fid.h"
#include "forked.h"
#include "guard.h"
#include "no_call.h"
#include "nosys.h"
#include "recv.h"
#include "refs.h"
#include "refuse.h"
#include "send.h"
#include "trigger.h"

#define BOTH (FI_TRANSMIT | FI_RECV)

static void engine_ctx_refuse(struct engine_ctx *ctx)
{
	ctx->fid.msg = &engine_no_msg_ops;
	ctx->fid.tagged = &engine_no_tagged_ops;
	ctx->fid.rma = &engine_no_rma_ops;
	ctx->fid.atomic = &engine_no_atomic_ops;
	ctx->fid.collective = &engine_no_collective_ops;
}

/*
 * Calls in the child of a fork return -FI_EOPBADSTATE, as before fi_enable, and touch nothing:
 * peers of the endpoint communicate with the parent, and a thread that the child lacks may hold
 * the domain for ever.
 */
static void engine_ctx_copied(struct platform_copy *copy)
{
	struct engine_ctx *ctx = container_of(copy, struct engine_ctx, copy);

	ctx->copied = true;
	ctx->enabled = false;
	engine_ctx_refuse(ctx);
}

void engine_ctx_init(struct engine_ctx *ctx, struct engine_domain *domain,
		     struct engine_ctx *base)
{
	ctx->domain = domain;
	ctx->base = base;
	list_init(&ctx->aliases);
	ctx->fid.ops = &engine_ctx_ops;
	ctx->fid.cm = &engine_ep_cm_ops;
	engine_ctx_refuse(ctx);
}

/* Sets the flags of calls without flags, from op flags, queues and capabilities. */
static void engine_ctx_flags(struct engine_ctx *ctx)
{
	const struct engine_tx_ctx *tx = ctx->tx;
	const struct engine_rx_ctx *rx = ctx->rx;
	uint32_t send = 0, tsend, recv = rx ? engine_rx_wants(rx, ctx->rx_op_flags) : 0,
		 trecv = recv;

	if (tx) /* the flags were checked when they were set */
		engine_tx_flags(tx, ctx->tx_op_flags, ctx->tx_op_flags, &send);
	if (ctx->rx_op_flags & FI_MULTI_RECV) {
		recv |= ENGINE_MULTI;
		if (ctx->rx_caps & FI_TAGGED_MULTI_RECV)
			trecv |= ENGINE_MULTI;
	}
	if (rx && rx->ended)
		trecv |= ENGINE_ENDED;
	tsend = send | PACKET_TAGGED | (tx && tx->cntr[ENGINE_CNTR_SEND] ? ENGINE_COUNTED : 0);
	atomic_store_explicit(&ctx->tx_flags, send, memory_order_relaxed);
	atomic_store_explicit(&ctx->tsend_flags, tsend, memory_order_relaxed);
	atomic_store_explicit(&ctx->tinject_flags, (tsend & ENGINE_INJECT_KEEPS) | ENGINE_INJECT,
			      memory_order_relaxed);
	atomic_store_explicit(&ctx->rx_flags, recv, memory_order_relaxed);
	atomic_store_explicit(&ctx->trx_flags, trecv | PACKET_TAGGED, memory_order_relaxed);
}

void engine_ctx_close_tables(struct engine_ctx *ctx)
{
	platform_copy_unwatch(&ctx->copy);
	engine_works_drop(ctx);
}

void engine_ctx_watch(struct engine_ctx *ctx)
{
	ctx->copy.copied = engine_ctx_copied;
	platform_copy_watch(&ctx->copy);
}

void engine_ctx_enable(struct engine_ctx *ctx)
{
	struct engine_ctx *alias;

	ctx->enabled = true;
	engine_ctx_flags(ctx);
	engine_ctx_open_tables(ctx);
	engine_ctx_watch(ctx);
	if (ctx->base != ctx)
		return;
	list_for_each_entry(alias, &ctx->aliases, aliases)
		engine_ctx_enable(alias);
}

/* Attributes */

/* Logs and refuses an attribute of a context that is beyond what is offered. */
static int engine_attr_refuse(const struct engine_domain *domain, const char *call,
			      const char *why, uint64_t value)
{
	return engine_refuse_value(domain->family, FI_LOG_EP_CTRL, -FI_EINVAL, call, why, value);
}

/* Returns true if flags are among those that calls of a direction may have by default. */
static bool engine_op_flags_known(uint64_t flags, uint64_t known)
{
	return !(flags & ~(known & ~FI_TRIGGER) & ~engine_trigger_flag);
}

int engine_tx_attr_check(const struct engine_domain *domain, const char *call,
			 const struct fi_tx_attr *attr)
{
	if (!attr)
		return 0;
	if (attr->caps & ~(ENGINE_CAPS | ENGINE_SIDE_CAPS))
		return engine_attr_refuse(domain, call,
					  "tx_attr.caps beyond those that fi_getinfo offers",
					  attr->caps);
	if (!engine_op_flags_known(attr->op_flags, ENGINE_TX_OP_FLAGS))
		return engine_attr_refuse(domain, call,
					  "tx_attr.op_flags that are no flags of all sends",
					  attr->op_flags);
	if (attr->msg_order & ~ENGINE_MSG_ORDER)
		return engine_attr_refuse(domain, call, "tx_attr.msg_order that is not kept",
					  attr->msg_order);
	if (attr->inject_size > ENGINE_INJECT_MAX)
		return engine_attr_refuse(
			domain, call, "tx_attr.inject_size beyond those that fi_getinfo offers",
			attr->inject_size);
	if (attr->iov_limit > ENGINE_IOV_MAX)
		return engine_attr_refuse(
			domain, call, "tx_attr.iov_limit beyond those that fi_getinfo offers",
			attr->iov_limit);
	return 0;
}

int engine_rx_attr_check(const struct engine_domain *domain, const char *call,
			 const struct fi_rx_attr *attr)
{
	if (!attr)
		return 0;
	if (attr->caps & ~(ENGINE_CAPS | ENGINE_SIDE_CAPS))
		return engine_attr_refuse(domain, call,
					  "rx_attr.caps beyond those that fi_getinfo offers",
					  attr->caps);
	if (!engine_op_flags_known(attr->op_flags, ENGINE_RX_OP_FLAGS))
		return engine_attr_refuse(domain, call,
					  "rx_attr.op_flags that are no flags of all receives",
					  attr->op_flags);
	if (attr->msg_order & ~ENGINE_MSG_ORDER)
		return engine_attr_refuse(domain, call, "rx_attr.msg_order that is not kept",
					  attr->msg_order);
	if (attr->iov_limit > ENGINE_IOV_MAX)
		return engine_attr_refuse(
			domain, call, "rx_attr.iov_limit beyond those that fi_getinfo offers",
			attr->iov_limit);
	return 0;
}

uint64_t engine_whole_caps(uint64_t caps)
{
	const uint64_t messages = FI_SEND | FI_RECV,
		       access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

	if (caps & (FI_MSG | FI_TAGGED) && !(caps & messages))
		caps |= messages;
	/* Programs name one direction and use both, since libfabric's providers do not check it. */
	if (caps & (FI_RMA | FI_ATOMIC))
		caps |= access;
	return caps;
}

uint64_t engine_part_caps(uint64_t asked, uint64_t caps)
{
	return asked ? engine_whole_caps(asked) & caps : caps;
}

/* Queues */

#define BIND_CQ "fi_ep_bind of a completion queue"

/*
 * Binds @cq to one direction, whose queue is @of. Selective completion stays once it was asked
 * for.
 */
static void engine_bind_direction(struct engine_cq **of, bool *selective, struct engine_cq *cq,
				  uint64_t flags)
{
	engine_ref(&cq->refs);
	if (*of)
		engine_unref(&(*of)->refs);
	*of = cq;
	*selective |= !!(flags & FI_SELECTIVE_COMPLETION);
}

int engine_ctx_bind_cq(struct engine_domain *domain, struct engine_tx_ctx *tx,
		       struct engine_rx_ctx *rx, struct fid *target, uint64_t flags)
{
	struct engine_cq *cq = container_of(target, struct engine_cq, fid.fid);

	if (flags & ~(BOTH | FI_SELECTIVE_COMPLETION))
		return engine_refuse_value(
			domain->family, FI_LOG_EP_CTRL, -FI_EBADFLAGS, BIND_CQ,
			"flags are FI_TRANSMIT, FI_RECV, FI_SELECTIVE_COMPLETION", flags);
	if (cq->domain != domain)
		return engine_refuse(domain->family, FI_LOG_EP_CTRL, -FI_EINVAL, BIND_CQ,
				     "it is of another domain; open one in the endpoint's");
	if (tx && flags & FI_TRANSMIT)
		engine_bind_direction(&tx->cq, &tx->selective, cq, flags);
	if (rx && flags & FI_RECV)
		engine_bind_direction(&rx->cq, &rx->selective, cq, flags);
	return 0;
}

void engine_ctx_bound(struct engine_ctx *ctx)
{
	struct engine_ctx *alias;

	engine_ctx_flags(ctx);
	if (ctx->enabled)
		engine_ctx_open_tables(ctx);
	if (ctx->base != ctx)
		return;
	list_for_each_entry(alias, &ctx->aliases, aliases)
		engine_ctx_bound(alias);
}

void engine_tx_release(struct engine_tx_ctx *tx)
{
	if (tx->cq)
		engine_unref(&tx->cq->refs);
	tx->cq = NULL;
	tx->selective = false; /* a scalable endpoint's context may be opened again */
	engine_tx_unbind(tx);
}

void engine_rx_release(struct engine_rx_ctx *rx)
{
	if (rx->cq)
		engine_unref(&rx->cq->refs);
	rx->cq = NULL;
	rx->selective = false;
	engine_rx_unbind(rx);
}

/* Aliases and default flags */

/* Checks that @flags has one direction that @ctx has, and flags that calls in that direction take. */
static int engine_direction(const struct engine_ctx *ctx, const char *call, uint64_t flags)
{
	uint64_t known = (flags & BOTH) == FI_TRANSMIT ? FI_TRANSMIT | ENGINE_TX_OP_FLAGS
						       : FI_RECV | ENGINE_RX_OP_FLAGS;

	if ((flags & BOTH) != FI_TRANSMIT && (flags & BOTH) != FI_RECV)
		return engine_refuse_value(ctx->domain->family, FI_LOG_EP_CTRL, -FI_EINVAL,
					   call, "one direction, FI_TRANSMIT or FI_RECV", flags);
	if (!engine_op_flags_known(flags, known))
		return engine_refuse_value(
			ctx->domain->family, FI_LOG_EP_CTRL, -FI_EBADFLAGS, call,
			"op_flags that calls in that direction do not have", flags & ~known);
	return 0;
}

static int engine_set_op_flags(struct engine_ctx *ctx, uint64_t flags)
{
	uint64_t *set = flags & FI_TRANSMIT ? &ctx->tx_op_flags : &ctx->rx_op_flags;
	int ret = engine_direction(ctx, "FI_SETOPSFLAG", flags);
	uint64_t changed;

	if (ret)
		return ret;
	flags &= ~BOTH;
	changed = *set ^ flags;
	*set = flags;
	engine_ctx_flags(ctx);
	if (ctx->enabled && changed & FI_TRIGGER)
		engine_ctx_open_tables(ctx);
	return 0;
}

static int engine_get_op_flags(const struct engine_ctx *ctx, uint64_t *flags)
{
	if ((*flags & BOTH) == FI_TRANSMIT)
		*flags = ctx->tx_op_flags;
	else if ((*flags & BOTH) == FI_RECV)
		*flags = ctx->rx_op_flags;
	else
		return engine_refuse_value(ctx->domain->family, FI_LOG_EP_CTRL, -FI_EINVAL,
					   "FI_GETOPSFLAG",
					   "one direction, FI_TRANSMIT or FI_RECV", *flags);
	return 0;
}

static int engine_alias_close(struct fid *fid)
{
	struct engine_ctx *ctx = engine_ctx_at(fid);
	struct engine_domain *domain = ctx->domain;
	int ret = engine_left(domain, FI_LOG_EP_CTRL, "fi_close of an alias");

	if (ret)
		return ret;
	engine_enter(domain);
	list_remove(&ctx->aliases);
	engine_ctx_close_tables(ctx);
	engine_leave(domain);
	platform_free(ctx);
	return 0;
}

/* A bind of an alias binds the context itself, and with it all aliases. */
static int engine_alias_bind(struct fid *fid, struct fid *target, uint64_t flags)
{
	struct fid *base = &engine_ctx_at(fid)->base->fid.fid;

	return base->ops->bind(base, target, flags);
}

static int engine_alias_control(struct fid *fid, int command, void *arg)
{
	struct fid *base = &engine_ctx_at(fid)->base->fid.fid;

	return command == FI_ENABLE ? base->ops->control(base, command, arg)
				    : engine_ctx_control(fid, command, arg);
}

static struct fi_ops engine_alias_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = engine_alias_close,
	.bind = engine_alias_bind,
	.control = engine_alias_control,
	.ops_open = engine_ep_ops_open,
	.tostr = engine_no_tostr,
	.ops_set = engine_no_ops_set,
};

static int engine_alias(struct engine_ctx *of, const struct fi_alias *arg)
{
	struct engine_ctx *base = of->base, *ctx;
	int ret;

	if (!arg->fid)
		return engine_refuse(of->domain->family, FI_LOG_EP_CTRL, -FI_EINVAL,
				     "fi_ep_alias", "NULL where the alias is to go");
	ret = engine_direction(of, "fi_ep_alias", arg->flags);
	if (ret)
		return ret;
	ctx = platform_alloc(sizeof(*ctx));
	if (!ctx)
		return -FI_ENOMEM;
	engine_ctx_init(ctx, base->domain, base);
	ctx->fid.fid.fclass = base->fid.fid.fclass;
	ctx->fid.fid.context = base->fid.fid.context;
	ctx->fid.fid.ops = &engine_alias_fi_ops;
	ctx->fid.ops = base->fid.ops;
	ctx->fid.cm = base->fid.cm;
	ctx->ep = base->ep;
	ctx->tx = base->tx;
	ctx->rx = base->rx;
	ctx->tx_op_flags = of->tx_op_flags;
	ctx->rx_op_flags = of->rx_op_flags;
	ctx->tx_caps = base->tx_caps;
	ctx->rx_caps = base->rx_caps;
	ctx->directed_recv = base->directed_recv;
	engine_set_op_flags(ctx, arg->flags);
	list_add_tail(&base->aliases, &ctx->aliases);
	if (base->enabled)
		engine_ctx_enable(ctx);
	*arg->fid = &ctx->fid.fid;
	return 0;
}

int engine_ctx_control(struct fid *fid, int command, void *arg)
{
	struct engine_ctx *ctx = engine_ctx_at(fid);
	int ret = -FI_ENOSYS;

	if (command != FI_ALIAS && command != FI_GETOPSFLAG && command != FI_SETOPSFLAG)
		return -FI_ENOSYS;
	if (!arg)
		return engine_refuse(ctx->domain->family, FI_LOG_EP_CTRL, -FI_EINVAL,
				     "fi_control of an endpoint or context", "NULL");
	engine_enter(ctx->domain);
	if (command == FI_ALIAS)
		ret = engine_alias(ctx, arg);
	else if (command == FI_GETOPSFLAG)
		ret = engine_get_op_flags(ctx, arg);
	else
		ret = engine_set_op_flags(ctx, *(const uint64_t *)arg);
	engine_leave(ctx->domain);
	return ret;
}

/* Slots */

/* Returns 0 too for an operation that does not exist or has ended. */
ssize_t engine_ctx_cancel(struct fid *fid, void *context)
{
	struct engine_ctx *ctx = engine_ctx_at(fid);
	int ret;

	if (ctx->copied)
		return -FI_EOPBADSTATE;
	if (!ctx->enabled)
		return 0;
	engine_use(ctx->domain);
	ret = engine_cancel(ctx, context);
	engine_unuse(ctx->domain);
	return ret == -FI_ENOENT ? 0 : ret;
}

ssize_t engine_ctx_rx_left(struct fid_ep *fid)
{
	const struct engine_ctx *ctx = engine_ctx_of(fid);

	if (!engine_receives(ctx))
		return -FI_ENOSYS;
	return ctx->enabled ? (ssize_t)ENGINE_RX_SIZE
			    : -FI_EOPBADSTATE; /* receives are bounded by memory alone */
}

ssize_t engine_ctx_tx_left(struct fid_ep *fid)
{
	const struct engine_ctx *ctx = engine_ctx_of(fid);
	size_t queued;

	if (!engine_transmits(ctx))
		return -FI_ENOSYS;
	if (!ctx->enabled)
		return -FI_EOPBADSTATE;
	engine_use(ctx->domain);
	queued = ctx->ep->queued_cnt;
	engine_unuse(ctx->domain);
	/* Accesses are queued beside as many messages. */
	return queued < ctx->ep->tx_size ? (ssize_t)(ctx->ep->tx_size - queued) : 0;
}

int engine_no_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr,
		     struct fid_ep **tx_ep, void *context)
{
	return -FI_ENOSYS;
}

int engine_no_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr,
		     struct fid_ep **rx_ep, void *context)
{
	return -FI_ENOSYS;
}

int engine_no_export(struct fid_ep *ep, uint64_t flags, struct fid_xpu_ep *xpu_ep)
{
	return -FI_ENOSYS;
}

struct fi_ops_ep engine_ctx_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = engine_ctx_cancel,
	.getopt = engine_ctx_getopt,
	.setopt = engine_ctx_setopt,
	.tx_ctx = engine_no_tx_ctx,
	.rx_ctx = engine_no_rx_ctx,
	.rx_size_left = engine_ctx_rx_left,
	.tx_size_left = engine_ctx_tx_left,
	.export_xpu = engine_no_export,
};
