/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-sided operations as calls of the program, for the slots of rma.c and atomic.c. A small
 * operation that need not wait is written straight into the wire (now.h); all others go through
 * engine_access(). engine_access_begin() holds the domain for its callers.
 */
#include <rdma/fi_errno.h>
#include "access.h"
#include "guard.h"
#include "quiet.h"
#include "refuse.h"
#include "send.h"

/* Flags that all one-sided calls accept */
#define ACCESS_FLAGS                                                                          \
	(FI_COMPLETION | FI_MORE | FI_FENCE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |     \
	 FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE | FI_RMA | FI_ATOMIC | \
	 FI_READ | FI_WRITE)

int engine_access_flags(const struct engine_tx_ctx *tx, uint64_t flags, uint64_t allowed,
			uint32_t *out)
{
	int ret = engine_tx_flags(tx, flags, ACCESS_FLAGS | allowed, out);

	*out = engine_access_level(*out);
	return ret;
}

/*
 * Send a small operation by the fast path, in the common case. Returns false if it has to go
 * through engine_access() (nothing happened).
 */
static inline bool engine_access_now(struct engine_ctx *ctx, const struct engine_access *access)
{
	struct engine_peer *peer = engine_peer_lookup(ctx->ep, access->dest);

	if (unlikely(!peer || !peer->ready || ctx->ep->access_cnt >= ctx->ep->at_once ||
		     engine_requests_full(peer)))
		return false;
	return peer->conn->access(ctx, peer, access);
}

/*
 * engine_access_now() after a round of progress. The round may remove the obstacle: a full wire,
 * answers that have arrived and were not read, operations queued before this one. Without it
 * peer->queued would never become empty in a program that makes no other calls.
 */
static __attribute__((noinline)) bool engine_access_again(struct engine_ctx *ctx,
							  const struct engine_access *access)
{
	const struct engine_peer *peer = engine_peer_lookup(ctx->ep, access->dest);

	if (!ctx->ep->at_once || !peer || !peer->conn)
		return false;
	ctx->domain->ops->progress(ctx->domain);
	return engine_access_now(ctx, access);
}

ssize_t engine_access_begin(struct engine_ctx *ctx, const struct engine_access *access, bool now)
{
	ssize_t ret = 0;

	engine_guard_enter(ctx->domain);
	if (unlikely(!now ||
		     (!engine_access_now(ctx, access) && !engine_access_again(ctx, access))))
		ret = engine_access(ctx, access);
	engine_guard_leave(ctx->domain);
	return likely(!ret) ? 0 : engine_refuse_call(ctx, "a read, write or atomic", ret);
}
