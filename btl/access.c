/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Beginning operations: whether a handle allows them, transfers whole and in pieces, atomics. */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_rma.h>
#include "access.h"
#include "ctx.h"
#include "mem.h"

/* The handle's place among those that a context keeps. */
static struct btl_known *known_of(struct weft_btl_ctx *ctx, const unsigned char *bytes)
{
	uint64_t addr, key;

	memcpy(&addr, bytes + 16, sizeof(addr));
	memcpy(&key, bytes + 40, sizeof(key));
	return &ctx->known[(((addr >> 12) + key) * 0x9e3779b97f4a7c15u >> 32) % BTL_KNOWN_CNT];
}

/* Returns the handle at @in, or NULL: it is none. */
static const struct btl_handle *known_get(struct weft_btl_ctx *ctx, const unsigned char *in)
{
	struct btl_known *known = known_of(ctx, in);

	if (known->len && !memcmp(known->bytes, in, known->len))
		return &known->handle;
	known->len = 0;
	if (!btl_handle_read(in, &known->handle))
		return NULL;
	known->len = btl_handle_len(in);
	memcpy(known->bytes, in, known->len);
	return &known->handle;
}

int btl_reach_get(struct weft_btl_ctx *ctx, const struct weft_btl_target *to, size_t len,
		  uint64_t access, struct btl_reach *reach)
{
	const struct btl_handle *handle;
	const struct btl_route *route;
	int ret;

	if (!to->peer || !to->handle)
		return -FI_EINVAL;
	handle = known_get(ctx, to->handle);
	if (!handle || handle->id != to->peer->name.id)
		return -FI_EKEYREJECTED;
	if ((handle->access & access) != access)
		return -FI_EACCES;
	if (to->addr < handle->addr || to->addr - handle->addr > handle->len ||
	    len > handle->len - (to->addr - handle->addr))
		return -FI_EFAULT;
	ret = btl_route_get(ctx, to->peer, &reach->route);
	if (ret)
		return ret;
	route = &ctx->routes[reach->route];
	if (route->device >= handle->cnt)
		return -FI_EHOSTUNREACH;
	reach->device = route->device;
	reach->ep = ctx->lanes[route->device].ep;
	reach->peer = route->addr[route->device];
	reach->key = handle->keys[route->device];
	reach->at = handle->offset & 1u << route->device ? to->addr - handle->addr : to->addr;
	return 0;
}

static bool covers(const struct weft_btl_mem *mem, const struct iovec *range)
{
	uint64_t addr = (uintptr_t)range->iov_base;

	return mem && addr >= mem->handle.addr && addr - mem->handle.addr <= mem->handle.len &&
	       range->iov_len <= mem->handle.len - (addr - mem->handle.addr);
}

int btl_local_get(struct weft_btl_ctx *ctx, uint32_t device, const struct iovec *range,
		  const struct weft_btl_mem *mem, struct fid_mr **local, void **desc)
{
	const struct btl_device *dev = &ctx->btl->devices[device];
	struct btl_lane *lane = &ctx->lanes[device];
	int ret;

	*local = NULL;
	*desc = NULL;
	if (!(dev->mr_mode & FI_MR_LOCAL))
		return 0;
	/* registrations of the program are in the domains of the first context */
	if (ctx == ctx->btl->home && covers(mem, range)) {
		*desc = fi_mr_desc(mem->mr[device]);
		return 0;
	}
	ret = btl_mr_open(ctx->btl, dev, lane->domain, lane->ep, range, FI_READ | FI_WRITE,
			  local);
	if (!ret)
		*desc = fi_mr_desc(*local);
	return ret;
}

/* One of libfabric's transfers. */
static ssize_t transfer(const struct btl_reach *r, struct btl_state *state, void *buf,
			size_t len, struct btl_tag *tag)
{
	if (state->kind == BTL_PUT)
		return fi_write(r->ep, buf, len, state->desc, r->peer, r->at, r->key, tag);
	return fi_read(r->ep, buf, len, state->desc, r->peer, r->at, r->key, tag);
}

static struct btl_tag *tag_take(struct weft_btl_ctx *ctx)
{
	struct btl_tag *tag = ctx->tags;

	if (!tag)
		return calloc(1, sizeof(*tag));
	ctx->tags = tag->next;
	return tag;
}

/* Begins the next piece of an operation. Returns 0, -FI_EAGAIN: later, or -FI_E*. */
static ssize_t piece_begin(struct weft_btl_ctx *ctx, struct weft_btl_op *op)
{
	struct btl_state *state = btl_state(op);
	const struct btl_route *route = &ctx->routes[state->route];
	const struct btl_device *device = &ctx->btl->devices[route->device];
	size_t len = state->left < device->max ? state->left : device->max;
	struct btl_reach reach = {
		.ep = ctx->lanes[route->device].ep,
		.peer = route->addr[route->device],
		.at = state->at,
		.key = state->key,
	};
	struct btl_tag *tag = tag_take(ctx);
	ssize_t ret;

	if (!tag)
		return -FI_EAGAIN;
	tag->op = op;
	ret = transfer(&reach, state, state->buf, len, tag);
	if (ret) {
		btl_tag_give(ctx, tag);
		return ret;
	}
	state->pieces++;
	state->buf += len;
	state->at += len;
	state->left -= len;
	return 0;
}

void btl_pieces_begin(struct weft_btl_ctx *ctx)
{
	struct btl_ops cut = ctx->cut;
	struct weft_btl_op *op, *next;

	btl_ops_clear(&ctx->cut);
	for (op = cut.first; op; op = next) {
		struct btl_state *state = btl_state(op);
		ssize_t ret = 0;

		next = state->next;
		while (state->left && !op->status && !ret)
			ret = piece_begin(ctx, op);
		if (ret && ret != -FI_EAGAIN)
			op->status = (int)ret;
		if (op->status)
			state->left = 0;
		if (state->left)
			btl_ops_add(&ctx->cut, op);
		else if (!state->pieces)
			btl_ops_add(&ctx->ended_now, op);
	}
}

static int transfer_begin(struct weft_btl_ctx *ctx, const struct weft_btl_target *to,
			  struct iovec *local, const struct weft_btl_mem *mem,
			  enum btl_kind kind, struct weft_btl_op *op)
{
	struct btl_state *state = btl_state(op);
	struct btl_reach reach;
	ssize_t ret;

	ret = btl_reach_get(ctx, to, local->iov_len,
			    kind == BTL_PUT ? FI_REMOTE_WRITE : FI_REMOTE_READ, &reach);
	if (!ret)
		ret = btl_local_get(ctx, reach.device, local, mem, &state->local, &state->desc);
	if (ret)
		return (int)ret;
	btl_op_prepare(op);
	state->kind = kind;
	if (!local->iov_len) {
		btl_op_begun(ctx, op, reach.route, 0);
		btl_ops_add(&ctx->ended_now, op);
		return 0;
	}
	if (local->iov_len > ctx->btl->devices[reach.device].max) {
		state->buf = local->iov_base;
		state->left = local->iov_len;
		state->at = reach.at;
		state->key = reach.key;
		state->pieces = 0;
		btl_op_begun(ctx, op, reach.route, 0);
		btl_ops_add(&ctx->cut, op);
		btl_pieces_begin(ctx);
		return 0;
	}
	ret = transfer(&reach, state, local->iov_base, local->iov_len, &state->tag);
	return btl_op_begun(ctx, op, reach.route, ret);
}

int weft_btl_put(struct weft_btl_ctx *ctx, const struct weft_btl_target *to, const void *buf,
		 size_t len, struct weft_btl_mem *mem, struct weft_btl_op *op)
{
	struct iovec local = { (void *)(uintptr_t)buf, len };

	return transfer_begin(ctx, to, &local, mem, BTL_PUT, op);
}

int weft_btl_get(struct weft_btl_ctx *ctx, const struct weft_btl_target *from, void *buf,
		 size_t len, struct weft_btl_mem *mem, struct weft_btl_op *op)
{
	struct iovec local = { buf, len };

	return transfer_begin(ctx, from, &local, mem, BTL_GET, op);
}
