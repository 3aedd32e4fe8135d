/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opening and closing contexts, their routes, and what ends in them. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "client.h"
#include "clock.h"
#include "ctx.h"
#include "message.h"

/* Completions that are read at once. */
#define ENTRIES 16

/* Rounds of progress to one look for registrations that are of no use any more, a power of two. */
#define KEPT_ROUNDS 1024u

/* A context that closes waits so long for one more operation to end. */
#define DRAIN_NS 10000000000u

/* Frees a list that is linked by its members' @next. */
#define FREE_ALL(first)                              \
	while (first) {                              \
		__typeof__(first) free_this = first; \
                                                     \
		first = free_this->next;             \
		free(free_this);                     \
	}

static void lane_close_ep(struct btl_lane *lane)
{
	if (lane->ep)
		fi_close(&lane->ep->fid);
	lane->ep = NULL;
}

void btl_lane_close(struct btl_lane *lane)
{
	lane_close_ep(lane);
	if (lane->cq)
		fi_close(&lane->cq->fid);
	if (lane->av)
		fi_close(&lane->av->fid);
	btl_receives_close(lane);
	for (uint32_t i = 0; i < BTL_KEPT_CNT; i++)
		if (lane->kept[i].serial)
			fi_close(&lane->kept[i].mr->fid);
	if (lane->domain)
		fi_close(&lane->domain->fid);
	*lane = (struct btl_lane){ 0 };
}

int btl_lane_open(const struct btl_device *device, struct fi_info *info, struct btl_lane *lane)
{
	struct fi_av_attr av_attr = { .type = FI_AV_MAP };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_DATA,
				      .wait_obj = FI_WAIT_NONE,
				      .size = info->tx_attr->size + BTL_RECEIVES };
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
		btl_lane_close(lane);
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
	btl_ops_clear(&ctx->ended);
	btl_ops_clear(&ctx->ended_now);
	for (uint32_t i = 0; i < btl->device_cnt; i++) {
		const struct btl_device *device = &btl->devices[i];

		ret = btl_lane_open(device, btl->home ? device->later_info : device->info,
				    &ctx->lanes[i]);
		if (ret) {
			btl_ctx_destroy(ctx);
			return ret;
		}
	}
	*out = ctx;
	return 0;
}

void btl_ctx_destroy(struct weft_btl_ctx *ctx)
{
	/* its buffers are the endpoints' until these are closed */
	for (uint32_t i = 0; i < ctx->btl->device_cnt; i++)
		lane_close_ep(&ctx->lanes[i]);
	btl_client_close(ctx);
	for (uint32_t i = 0; i < ctx->btl->device_cnt; i++)
		btl_lane_close(&ctx->lanes[i]);
	FREE_ALL(ctx->tags);
	FREE_ALL(ctx->splits);
	FREE_ALL(ctx->injected);
	free(ctx->routes);
	free(ctx);
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
	if (!ret) {
		ret = btl_client_open(*ctx);
		if (ret)
			btl_ctx_destroy(*ctx);
	}
	if (ret) {
		pthread_mutex_lock(&btl->lock);
		btl->ctx_cnt--;
		pthread_mutex_unlock(&btl->lock);
	}
	return ret;
}

/* A stock libfabric's shm never ends what is under way to a process that has died. */
static void drain(struct weft_btl_ctx *ctx)
{
	uint64_t since = clock_ns();

	while (ctx->under_way && clock_ns() - since < DRAIN_NS)
		if (weft_btl_progress(ctx))
			since = clock_ns();
}

int weft_btl_ctx_close(struct weft_btl_ctx *ctx)
{
	struct weft_btl *btl;

	if (!ctx)
		return -FI_EINVAL;
	btl = ctx->btl;
	drain(ctx);
	/* its endpoints stay, and what is under way by them may still use the program's memory */
	if (ctx == btl->home && ctx->under_way)
		return -FI_EBUSY;
	btl_ops_clear(&ctx->ended);
	ctx->inject_status = 0;
	pthread_mutex_lock(&btl->lock);
	btl->ctx_cnt--;
	/* what is lost is nobody else's business, should it end */
	if (ctx == btl->home)
		btl->home_is_taken = ctx->lost;
	pthread_mutex_unlock(&btl->lock);
	if (ctx != btl->home)
		btl_ctx_destroy(ctx);
	return 0;
}

void btl_op_prepare(struct weft_btl_op *op, enum btl_kind kind)
{
	struct btl_state *state = btl_state(op);

	op->status = 0;
	state->tag.kind = BTL_TAG_OP;
	state->tag.op = op;
	state->tag.local = NULL;
	state->kind = kind;
	state->result_len = 0;
	state->split = NULL;
	state->pieces = 1;
}

static void local_end(struct btl_tag *tag)
{
	if (!tag->local)
		return;
	fi_close(&tag->local->fid);
	tag->local = NULL;
}

int btl_op_begun(struct weft_btl_ctx *ctx, struct weft_btl_op *op, size_t route, ssize_t ret)
{
	struct btl_state *state = btl_state(op);

	if (ret) {
		local_end(&state->tag);
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

	if (state->kind == BTL_CANCELLED) {
		ctx->lost--;
	} else {
		ctx->routes[state->route].under_way--;
		ctx->under_way--;
	}
	if (state->split) {
		btl_split_give(ctx, state->split);
		state->split = NULL;
	}
	if (state->result_len && !op->status)
		memcpy(state->result, &state->old, state->result_len);
	if (op->done)
		op->done(op);
	else
		btl_ops_add(&ctx->ended, op);
}

/*
 * A piece has failed with its device: another one is to carry it out, if there is one.
 * Returns whether so.
 */
static bool piece_moves(struct weft_btl_ctx *ctx, struct btl_tag *tag, int status)
{
	struct btl_state *state = btl_state(tag->op);
	bool by_request = !ctx->btl->devices[tag->device].has_rma;

	/* a server that was not heard of may carry it out later, over what comes then */
	if (by_request && status == -FI_ETIMEDOUT)
		return false;
	if (!state->split || tag->op->status ||
	    !btl_route_replace(&ctx->routes[state->route], status, &tag->tried, &tag->device))
		return false;
	tag->next = state->split->again;
	state->split->again = tag;
	btl_split_wait(ctx, state->split);
	return true;
}

bool btl_tag_end(struct weft_btl_ctx *ctx, struct btl_tag *tag, int status)
{
	struct weft_btl_op *op = tag->op;
	struct btl_state *state = btl_state(op);

	local_end(tag);
	state->pieces--;
	if (status && piece_moves(ctx, tag, status))
		return false;
	if (tag != &state->tag)
		btl_tag_give(ctx, tag);
	if (status && !op->status)
		op->status = status;
	if (state->pieces || (state->split && state->split->waits))
		return false;
	btl_op_end(ctx, op);
	return true;
}

/* Reads an entry of what has failed. Returns how many operations of the program have ended. */
static size_t take_error(struct weft_btl_ctx *ctx, struct btl_lane *lane)
{
	struct fi_cq_err_entry entry = { 0 };
	struct btl_tag *tag;
	int status;

	if (fi_cq_readerr(lane->cq, &entry, 0) <= 0 || !entry.op_context)
		return 0;
	tag = entry.op_context;
	status = entry.err ? -entry.err : -FI_EIO;
	switch (tag->kind) {
	case BTL_TAG_OP:
		return btl_tag_end(ctx, tag, status);
	case BTL_TAG_REQUEST:
		return btl_client_sent(ctx, tag, status);
	default:
		btl_receive_again(lane, tag);
		return 0;
	}
}

/*
 * A message has arrived: an answer, or one for who listens.
 * Returns how many operations have ended, or 1.
 */
static size_t take_message(struct weft_btl_ctx *ctx, struct btl_lane *lane,
			   const struct fi_cq_data_entry *entry)
{
	struct btl_receive *receive = entry->op_context;
	size_t ended;

	if (entry->data != BTL_ID_ANSWER) {
		btl_message_arrived(ctx, lane, &receive->tag, entry->len, entry->data);
		return 1;
	}
	ended = btl_client_answered(ctx, receive->bytes, entry->len);
	btl_receive_again(lane, &receive->tag);
	return ended;
}

static size_t lane_progress(struct weft_btl_ctx *ctx, struct btl_lane *lane)
{
	struct fi_cq_data_entry entries[ENTRIES];
	size_t ended = 0;
	ssize_t n = fi_cq_read(lane->cq, entries, ENTRIES);

	if (n == -FI_EAVAIL)
		return take_error(ctx, lane);
	for (ssize_t i = 0; i < n; i++) {
		struct btl_tag *tag = entries[i].op_context;

		if (tag->kind == BTL_TAG_OP)
			ended += btl_tag_end(ctx, tag, 0);
		else if (tag->kind == BTL_TAG_REQUEST)
			ended += btl_client_sent(ctx, tag, 0);
		else
			ended += take_message(ctx, lane, &entries[i]);
	}
	if (lane->receives && lane->receives->idle)
		btl_receives_post(lane);
	return ended;
}

size_t weft_btl_progress(struct weft_btl_ctx *ctx)
{
	uint32_t rounds = atomic_load_explicit(&ctx->rounds, memory_order_relaxed) + 1;
	struct weft_btl_op *op;
	size_t ended = 0;

	atomic_store_explicit(&ctx->rounds, rounds, memory_order_relaxed);
	if (!(rounds % KEPT_ROUNDS))
		btl_kept_check(ctx);
	for (uint32_t i = 0; i < ctx->btl->device_cnt; i++)
		ended += lane_progress(ctx, &ctx->lanes[i]);
	if (ctx->client)
		ended += btl_client_check(ctx);
	if (ctx->waiting)
		btl_pieces_begin(ctx);
	while ((op = list_take(&ctx->ended_now))) {
		btl_state(op)->pieces = 0;
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

void weft_btl_flushed(struct weft_btl_op *op)
{
}

static bool is_under_way(const struct weft_btl_ctx *ctx, const struct weft_btl_peer *peer)
{
	if (!peer)
		return ctx->under_way;
	return peer->idx < ctx->route_cnt && ctx->routes[peer->idx].serial == peer->serial &&
	       ctx->routes[peer->idx].under_way;
}

int weft_btl_flush(struct weft_btl_ctx *ctx, struct weft_btl_peer *peer)
{
	int ret;

	/* one round at least: who flushes after -FI_EAGAIN waits for a connection */
	do
		weft_btl_progress(ctx);
	while (is_under_way(ctx, peer));
	ret = ctx->inject_status;
	ctx->inject_status = 0;
	return ret;
}

int weft_btl_cancel(struct weft_btl_ctx *ctx, struct weft_btl_op *op)
{
	struct btl_state *state;
	struct btl_route *route;

	if (!ctx || !op)
		return -FI_EINVAL;
	state = btl_state(op);
	if (!state->pieces && !state->split)
		return -FI_EALREADY;
	if (state->kind == BTL_CANCELLED)
		return 0;
	/* with a status no piece begins, and no result is stored */
	if (!op->status)
		op->status = -FI_ECANCELED;
	route = &ctx->routes[state->route];
	route->under_way--;
	route->lost = true;
	ctx->under_way--;
	ctx->lost++;
	state->kind = BTL_CANCELLED;
	return 0;
}

/* The wires of one endpoint, at @routes; @count as in weft_btl_routes(). */
static int lane_routes(struct btl_lane *lane, struct weft_route *routes, size_t *count)
{
	struct weft_routes_ops *ops;

	if (fi_open_ops(&lane->ep->fid, WEFT_ROUTES_OPS, 0, (void **)&ops, NULL))
		return -FI_ENOSYS;
	return ops->list(&lane->ep->fid, routes, count);
}

int weft_btl_routes(struct weft_btl_ctx *ctx, struct weft_route *routes, size_t *count)
{
	size_t room, all = 0;
	int first = 0;

	if (!ctx || !count || (*count && !routes))
		return -FI_EINVAL;
	room = *count;
	for (uint32_t i = 0; i < ctx->btl->device_cnt; i++) {
		size_t cnt = room > all ? room - all : 0;
		int ret = lane_routes(&ctx->lanes[i], cnt ? routes + all : NULL, &cnt);

		if (ret && ret != -FI_ETOOSMALL)
			return ret;
		first = first ? first : ret;
		all += cnt;
	}
	*count = all;
	return first;
}
