/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registering, putting, getting, atomics, flushing. Called by Open MPI, on any of its threads.
 *
 * osc/rdma of Open MPI 4.1 names no endpoint, or no handle, for memory of its own process: the endpoint is this
 * process's then, and the memory is registered for the one operation. It also takes a result at once where it has
 * named no place for it, so that no operation here ends within its call.
 */
#include "btl_weft.h"
#include <stdlib.h>
#include <string.h>
#include "rdma/fi_errno.h"

/* Ended operations that are taken at once. */
#define ENDED_MAX 16

/* Bytes of the largest value that is updated. */
#define VALUE_LEN 8

static struct btl_weft_module *module_of(mca_btl_base_module_t *base)
{
	return (struct btl_weft_module *)base;
}

static mca_btl_base_registration_handle_t *register_mem(mca_btl_base_module_t *base,
							struct mca_btl_base_endpoint_t *endpoint,
							void *addr, size_t len, uint32_t flags)
{
	mca_btl_base_registration_handle_t *handle = calloc(1, sizeof(*handle));
	struct btl_weft_module *module = module_of(base);
	uint64_t access = 0;

	if (flags & (MCA_BTL_REG_FLAG_REMOTE_READ | MCA_BTL_REG_FLAG_REMOTE_ATOMIC))
		access |= FI_REMOTE_READ;
	if (flags & (MCA_BTL_REG_FLAG_REMOTE_WRITE | MCA_BTL_REG_FLAG_REMOTE_ATOMIC))
		access |= FI_REMOTE_WRITE;
	if (!handle || weft_btl_mem_open(module->btl, addr, len, access, &handle->mem)) {
		free(handle);
		return NULL;
	}
	weft_btl_mem_handle(handle->mem, handle->bytes);
	OBJ_CONSTRUCT(&handle->item, opal_list_item_t);
	OPAL_THREAD_LOCK(&module->lock);
	opal_list_append(&module->handles, &handle->item);
	OPAL_THREAD_UNLOCK(&module->lock);
	return handle;
}

int btl_weft_deregister(struct btl_weft_module *module,
			mca_btl_base_registration_handle_t *handle)
{
	int ret = weft_btl_mem_close(handle->mem);

	if (ret)
		return ret;
	opal_list_remove_item(&module->handles, &handle->item);
	OBJ_DESTRUCT(&handle->item);
	free(handle);
	return 0;
}

static int deregister_mem(mca_btl_base_module_t *base,
			  mca_btl_base_registration_handle_t *handle)
{
	struct btl_weft_module *module = module_of(base);
	int ret;

	OPAL_THREAD_LOCK(&module->lock);
	ret = btl_weft_deregister(module, handle);
	OPAL_THREAD_UNLOCK(&module->lock);
	return btl_weft_error(ret);
}

/*
 * struct request - an operation as Open MPI asks for it
 * @begin: begins it, with the context held
 * @own:   a registration of the target for this operation alone, or NULL
 */
struct request {
	int (*begin)(struct weft_btl_ctx *ctx, const struct request *r,
		     const struct weft_btl_target *to, struct weft_btl_op *op);
	struct mca_btl_base_endpoint_t *endpoint;
	uint64_t remote_address;
	mca_btl_base_registration_handle_t *remote_handle;
	void *local_address;
	mca_btl_base_registration_handle_t *local_handle;
	size_t len;
	enum fi_op fi_op;
	enum fi_datatype type;
	uint64_t operand, compare;
	mca_btl_base_registration_handle_t *own;
	mca_btl_base_rdma_completion_fn_t cbfunc;
	void *cbcontext, *cbdata;
};

static struct weft_btl_mem *local_mem(const struct request *r)
{
	return r->local_handle ? r->local_handle->mem : NULL;
}

static int begin_put(struct weft_btl_ctx *ctx, const struct request *r,
		     const struct weft_btl_target *to, struct weft_btl_op *op)
{
	return weft_btl_put(ctx, to, r->local_address, r->len, local_mem(r), op);
}

static int begin_get(struct weft_btl_ctx *ctx, const struct request *r,
		     const struct weft_btl_target *to, struct weft_btl_op *op)
{
	return weft_btl_get(ctx, to, r->local_address, r->len, local_mem(r), op);
}

static int begin_atomic(struct weft_btl_ctx *ctx, const struct request *r,
			const struct weft_btl_target *to, struct weft_btl_op *op)
{
	return weft_btl_fetch_atomic(ctx, to, r->fi_op, r->type, &r->operand, r->local_address,
				     op);
}

static int begin_cswap(struct weft_btl_ctx *ctx, const struct request *r,
		       const struct weft_btl_target *to, struct weft_btl_op *op)
{
	return weft_btl_compare_swap(ctx, to, r->type, &r->compare, &r->operand,
				     r->local_address, op);
}

static struct btl_weft_op *op_take(struct btl_weft_module *module)
{
	struct btl_weft_op *op = module->free;

	if (!op)
		return calloc(1, sizeof(*op));
	module->free = op->next;
	return op;
}

static void op_give(struct btl_weft_module *module, struct btl_weft_op *op)
{
	op->next = module->free;
	module->free = op;
}

static int begin_locked(struct btl_weft_module *module, const struct request *r)
{
	struct weft_btl_target to = {
		.peer = r->endpoint ? r->endpoint->peer : module->self.peer,
		.handle = r->remote_handle->bytes,
		.addr = r->remote_address,
	};
	struct btl_weft_op *op = op_take(module);
	int ret;

	if (!op)
		return -FI_ENOMEM;
	op->op.done = NULL;
	op->own = r->own;
	op->endpoint = r->endpoint;
	op->local_address = r->local_address;
	op->local_handle = r->local_handle;
	op->cbfunc = r->cbfunc;
	op->cbcontext = r->cbcontext;
	op->cbdata = r->cbdata;
	ret = r->begin(module->ctx, r, &to, &op->op);
	if (ret)
		op_give(module, op);
	return ret;
}

static int begin(mca_btl_base_module_t *base, struct request *r)
{
	struct btl_weft_module *module = module_of(base);
	int ret;

	if (!r->remote_handle) {
		r->own = register_mem(base, NULL, (void *)(uintptr_t)r->remote_address,
				      r->len ? r->len : VALUE_LEN,
				      MCA_BTL_REG_FLAG_REMOTE_ATOMIC);
		if (!r->own)
			return OPAL_ERR_OUT_OF_RESOURCE;
		r->remote_handle = r->own;
	}
	OPAL_THREAD_LOCK(&module->lock);
	ret = begin_locked(module, r);
	OPAL_THREAD_UNLOCK(&module->lock);
	if (ret && r->own)
		deregister_mem(base, r->own);
	if (ret == -FI_EAGAIN)
		btl_weft_progress();
	return btl_weft_error(ret);
}

int btl_weft_progress(void)
{
	struct btl_weft_module *module = mca_btl_weft_component.module;
	struct weft_btl_op *ended[ENDED_MAX];
	size_t cnt;

	if (!module)
		return 0;
	OPAL_THREAD_LOCK(&module->lock);
	cnt = weft_btl_poll(module->ctx, ended, ENDED_MAX);
	OPAL_THREAD_UNLOCK(&module->lock);
	for (size_t i = 0; i < cnt; i++) {
		struct btl_weft_op op = *(struct btl_weft_op *)ended[i];

		OPAL_THREAD_LOCK(&module->lock);
		op_give(module, (struct btl_weft_op *)ended[i]);
		OPAL_THREAD_UNLOCK(&module->lock);
		if (op.own)
			deregister_mem(&module->super, op.own);
		if (op.cbfunc)
			op.cbfunc(&module->super, op.endpoint, op.local_address, op.local_handle,
				  op.cbcontext, op.cbdata, btl_weft_error(op.op.status));
	}
	return (int)cnt;
}

static int put(mca_btl_base_module_t *base, struct mca_btl_base_endpoint_t *endpoint,
	       void *local_address, uint64_t remote_address,
	       mca_btl_base_registration_handle_t *local_handle,
	       mca_btl_base_registration_handle_t *remote_handle, size_t len, int flags,
	       int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
	       void *cbdata)
{
	struct request r = { begin_put,	      endpoint,		remote_address,
			     remote_handle,   local_address,	local_handle,
			     .len = len,      .cbfunc = cbfunc, .cbcontext = cbcontext,
			     .cbdata = cbdata };

	return begin(base, &r);
}

static int get(mca_btl_base_module_t *base, struct mca_btl_base_endpoint_t *endpoint,
	       void *local_address, uint64_t remote_address,
	       mca_btl_base_registration_handle_t *local_handle,
	       mca_btl_base_registration_handle_t *remote_handle, size_t len, int flags,
	       int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
	       void *cbdata)
{
	struct request r = { begin_get,	      endpoint,		remote_address,
			     remote_handle,   local_address,	local_handle,
			     .len = len,      .cbfunc = cbfunc, .cbcontext = cbcontext,
			     .cbdata = cbdata };

	return begin(base, &r);
}

/* OFI's word for an operation of Open MPI's; -1: there is none. */
static int fi_op_of(mca_btl_base_atomic_op_t op)
{
	switch (op) {
	case MCA_BTL_ATOMIC_ADD:
		return FI_SUM;
	case MCA_BTL_ATOMIC_AND:
		return FI_BAND;
	case MCA_BTL_ATOMIC_OR:
		return FI_BOR;
	case MCA_BTL_ATOMIC_XOR:
		return FI_BXOR;
	case MCA_BTL_ATOMIC_SWAP:
		return FI_ATOMIC_WRITE;
	case MCA_BTL_ATOMIC_MIN:
		return FI_MIN;
	case MCA_BTL_ATOMIC_MAX:
		return FI_MAX;
	default:
		return -1;
	}
}

/* Open MPI's integers have signs, which only minimum and maximum see. */
static enum fi_datatype type_of(int flags)
{
	bool narrow = flags & MCA_BTL_ATOMIC_FLAG_32BIT;

	if (flags & MCA_BTL_ATOMIC_FLAG_FLOAT)
		return narrow ? FI_FLOAT : FI_DOUBLE;
	return narrow ? FI_INT32 : FI_INT64;
}

static int update(mca_btl_base_module_t *base, struct request *r, mca_btl_base_atomic_op_t op,
		  int flags)
{
	int fi_op = fi_op_of(op);

	if (fi_op < 0)
		return OPAL_ERR_NOT_AVAILABLE;
	r->begin = begin_atomic;
	r->fi_op = (enum fi_op)fi_op;
	r->type = type_of(flags);
	return begin(base, r);
}

static int atomic_op(mca_btl_base_module_t *base, struct mca_btl_base_endpoint_t *endpoint,
		     uint64_t remote_address, mca_btl_base_registration_handle_t *remote_handle,
		     mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
		     mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
	struct request r = { .endpoint = endpoint,
			     .remote_address = remote_address,
			     .remote_handle = remote_handle,
			     .operand = operand,
			     .cbfunc = cbfunc,
			     .cbcontext = cbcontext,
			     .cbdata = cbdata };

	return update(base, &r, op, flags);
}

static int atomic_fop(mca_btl_base_module_t *base, struct mca_btl_base_endpoint_t *endpoint,
		      void *local_address, uint64_t remote_address,
		      mca_btl_base_registration_handle_t *local_handle,
		      mca_btl_base_registration_handle_t *remote_handle,
		      mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
		      mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
	struct request r = { .endpoint = endpoint,
			     .remote_address = remote_address,
			     .remote_handle = remote_handle,
			     .local_address = local_address,
			     .local_handle = local_handle,
			     .operand = operand,
			     .cbfunc = cbfunc,
			     .cbcontext = cbcontext,
			     .cbdata = cbdata };

	return update(base, &r, op, flags);
}

static int atomic_cswap(mca_btl_base_module_t *base, struct mca_btl_base_endpoint_t *endpoint,
			void *local_address, uint64_t remote_address,
			mca_btl_base_registration_handle_t *local_handle,
			mca_btl_base_registration_handle_t *remote_handle, uint64_t compare,
			uint64_t value, int flags, int order,
			mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
	struct request r = { .begin = begin_cswap,
			     .endpoint = endpoint,
			     .remote_address = remote_address,
			     .remote_handle = remote_handle,
			     .local_address = local_address,
			     .local_handle = local_handle,
			     .type = type_of(flags & MCA_BTL_ATOMIC_FLAG_32BIT),
			     .operand = value,
			     .compare = compare,
			     .cbfunc = cbfunc,
			     .cbcontext = cbcontext,
			     .cbdata = cbdata };

	return begin(base, &r);
}

/* What a module can do with all its types; 32 bits and 64. */
static uint32_t atomic_flags(const struct weft_btl *btl)
{
	static const struct {
		enum fi_op fi_op;
		uint32_t flag;
	} ops[] = {
		{ FI_SUM, MCA_BTL_ATOMIC_SUPPORTS_ADD },
		{ FI_BAND, MCA_BTL_ATOMIC_SUPPORTS_AND },
		{ FI_BOR, MCA_BTL_ATOMIC_SUPPORTS_OR },
		{ FI_BXOR, MCA_BTL_ATOMIC_SUPPORTS_XOR },
		{ FI_ATOMIC_WRITE, MCA_BTL_ATOMIC_SUPPORTS_SWAP },
		{ FI_MIN, MCA_BTL_ATOMIC_SUPPORTS_MIN },
		{ FI_MAX, MCA_BTL_ATOMIC_SUPPORTS_MAX },
		{ FI_CSWAP, MCA_BTL_ATOMIC_SUPPORTS_CSWAP },
	};
	uint32_t flags = 0;

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (weft_btl_has_atomic(btl, ops[i].fi_op, FI_INT64))
			flags |= ops[i].flag;
	if (weft_btl_has_atomic(btl, FI_SUM, FI_INT32) &&
	    weft_btl_has_atomic(btl, FI_CSWAP, FI_INT32))
		flags |= MCA_BTL_ATOMIC_SUPPORTS_32BIT;
	if (weft_btl_has_atomic(btl, FI_SUM, FI_DOUBLE) &&
	    weft_btl_has_atomic(btl, FI_MIN, FI_DOUBLE) &&
	    weft_btl_has_atomic(btl, FI_MAX, FI_DOUBLE))
		flags |= MCA_BTL_ATOMIC_SUPPORTS_FLOAT;
	return flags | MCA_BTL_ATOMIC_SUPPORTS_GLOB;
}

static int flush(mca_btl_base_module_t *base, struct mca_btl_base_endpoint_t *endpoint)
{
	struct btl_weft_module *module = module_of(base);
	struct weft_btl_peer *peer = endpoint ? endpoint->peer : NULL;

	OPAL_THREAD_LOCK(&module->lock);
	weft_btl_flush(module->ctx, peer);
	OPAL_THREAD_UNLOCK(&module->lock);
	/* and the callbacks of what it has waited for */
	while (btl_weft_progress())
		;
	return OPAL_SUCCESS;
}

void btl_weft_rdma(mca_btl_base_module_t *m)
{
	const struct weft_btl *btl = module_of(m)->btl;

	m->btl_flags = MCA_BTL_FLAGS_RDMA | MCA_BTL_FLAGS_ATOMIC_OPS |
		       MCA_BTL_FLAGS_ATOMIC_FOPS | MCA_BTL_FLAGS_RDMA_FLUSH;
	m->btl_atomic_flags = atomic_flags(btl);
	m->btl_put = put;
	m->btl_get = get;
	m->btl_atomic_op = atomic_op;
	m->btl_atomic_fop = atomic_fop;
	m->btl_atomic_cswap = atomic_cswap;
	m->btl_register_mem = register_mem;
	m->btl_deregister_mem = deregister_mem;
	m->btl_flush = flush;
}
