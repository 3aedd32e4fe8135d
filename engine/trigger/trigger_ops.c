/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Slots for contexts that have FI_TRIGGER among their default flags, most often an alias: a call
 * without flags waits for the counter in its context. A call with flags states whether it waits
 * (trigger.c), and a call without a context can't wait: its slot is NULL here. The slots call
 * those with flags, which hold the domain. Called by programs. Source: fi_trigger(3).
 */
#include <rdma/fi_errno.h>
#include "access.h"
#include "copy.h"
#include "trigger.h"

const uint64_t engine_trigger_flag = FI_TRIGGER;

static uint64_t tx_flags(struct fid_ep *fid)
{
	return engine_ctx_of(fid)->tx_op_flags | FI_TRIGGER;
}

static uint64_t rx_flags(struct fid_ep *fid)
{
	return engine_ctx_of(fid)->rx_op_flags | FI_TRIGGER;
}

/* Messages */

static ssize_t trig_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt,
			  fi_addr_t dest, void *context)
{
	struct fi_msg msg = {
		.msg_iov = iov, .iov_count = cnt, .addr = dest, .context = context
	};

	return engine_trigger_sendmsg(fid, &msg, tx_flags(fid));
}

static ssize_t trig_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			 fi_addr_t dest, void *context)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };

	return trig_sendv(fid, &iov, NULL, 1, dest, context);
}

static ssize_t trig_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			     uint64_t data, fi_addr_t dest, void *context)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = dest, .context = context, .data = data
	};

	return engine_trigger_sendmsg(fid, &msg, tx_flags(fid) | FI_REMOTE_CQ_DATA);
}

static ssize_t trig_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt,
			  fi_addr_t src, void *context)
{
	struct fi_msg msg = { .msg_iov = iov, .iov_count = cnt, .addr = src, .context = context };

	return engine_trigger_recvmsg(fid, &msg, rx_flags(fid));
}

static ssize_t trig_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
			 void *context)
{
	struct iovec iov = { buf, len };

	return trig_recvv(fid, &iov, NULL, 1, src, context);
}

/* Tagged messages */

static ssize_t trig_tsendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt,
			   fi_addr_t dest, uint64_t tag, void *context)
{
	struct fi_msg_tagged msg = {
		.msg_iov = iov, .iov_count = cnt, .addr = dest, .tag = tag, .context = context
	};

	return engine_trigger_tsendmsg(fid, &msg, tx_flags(fid));
}

static ssize_t trig_tsend(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			  fi_addr_t dest, uint64_t tag, void *context)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };

	return trig_tsendv(fid, &iov, NULL, 1, dest, tag, context);
}

static ssize_t trig_tsenddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			      uint64_t data, fi_addr_t dest, uint64_t tag, void *context)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct fi_msg_tagged msg = { .msg_iov = &iov,
				     .iov_count = 1,
				     .addr = dest,
				     .tag = tag,
				     .context = context,
				     .data = data };

	return engine_trigger_tsendmsg(fid, &msg, tx_flags(fid) | FI_REMOTE_CQ_DATA);
}

static ssize_t trig_trecvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt,
			   fi_addr_t src, uint64_t tag, uint64_t ignore, void *context)
{
	struct fi_msg_tagged msg = { .msg_iov = iov,
				     .iov_count = cnt,
				     .addr = src,
				     .tag = tag,
				     .ignore = ignore,
				     .context = context };
	uint64_t flags = rx_flags(fid);

	if (!(engine_ctx_of(fid)->rx_caps & FI_TAGGED_MULTI_RECV))
		flags &= ~FI_MULTI_RECV;
	return engine_trigger_trecvmsg(fid, &msg, flags);
}

static ssize_t trig_trecv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
			  uint64_t tag, uint64_t ignore, void *context)
{
	struct iovec iov = { buf, len };

	return trig_trecvv(fid, &iov, NULL, 1, src, tag, ignore, context);
}

/* RMA: the length in struct fi_rma_iov follows from the buffers */

static ssize_t trig_access(struct fid_ep *fid, struct fi_msg_rma *msg, uint64_t addr,
			   uint64_t key, uint8_t op, uint64_t more)
{
	struct fi_rma_iov target = { .addr = addr, .key = key };
	uint64_t flags = tx_flags(fid) | more;
	bool ok;

	if (msg->iov_count > ENGINE_IOV_MAX || (msg->iov_count && !msg->msg_iov))
		return -FI_EINVAL;
	target.len = iov_len(msg->msg_iov, msg->iov_count, &ok);
	if (!ok)
		return -FI_EINVAL;
	msg->rma_iov = &target;
	msg->rma_iov_count = 1;
	return op == PACKET_READ ? engine_trigger_readmsg(fid, msg, flags & ~FI_INJECT)
				 : engine_trigger_writemsg(fid, msg, flags);
}

static ssize_t trig_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt,
			  fi_addr_t src, uint64_t addr, uint64_t key, void *context)
{
	struct fi_msg_rma msg = {
		.msg_iov = iov, .iov_count = cnt, .addr = src, .context = context
	};

	return trig_access(fid, &msg, addr, key, PACKET_READ, 0);
}

static ssize_t trig_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
			 uint64_t addr, uint64_t key, void *context)
{
	struct iovec iov = { buf, len };

	return trig_readv(fid, &iov, NULL, 1, src, addr, key, context);
}

static ssize_t trig_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt,
			   fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	struct fi_msg_rma msg = {
		.msg_iov = iov, .iov_count = cnt, .addr = dest, .context = context
	};

	return trig_access(fid, &msg, addr, key, PACKET_WRITE, 0);
}

static ssize_t trig_write(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			  fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };

	return trig_writev(fid, &iov, NULL, 1, dest, addr, key, context);
}

static ssize_t trig_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			      uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key,
			      void *context)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = dest, .context = context, .data = data
	};

	return trig_access(fid, &msg, addr, key, PACKET_WRITE, FI_REMOTE_CQ_DATA);
}

struct fi_ops_msg engine_trigger_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = trig_recv,
	.recvv = trig_recvv,
	.recvmsg = engine_trigger_recvmsg,
	.send = trig_send,
	.sendv = trig_sendv,
	.sendmsg = engine_trigger_sendmsg,
	.senddata = trig_senddata,
};

struct fi_ops_tagged engine_trigger_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = trig_trecv,
	.recvv = trig_trecvv,
	.recvmsg = engine_trigger_trecvmsg,
	.send = trig_tsend,
	.sendv = trig_tsendv,
	.sendmsg = engine_trigger_tsendmsg,
	.senddata = trig_tsenddata,
};

struct fi_ops_rma engine_trigger_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = trig_read,
	.readv = trig_readv,
	.readmsg = engine_trigger_readmsg,
	.write = trig_write,
	.writev = trig_writev,
	.writemsg = engine_trigger_writemsg,
	.writedata = trig_writedata,
};
