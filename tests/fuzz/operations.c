/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Operations of a fuzz target; see operations.h. Called by the targets, on one thread. */
#include <rdma/fi_errno.h>
#include "operations.h"

static struct fuzz_op ops[OPS_MAX];

void ops_begin(void)
{
	for (int i = 0; i < OPS_MAX; i++)
		if (ops[i].active)
			op_end(&ops[i]);
}

struct fuzz_op *op_new(size_t len, size_t result)
{
	for (int i = 0; i < OPS_MAX; i++) {
		struct fuzz_op *op = &ops[i];

		if (op->active)
			continue;
		*op = (struct fuzz_op){ .active = true,
					.len = len,
					.buf = calloc(1, len ? len : 1),
					.result = calloc(1, result ? result : 1) };
		MUST(op->buf && op->result);
		return op;
	}
	return NULL;
}

struct fuzz_op *op_new_receive(size_t len)
{
	struct fuzz_op *op = op_new(len, 0);

	if (op)
		op->receive = true;
	return op;
}

void op_end(struct fuzz_op *op)
{
	op->active = false;
	free(op->buf);
	free(op->result);
}

void op_begun(struct fuzz_op *op, ssize_t ret)
{
	MUST(!ret || ret == -FI_EAGAIN);
	if (ret)
		op_end(op);
}

struct fuzz_op *op_at(uint32_t idx)
{
	return &ops[idx % OPS_MAX];
}

void op_cancel(struct fid_ep *ep, struct fuzz_op *op)
{
	MUST(!fi_cancel(&ep->fid, op)); /* what is not active must not end: see complete() */
}

static void complete(void *context, uint64_t flags, size_t len)
{
	struct fuzz_op *op = context;

	MUST(op >= ops && op < ops + OPS_MAX && op->active);
	MUST(!!(flags & FI_RECV) == op->receive);
	MUST(!op->receive || op->len == SIZE_MAX || len <= op->len);
	op_end(op);
}

void ops_read_cq(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret;

	while ((ret = fi_cq_read(cq, &e, 1)) == 1)
		if (!(e.flags & FI_REMOTE_WRITE))
			complete(e.op_context, e.flags, e.len);
	if (ret == -FI_EAVAIL && fi_cq_readerr(cq, &err, 0) == 1)
		complete(err.op_context, err.flags, err.len);
}
