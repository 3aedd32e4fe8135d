/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getopt and fi_setopt of endpoints and contexts. Called on any thread; the functions take the
 * domain.
 */
#include <rdma/fi_errno.h>
#include "ctx.h"
#include "ep_fid.h"
#include "guard.h"
#include "refuse.h"

void engine_options_init(struct engine_options *options, const struct fi_info *info)
{
	size_t most = SIZE_MAX, inject = ENGINE_INJECT_MAX;

	if (info && info->ep_attr && info->ep_attr->max_msg_size)
		most = info->ep_attr->max_msg_size;
	if (info && info->tx_attr && info->tx_attr->inject_size)
		inject = info->tx_attr->inject_size;
	*options = (struct engine_options){
		.max_msg = most,
		.max_tagged = most,
		.max_rma = most,
		.max_atomic = most,
		.inject_msg = inject,
		.inject_tagged = inject,
		.inject_rma = inject,
		.inject_atomic = inject,
		.buffered_limit = most,
	};
}

/*
 * The operations that a limit applies to, and where it is stored; caps 0: the option is not a
 * limit.
 */
struct engine_limit {
	uint64_t caps;
	size_t offset;
	bool inject;
};

#define LIMIT(bits, field, small)                                                               \
	{                                                                                       \
		.caps = bits, .offset = offsetof(struct engine_options, field), .inject = small \
	}

static const struct engine_limit limits[] = {
	[FI_OPT_BUFFERED_MIN] = LIMIT(FI_MSG | FI_TAGGED, buffered_min, false),
	[FI_OPT_BUFFERED_LIMIT] = LIMIT(FI_MSG | FI_TAGGED, buffered_limit, false),
	[FI_OPT_MAX_MSG_SIZE] = LIMIT(FI_MSG, max_msg, false),
	[FI_OPT_MAX_TAGGED_SIZE] = LIMIT(FI_TAGGED, max_tagged, false),
	[FI_OPT_MAX_RMA_SIZE] = LIMIT(FI_RMA, max_rma, false),
	[FI_OPT_MAX_ATOMIC_SIZE] = LIMIT(FI_ATOMIC, max_atomic, false),
	[FI_OPT_INJECT_MSG_SIZE] = LIMIT(FI_MSG, inject_msg, true),
	[FI_OPT_INJECT_TAGGED_SIZE] = LIMIT(FI_TAGGED, inject_tagged, true),
	[FI_OPT_INJECT_RMA_SIZE] = LIMIT(FI_RMA, inject_rma, true),
	[FI_OPT_INJECT_ATOMIC_SIZE] = LIMIT(FI_ATOMIC, inject_atomic, true),
};

/* Returns the limit of that name, or NULL if the endpoint does not have such operations. */
static size_t *engine_limit(struct engine_ctx *ctx, int name, bool *inject)
{
	const struct engine_limit *limit;

	if (name < 0 || (size_t)name >= sizeof(limits) / sizeof(limits[0]))
		return NULL;
	limit = &limits[name];
	if (!limit->caps || !ctx->ep || !(ctx->ep->caps & limit->caps))
		return NULL;
	*inject = limit->inject;
	return (size_t *)(void *)((char *)&ctx->base->options + limit->offset);
}

static int engine_option(struct engine_ctx *ctx, int name, size_t *val)
{
	struct engine_ep *ep = ctx->ep;
	bool inject;
	size_t *limit = engine_limit(ctx, name, &inject);

	if (limit)
		*val = *limit;
	else if (name == FI_OPT_MIN_MULTI_RECV && ctx->rx)
		*val = ctx->rx->q->min_multi_recv;
	else if (name == FI_OPT_MIN_MULTI_RECV && ep && ep->rx_cnt)
		*val = ep->min_multi_recv;
	else if (name == FI_OPT_CM_DATA_SIZE && ep)
		*val = HELLO_DATA_MAX;
	else if (name == FI_OPT_FIREWALL_ADDR && ep)
		*val = false; /* a peer's own address is always used to connect to it */
	else if (name == FI_OPT_TX_SIZE && ep && !(ctx->rx && !ctx->tx))
		*val = ep->tx_size;
	else if (name == FI_OPT_RX_SIZE && !(ctx->tx && !ctx->rx))
		*val = ENGINE_RX_SIZE;
	else
		return -FI_ENOPROTOOPT;
	return 0;
}

/* A boolean option is an int, every other one a size. Source: fi_endpoint(3) */
static int engine_option_give(int name, size_t value, void *val, size_t *len)
{
	int truth = !!value;
	const void *from = name == FI_OPT_FIREWALL_ADDR ? (void *)&truth : (void *)&value;
	size_t room = *len;

	*len = name == FI_OPT_FIREWALL_ADDR ? sizeof(truth) : sizeof(value);
	if (room < *len)
		return -FI_ETOOSMALL;
	memcpy(val, from, *len);
	return 0;
}

int engine_ctx_getopt(struct fid *fid, int level, int name, void *val, size_t *len)
{
	struct engine_ctx *ctx = engine_ctx_at(fid);
	size_t value = 0;
	int ret;

	if (level != FI_OPT_ENDPOINT)
		return -FI_ENOPROTOOPT;
	engine_enter(ctx->domain);
	ret = engine_option(ctx, name, &value);
	engine_leave(ctx->domain);
	if (ret)
		return ret;
	if (!len || (*len && !val))
		return engine_refuse(ctx->domain->family, FI_LOG_EP_CTRL, -FI_EINVAL,
				     "fi_getopt", "NULL for the value or its length");
	return engine_option_give(name, value, val, len);
}

static void engine_min_multi_recv(struct engine_ctx *ctx, size_t value)
{
	if (ctx->rx) {
		ctx->rx->q->min_multi_recv = value;
		return;
	}
	ctx->ep->min_multi_recv = value;
	for (uint32_t i = 0; i < ctx->ep->rx_cnt; i++)
		ctx->ep->rxs[i]->q->min_multi_recv = value;
}

static int engine_option_refuse(const struct engine_ctx *ctx, int err, const char *why,
				uint64_t value)
{
	return engine_refuse_value(ctx->domain->family, FI_LOG_EP_CTRL, err, "fi_setopt", why,
				   value);
}

#define SET_BEFORE "the option is set before fi_getname and fi_enable"

/* A limit below what is supported is accepted, and larger operations are still accepted later. */
static int engine_option_set(struct engine_ctx *ctx, int name, size_t value)
{
	struct engine_options most;
	bool inject;
	size_t *limit = engine_limit(ctx, name, &inject);

	if (limit) {
		engine_options_init(&most, NULL);
		if (value > (inject ? most.inject_msg : ctx->ep->max_msg_size))
			return engine_option_refuse(
				ctx, -FI_EINVAL,
				"more than fi_getopt answers before anything is set", value);
		*limit = value;
		return 0;
	}
	if (name == FI_OPT_MIN_MULTI_RECV &&
	    (ctx->rx || (ctx->ep && ctx->ep->rx_cnt && !ctx->tx))) {
		engine_min_multi_recv(ctx, value);
		return 0;
	}
	if (name != FI_OPT_TX_SIZE || !ctx->ep || (ctx->rx && !ctx->tx))
		return -FI_ENOPROTOOPT;
	if (ctx->ep->wire_cnt)
		return engine_option_refuse(ctx, -FI_EOPBADSTATE, SET_BEFORE, (uint64_t)name);
	if (!value || value > ENGINE_TX_SIZE)
		return engine_option_refuse(ctx, -FI_EINVAL,
					    "FI_OPT_TX_SIZE is from 1 to the value of fi_getopt",
					    value);
	engine_ep_size(ctx->ep, value);
	return 0;
}

/* Source: fi_endpoint(3), FI_OPT_SHARED_MEMORY_PERMITTED */
static int engine_permit_shared_memory(struct engine_ctx *ctx, bool permitted)
{
	bool other = false;

	if (!ctx->ep)
		return -FI_ENOPROTOOPT;
	if (ctx->ep->wire_cnt)
		return engine_option_refuse(ctx, -FI_EOPBADSTATE, SET_BEFORE,
					    FI_OPT_SHARED_MEMORY_PERMITTED);
	for (uint32_t i = 0; i < ENGINE_WIRE_MAX - 1 && ctx->ep->family->wires[i]; i++) {
		const struct wire_provider *wp = wire_find(ctx->ep->family->wires[i]);

		other |= wp && !wp->ops->shares_memory;
	}
	if (!permitted && !other)
		return -FI_EOPNOTSUPP;
	ctx->ep->no_shared_memory = !permitted;
	return 0;
}

static int engine_option_take(struct engine_ctx *ctx, int name, const void *val, size_t len)
{
	bool truth = name == FI_OPT_SHARED_MEMORY_PERMITTED;
	size_t value = 0, ignored;

	if (!truth && engine_option(ctx, name, &ignored))
		return -FI_ENOPROTOOPT;
	if (!val || len != (truth ? sizeof(bool) : sizeof(size_t)))
		return engine_option_refuse(
			ctx, -FI_EINVAL,
			"a value of the option's type, bool or size_t, with its length", len);
	memcpy(&value, val, len);
	return truth ? engine_permit_shared_memory(ctx, value)
		     : engine_option_set(ctx, name, value);
}

int engine_ctx_setopt(struct fid *fid, int level, int name, const void *val, size_t len)
{
	struct engine_ctx *ctx = engine_ctx_at(fid);
	int ret;

	if (level != FI_OPT_ENDPOINT)
		return -FI_ENOPROTOOPT;
	engine_enter(ctx->domain);
	ret = engine_option_take(ctx, name, val, len);
	engine_leave(ctx->domain);
	return ret;
}
