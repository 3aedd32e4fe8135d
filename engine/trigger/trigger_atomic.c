/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Slots of struct fi_ops_atomic for contexts that have FI_TRIGGER among their default flags; see
 * trigger_ops.c. Called by programs.
 */
#include "access.h"
#include "trigger.h"

/* @fetch, @compare: or NULL. The element count of the target follows from the buffers. */
static ssize_t trig_update(struct fid_ep *fid, struct fi_msg_atomic *msg, uint64_t addr,
			   uint64_t key, const struct fi_msg_fetch *fetch,
			   const struct fi_msg_compare *compare)
{
	struct fi_rma_ioc target = { .addr = addr, .key = key };
	uint64_t flags = engine_ctx_of(fid)->tx_op_flags | FI_TRIGGER;

	target.count = fetch ? engine_iocs_count(fetch->msg_iov, fetch->iov_count)
			     : engine_iocs_count(msg->msg_iov, msg->iov_count);
	msg->rma_iov = &target;
	msg->rma_iov_count = 1;
	if (compare)
		return engine_trigger_compare_atomicmsg(fid, msg, compare->msg_iov, NULL,
							compare->iov_count, fetch->msg_iov,
							NULL, fetch->iov_count, flags);
	if (fetch)
		return engine_trigger_fetch_atomicmsg(fid, msg, fetch->msg_iov, NULL,
						      fetch->iov_count, flags);
	return engine_trigger_atomicmsg(fid, msg, flags);
}

static ssize_t trig_writev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
			   size_t cnt, fi_addr_t dest, uint64_t addr, uint64_t key,
			   enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct fi_msg_atomic msg = { .msg_iov = iov,
				     .iov_count = cnt,
				     .addr = dest,
				     .datatype = datatype,
				     .op = op,
				     .context = context };

	return trig_update(fid, &msg, addr, key, NULL, NULL);
}

static ssize_t trig_write(struct fid_ep *fid, const void *buf, size_t cnt, void *desc,
			  fi_addr_t dest, uint64_t addr, uint64_t key,
			  enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct fi_ioc ioc = { (void *)(uintptr_t)buf, cnt };

	return trig_writev(fid, &ioc, NULL, 1, dest, addr, key, datatype, op, context);
}

static ssize_t trig_readwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
			       size_t cnt, struct fi_ioc *resultv, void **result_desc,
			       size_t result_cnt, fi_addr_t dest, uint64_t addr, uint64_t key,
			       enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct fi_msg_atomic msg = { .msg_iov = iov,
				     .iov_count = cnt,
				     .addr = dest,
				     .datatype = datatype,
				     .op = op,
				     .context = context };
	struct fi_msg_fetch fetch = { .msg_iov = resultv, .iov_count = result_cnt };

	return trig_update(fid, &msg, addr, key, &fetch, NULL);
}

static ssize_t trig_readwrite(struct fid_ep *fid, const void *buf, size_t cnt, void *desc,
			      void *result, void *result_desc, fi_addr_t dest, uint64_t addr,
			      uint64_t key, enum fi_datatype datatype, enum fi_op op,
			      void *context)
{
	struct fi_ioc ioc = { (void *)(uintptr_t)buf, cnt }, out = { result, cnt };

	return trig_readwritev(fid, &ioc, NULL, 1, &out, NULL, 1, dest, addr, key, datatype, op,
			       context);
}

static ssize_t trig_compwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
			       size_t cnt, const struct fi_ioc *comparev, void **compare_desc,
			       size_t compare_cnt, struct fi_ioc *resultv, void **result_desc,
			       size_t result_cnt, fi_addr_t dest, uint64_t addr, uint64_t key,
			       enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct fi_msg_atomic msg = { .msg_iov = iov,
				     .iov_count = cnt,
				     .addr = dest,
				     .datatype = datatype,
				     .op = op,
				     .context = context };
	struct fi_msg_fetch fetch = { .msg_iov = resultv, .iov_count = result_cnt };
	struct fi_msg_compare compare = { .msg_iov = comparev, .iov_count = compare_cnt };

	return trig_update(fid, &msg, addr, key, &fetch, &compare);
}

static ssize_t trig_compwrite(struct fid_ep *fid, const void *buf, size_t cnt, void *desc,
			      const void *than, void *compare_desc, void *result,
			      void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key,
			      enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct fi_ioc ioc = { (void *)(uintptr_t)buf, cnt },
		      compare = { (void *)(uintptr_t)than, cnt };
	struct fi_ioc out = { result, cnt };

	return trig_compwritev(fid, &ioc, NULL, 1, &compare, NULL, 1, &out, NULL, 1, dest, addr,
			       key, datatype, op, context);
}

struct fi_ops_atomic engine_trigger_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = trig_write,
	.writev = trig_writev,
	.writemsg = engine_trigger_atomicmsg,
	.readwrite = trig_readwrite,
	.readwritev = trig_readwritev,
	.readwritemsg = engine_trigger_fetch_atomicmsg,
	.compwrite = trig_compwrite,
	.compwritev = trig_compwritev,
	.compwritemsg = engine_trigger_compare_atomicmsg,
};
