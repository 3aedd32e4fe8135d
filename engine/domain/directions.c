/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The directions in which a context transfers, from its capabilities and from what is bound to it.
 * Called with the domain held.
 */
#include "cntr.h"
#include "directions.h"
#include "endpoint.h"

bool engine_transmits(const struct engine_ctx *ctx)
{
	return ctx->tx && (ctx->tx_caps & (FI_SEND | FI_READ | FI_WRITE | FI_COLLECTIVE) ||
			   ctx->tx->cq || engine_tx_counted(ctx->tx));
}

bool engine_accesses(const struct engine_ctx *ctx)
{
	return engine_transmits(ctx) && ctx->ep->caps & (FI_RMA | FI_ATOMIC);
}

bool engine_receives(const struct engine_ctx *ctx)
{
	const struct engine_rx_ctx *rx = ctx->rx;

	return rx && (ctx->rx_caps & FI_RECV || rx->cq || !rx->ep || engine_rx_counted(rx)) &&
	       (!ctx->ep || !ctx->ep->srx);
}
