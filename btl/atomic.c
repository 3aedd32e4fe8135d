/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Atomic operations. Called by the context's thread. */
#include <string.h>
#include <rdma/fi_atomic.h>
#include "access.h"
#include "atomic_apply.h"
#include "client.h"

int weft_btl_has_atomic(const struct weft_btl *btl, enum fi_op fi_op, enum fi_datatype type)
{
	if (!btl || !btl_atomic_has(fi_op, type))
		return 0;
	for (uint32_t i = 0; i < btl->device_cnt; i++)
		if (btl->devices[i].has_atomics &&
		    !btl_device_has_atomic(btl->home->lanes[i].domain, fi_op, type))
			return 0;
	return 1;
}

/*
 * struct atomic - an atomic, as it is to be begun
 * @compare: not NULL for FI_CSWAP
 * @result:  not NULL: what was there is wanted
 */
struct atomic {
	const struct weft_btl_target *to;
	enum fi_op fi_op;
	enum fi_datatype type;
	const void *operand, *compare;
	void *result;
};

/* struct place - a value of a peer, as libfabric's calls take it */
struct place {
	struct fid_ep *ep;
	fi_addr_t peer;
	uint64_t at;
	uint64_t key;
};

static ssize_t call(const struct place *p, const struct atomic *a, struct btl_state *state,
		    void *desc)
{
	if (a->compare)
		return fi_compare_atomic(p->ep, &state->value, 1, desc, &state->compare, desc,
					 &state->old, desc, p->peer, p->at, p->key, a->type,
					 a->fi_op, &state->tag);
	if (a->result)
		return fi_fetch_atomic(p->ep, &state->value, 1, desc, &state->old, desc,
				       p->peer, p->at, p->key, a->type, a->fi_op, &state->tag);
	return fi_atomic(p->ep, &state->value, 1, desc, p->peer, p->at, p->key, a->type,
			 a->fi_op, &state->tag);
}

/* Requests it of the peer's server. */
static int atomic_request(struct weft_btl_ctx *ctx, const struct atomic *a,
			  const struct btl_handle *handle, size_t route, struct btl_state *state)
{
	struct btl_request request = {
		.kind = BTL_REQUEST_ATOMIC,
		.fi_op = (uint32_t)a->fi_op,
		.type = (uint32_t)a->type,
		.mem = handle->mem,
		.addr = a->to->addr,
		.len = btl_type_len(a->type),
		.operand = state->value,
		.compare = state->compare,
	};

	return (int)btl_client_request(ctx, &request, route, &state->tag);
}

static int begin_by(struct weft_btl_ctx *ctx, const struct atomic *a,
		    const struct btl_handle *handle, size_t route, struct btl_state *state)
{
	struct iovec own = { &state->value, 3 * sizeof(state->value) };
	uint32_t device = btl_route_device(&ctx->routes[route]);
	struct place place;
	void *desc;
	int ret;

	if (device >= handle->cnt)
		return -FI_EHOSTUNREACH;
	state->tag.device = device;
	if (!ctx->btl->devices[device].has_atomics)
		return atomic_request(ctx, a, handle, route, state);
	ret = btl_local_get(ctx, device, &own, NULL, &state->tag.local, &desc);
	if (ret)
		return ret;
	place = (struct place){
		.ep = ctx->lanes[device].ep,
		.peer = ctx->routes[route].addr[device],
		.at = btl_address(handle, device, a->to->addr),
		.key = handle->keys[device],
	};
	return (int)call(&place, a, state, desc);
}

static int begin(struct weft_btl_ctx *ctx, const struct atomic *a, struct weft_btl_op *op)
{
	struct btl_state *state;
	uint32_t len = btl_type_len(a->type);
	const struct btl_handle *handle;
	size_t route;
	int ret;

	if (!a->to || !a->operand || !op)
		return -FI_EINVAL;
	if (!btl_atomic_has(a->fi_op, a->type) || (a->fi_op == FI_CSWAP && !a->compare))
		return -FI_EOPNOTSUPP;
	if (a->to->addr % len)
		return -FI_EINVAL;
	ret = btl_target_check(ctx, a->to, len,
			       a->result || a->compare ? FI_REMOTE_READ | FI_REMOTE_WRITE
						       : FI_REMOTE_WRITE,
			       &handle, &route);
	if (ret)
		return ret;
	btl_op_prepare(op, BTL_ATOMIC);
	state = btl_state(op);
	state->result = a->result;
	state->result_len = a->result ? len : 0;
	state->value = state->compare = 0;
	memcpy(&state->value, a->operand, len);
	if (a->compare)
		memcpy(&state->compare, a->compare, len);
	return btl_op_begun(ctx, op, route, begin_by(ctx, a, handle, route, state));
}

int weft_btl_atomic(struct weft_btl_ctx *ctx, const struct weft_btl_target *to, enum fi_op fi_op,
		    enum fi_datatype type, const void *operand, struct weft_btl_op *op)
{
	struct atomic a = { .to = to, .fi_op = fi_op, .type = type, .operand = operand };

	return begin(ctx, &a, op);
}

int weft_btl_fetch_atomic(struct weft_btl_ctx *ctx, const struct weft_btl_target *to,
			  enum fi_op fi_op, enum fi_datatype type, const void *operand,
			  void *result, struct weft_btl_op *op)
{
	struct atomic a = {
		.to = to, .fi_op = fi_op, .type = type, .operand = operand, .result = result
	};

	return begin(ctx, &a, op);
}

int weft_btl_compare_swap(struct weft_btl_ctx *ctx, const struct weft_btl_target *to,
			  enum fi_datatype type, const void *compare, const void *value,
			  void *result, struct weft_btl_op *op)
{
	struct atomic a = { .to = to,
			    .fi_op = FI_CSWAP,
			    .type = type,
			    .operand = value,
			    .compare = compare,
			    .result = result };

	return begin(ctx, &a, op);
}
