/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opening and closing contexts, their routes, and what ends in them. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "ctx.h"

/* Completions that are read at once. */
#define ENTRIES 16

static void lane_close(struct btl_lane *lane)
{
	if (lane->ep)
		fi_close(&lane->ep->fid);
	if (lane->cq)
		fi_close(&lane->cq->fid);
	if (lane->av)
		fi_close(&lane->av->fid);
	if (lane->domain)
		fi_close(&lane->domain->fid);
	*lane = (struct btl_lane){ 0 };
}

static int lane_open(const struct btl_device *device, struct btl_lane *lane)
{
	struct fi_info *info = device->info;
	struct fi_av_attr av_attr = { .type = FI_AV_MAP };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT,
				      .wait_obj = FI_WAIT_NONE,
				      .size = info->tx_attr->size };
	int ret;

	if (info->domain_attr->av_type != FI_AV_UNSPEC)
		av_attr.type = info->domain_attr->av_type;
	ret = fi_domain(device->fabric, info, &lane->domain, NULL);
	if (!ret)
		ret = fi_av_open(lane->domain, &av_attr, &lane->av, NULL);
	if (!ret)
		ret = fi_cq_open(lane->domain, &cq_attr, &lane->cq, NULL);
	if (!ret)
		ret = fi_endpoint(lane->domain, info, &lane->ep, NULL);
	if (!ret)
		ret = fi_ep_bind(lane->ep, &lane->av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(lane->ep, &lane->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!ret)
		ret = fi_enable(lane->ep);
	if (ret)
		lane_close(lane);
	return ret;
}

static struct weft_btl_op *list_take(struct btl_ops *ops)
{
	struct weft_btl_op *op = ops->first;

	if (!op)
		return NULL;
	ops->first = btl_state(op)->next;
	if (!ops->first)
		ops->last = &ops->first;
	return op;
}

void btl_ops_add(struct btl_ops *ops, struct weft_btl_op *op)
{
	btl_state(op)->next = NULL;
	*ops->last = op;
	ops->last = &btl_state(op)->next;
}

int btl_ctx_create(struct weft_btl *btl, struct weft_btl_ctx **out)
{
	struct weft_btl_ctx *ctx = calloc(1, sizeof(*ctx));
	int ret;

	if (!ctx)
		return -FI_ENOMEM;
	ctx->btl = btl;
	btl_ops_clear(&ctx->cut);
	btl_ops_clear(&ctx->ended);
	btl_ops_clear(&ctx->ended_now);
	for (uint32_t i = 0; i < btl->device_cnt; i++) {
		ret = lane_open(&btl->devices[i], &ctx->lanes[i]);
		if (ret) {
			btl_ctx_destroy(ctx);
			return ret;
		}
	}
	*out = ctx;
	return 0;
}

int btl_ctx_destroy(struct weft_btl_ctx *ctx)
{
	for (uint32_t i = 0; i < ctx->btl->device_cnt; i++)
		lane_close(&ctx->lanes[i]);
	while (ctx->tags) {
		struct btl_tag *tag = ctx->tags;

		ctx->tags = tag->next;
		free(tag);
	}
	free(ctx->routes);
	free(ctx);
	return 0;
}

int weft_btl_ctx_open(struct weft_btl *btl, struct weft_btl_ctx **ctx)
{
	bool first;
	int ret;

	if (!btl || !ctx)
		return -FI_EINVAL;
	pthread_mutex_lock(&btl->lock);
	first = !btl->home_is_taken;
	btl->home_is_taken = true;
	btl->ctx_cnt++;
	pthread_mutex_unlock(&btl->lock);
	if (first) {
		*ctx = btl->home;
		return 0;
	}
	ret = btl_ctx_create(btl, ctx);
	if (ret) {
		pthread_mutex_lock(&btl->lock);
		btl->ctx_cnt--;
		pthread_mutex_unlock(&btl->lock);
	}
	return ret;
}

int weft_btl_ctx_close(struct weft_btl_ctx *ctx)
{
	struct weft_btl *btl;

	if (!ctx)
		return -FI_EINVAL;
	btl = ctx->btl;
	weft_btl_flush(ctx, NULL);
	pthread_mutex_lock(&btl->lock);
	btl->ctx_cnt--;
	if (ctx == btl->home)
		btl->home_is_taken = false;
	pthread_mutex_unlock(&btl->lock);
	return ctx == btl->home ? 0 : btl_ctx_destroy(ctx);
}

/* Makes room for the routes of @cnt peers. */
static int routes_grow(struct weft_btl_ctx *ctx, size_t cnt)
{
	struct btl_route *more;

	if (cnt <= ctx->route_cnt)
		return 0;
	cnt = cnt > 2 * ctx->route_cnt ? cnt : 2 * ctx->route_cnt;
	more = realloc(ctx->routes, cnt * sizeof(*more));
	if (!more)
		return -FI_ENOMEM;
	memset(more + ctx->route_cnt, 0, (cnt - ctx->route_cnt) * sizeof(*more));
	ctx->routes = more;
	ctx->route_cnt = cnt;
	return 0;
}

/* Takes the addresses of a peer that was closed out of the address vectors. */
static void route_forget(struct weft_btl_ctx *ctx, struct btl_route *route)
{
	for (uint32_t i = 0; route->serial && i < ctx->btl->device_cnt; i++)
		if (route->addr[i] != FI_ADDR_NOTAVAIL)
			fi_av_remove(ctx->lanes[i].av, &route->addr[i], 1, 0);
	*route = (struct btl_route){ 0 };
}

int btl_route_get(struct weft_btl_ctx *ctx, const struct weft_btl_peer *peer, size_t *idx)
{
	struct weft_btl *btl = ctx->btl;
	struct btl_route *route;
	int ret;

	*idx = peer->idx;
	if (peer->idx < ctx->route_cnt && ctx->routes[peer->idx].serial == peer->serial)
		return 0;
	ret = routes_grow(ctx, peer->idx + 1);
	if (ret)
		return ret;
	route = &ctx->routes[peer->idx];
	route_forget(ctx, route);
	route->device = btl->device_cnt;
	for (uint32_t i = btl->device_cnt; i--;) {
		const struct btl_name_device *device = &peer->name.devices[i];

		route->addr[i] = FI_ADDR_NOTAVAIL;
		if (i < peer->name.cnt && device->format == btl->devices[i].info->addr_format &&
		    fi_av_insert(ctx->lanes[i].av, device->addr, 1, &route->addr[i], 0, NULL) ==
			    1)
			route->device = i;
	}
	if (route->device == btl->device_cnt)
		return -FI_EHOSTUNREACH;
	route->serial = peer->serial;
	return 0;
}

void btl_op_prepare(struct weft_btl_op *op)
{
	struct btl_state *state = btl_state(op);

	op->status = 0;
	state->tag.op = op;
	state->result_len = 0;
	state->left = 0;
	state->pieces = 1;
}

int btl_op_begun(struct weft_btl_ctx *ctx, struct weft_btl_op *op, size_t route, ssize_t ret)
{
	struct btl_state *state = btl_state(op);

	if (ret) {
		if (state->local)
			fi_close(&state->local->fid);
		return (int)ret;
	}
	state->route = route;
	ctx->routes[route].under_way++;
	ctx->under_way++;
	return 0;
}

void btl_op_end(struct weft_btl_ctx *ctx, struct weft_btl_op *op)
{
	struct btl_state *state = btl_state(op);

	ctx->routes[state->route].under_way--;
	ctx->under_way--;
	if (state->local)
		fi_close(&state->local->fid);
	if (state->result_len && !op->status)
		memcpy(state->result, &state->old, state->result_len);
	if (op->done)
		op->done(op);
	else
		btl_ops_add(&ctx->ended, op);
}

/* One of libfabric's operations has ended. Returns whether the program's has. */
static bool tag_end(struct weft_btl_ctx *ctx, struct btl_tag *tag, int status)
{
	struct weft_btl_op *op = tag->op;
	struct btl_state *state = btl_state(op);

	if (tag != &state->tag)
		btl_tag_give(ctx, tag);
	if (status && !op->status)
		op->status = status;
	if (--state->pieces || state->left)
		return false;
	btl_op_end(ctx, op);
	return true;
}

/* Reads an entry of an operation that has failed. Returns how many operations of the program have ended. */
static size_t take_error(struct weft_btl_ctx *ctx, struct btl_lane *lane)
{
	struct fi_cq_err_entry entry = { 0 };

	if (fi_cq_readerr(lane->cq, &entry, 0) <= 0 || !entry.op_context)
		return 0;
	return tag_end(ctx, entry.op_context, entry.err ? -entry.err : -FI_EIO);
}

static size_t lane_progress(struct weft_btl_ctx *ctx, struct btl_lane *lane)
{
	struct fi_cq_entry entries[ENTRIES];
	size_t ended = 0;
	ssize_t n = fi_cq_read(lane->cq, entries, ENTRIES);

	if (n == -FI_EAVAIL)
		return take_error(ctx, lane);
	for (ssize_t i = 0; i < n; i++)
		ended += tag_end(ctx, entries[i].op_context, 0);
	return ended;
}

size_t weft_btl_progress(struct weft_btl_ctx *ctx)
{
	struct weft_btl_op *op;
	size_t ended = 0;

	atomic_store_explicit(&ctx->rounds,
			      atomic_load_explicit(&ctx->rounds, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	for (uint32_t i = 0; i < ctx->btl->device_cnt; i++)
		ended += lane_progress(ctx, &ctx->lanes[i]);
	if (ctx->cut.first)
		btl_pieces_begin(ctx);
	while ((op = list_take(&ctx->ended_now))) {
		btl_op_end(ctx, op);
		ended++;
	}
	return ended;
}

size_t weft_btl_poll(struct weft_btl_ctx *ctx, struct weft_btl_op **ops, size_t cnt)
{
	struct weft_btl_op *op;
	size_t n = 0;

	weft_btl_progress(ctx);
	while (n < cnt && (op = list_take(&ctx->ended)))
		ops[n++] = op;
	return n;
}

void weft_btl_flush(struct weft_btl_ctx *ctx, struct weft_btl_peer *peer)
{
	if (!peer) {
		while (ctx->under_way)
			weft_btl_progress(ctx);
		return;
	}
	while (peer->idx < ctx->route_cnt && ctx->routes[peer->idx].serial == peer->serial &&
	       ctx->routes[peer->idx].under_way)
		weft_btl_progress(ctx);
}
