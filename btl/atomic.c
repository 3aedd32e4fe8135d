/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Atomic operations. Called by the context's thread. */
#include <string.h>
#include <rdma/fi_atomic.h>
#include "access.h"

/* Bytes of a type that operations have; 0: they don't have it. */
static uint32_t type_len(enum fi_datatype type)
{
	switch (type) {
	case FI_INT32:
	case FI_UINT32:
	case FI_FLOAT:
		return 4;
	case FI_INT64:
	case FI_UINT64:
	case FI_DOUBLE:
		return 8;
	default:
		return 0;
	}
}

static bool is_known(enum fi_op fi_op)
{
	switch (fi_op) {
	case FI_SUM:
	case FI_BAND:
	case FI_BOR:
	case FI_BXOR:
	case FI_MIN:
	case FI_MAX:
	case FI_ATOMIC_WRITE:
		return true;
	default:
		return false;
	}
}

/* Whether a device has an operation, with or without what was there before. */
static bool device_has(const struct weft_btl *btl, uint32_t device, enum fi_op fi_op,
		       enum fi_datatype type)
{
	const struct btl_lane *lane = &btl->home->lanes[device];
	uint64_t flags = fi_op == FI_CSWAP ? FI_COMPARE_ATOMIC : FI_FETCH_ATOMIC;
	struct fi_atomic_attr attr = { 0 };

	return !fi_query_atomic(lane->domain, type, fi_op, &attr, flags) && attr.count;
}

int weft_btl_has_atomic(const struct weft_btl *btl, enum fi_op fi_op, enum fi_datatype type)
{
	if (!btl || !type_len(type) || (!is_known(fi_op) && fi_op != FI_CSWAP))
		return 0;
	for (uint32_t i = 0; i < btl->device_cnt; i++)
		if (!device_has(btl, i, fi_op, type))
			return 0;
	return 1;
}

/*
 * struct update - an atomic, as it is to be begun
 * @operand: NULL for none
 * @compare: not NULL for FI_CSWAP
 * @result:  not NULL: what was there is wanted
 */
struct update {
	const struct weft_btl_target *to;
	enum fi_op fi_op;
	enum fi_datatype type;
	const void *operand, *compare;
	void *result;
};

static ssize_t call(const struct btl_reach *r, const struct update *u, struct btl_state *state,
		    void *desc)
{
	if (u->compare)
		return fi_compare_atomic(r->ep, &state->value, 1, desc, &state->compare, desc,
					 &state->old, desc, r->peer, r->at, r->key, u->type,
					 u->fi_op, &state->tag);
	if (u->result)
		return fi_fetch_atomic(r->ep, &state->value, 1, desc, &state->old, desc,
				       r->peer, r->at, r->key, u->type, u->fi_op, &state->tag);
	return fi_atomic(r->ep, &state->value, 1, desc, r->peer, r->at, r->key, u->type,
			 u->fi_op, &state->tag);
}

static int begin(struct weft_btl_ctx *ctx, const struct update *u, struct weft_btl_op *op)
{
	struct btl_state *state = btl_state(op);
	struct iovec own = { &state->value, 3 * sizeof(state->value) };
	uint32_t len = type_len(u->type);
	struct btl_reach reach;
	void *desc;
	ssize_t ret;

	if (!len)
		return -FI_EOPNOTSUPP;
	if (u->to->addr % len)
		return -FI_EINVAL;
	ret = btl_reach_get(ctx, u->to, len,
			    u->result || u->compare ? FI_REMOTE_READ | FI_REMOTE_WRITE
						    : FI_REMOTE_WRITE,
			    &reach);
	if (!ret)
		ret = btl_local_get(ctx, reach.device, &own, NULL, &state->local, &desc);
	if (ret)
		return (int)ret;
	btl_op_prepare(op);
	state->result = u->result;
	state->result_len = u->result ? len : 0;
	memcpy(&state->value, u->operand, len);
	if (u->compare)
		memcpy(&state->compare, u->compare, len);
	ret = call(&reach, u, state, desc);
	return btl_op_begun(ctx, op, reach.route, ret);
}

int weft_btl_atomic(struct weft_btl_ctx *ctx, const struct weft_btl_target *to, enum fi_op fi_op,
		    enum fi_datatype type, const void *operand, struct weft_btl_op *op)
{
	struct update u = { .to = to, .fi_op = fi_op, .type = type, .operand = operand };

	return is_known(fi_op) ? begin(ctx, &u, op) : -FI_EOPNOTSUPP;
}

int weft_btl_fetch_atomic(struct weft_btl_ctx *ctx, const struct weft_btl_target *to,
			  enum fi_op fi_op, enum fi_datatype type, const void *operand,
			  void *result, struct weft_btl_op *op)
{
	struct update u = { to, fi_op, type, operand, NULL, result };

	if (!result)
		return weft_btl_atomic(ctx, to, fi_op, type, operand, op);
	return is_known(fi_op) ? begin(ctx, &u, op) : -FI_EOPNOTSUPP;
}

int weft_btl_compare_swap(struct weft_btl_ctx *ctx, const struct weft_btl_target *to,
			  enum fi_datatype type, const void *compare, const void *value,
			  void *result, struct weft_btl_op *op)
{
	struct update u = { to, FI_CSWAP, type, value, compare, result };

	return begin(ctx, &u, op);
}
