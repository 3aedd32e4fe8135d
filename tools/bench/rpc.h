/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote procedure calls as 'weft bench' times them, in the way of Mercury: a request is one message
 * of RPC_EAGER bytes at most. What does not fit into it, its overflow, is memory that the client
 * registers for this one request and that the server reads; the answer is a short message. Both sides
 * call the same functions with the same arguments; side 0 is the client.
 */
#ifndef WEFT_TOOLS_RPC_H
#define WEFT_TOOLS_RPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "region.h"

#define RPC_EAGER  4096
#define RPC_ANSWER 64

/* The buffers of requests of one size on one side. */
struct rpc {
	struct channel *ch;
	/* of a request, its header included */
	size_t size;
	bool verify;
	/* client: what is read; server: where it is read to */
	struct region overflow;
	struct channel_buf request;
	struct channel_buf answer;
	struct channel_op read;
	/* requests since the start */
	uint64_t number;
};

/*
 * rpc_init - allocate the buffers
 * @size:    1 or more; a request has room for its header whatever that is
 * @verify:  fill every request and check every byte that arrives
 *
 * Prints the reason of a failure. Returns 0 or a negative fi_errno, with nothing held.
 */
int rpc_init(struct rpc *rpc, struct channel *ch, size_t size, bool verify);

void rpc_fini(struct rpc *rpc);

/*
 * rpc_run - one request after the other
 * @taken:  receives nanoseconds for all of them, on side 0
 *
 * Returns 0 or a negative fi_errno; -FI_EIO for bytes that differ (reported).
 */
int rpc_run(struct rpc *rpc, uint32_t cnt, uint64_t *taken);

#endif
