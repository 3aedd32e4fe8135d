/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the two halves of the channel over UCX share: the one worker of this process, and its
 * endpoint to the peer.
 */
#ifndef WEFT_BENCH_UCX_H
#define WEFT_BENCH_UCX_H

#include <ucp/api/ucp.h>
#include "channel.h"

struct ucx {
	struct channel *ch;
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_ep_h peer;
	/* of the first operation that failed */
	ucs_status_t status;
};

extern struct ucx ucx;

/* ucx_complain - say what failed; returns -FI_EIO */
int ucx_complain(const char *what, ucs_status_t status);

/*
 * ucx_posted - an operation without a message was given to UCX: @request is its answer
 * @op:  busy until it has completed
 * Returns 0 or -FI_EIO.
 */
int ucx_posted(const char *what, ucs_status_ptr_t request, struct channel_op *op);

/* ucx_done - its callback; user data: the struct channel_op */
void ucx_done(void *request, ucs_status_t status, void *op);

#endif
