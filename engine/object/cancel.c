/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_cancel: asks each room that may have the operation. Called with the domain held.
 */
#include <rdma/fi_errno.h>
#include "cancel.h"
#include "coll.h"
#include "recv.h"
#include "trigger.h"

int engine_cancel(struct engine_ctx *ctx, void *context)
{
	int ret;

	if (!list_empty(&ctx->domain->works) && !engine_trigger_cancel(ctx, context))
		return 0;
	ret = engine_cancel_message(ctx, context);
	return ret == -FI_ENOENT ? engine_coll_cancel(ctx, context) : ret;
}
