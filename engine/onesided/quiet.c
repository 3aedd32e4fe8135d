/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Quiet requests: errors that are known only after their completion. Called with the domain held,
 * by progress.
 *
 * Such an error is reported with the context of the endpoint: the program may have reused the
 * context of the operation. Source: fi_endpoint(3), notes.
 */
#include <rdma/fi_errno.h>
#include "complete.h"
#include "endpoint.h"
#include "quiet.h"

/*
 * Report an error of a quiet request: in the log, the first one of an incarnation, in the counter,
 * and in the queue, whether or not it was injected. Source: fi_cq(3), fi_cq_readerr.
 */
static void engine_quiet_error(struct engine_peer *peer, int err)
{
	struct engine_tx_ctx *ctx = peer->quiet_ctx;
	struct fi_cq_err_entry entry = {
		.op_context = peer->ep->ctx.fid.fid.context,
		.flags = FI_RMA | FI_WRITE,
		.err = -err,
		.prov_errno = -err,
		.src_addr = peer->cq_addr,
	};

	if (!peer->quiet_errors++)
		FI_WARN(peer->ep->family->provider, FI_LOG_EP_DATA,
			"a write that was complete for its initiator has failed: %s. "
			"FI_DELIVERY_COMPLETE completes with the target's answer. "
			"The next ones to this peer are not logged\n",
			fi_strerror(-err));
	engine_count(ctx->cntr[ENGINE_CNTR_WRITE], err, 0);
	if (ctx->cq)
		engine_complete_error(ctx->cq, &entry);
}

int engine_quiet_refused(struct engine_peer *peer, uint32_t seq, int err)
{
	if (!peer->quiet_cnt || (int32_t)(seq - peer->acked) < 0 ||
	    (int32_t)(peer->quiet_seq - seq) <= 0)
		return -FI_EINVAL;
	peer->quiet_cnt--;
	engine_quiet_error(peer, err);
	return 0;
}

void engine_quiet_lost(struct engine_peer *peer, int err)
{
	bool any = peer->quiet_cnt;

	engine_quiet_begin(peer);
	if (any)
		engine_quiet_error(peer, err);
}
