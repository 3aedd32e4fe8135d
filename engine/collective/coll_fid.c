/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls of struct fi_ops_collective, and fi_query_collective. Each call holds the domain.
 *
 * Counts are elements: all elements of a broadcast and a reduction; those of one member in an
 * all-gather, an all-to-all, a scatter and a gather. A reduce-scatter divides the elements evenly
 * in the order of ranks; the first members get one more if there is a remainder. Input and result
 * may be the same memory.
 *
 * A completion goes to the transmit queue, or to the receive queue if there is none, and counts as
 * FI_WRITE, since a collective stands for atomic operations.
 *
 * Source: fi_collective(3).
 */
#include <rdma/fi_errno.h>
#include "atomics.h"
#include "coll.h"
#include "guard.h"
#include "refuse.h"

#define COLL_FLAGS                                                             \
	(FI_COMPLETION | FI_MORE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
	 FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE | FI_COLLECTIVE)

/* Properties of each collective. */
static const struct coll_what {
	uint64_t set_flag; /* of ENGINE_SET_COLLECTIVES */
	bool data, reduces, rooted;
	int (*setup)(struct coll_op *op);
} coll_whats[] = {
	[FI_BARRIER] = { FI_BARRIER_SET, false, false, false, coll_barrier },
	[FI_BROADCAST] = { FI_BROADCAST_SET, true, false, true, coll_broadcast },
	[FI_ALLTOALL] = { FI_ALLTOALL_SET, true, false, false, coll_alltoall },
	[FI_ALLREDUCE] = { FI_ALLREDUCE_SET, true, true, false, coll_allreduce },
	[FI_ALLGATHER] = { FI_ALLGATHER_SET, true, false, false, coll_allgather },
	[FI_REDUCE_SCATTER] = { FI_REDUCE_SCATTER_SET, true, true, false, coll_reduce_scatter },
	[FI_REDUCE] = { FI_REDUCE_SET, true, true, true, coll_reduce },
	[FI_SCATTER] = { FI_SCATTER_SET, true, false, true, coll_scatter },
	[FI_GATHER] = { FI_GATHER_SET, true, false, true, coll_gather },
};

#define COLL_KINDS (sizeof(coll_whats) / sizeof(coll_whats[0]))

/* Returns true if the collective supports the operation on such elements. */
static bool coll_valid(const struct coll_what *what, enum fi_datatype datatype, enum fi_op op)
{
	if (!what->data)
		return true;
	if (!atomics_size(datatype))
		return false;
	return !what->reduces || (op <= FI_BXOR && atomics_valid(ATOMICS_BASE, datatype, op));
}

int engine_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
			    struct fi_collective_attr *attr, uint64_t flags)
{
	size_t size;

	/* FI_SCATTER as a flag of the query means the reduce-scatter. */
	if (flags && flags != FI_SCATTER)
		return -FI_EBADFLAGS;
	if (!attr)
		return -FI_EINVAL;
	if (flags)
		coll = FI_REDUCE_SCATTER;
	if ((unsigned)coll >= COLL_KINDS ||
	    !coll_valid(&coll_whats[coll], attr->datatype, attr->op))
		return -FI_EOPNOTSUPP;
	size = coll_whats[coll].data ? atomics_size(attr->datatype) : 0;
	attr->datatype_attr.size = size;
	attr->datatype_attr.count = size ? COLL_LEN_MAX / size : 0;
	attr->max_members = COLL_MEMBERS_MAX;
	attr->mode = 0;
	return 0;
}

/* Calls */

/* The parameters of a call. */
struct coll_call {
	enum fi_collective_op kind;
	fi_addr_t coll_addr, root_addr;
	const void *in;
	void *out;
	size_t cnt;
	enum fi_datatype datatype;
	enum fi_op op;
	uint64_t flags;
	void *context;
};

/* Returns true if the call has the buffers that this member sends from and receives into. */
static bool coll_has_buffers(const struct coll_what *what, const struct coll_call *call,
			     bool root)
{
	bool in = true, out = true;

	if (!what->data || !call->cnt)
		return true;
	if (call->kind == FI_BROADCAST)
		return call->out;
	if (call->kind == FI_SCATTER)
		in = root;
	else if (what->rooted)
		out = root;
	return (!in || call->in) && (!out || call->out);
}

static int coll_check(const struct engine_group *group, const struct coll_call *call,
		      uint32_t *root)
{
	const struct coll_what *what = &coll_whats[call->kind];

	*root = 0;
	if (call->flags & ~COLL_FLAGS)
		return -FI_EBADFLAGS;
	if (!group)
		return -FI_EINVAL;
	if (!group->joined)
		return -FI_EOPBADSTATE;
	if (!(group->collectives & what->set_flag) ||
	    !coll_valid(what, call->datatype, call->op))
		return -FI_EOPNOTSUPP;
	if (what->data && call->cnt > COLL_LEN_MAX / atomics_size(call->datatype))
		return -FI_EMSGSIZE;
	if (what->rooted)
		while (*root < group->cnt && group->addrs[*root] != call->root_addr)
			++*root;
	if (*root == group->cnt)
		return -FI_EINVAL;
	return coll_has_buffers(what, call, *root == group->rank) ? 0 : -FI_EINVAL;
}

static ssize_t coll_call_held(struct engine_ctx *ctx, const struct coll_call *call)
{
	struct engine_ep *ep = ctx->ep;
	struct engine_group *group = engine_group_of(ep, call->coll_addr);
	struct coll_op *op;
	uint32_t root;
	int ret;

	ret = coll_check(group, call, &root);
	if (ret)
		return ret;
	op = coll_op_new(call->context);
	if (!op)
		return -FI_EAGAIN;
	op->group = group;
	op->kind = call->kind;
	op->in = call->in;
	op->out = call->out;
	op->size = coll_whats[call->kind].data ? atomics_size(call->datatype) : 0;
	op->cnt = op->size ? call->cnt : 0;
	op->datatype = call->datatype;
	op->op = call->op;
	op->root = root;
	op->tx = ctx->tx;
	op->rx = ep->rx0;
	if (coll_whats[call->kind].setup(op)) {
		coll_op_free(op);
		return -FI_EAGAIN;
	}
	engine_coll_begin(group, op);
	return 0;
}

static ssize_t coll_call(struct fid_ep *fid, const struct coll_call *call)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	ssize_t ret;

	engine_use(ctx->domain);
	ret = coll_call_held(ctx, call);
	engine_unuse(ctx->domain);
	if (ret && ret != -FI_EAGAIN)
		engine_refuse(
			ctx->domain->family, FI_LOG_EP_DATA, (int)ret, "a collective",
			"it takes a group that has been joined, an operation and a type that "
			"fi_query_collective has, and buffers for what this member gives and gets");
	return ret;
}

static ssize_t coll_call_barrier2(struct fid_ep *ep, fi_addr_t coll_addr, uint64_t flags,
				  void *context)
{
	return coll_call(ep, &(struct coll_call){ .kind = FI_BARRIER,
						  .coll_addr = coll_addr,
						  .flags = flags,
						  .context = context });
}

static ssize_t coll_call_barrier(struct fid_ep *ep, fi_addr_t coll_addr, void *context)
{
	return coll_call_barrier2(ep, coll_addr, 0, context);
}

static ssize_t coll_call_broadcast(struct fid_ep *ep, void *buf, size_t cnt, void *desc,
				   fi_addr_t coll_addr, fi_addr_t root_addr,
				   enum fi_datatype datatype, uint64_t flags, void *context)
{
	return coll_call(ep, &(struct coll_call){ FI_BROADCAST, coll_addr, root_addr, buf, buf,
						  cnt, datatype, FI_NOOP, flags, context });
}

static ssize_t coll_call_alltoall(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
				  void *result, void *result_desc, fi_addr_t coll_addr,
				  enum fi_datatype datatype, uint64_t flags, void *context)
{
	return coll_call(ep,
			 &(struct coll_call){ FI_ALLTOALL, coll_addr, FI_ADDR_UNSPEC, buf,
					      result, cnt, datatype, FI_NOOP, flags, context });
}

static ssize_t coll_call_allreduce(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
				   void *result, void *result_desc, fi_addr_t coll_addr,
				   enum fi_datatype datatype, enum fi_op op, uint64_t flags,
				   void *context)
{
	return coll_call(ep, &(struct coll_call){ FI_ALLREDUCE, coll_addr, FI_ADDR_UNSPEC, buf,
						  result, cnt, datatype, op, flags, context });
}

static ssize_t coll_call_allgather(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
				   void *result, void *result_desc, fi_addr_t coll_addr,
				   enum fi_datatype datatype, uint64_t flags, void *context)
{
	return coll_call(ep,
			 &(struct coll_call){ FI_ALLGATHER, coll_addr, FI_ADDR_UNSPEC, buf,
					      result, cnt, datatype, FI_NOOP, flags, context });
}

static ssize_t coll_call_reduce_scatter(struct fid_ep *ep, const void *buf, size_t cnt,
					void *desc, void *result, void *result_desc,
					fi_addr_t coll_addr, enum fi_datatype datatype,
					enum fi_op op, uint64_t flags, void *context)
{
	return coll_call(ep,
			 &(struct coll_call){ FI_REDUCE_SCATTER, coll_addr, FI_ADDR_UNSPEC, buf,
					      result, cnt, datatype, op, flags, context });
}

static ssize_t coll_call_reduce(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
				void *result, void *result_desc, fi_addr_t coll_addr,
				fi_addr_t root_addr, enum fi_datatype datatype, enum fi_op op,
				uint64_t flags, void *context)
{
	return coll_call(ep, &(struct coll_call){ FI_REDUCE, coll_addr, root_addr, buf, result,
						  cnt, datatype, op, flags, context });
}

static ssize_t coll_call_scatter(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
				 void *result, void *result_desc, fi_addr_t coll_addr,
				 fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags,
				 void *context)
{
	return coll_call(ep, &(struct coll_call){ FI_SCATTER, coll_addr, root_addr, buf, result,
						  cnt, datatype, FI_NOOP, flags, context });
}

static ssize_t coll_call_gather(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
				void *result, void *result_desc, fi_addr_t coll_addr,
				fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags,
				void *context)
{
	return coll_call(ep, &(struct coll_call){ FI_GATHER, coll_addr, root_addr, buf, result,
						  cnt, datatype, FI_NOOP, flags, context });
}

static ssize_t coll_call_msg(struct fid_ep *ep, const struct fi_msg_collective *msg,
			     struct fi_ioc *resultv, void **result_desc, size_t result_cnt,
			     uint64_t flags)
{
	struct coll_call call = { .flags = flags };

	if (!msg || (unsigned)msg->coll >= COLL_KINDS || (msg->iov_count && !msg->msg_iov) ||
	    (result_cnt && !resultv))
		return -FI_EINVAL;
	if (msg->iov_count > 1 || result_cnt > 1)
		return -FI_EMSGSIZE;
	call.kind = msg->coll;
	call.coll_addr = msg->coll_addr;
	call.root_addr = msg->root_addr;
	call.datatype = msg->datatype;
	call.op = msg->op;
	call.context = msg->context;
	call.in = msg->iov_count ? msg->msg_iov->addr : NULL;
	call.out = result_cnt ? resultv->addr : NULL;
	call.cnt = msg->iov_count ? msg->msg_iov->count : result_cnt ? resultv->count : 0;
	if (call.kind == FI_BROADCAST)
		call.out = msg->iov_count ? msg->msg_iov->addr : call.out;
	return coll_call(ep, &call);
}

static struct fi_ops_collective engine_coll_ops = {
	.size = sizeof(struct fi_ops_collective),
	.barrier = coll_call_barrier,
	.broadcast = coll_call_broadcast,
	.alltoall = coll_call_alltoall,
	.allreduce = coll_call_allreduce,
	.allgather = coll_call_allgather,
	.reduce_scatter = coll_call_reduce_scatter,
	.reduce = coll_call_reduce,
	.scatter = coll_call_scatter,
	.gather = coll_call_gather,
	.msg = coll_call_msg,
	.barrier2 = coll_call_barrier2,
};

struct fi_ops_collective *engine_coll_calls(void)
{
	return &engine_coll_ops;
}
