/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations that a fuzz target has under way at the endpoint under test: their memory has exactly
 * the length that was passed to the endpoint, so that accesses beyond it are found, and each
 * completes at most once. Their contexts are the operations themselves. One thread.
 */
#ifndef WEFT_FUZZ_OPERATIONS_H
#define WEFT_FUZZ_OPERATIONS_H

#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include "input.h"

#define OPS_MAX 64

struct fuzz_op {
	bool active, receive;
	size_t len; /* of buf; SIZE_MAX: completes with the length of something longer */
	char *buf, *result; /* operands, a message, what is read; what is fetched */
};

/* ops_begin - none is under way; of an earlier input nothing is left either */
void ops_begin(void);

/* op_new - one with @len and @result bytes of memory, zeros. NULL: OPS_MAX are under way */
struct fuzz_op *op_new(size_t len, size_t result);

/* op_new_receive - one that completes as a receive, of at most @len bytes */
struct fuzz_op *op_new_receive(size_t len);

/* op_end - it is no more under way */
void op_end(struct fuzz_op *op);

/* op_begun - the call that begins it returned @ret: 0, or -FI_EAGAIN, which ends it */
void op_begun(struct fuzz_op *op, ssize_t ret);

/* op_at - one of OPS_MAX places, whatever @idx is */
struct fuzz_op *op_at(uint32_t idx);

/* op_cancel - only what is under way can be cancelled */
void op_cancel(struct fid_ep *ep, struct fuzz_op *op);

/* ops_read_cq - take what has completed, and one error; completions for the peer's writes pass by */
void ops_read_cq(struct fid_cq *cq);

#endif
