/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Beginning operations: whether a handle allows them; transfers whole, in pieces, injected, and in
 * batches.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_rma.h>
#include "access.h"
#include "client.h"
#include "ctx.h"
#include "mem.h"

/*
 * Bytes from which on a transfer uses all devices that work, and of each of its pieces then: large
 * enough that the start of a piece does not show.
 */
#define STRIPE_MIN ((size_t)512 << 10)
#define STRIPE_LEN ((size_t)256 << 10)

/* The handle's place among those that a context keeps. */
static struct btl_known *known_of(struct weft_btl_ctx *ctx, const unsigned char *in)
{
	return &ctx->known[btl_handle_hash(in) % BTL_KNOWN_CNT];
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

int btl_target_check(struct weft_btl_ctx *ctx, const struct weft_btl_target *to, size_t len,
		     uint64_t access, const struct btl_handle **out, size_t *route)
{
	const struct btl_handle *handle;

	if (!ctx || !to || !to->peer || !to->handle)
		return -FI_EINVAL;
	handle = known_get(ctx, to->handle);
	if (!handle || handle->id != to->peer->name.id)
		return -FI_EKEYREJECTED;
	if ((handle->access & access) != access)
		return -FI_EACCES;
	if (!btl_handle_covers(handle, to->addr, len))
		return -FI_EFAULT;
	*out = handle;
	return btl_route_get(ctx, to->peer, route);
}

static bool covers(const struct weft_btl_mem *mem, const struct iovec *range)
{
	return mem &&
	       btl_handle_covers(&mem->handle, (uintptr_t)range->iov_base, range->iov_len);
}

static bool is_open(struct weft_btl *btl, uint64_t mem)
{
	bool found;

	pthread_mutex_lock(&btl->lock);
	found = btl_mem_find_locked(btl, mem);
	pthread_mutex_unlock(&btl->lock);
	return found;
}

/* No operation under way uses memory that was closed, but for those that were cancelled. */
void btl_kept_check(struct weft_btl_ctx *ctx)
{
	struct weft_btl *btl = ctx->btl;
	uint64_t closes = atomic_load_explicit(&btl->mem_closes, memory_order_relaxed);

	if (closes == ctx->closes_seen || ctx->lost)
		return;
	for (uint32_t i = 0; i < btl->device_cnt * BTL_KEPT_CNT; i++) {
		struct btl_kept *kept = &ctx->lanes[i / BTL_KEPT_CNT].kept[i % BTL_KEPT_CNT];

		if (kept->serial && !is_open(btl, kept->mem) && !fi_close(&kept->mr->fid))
			kept->serial = 0;
	}
	ctx->closes_seen = closes;
}

/*
 * The registration that a lane of a later context keeps of the program's memory. Returns NULL where
 * the operation needs one of its own: the place is another memory's, which operations may be using.
 */
static struct fid_mr *kept_get(struct weft_btl_ctx *ctx, uint32_t device,
			       const struct weft_btl_mem *mem)
{
	struct btl_lane *lane = &ctx->lanes[device];
	struct btl_kept *kept = &lane->kept[mem->serial % BTL_KEPT_CNT];
	struct iovec range = { (void *)(uintptr_t)mem->handle.addr, mem->handle.len };
	struct fid_mr *mr;

	btl_kept_check(ctx);
	if (kept->serial == mem->serial)
		return kept->mr;
	if (kept->serial && (ctx->under_way || ctx->lost))
		return NULL;
	if (btl_mr_open(ctx->btl, &ctx->btl->devices[device], lane->domain, lane->ep, &range,
			BTL_LOCAL_ACCESS, &mr))
		return NULL;
	if (kept->serial)
		fi_close(&kept->mr->fid);
	*kept = (struct btl_kept){ mem->serial, mem->handle.mem, mr };
	return mr;
}

int btl_local_get(struct weft_btl_ctx *ctx, uint32_t device, const struct iovec *range,
		  const struct weft_btl_mem *mem, struct fid_mr **local, void **desc)
{
	const struct btl_device *dev = &ctx->btl->devices[device];
	struct btl_lane *lane = &ctx->lanes[device];
	struct fid_mr *mr = NULL;
	int ret = 0;

	*local = NULL;
	*desc = NULL;
	if (!(dev->mr_mode & FI_MR_LOCAL))
		return 0;
	if (covers(mem, range))
		mr = ctx == ctx->btl->home ? mem->mr[device] : kept_get(ctx, device, mem);
	if (!mr) {
		ret = btl_mr_open(ctx->btl, dev, lane->domain, lane->ep, range,
				  BTL_LOCAL_ACCESS, local);
		mr = *local;
	}
	if (!ret)
		*desc = fi_mr_desc(mr);
	return ret;
}

/* One of libfabric's transfers, as @tag says. */
static ssize_t transfer(struct weft_btl_ctx *ctx, struct btl_tag *tag,
			const struct btl_handle *handle, void *desc)
{
	const struct btl_state *state = btl_state(tag->op);
	struct fid_ep *ep = ctx->lanes[tag->device].ep;
	fi_addr_t peer = ctx->routes[state->route].addr[tag->device];
	uint64_t at = btl_address(handle, tag->device, tag->addr);
	uint64_t key = handle->keys[tag->device];
	struct iovec iov = { tag->buf, tag->len };
	struct fi_rma_iov rma_iov = { at, tag->len, key };
	struct fi_msg_rma msg = { &iov, &desc, 1, peer, &rma_iov, 1, tag, 0 };

	if (ctx->more)
		return state->kind == BTL_PUT
			       ? fi_writemsg(ep, &msg,
					     FI_COMPLETION | FI_DELIVERY_COMPLETE | FI_MORE)
			       : fi_readmsg(ep, &msg, FI_COMPLETION | FI_MORE);
	if (state->kind == BTL_PUT)
		return fi_write(ep, tag->buf, tag->len, desc, peer, at, key, tag);
	return fi_read(ep, tag->buf, tag->len, desc, peer, at, key, tag);
}

/* Requests a transfer of the peer's server. */
static ssize_t transfer_request(struct weft_btl_ctx *ctx, struct btl_tag *tag,
				const struct btl_handle *handle)
{
	const struct btl_state *state = btl_state(tag->op);
	struct btl_request request = {
		.kind = state->kind == BTL_PUT ? BTL_REQUEST_PUT : BTL_REQUEST_GET,
		.mem = handle->mem,
		.addr = tag->addr,
		.len = tag->len,
		.data = (const unsigned char *)tag->buf,
	};

	return btl_client_request(ctx, &request, state->route, tag);
}

/* Begins what @tag says, by its device. Returns 0, -FI_EAGAIN: later, or -FI_E*. */
static ssize_t tag_begin(struct weft_btl_ctx *ctx, struct btl_tag *tag,
			 const struct btl_handle *handle, const struct weft_btl_mem *mem)
{
	struct iovec range = { tag->buf, tag->len };
	void *desc;
	ssize_t ret;

	if (tag->device >= handle->cnt)
		return -FI_EHOSTUNREACH;
	if (!ctx->btl->devices[tag->device].has_rma)
		return transfer_request(ctx, tag, handle);
	ret = btl_local_get(ctx, tag->device, &range, mem, &tag->local, &desc);
	if (ret)
		return ret;
	ret = transfer(ctx, tag, handle, desc);
	if (ret && tag->local) {
		fi_close(&tag->local->fid);
		tag->local = NULL;
	}
	return ret;
}

static struct btl_tag *tag_take(struct weft_btl_ctx *ctx)
{
	struct btl_tag *tag = ctx->tags;

	if (!tag)
		return calloc(1, sizeof(*tag));
	ctx->tags = tag->next;
	return tag;
}

/* Bytes of the next piece. */
static size_t piece_len(const struct weft_btl_ctx *ctx, const struct btl_split *split,
			const struct btl_route *route, uint32_t device)
{
	size_t max = ctx->btl->devices[device].max;

	if (btl_route_works_by_several(route) && max > STRIPE_LEN)
		max = STRIPE_LEN;
	return split->left < max ? split->left : max;
}

/*
 * Takes the next piece of a transfer, one that has failed before others.
 * Returns NULL where there is no memory.
 */
static struct btl_tag *piece_take(struct weft_btl_ctx *ctx, struct btl_split *split)
{
	struct btl_route *route = &ctx->routes[btl_state(split->op)->route];
	struct btl_tag *tag = split->again;

	if (tag) {
		split->again = tag->next;
		return tag;
	}
	tag = tag_take(ctx);
	if (!tag)
		return NULL;
	tag->op = split->op;
	tag->device = btl_route_next_device(route);
	tag->tried = 0;
	tag->buf = split->buf;
	tag->len = piece_len(ctx, split, route, tag->device);
	tag->addr = split->addr;
	split->buf += tag->len;
	split->addr += tag->len;
	split->left -= tag->len;
	return tag;
}

/* Begins the next piece. Returns 0, -FI_EAGAIN: later, or -FI_E*. */
static ssize_t piece_begin(struct weft_btl_ctx *ctx, struct btl_split *split)
{
	struct btl_state *state = btl_state(split->op);
	struct btl_tag *tag = piece_take(ctx, split);
	ssize_t ret;

	if (!tag)
		return -FI_EAGAIN;
	ret = tag_begin(ctx, tag, &split->handle, split->mem);
	if (!ret) {
		state->pieces++;
		return 0;
	}
	if (ret != -FI_EAGAIN && !btl_route_replace(&ctx->routes[state->route], (int)ret,
						    &tag->tried, &tag->device)) {
		if (tag != &state->tag)
			btl_tag_give(ctx, tag);
		return ret;
	}
	tag->next = split->again;
	split->again = tag;
	return ret == -FI_EAGAIN ? ret : 0;
}

/* Nothing more of a transfer begins. */
static void split_stop(struct weft_btl_ctx *ctx, struct btl_split *split)
{
	struct btl_tag *tag;

	split->left = 0;
	while ((tag = split->again)) {
		split->again = tag->next;
		if (tag != &btl_state(split->op)->tag)
			btl_tag_give(ctx, tag);
	}
}

/* Begins what can begin. Returns whether something is left. */
static bool split_begin(struct weft_btl_ctx *ctx, struct btl_split *split)
{
	ssize_t ret = 0;

	while ((split->left || split->again) && !split->op->status && !ret)
		ret = piece_begin(ctx, split);
	if (ret && ret != -FI_EAGAIN)
		split->op->status = (int)ret;
	if (split->op->status)
		split_stop(ctx, split);
	return split->left || split->again;
}

void btl_split_wait(struct weft_btl_ctx *ctx, struct btl_split *split)
{
	if (split->waits)
		return;
	split->waits = true;
	split->next = ctx->waiting;
	ctx->waiting = split;
}

void btl_pieces_begin(struct weft_btl_ctx *ctx)
{
	struct btl_split *split = ctx->waiting, *next;

	ctx->waiting = NULL;
	for (; split; split = next) {
		next = split->next;
		split->waits = false;
		if (split_begin(ctx, split))
			btl_split_wait(ctx, split);
		else if (!btl_state(split->op)->pieces)
			btl_ops_add(&ctx->ended_now, split->op);
	}
}

static struct btl_split *split_take(struct weft_btl_ctx *ctx)
{
	struct btl_split *split = ctx->splits;

	if (!split)
		return malloc(sizeof(*split));
	ctx->splits = split->next;
	return split;
}

/* Begins a transfer in pieces. */
static int split_transfer(struct weft_btl_ctx *ctx, const struct weft_btl_transfer *t,
			  const struct btl_handle *handle, size_t route)
{
	struct btl_state *state = btl_state(t->op);
	struct btl_split *split = split_take(ctx);

	if (!split)
		return -FI_ENOMEM;
	*split = (struct btl_split){
		.op = t->op,
		.handle = *handle,
		.mem = t->mem,
		.buf = t->buf,
		.left = t->len,
		.addr = t->target.addr,
	};
	state->pieces = 0;
	state->split = split;
	btl_op_begun(ctx, t->op, route, 0);
	btl_split_wait(ctx, split);
	btl_pieces_begin(ctx);
	return 0;
}

/*
 * Begins a transfer that is one of libfabric's, which another device can take over if there is one.
 */
static int whole_transfer(struct weft_btl_ctx *ctx, const struct weft_btl_transfer *t,
			  const struct btl_handle *handle, size_t route, uint32_t device)
{
	struct btl_state *state = btl_state(t->op);
	struct btl_tag *tag = &state->tag;
	ssize_t ret;

	tag->device = device;
	tag->tried = 0;
	tag->buf = t->buf;
	tag->len = t->len;
	tag->addr = t->target.addr;
	state->route = route;
	if (btl_route_reaches_several(&ctx->routes[route])) {
		state->split = split_take(ctx);
		if (!state->split)
			return -FI_ENOMEM;
		*state->split =
			(struct btl_split){ .op = t->op, .handle = *handle, .mem = t->mem };
	}
	do
		ret = tag_begin(ctx, tag, handle, t->mem);
	while (ret && ret != -FI_EAGAIN && state->split &&
	       btl_route_replace(&ctx->routes[route], (int)ret, &tag->tried, &tag->device));
	if (ret && state->split)
		btl_split_give(ctx, state->split);
	return btl_op_begun(ctx, t->op, route, ret);
}

static int transfer_begin(struct weft_btl_ctx *ctx, const struct weft_btl_transfer *t,
			  enum btl_kind kind)
{
	const struct btl_handle *handle;
	struct btl_route *route;
	uint32_t device;
	size_t idx;
	int ret;

	ret = t->op ? btl_target_check(ctx, &t->target, t->len,
				       kind == BTL_PUT ? FI_REMOTE_WRITE : FI_REMOTE_READ,
				       &handle, &idx)
		    : -FI_EINVAL;
	if (ret)
		return ret;
	btl_op_prepare(t->op, kind);
	if (!t->len) {
		btl_op_begun(ctx, t->op, idx, 0);
		btl_ops_add(&ctx->ended_now, t->op);
		return 0;
	}
	route = &ctx->routes[idx];
	device = btl_route_device(route);
	if (t->len > ctx->btl->devices[device].max ||
	    (t->len >= STRIPE_MIN && btl_route_works_by_several(route)))
		return split_transfer(ctx, t, handle, idx);
	return whole_transfer(ctx, t, handle, idx, device);
}

int weft_btl_put(struct weft_btl_ctx *ctx, const struct weft_btl_target *to, const void *buf,
		 size_t len, struct weft_btl_mem *mem, struct weft_btl_op *op)
{
	struct weft_btl_transfer t = {
		.buf = (void *)(uintptr_t)buf, .len = len, .mem = mem, .op = op
	};

	if (!to)
		return -FI_EINVAL;
	t.target = *to;
	return transfer_begin(ctx, &t, BTL_PUT);
}

int weft_btl_get(struct weft_btl_ctx *ctx, const struct weft_btl_target *from, void *buf,
		 size_t len, struct weft_btl_mem *mem, struct weft_btl_op *op)
{
	struct weft_btl_transfer t = { .buf = buf, .len = len, .mem = mem, .op = op };

	if (!from)
		return -FI_EINVAL;
	t.target = *from;
	return transfer_begin(ctx, &t, BTL_GET);
}

/* An injected put has ended. */
static void injected_end(struct weft_btl_op *op)
{
	struct btl_injected *injected = (struct btl_injected *)op;
	struct weft_btl_ctx *ctx = op->arg;

	if (op->status && !ctx->inject_status)
		ctx->inject_status = op->status;
	injected->next = ctx->injected;
	ctx->injected = injected;
}

int weft_btl_put_inject(struct weft_btl_ctx *ctx, const struct weft_btl_target *to,
			const void *buf, size_t len)
{
	struct btl_injected *injected = ctx->injected;
	int ret;

	if (len > WEFT_BTL_INJECT_MAX)
		return -FI_EMSGSIZE;
	if (injected)
		ctx->injected = injected->next;
	else
		injected = malloc(sizeof(*injected));
	if (!injected)
		return -FI_ENOMEM;
	memcpy(injected->bytes, buf, len);
	injected->op.done = injected_end;
	injected->op.arg = ctx;
	ret = weft_btl_put(ctx, to, injected->bytes, len, NULL, &injected->op);
	if (ret) {
		injected->next = ctx->injected;
		ctx->injected = injected;
	}
	return ret;
}

/* Whether @next begins with @first, by the same endpoint, so that the device may wait for it. */
static bool follows(struct weft_btl_ctx *ctx, const struct weft_btl_transfer *first,
		    const struct weft_btl_transfer *next, uint64_t access)
{
	const struct btl_device *device = &ctx->btl->devices[0];
	const struct btl_handle *handle;
	size_t route;

	return ctx->btl->device_cnt == 1 && device->has_rma && next->op && next->len &&
	       next->len <= device->max && next->target.peer == first->target.peer &&
	       !btl_target_check(ctx, &next->target, next->len, access, &handle, &route);
}

static ssize_t batch_begin(struct weft_btl_ctx *ctx, const struct weft_btl_transfer *transfers,
			   size_t cnt, enum btl_kind kind)
{
	uint64_t access = kind == BTL_PUT ? FI_REMOTE_WRITE : FI_REMOTE_READ;
	size_t begun = 0;
	int ret = 0;

	if (!ctx || (cnt && !transfers))
		return -FI_EINVAL;
	while (begun < cnt && !ret) {
		const struct weft_btl_transfer *t = &transfers[begun];

		ctx->more = begun + 1 < cnt && follows(ctx, t, t + 1, access);
		ret = transfer_begin(ctx, t, kind);
		begun += !ret;
	}
	ctx->more = false;
	return begun ? (ssize_t)begun : ret;
}

ssize_t weft_btl_put_batch(struct weft_btl_ctx *ctx, const struct weft_btl_transfer *transfers,
			   size_t cnt)
{
	return batch_begin(ctx, transfers, cnt, BTL_PUT);
}

ssize_t weft_btl_get_batch(struct weft_btl_ctx *ctx, const struct weft_btl_transfer *transfers,
			   size_t cnt)
{
	return batch_begin(ctx, transfers, cnt, BTL_GET);
}
