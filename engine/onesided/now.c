/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-sided operations as calls of the program, from the slots of rma.c and atomic.c. A small one that
 * nothing stands in the way of goes straight into the wire (now.h), all others to engine_access().
 * These take the domain.
 */
#include <rdma/fi_errno.h>
#include "access.h"
#include "guard.h"
#include "quiet.h"
#include "refuse.h"
#include "send.h"

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

/* engine_access() for a small one in the common case. Returns false when it is another (nothing happened). */
static inline bool engine_access_now(struct engine_ctx *ctx, const struct engine_access *access)
{
	struct engine_peer *peer;

	if (unlikely(access->dest >= ctx->ep->peer_cap))
		return false;
	peer = ctx->ep->peers[access->dest];
	if (unlikely(!peer || !peer->ready || ctx->ep->access_cnt >= ctx->ep->at_once ||
		     engine_asked_full(peer)))
		return false;
	return peer->wire->access(ctx, peer, access);
}

/*
 * engine_access_now() after a round of progress, which may take away what stood in the way: a full wire,
 * answers that have come and were not read, what waits before it. Without it the queue of a program that
 * makes no other calls would never run empty.
 */
static __attribute__((noinline)) bool engine_access_again(struct engine_ctx *ctx,
							  const struct engine_access *access)
{
	struct engine_ep *ep = ctx->ep;

	if (!ep->at_once || access->dest >= ep->peer_cap || !ep->peers[access->dest] ||
	    !ep->peers[access->dest]->conn)
		return false;
	ctx->domain->ops->progress(ctx->domain);
	return engine_access_now(ctx, access);
}

ssize_t engine_access_begin(struct engine_ctx *ctx, const struct engine_access *access,
			    bool now)
{
	ssize_t ret = 0;

	engine_guard_enter(ctx->domain);
	if (unlikely(!now ||
		     (!engine_access_now(ctx, access) && !engine_access_again(ctx, access))))
		ret = engine_access(ctx, access);
	engine_guard_leave(ctx->domain);
	return likely(!ret) ? 0 : engine_refuse_call(ctx, "a read, write or atomic", ret);
}
