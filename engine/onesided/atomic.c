/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The slots of struct fi_ops_atomic, and fi_query_atomic. For callers that serialize. Source:
 * fi_atomic(3).
 */
#include <rdma/fi_errno.h>
#include "access.h"
#include "atomics.h"
#include "refuse.h"
#include "send.h"

/* The arguments of an atomic call with lists. The lengths in its lists are in elements. */
struct atomic_call {
	enum atomics_kind kind;
	enum fi_datatype datatype;
	enum fi_op op;
	const struct fi_ioc *operand, *compare, *result;
	size_t operand_cnt, compare_cnt, result_cnt;
	const struct fi_rma_ioc *target;
	size_t target_cnt;
};

size_t engine_iocs_count(const struct fi_ioc *ioc, size_t cnt)
{
	size_t elements = 0;

	for (size_t i = 0; ioc && i < cnt && i < ENGINE_IOV_MAX; i++)
		if (__builtin_add_overflow(elements, ioc[i].count, &elements))
			return SIZE_MAX;
	return elements;
}

/*
 * Translate a list with lengths in elements to one with lengths in bytes. @size: bytes of an
 * element. Returns the number of elements, or SIZE_MAX if the list is invalid.
 */
static size_t iocs_to_iovs(const struct fi_ioc *ioc, size_t cnt, size_t size, struct iovec *iov)
{
	size_t elements = 0;

	if (cnt > ENGINE_IOV_MAX || (cnt && !ioc))
		return SIZE_MAX;
	for (size_t i = 0; i < cnt; i++) {
		if (ioc[i].count > ENGINE_ATOMIC_MAX || (ioc[i].count && !ioc[i].addr))
			return SIZE_MAX;
		iov[i] = (struct iovec){ ioc[i].addr, ioc[i].count * size };
		elements += ioc[i].count;
	}
	return elements;
}

/*
 * Translate the targets of a call, with lengths in bytes. Returns the number of elements, or 0 if
 * there are none or too many.
 */
static size_t atomic_targets(const struct atomic_call *call, size_t size,
			     struct packet_target *targets)
{
	size_t elements = 0;

	if (!call->target || !call->target_cnt || call->target_cnt > PACKET_TARGET_MAX)
		return 0;
	for (size_t i = 0; i < call->target_cnt; i++) {
		if (call->target[i].count > ENGINE_ATOMIC_MAX)
			return 0;
		targets[i] = (struct packet_target){ call->target[i].addr,
						     call->target[i].count * size,
						     call->target[i].key };
		elements += call->target[i].count;
	}
	return elements * size > ENGINE_ATOMIC_MAX ? 0 : elements;
}

/*
 * Translate the local lists of a call: operands, compare values and results. Each list that the
 * operation uses must have @elements elements. Returns 0 or -FI_EINVAL.
 */
static int atomic_operands(const struct atomic_call *call, size_t size, size_t elements,
			   struct engine_access_room *room)
{
	struct engine_update *update = &room->update;

	if (call->op != FI_ATOMIC_READ &&
	    iocs_to_iovs(call->operand, call->operand_cnt, size, room->iov) != elements)
		return -FI_EINVAL;
	if (call->kind == ATOMICS_COMPARE &&
	    iocs_to_iovs(call->compare, call->compare_cnt, size, update->compare) != elements)
		return -FI_EINVAL;
	if (call->kind != ATOMICS_BASE &&
	    iocs_to_iovs(call->result, call->result_cnt, size, update->result) != elements)
		return -FI_EINVAL;
	return 0;
}

/*
 * Translate an atomic call to an operation that borrows @room. Returns 0, -FI_EOPNOTSUPP or
 * -FI_EINVAL.
 */
static int atomic_prepare(const struct atomic_call *call, struct engine_access *access,
			  struct engine_access_room *room)
{
	size_t size = atomics_element(call->kind, call->datatype, call->op), elements;

	if (!size)
		return -FI_EOPNOTSUPP;
	elements = atomic_targets(call, size, room->targets);
	if (!elements)
		return -FI_EINVAL;
	room->update = (struct engine_update){
		.kind = (uint8_t)call->kind,
		.datatype = (uint8_t)call->datatype,
		.op = (uint8_t)call->op,
		.cnt = (uint32_t)elements,
		.compare_cnt = (uint32_t)call->compare_cnt,
		.result_cnt = (uint32_t)call->result_cnt,
	};
	if (atomic_operands(call, size, elements, room))
		return -FI_EINVAL;
	access->op = PACKET_ATOMIC;
	access->iov = room->iov;
	access->iov_cnt = call->op == FI_ATOMIC_READ ? 0 : call->operand_cnt;
	access->targets = room->targets;
	access->target_cnt = call->target_cnt;
	access->update = &room->update;
	return 0;
}

/* Carry out a call with lists; @access: flags, destination and context are set */
static ssize_t atomic_do(struct engine_ctx *ctx, const struct atomic_call *call,
			 struct engine_access *access)
{
	struct engine_access_room room;
	int ret;

	ret = atomic_prepare(call, access, &room);
	return ret ? engine_refuse_call(ctx, "an atomic operation", ret)
		   : engine_access_call(ctx, access);
}

/*
 * Carry out a call with lists and without flags. The target has as many elements as the operands,
 * or as the results if there are any.
 */
static ssize_t atomic_plain(struct fid_ep *fid, struct atomic_call *call, fi_addr_t dest,
			    uint64_t addr, uint64_t key, void *context)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct fi_rma_ioc target = { .addr = addr, .key = key };
	struct engine_access access = { .flags = engine_access_defaults(ctx),
					.dest = dest,
					.context = context };

	target.count = call->kind == ATOMICS_BASE
			       ? engine_iocs_count(call->operand, call->operand_cnt)
			       : engine_iocs_count(call->result, call->result_cnt);
	call->target = &target;
	call->target_cnt = 1;
	return atomic_do(ctx, call, &access);
}

/* The buffers of an atomic call without lists; those that its kind does not use are NULL. */
struct atomic_buffers {
	const void *operand, *compare;
	void *result;
	/* Number of elements, in each buffer and in the target */
	size_t cnt;
	/* Address and key of the target */
	uint64_t addr, key;
};

/*
 * Carry out a call without lists; calls with lists use atomic_prepare(). @access: flags,
 * destination and context are set
 */
static engine_path ssize_t atomic_one(struct engine_ctx *ctx, enum atomics_kind kind,
				      const struct atomic_buffers *b, enum fi_datatype datatype,
				      enum fi_op op, struct engine_access *access)
{
	size_t size = atomics_element(kind, datatype, op);
	bool read = kind == ATOMICS_FETCH && op == FI_ATOMIC_READ, ok;
	struct iovec iov = { (void *)(uintptr_t)b->operand, b->cnt * size };
	struct packet_target target = { b->addr, b->cnt * size, b->key };
	struct engine_update update;

	ok = b->cnt && b->cnt <= ENGINE_ATOMIC_MAX && target.len <= ENGINE_ATOMIC_MAX &&
	     (read || b->operand) && (kind == ATOMICS_BASE || b->result) &&
	     (kind != ATOMICS_COMPARE || b->compare);
	if (unlikely(!size || !ok))
		return engine_refuse_call(ctx, "an atomic operation",
					  size ? -FI_EINVAL : -FI_EOPNOTSUPP);
	update.kind = (uint8_t)kind;
	update.datatype = (uint8_t)datatype;
	update.op = (uint8_t)op;
	update.cnt = (uint32_t)b->cnt;
	update.compare_cnt = kind == ATOMICS_COMPARE;
	update.result_cnt = kind != ATOMICS_BASE;
	update.compare[0] = (struct iovec){ (void *)(uintptr_t)b->compare, target.len };
	update.result[0] = (struct iovec){ b->result, target.len };
	access->op = PACKET_ATOMIC;
	access->iov = &iov;
	access->iov_cnt = !read;
	access->targets = &target;
	access->target_cnt = 1;
	access->update = &update;
	return engine_access_call(ctx, access);
}

/* Carry out a call without lists and without flags. */
static engine_path ssize_t atomic_one_plain(struct fid_ep *fid, enum atomics_kind kind,
					    const struct atomic_buffers *b, fi_addr_t dest,
					    enum fi_datatype datatype, enum fi_op op,
					    void *context)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_access access = { .flags = engine_access_defaults(ctx),
					.dest = dest,
					.context = context };

	return atomic_one(ctx, kind, b, datatype, op, &access);
}

static ssize_t atomic_writev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
			     size_t cnt, fi_addr_t dest, uint64_t addr, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct atomic_call call = { .kind = ATOMICS_BASE,
				    .datatype = datatype,
				    .op = op,
				    .operand = iov,
				    .operand_cnt = cnt };

	return atomic_plain(fid, &call, dest, addr, key, context);
}

static ssize_t atomic_write(struct fid_ep *fid, const void *buf, size_t cnt, void *desc,
			    fi_addr_t dest, uint64_t addr, uint64_t key,
			    enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct atomic_buffers b = { .operand = buf, .cnt = cnt, .addr = addr, .key = key };

	return atomic_one_plain(fid, ATOMICS_BASE, &b, dest, datatype, op, context);
}

static ssize_t atomic_inject(struct fid_ep *fid, const void *buf, size_t cnt, fi_addr_t dest,
			     uint64_t addr, uint64_t key, enum fi_datatype datatype,
			     enum fi_op op)
{
	struct atomic_buffers b = { .operand = buf, .cnt = cnt, .addr = addr, .key = key };
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_access access = { .flags = engine_access_injects(ctx), .dest = dest };

	return atomic_one(ctx, ATOMICS_BASE, &b, datatype, op, &access);
}

static ssize_t atomic_readwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
				 size_t cnt, struct fi_ioc *resultv, void **result_desc,
				 size_t result_cnt, fi_addr_t dest, uint64_t addr, uint64_t key,
				 enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct atomic_call call = { .kind = ATOMICS_FETCH,
				    .datatype = datatype,
				    .op = op,
				    .operand = iov,
				    .operand_cnt = cnt,
				    .result = resultv,
				    .result_cnt = result_cnt };

	return atomic_plain(fid, &call, dest, addr, key, context);
}

static ssize_t atomic_readwrite(struct fid_ep *fid, const void *buf, size_t cnt, void *desc,
				void *result, void *result_desc, fi_addr_t dest, uint64_t addr,
				uint64_t key, enum fi_datatype datatype, enum fi_op op,
				void *context)
{
	struct atomic_buffers b = {
		.operand = buf, .result = result, .cnt = cnt, .addr = addr, .key = key
	};

	return atomic_one_plain(fid, ATOMICS_FETCH, &b, dest, datatype, op, context);
}

static ssize_t atomic_compwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
				 size_t cnt, const struct fi_ioc *comparev, void **compare_desc,
				 size_t compare_cnt, struct fi_ioc *resultv, void **result_desc,
				 size_t result_cnt, fi_addr_t dest, uint64_t addr, uint64_t key,
				 enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct atomic_call call = { .kind = ATOMICS_COMPARE,
				    .datatype = datatype,
				    .op = op,
				    .operand = iov,
				    .operand_cnt = cnt,
				    .compare = comparev,
				    .compare_cnt = compare_cnt,
				    .result = resultv,
				    .result_cnt = result_cnt };

	return atomic_plain(fid, &call, dest, addr, key, context);
}

static ssize_t atomic_compwrite(struct fid_ep *fid, const void *buf, size_t cnt, void *desc,
				const void *compare, void *compare_desc, void *result,
				void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key,
				enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct atomic_buffers b = { .operand = buf,
				    .compare = compare,
				    .result = result,
				    .cnt = cnt,
				    .addr = addr,
				    .key = key };

	return atomic_one_plain(fid, ATOMICS_COMPARE, &b, dest, datatype, op, context);
}

int engine_access_atomic(const struct engine_ctx *ctx, const struct fi_msg_atomic *msg,
			 const struct fi_msg_fetch *fetch, const struct fi_msg_compare *compare,
			 uint64_t flags, struct engine_access *access,
			 struct engine_access_room *room)
{
	struct atomic_call call = { .kind = compare ? ATOMICS_COMPARE
					    : fetch ? ATOMICS_FETCH
						    : ATOMICS_BASE };
	int ret;

	if (!msg)
		return -FI_EINVAL;
	*access = (struct engine_access){ .dest = msg->addr,
					  .context = msg->context,
					  .data = msg->data };
	ret = engine_access_flags(ctx->tx, flags, FI_INJECT | FI_REMOTE_CQ_DATA, &access->flags);
	if (ret)
		return ret;
	call.datatype = msg->datatype;
	call.op = msg->op;
	call.operand = msg->msg_iov;
	call.operand_cnt = msg->iov_count;
	call.target = msg->rma_iov;
	call.target_cnt = msg->rma_iov_count;
	if (fetch) {
		call.result = fetch->msg_iov;
		call.result_cnt = fetch->iov_count;
	}
	if (compare) {
		call.compare = compare->msg_iov;
		call.compare_cnt = compare->iov_count;
	}
	return atomic_prepare(&call, access, room);
}

/* Carry out a call with flags. @fetch, @compare: NULL if the call has none */
static ssize_t atomic_msg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
			  const struct fi_msg_fetch *fetch,
			  const struct fi_msg_compare *compare, uint64_t flags)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_access_room room;
	struct engine_access access;
	int ret;

	ret = engine_access_atomic(ctx, msg, fetch, compare, flags, &access, &room);
	return ret ? engine_refuse_call(ctx, "fi_atomicmsg", ret)
		   : engine_access_call(ctx, &access);
}

static ssize_t atomic_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
			       uint64_t flags)
{
	return atomic_msg(fid, msg, NULL, NULL, flags);
}

static ssize_t atomic_readwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				   struct fi_ioc *resultv, void **result_desc,
				   size_t result_cnt, uint64_t flags)
{
	struct fi_msg_fetch fetch = { .msg_iov = resultv, .iov_count = result_cnt };

	return atomic_msg(fid, msg, &fetch, NULL, flags);
}

static ssize_t atomic_compwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				   const struct fi_ioc *comparev, void **compare_desc,
				   size_t compare_cnt, struct fi_ioc *resultv,
				   void **result_desc, size_t result_cnt, uint64_t flags)
{
	struct fi_msg_fetch fetch = { .msg_iov = resultv, .iov_count = result_cnt };
	struct fi_msg_compare compare = { .msg_iov = comparev, .iov_count = compare_cnt };

	return atomic_msg(fid, msg, &fetch, &compare, flags);
}

/*
 * Check an operation for the program. @cnt: out: largest number of elements of a call. Returns 0,
 * -FI_EOPNOTSUPP or -FI_EINVAL.
 */
static int atomic_allowed(enum atomics_kind kind, enum fi_datatype datatype, enum fi_op op,
			  size_t *cnt)
{
	if (!atomics_valid(kind, datatype, op))
		return -FI_EOPNOTSUPP;
	if (!cnt)
		return -FI_EINVAL;
	*cnt = ENGINE_ATOMIC_MAX / atomics_size(datatype);
	return 0;
}

int engine_atomic_writevalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op,
			     size_t *cnt)
{
	return atomic_allowed(ATOMICS_BASE, datatype, op, cnt);
}

int engine_atomic_readwritevalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op,
				 size_t *cnt)
{
	return atomic_allowed(ATOMICS_FETCH, datatype, op, cnt);
}

int engine_atomic_compwritevalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op,
				 size_t *cnt)
{
	return atomic_allowed(ATOMICS_COMPARE, datatype, op, cnt);
}

int engine_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			struct fi_atomic_attr *attr, uint64_t flags)
{
	enum atomics_kind kind = ATOMICS_BASE;
	size_t cnt;
	int ret;

	if (!attr || (flags & FI_FETCH_ATOMIC && flags & FI_COMPARE_ATOMIC))
		return -FI_EINVAL;
	if (flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC | FI_TAGGED))
		return -FI_EBADFLAGS;
	if (flags & FI_TAGGED)
		return -FI_EOPNOTSUPP;
	if (flags & FI_FETCH_ATOMIC)
		kind = ATOMICS_FETCH;
	else if (flags & FI_COMPARE_ATOMIC)
		kind = ATOMICS_COMPARE;
	ret = atomic_allowed(kind, datatype, op, &cnt);
	if (ret)
		return ret;
	attr->count = cnt;
	attr->size = atomics_size(datatype);
	return 0;
}

struct fi_ops_atomic engine_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = atomic_write,
	.writev = atomic_writev,
	.writemsg = atomic_writemsg,
	.inject = atomic_inject,
	.readwrite = atomic_readwrite,
	.readwritev = atomic_readwritev,
	.readwritemsg = atomic_readwritemsg,
	.compwrite = atomic_compwrite,
	.compwritev = atomic_compwritev,
	.compwritemsg = atomic_compwritemsg,
	.writevalid = engine_atomic_writevalid,
	.readwritevalid = engine_atomic_readwritevalid,
	.compwritevalid = engine_atomic_compwritevalid,
};
