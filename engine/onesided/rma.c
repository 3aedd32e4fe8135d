/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The slots of struct fi_ops_rma. For callers that serialize. Source: fi_rma(3).
 */
#include <rdma/fi_errno.h>
#include "access.h"
#include "copy.h"
#include "refuse.h"
#include "send.h"

_Static_assert(sizeof(struct fi_rma_iov) == sizeof(struct packet_target) &&
		       offsetof(struct fi_rma_iov, len) == offsetof(struct packet_target, len) &&
		       offsetof(struct fi_rma_iov, key) == offsetof(struct packet_target, key),
	       "a program's list of targets is the packet's");

/*
 * Carry out a call with one buffer or iov and one target. @access: operation, flags, destination,
 * context and data are set. Inlined into each slot, where much of it is constant.
 */
static engine_path ssize_t rma_one(struct engine_ctx *ctx, struct engine_access *access,
				   const struct iovec *iov, size_t cnt, uint64_t addr,
				   uint64_t key)
{
	struct packet_target target = { .addr = addr, .key = key };
	bool ok = true;

	if (cnt > ENGINE_IOV_MAX || (cnt && !iov))
		return engine_refuse_call(ctx, "a read or write", -FI_EINVAL);
	target.len = likely(cnt == 1) ? iov->iov_len : iov_len(iov, cnt, &ok);
	if (unlikely(!ok))
		return engine_refuse_call(ctx, "a read or write", -FI_EINVAL);
	access->iov = iov;
	access->iov_cnt = cnt;
	access->targets = &target;
	access->target_cnt = 1;
	return engine_access_call(ctx, access);
}

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt,
			 fi_addr_t src, uint64_t addr, uint64_t key, void *context)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_access access = { .op = PACKET_READ,
					.flags = engine_access_defaults(ctx) & ~ENGINE_INJECT,
					.dest = src,
					.context = context };

	return rma_one(ctx, &access, iov, cnt, addr, key);
}

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
			uint64_t addr, uint64_t key, void *context)
{
	struct iovec iov = { buf, len };

	return rma_readv(fid, &iov, &desc, 1, src, addr, key, context);
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt,
			  fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_access access = { .op = PACKET_WRITE,
					.flags = engine_access_defaults(ctx),
					.dest = dest,
					.context = context };

	return rma_one(ctx, &access, iov, cnt, addr, key);
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			 fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct engine_access access = { .op = PACKET_WRITE,
					.flags = engine_access_defaults(ctx),
					.dest = dest,
					.context = context };

	return rma_one(ctx, &access, &iov, 1, addr, key);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest,
			  uint64_t addr, uint64_t key)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct engine_access access = { .op = PACKET_WRITE,
					.flags = engine_access_injects(ctx),
					.dest = dest };

	return rma_one(ctx, &access, &iov, 1, addr, key);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			     uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key,
			     void *context)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct engine_access access = { .op = PACKET_WRITE,
					.flags = engine_access_defaults(ctx) | PACKET_CQ_DATA,
					.dest = dest,
					.context = context,
					.data = data };

	return rma_one(ctx, &access, &iov, 1, addr, key);
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest, uint64_t addr, uint64_t key)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct engine_access access = { .op = PACKET_WRITE,
					.flags = engine_access_injects(ctx) | PACKET_CQ_DATA,
					.dest = dest,
					.data = data };

	return rma_one(ctx, &access, &iov, 1, addr, key);
}

int engine_access_rma(const struct engine_ctx *ctx, const struct fi_msg_rma *msg,
		      uint64_t flags, uint8_t op, struct engine_access *access)
{
	/* A write of remote CQ data alone needs no memory. */
	static const struct packet_target nowhere;
	uint64_t allowed = op == PACKET_WRITE ? FI_INJECT | FI_REMOTE_CQ_DATA : 0;

	if (!msg || (msg->rma_iov_count && !msg->rma_iov))
		return -FI_EINVAL;
	*access = (struct engine_access){
		.op = op,
		.dest = msg->addr,
		.context = msg->context,
		.data = msg->data,
		.iov = msg->msg_iov,
		.iov_cnt = msg->iov_count,
		.targets = msg->rma_iov_count ? (const struct packet_target *)msg->rma_iov
					      : &nowhere,
		.target_cnt = msg->rma_iov_count ? msg->rma_iov_count : 1,
	};
	return engine_access_flags(ctx->tx, flags, allowed, &access->flags);
}

/* Carry out a call with flags. @op: PACKET_READ or PACKET_WRITE */
static ssize_t rma_msg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags,
		       uint8_t op)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_access access;
	int ret;

	ret = engine_access_rma(ctx, msg, flags, op, &access);
	return ret ? engine_refuse_call(ctx, "fi_readmsg or fi_writemsg", ret)
		   : engine_access_call(ctx, &access);
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return rma_msg(fid, msg, flags, PACKET_READ);
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return rma_msg(fid, msg, flags, PACKET_WRITE);
}

struct fi_ops_rma engine_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};
