/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the call of an operation that waits for a counter says, kept until it begins (work.c). Called
 * with the domain held.
 */
#include <rdma/fi_errno.h>
#include "cntr.h"
#include "copy.h"
#include "directions.h"
#include "work.h"

/*
 * Sets the endpoint or context of the call. @does: true if it supports the call. Returns 0 or
 * -FI_E*
 */
static int work_ctx(struct engine_work *work, struct fid_ep *fid,
		    bool (*does)(const struct engine_ctx *ctx))
{
	bool recv = engine_work_is_recv(work);
	struct engine_ctx *ctx;

	if (!fid || (fid->fid.fclass != FI_CLASS_EP && fid->fid.fclass != FI_CLASS_TX_CTX &&
		     fid->fid.fclass != FI_CLASS_RX_CTX && fid->fid.fclass != FI_CLASS_SRX_CTX))
		return -FI_EINVAL;
	ctx = engine_ctx_of(fid);
	if (ctx->domain != work->domain)
		return -FI_EINVAL;
	if (!ctx->enabled)
		return -FI_EOPBADSTATE;
	if (!does(ctx) || !((recv ? ctx->rx_caps : ctx->tx_caps) & FI_TRIGGER))
		return -FI_ENOSYS;
	work->ctx = ctx;
	return 0;
}

/* Returns message flags that say which queue and counters report the end. */
static uint32_t work_end_flags(const struct engine_work *work, uint32_t flags, uint64_t call)
{
	if (!work->of)
		return flags;
	if (call & FI_COMPLETION)
		return flags | ENGINE_DEFERRED | ENGINE_EP_REPORTS;
	return (flags & ~(uint32_t)ENGINE_COMPLETE) | ENGINE_DEFERRED;
}

/*
 * Returns true if the data is copied by the call. The data of deferred work is not read before it
 * begins.
 */
static bool work_takes(const struct engine_work *work, uint32_t flags)
{
	return !work->of && flags & ENGINE_INJECT;
}

static int work_keep_msg(struct engine_work *work, fi_addr_t dest, uint64_t flags)
{
	struct engine_msg *msg = &work->msg;
	struct iovec *iov = work->room.iov;

	work->dest = dest;
	work->context = msg->context;
	msg->flags = work_end_flags(work, msg->flags, flags);
	if (msg->iov_cnt) {
		memcpy(iov, msg->iov, msg->iov_cnt * sizeof(*iov));
		msg->iov = iov;
	} else if (!msg->buf && msg->len) {
		return -FI_EINVAL;
	} else {
		iov[0] = (struct iovec){ (void *)(uintptr_t)msg->buf, msg->len };
	}
	if (!work_takes(work, msg->flags) || !msg->len)
		return 0;
	work->copy = platform_alloc(msg->len);
	if (!work->copy)
		return -FI_ENOMEM;
	copy_from_iov(work->copy, iov, msg->iov_cnt ? msg->iov_cnt : 1, 0, msg->len);
	msg->buf = work->copy;
	msg->iov = NULL;
	msg->iov_cnt = 0;
	return 0;
}

static int work_keep_recv(struct engine_work *work, uint64_t flags)
{
	struct engine_want *want = &work->want;

	/* Not defined: which completion of a multi-receive buffer its own counter counts. */
	if (work->of && want->flags & ENGINE_MULTI)
		return -FI_ENOSYS;
	work->context = want->context;
	want->flags = work_end_flags(work, want->flags, flags);
	if (want->cnt)
		memcpy(work->room.iov, want->iov, want->cnt * sizeof(*want->iov));
	want->iov = work->room.iov;
	return 0;
}

/* Keeps an access. The arrays of the call are in work->room, or are checked to fit there. */
static int work_keep_access(struct engine_work *work, uint64_t flags)
{
	struct engine_access *access = &work->access;
	struct engine_access_room *room = &work->room;
	bool compare = access->update && access->update->compare_cnt;
	size_t len;
	char *copy;
	int ret;

	ret = engine_access_check(access, &len);
	if (ret)
		return ret;
	work->context = access->context;
	access->flags = work_end_flags(work, access->flags, flags);
	if (access->iov_cnt && access->iov != room->iov)
		memcpy(room->iov, access->iov, access->iov_cnt * sizeof(*access->iov));
	if (access->targets != room->targets)
		memcpy(room->targets, access->targets,
		       access->target_cnt * sizeof(*access->targets));
	access->iov = room->iov;
	access->targets = room->targets;
	if (!work_takes(work, access->flags) || !len)
		return 0;
	copy = platform_alloc(compare ? 2 * len : len);
	if (!copy)
		return -FI_ENOMEM;
	work->copy = copy;
	copy_from_iov(copy, room->iov, access->iov_cnt, 0, len);
	room->iov[0] = (struct iovec){ copy, len };
	access->iov_cnt = 1;
	if (compare) {
		copy_from_iov(copy + len, room->update.compare, room->update.compare_cnt, 0,
			      len);
		room->update.compare[0] = (struct iovec){ copy + len, len };
		room->update.compare_cnt = 1;
	}
	return 0;
}

static int work_send(struct engine_work *work, const struct fi_op_msg *op)
{
	int ret = work_ctx(work, op->ep, engine_transmits);

	if (!ret)
		ret = engine_msg_of(work->ctx, &op->msg, op->flags, &work->msg);
	return ret ? ret : work_keep_msg(work, op->msg.addr, op->flags);
}

static int work_tsend(struct engine_work *work, const struct fi_op_tagged *op)
{
	int ret = work_ctx(work, op->ep, engine_transmits);

	if (!ret)
		ret = engine_msg_of_tagged(work->ctx, &op->msg, op->flags, &work->msg);
	return ret ? ret : work_keep_msg(work, op->msg.addr, op->flags);
}

static int work_recv(struct engine_work *work, const struct fi_op_msg *op)
{
	int ret = work_ctx(work, op->ep, engine_receives);

	if (!ret)
		ret = engine_want_of(work->ctx, &op->msg, op->flags, &work->want);
	return ret ? ret : work_keep_recv(work, op->flags);
}

static int work_trecv(struct engine_work *work, const struct fi_op_tagged *op)
{
	int ret = work_ctx(work, op->ep, engine_receives);

	if (!ret)
		ret = engine_want_of_tagged(work->ctx, &op->msg, op->flags, &work->want);
	return ret ? ret : work_keep_recv(work, op->flags);
}

static int work_rma(struct engine_work *work, const struct fi_op_rma *op)
{
	uint8_t packet = work->type == FI_OP_READ ? PACKET_READ : PACKET_WRITE;
	int ret = work_ctx(work, op->ep, engine_accesses);

	if (!ret)
		ret = engine_access_rma(work->ctx, &op->msg, op->flags, packet, &work->access);
	return ret ? ret : work_keep_access(work, op->flags);
}

/* @fetch, @compare: NULL if the operation has none */
static int work_atomic(struct engine_work *work, struct fid_ep *ep,
		       const struct fi_msg_atomic *msg, const struct fi_msg_fetch *fetch,
		       const struct fi_msg_compare *compare, uint64_t flags)
{
	int ret = work_ctx(work, ep, engine_accesses);

	if (!ret)
		ret = engine_access_atomic(work->ctx, msg, fetch, compare, flags, &work->access,
					   &work->room);
	return ret ? ret : work_keep_access(work, flags);
}

/* Work that changes a counter. No queue or other counter reports its end. */
static int work_cntr(struct engine_work *work, const struct fi_op_cntr *op)
{
	if (work->work_cntr || !op->cntr)
		return -FI_EINVAL;
	work->value = op->value;
	return engine_cntr_hold(&op->cntr->fid, work->domain, &work->work_cntr);
}

int engine_work_keep(struct engine_work *work, const struct fi_deferred_work *w)
{
	const struct fi_op_fetch_atomic *fetch = w->op.fetch_atomic;
	const struct fi_op_compare_atomic *compare = w->op.compare_atomic;

	switch (w->op_type) {
	case FI_OP_RECV:
		return work_recv(work, w->op.msg);
	case FI_OP_SEND:
		return work_send(work, w->op.msg);
	case FI_OP_TRECV:
		return work_trecv(work, w->op.tagged);
	case FI_OP_TSEND:
		return work_tsend(work, w->op.tagged);
	case FI_OP_READ:
	case FI_OP_WRITE:
		return work_rma(work, w->op.rma);
	case FI_OP_ATOMIC:
		return work_atomic(work, w->op.atomic->ep, &w->op.atomic->msg, NULL, NULL,
				   w->op.atomic->flags);
	case FI_OP_FETCH_ATOMIC:
		return work_atomic(work, fetch->ep, &fetch->msg, &fetch->fetch, NULL,
				   fetch->flags);
	case FI_OP_COMPARE_ATOMIC:
		return work_atomic(work, compare->ep, &compare->msg, &compare->fetch,
				   &compare->compare, compare->flags);
	case FI_OP_CNTR_SET:
	case FI_OP_CNTR_ADD:
		return work_cntr(work, w->op.cntr);
	default:
		return -FI_ENOSYS;
	}
}
