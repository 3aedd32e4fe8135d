/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registering, putting, getting, atomics. Called by Open MPI, on any of its threads.
 *
 * osc/rdma of Open MPI 4.1 names no endpoint, or no handle, for memory of its own process: the
 * endpoint is this process's then, and the memory is registered for the one operation. It also
 * takes a result at once where it has named no place for it, so that no operation here ends within
 * its call.
 */
#include "btl_weft.h"
#include <stdlib.h>
#include <string.h>
#include "rdma/fi_errno.h"

/* Bytes of the largest value of an atomic. */
#define VALUE_LEN 8

static mca_btl_base_registration_handle_t *register_mem(mca_btl_base_module_t *base,
							struct mca_btl_base_endpoint_t *endpoint,
							void *addr, size_t len, uint32_t flags)
{
	mca_btl_base_registration_handle_t *handle = calloc(1, sizeof(*handle));
	struct btl_weft_module *module = btl_weft_module_of(base);
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
	struct btl_weft_module *module = btl_weft_module_of(base);
	int ret;

	OPAL_THREAD_LOCK(&module->lock);
	ret = btl_weft_deregister(module, handle);
	OPAL_THREAD_UNLOCK(&module->lock);
	return btl_weft_error(ret);
}

/*
 * struct request - an operation as Open MPI asks for it
 * @begin: begins it, with the module's lock held
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

/*
 * struct btl_weft_rdma - an operation under way
 * @next:   in the module's list of free ones
 * @handle: the target's; the caller's may change before the device takes the operation
 */
struct btl_weft_rdma {
	struct btl_weft_op op;
	struct btl_weft_rdma *next;
	struct request r;
	unsigned char handle[WEFT_BTL_HANDLE_MAX];
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

static int begin(struct btl_weft_module *module, struct btl_weft_op *op)
{
	struct btl_weft_rdma *rdma = (struct btl_weft_rdma *)op;
	struct weft_btl_target to = {
		.peer = op->endpoint->peer,
		.handle = rdma->handle,
		.addr = rdma->r.remote_address,
	};

	return rdma->r.begin(module->ctx, &rdma->r, &to, &op->op);
}

static void give(struct btl_weft_module *module, struct btl_weft_op *op)
{
	struct btl_weft_rdma *rdma = (struct btl_weft_rdma *)op;

	rdma->next = module->rdma;
	module->rdma = rdma;
}

static void destroy(struct btl_weft_op *op)
{
	free(op);
}

static void end(struct btl_weft_module *module, struct btl_weft_op *op)
{
	struct btl_weft_rdma *rdma = (struct btl_weft_rdma *)op;
	int status = btl_weft_error(op->op.status);
	struct request r = rdma->r;

	OPAL_THREAD_LOCK(&module->lock);
	btl_weft_give_locked(module, op);
	if (r.own)
		btl_weft_deregister(module, r.own);
	OPAL_THREAD_UNLOCK(&module->lock);
	if (r.cbfunc)
		r.cbfunc(&module->super, r.endpoint, r.local_address, r.local_handle,
			 r.cbcontext, r.cbdata, status);
}

static struct btl_weft_rdma *take_locked(struct btl_weft_module *module)
{
	struct btl_weft_rdma *rdma = module->rdma;

	if (!rdma) {
		rdma = calloc(1, sizeof(*rdma));
		if (rdma) {
			rdma->op.begin = begin;
			rdma->op.end = end;
			rdma->op.give = give;
			rdma->op.destroy = destroy;
			btl_weft_add_locked(module, &rdma->op);
		}
		return rdma;
	}
	module->rdma = rdma->next;
	return rdma;
}

static int start_locked(struct btl_weft_module *module, const struct request *r)
{
	struct btl_weft_rdma *rdma = take_locked(module);
	int ret;

	if (!rdma)
		return -FI_ENOMEM;
	rdma->op.endpoint = r->endpoint ? r->endpoint : &module->self;
	rdma->r = *r;
	memcpy(rdma->handle, r->remote_handle->bytes, sizeof(rdma->handle));
	ret = btl_weft_begin_locked(module, &rdma->op);
	if (ret)
		btl_weft_give_locked(module, &rdma->op);
	return ret;
}

static int start(mca_btl_base_module_t *base, struct request *r)
{
	struct btl_weft_module *module = btl_weft_module_of(base);
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
	ret = start_locked(module, r);
	OPAL_THREAD_UNLOCK(&module->lock);
	if (ret && r->own)
		deregister_mem(base, r->own);
	if (ret == -FI_EAGAIN)
		btl_weft_progress();
	return btl_weft_error(ret);
}

static int put(mca_btl_base_module_t *base, struct mca_btl_base_endpoint_t *endpoint,
	       void *local_address, uint64_t remote_address,
	       mca_btl_base_registration_handle_t *local_handle,
	       mca_btl_base_registration_handle_t *remote_handle, size_t len, int flags,
	       int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
	       void *cbdata)
{
	struct request r = { .begin = begin_put,
			     .endpoint = endpoint,
			     .remote_address = remote_address,
			     .remote_handle = remote_handle,
			     .local_address = local_address,
			     .local_handle = local_handle,
			     .len = len,
			     .cbfunc = cbfunc,
			     .cbcontext = cbcontext,
			     .cbdata = cbdata };

	return start(base, &r);
}

static int get(mca_btl_base_module_t *base, struct mca_btl_base_endpoint_t *endpoint,
	       void *local_address, uint64_t remote_address,
	       mca_btl_base_registration_handle_t *local_handle,
	       mca_btl_base_registration_handle_t *remote_handle, size_t len, int flags,
	       int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
	       void *cbdata)
{
	struct request r = { .begin = begin_get,
			     .endpoint = endpoint,
			     .remote_address = remote_address,
			     .remote_handle = remote_handle,
			     .local_address = local_address,
			     .local_handle = local_handle,
			     .len = len,
			     .cbfunc = cbfunc,
			     .cbcontext = cbcontext,
			     .cbdata = cbdata };

	return start(base, &r);
}

/* Open MPI's atomics: what it calls them, OFI's word, and how a module says that it has one. */
static const struct {
	mca_btl_base_atomic_op_t op; /* 0: compare and swap, which has a call of its own */
	enum fi_op fi_op;
	uint32_t flag;
} atomics[] = {
	{ MCA_BTL_ATOMIC_ADD, FI_SUM, MCA_BTL_ATOMIC_SUPPORTS_ADD },
	{ MCA_BTL_ATOMIC_AND, FI_BAND, MCA_BTL_ATOMIC_SUPPORTS_AND },
	{ MCA_BTL_ATOMIC_OR, FI_BOR, MCA_BTL_ATOMIC_SUPPORTS_OR },
	{ MCA_BTL_ATOMIC_XOR, FI_BXOR, MCA_BTL_ATOMIC_SUPPORTS_XOR },
	{ MCA_BTL_ATOMIC_SWAP, FI_ATOMIC_WRITE, MCA_BTL_ATOMIC_SUPPORTS_SWAP },
	{ MCA_BTL_ATOMIC_MIN, FI_MIN, MCA_BTL_ATOMIC_SUPPORTS_MIN },
	{ MCA_BTL_ATOMIC_MAX, FI_MAX, MCA_BTL_ATOMIC_SUPPORTS_MAX },
	{ 0, FI_CSWAP, MCA_BTL_ATOMIC_SUPPORTS_CSWAP },
};

#define ATOMICS (sizeof(atomics) / sizeof(atomics[0]))

/* OFI's word for an operation of Open MPI's; -1: there is none. */
static int fi_op_of(mca_btl_base_atomic_op_t op)
{
	for (size_t i = 0; i < ATOMICS; i++)
		if (op && atomics[i].op == op)
			return (int)atomics[i].fi_op;
	return -1;
}

/* Open MPI's integers have signs, which only minimum and maximum see. */
static enum fi_datatype type_of(int flags)
{
	bool narrow = flags & MCA_BTL_ATOMIC_FLAG_32BIT;

	if (flags & MCA_BTL_ATOMIC_FLAG_FLOAT)
		return narrow ? FI_FLOAT : FI_DOUBLE;
	return narrow ? FI_INT32 : FI_INT64;
}

static int atomic_start(mca_btl_base_module_t *base, struct request *r,
			mca_btl_base_atomic_op_t op, int flags)
{
	int fi_op = fi_op_of(op);

	if (fi_op < 0)
		return OPAL_ERR_NOT_AVAILABLE;
	r->begin = begin_atomic;
	r->fi_op = (enum fi_op)fi_op;
	r->type = type_of(flags);
	return start(base, r);
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

	return atomic_start(base, &r, op, flags);
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

	return atomic_start(base, &r, op, flags);
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

	return start(base, &r);
}

/* What a module can do with all its types; 32 bits and 64. */
static uint32_t atomic_flags(const struct weft_btl *btl)
{
	uint32_t flags = MCA_BTL_ATOMIC_SUPPORTS_GLOB;

	for (size_t i = 0; i < ATOMICS; i++)
		if (weft_btl_has_atomic(btl, atomics[i].fi_op, FI_INT64))
			flags |= atomics[i].flag;
	if (weft_btl_has_atomic(btl, FI_SUM, FI_INT32) &&
	    weft_btl_has_atomic(btl, FI_CSWAP, FI_INT32))
		flags |= MCA_BTL_ATOMIC_SUPPORTS_32BIT;
	if (weft_btl_has_atomic(btl, FI_SUM, FI_DOUBLE) &&
	    weft_btl_has_atomic(btl, FI_MIN, FI_DOUBLE) &&
	    weft_btl_has_atomic(btl, FI_MAX, FI_DOUBLE))
		flags |= MCA_BTL_ATOMIC_SUPPORTS_FLOAT;
	return flags;
}

void btl_weft_rdma_open(struct btl_weft_module *module)
{
	mca_btl_base_module_t *m = &module->super;

	m->btl_atomic_flags = atomic_flags(module->btl);
	if (m->btl_flags & MCA_BTL_FLAGS_RDMA)
		m->btl_flags |= BTL_WEFT_FLAGS_DONE;
}

void btl_weft_rdma_describe(mca_btl_base_module_t *m)
{
	m->btl_flags |= MCA_BTL_FLAGS_RDMA | MCA_BTL_FLAGS_ATOMIC_OPS |
			MCA_BTL_FLAGS_ATOMIC_FOPS | MCA_BTL_FLAGS_RDMA_FLUSH;
	m->btl_atomic_flags = MCA_BTL_ATOMIC_SUPPORTS_32BIT | MCA_BTL_ATOMIC_SUPPORTS_FLOAT |
			      MCA_BTL_ATOMIC_SUPPORTS_GLOB;
	for (size_t i = 0; i < ATOMICS; i++)
		m->btl_atomic_flags |= atomics[i].flag;
	m->btl_registration_handle_size = WEFT_BTL_HANDLE_MAX;
	m->btl_get_limit = m->btl_put_limit = SIZE_MAX;
	m->btl_get_local_registration_threshold = SIZE_MAX;
	m->btl_put_local_registration_threshold = SIZE_MAX;
	m->btl_put = put;
	m->btl_get = get;
	m->btl_atomic_op = atomic_op;
	m->btl_atomic_fop = atomic_fop;
	m->btl_atomic_cswap = atomic_cswap;
	m->btl_register_mem = register_mem;
	m->btl_deregister_mem = deregister_mem;
	m->btl_flush = btl_weft_flush;
}
