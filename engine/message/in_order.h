/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connected endpoints (FI_EP_MSG) complete their sends in the order of the calls, and their receives
 * in the order in which they took messages, as programs that were written for a stream expect. What
 * has ended before its turn waits in a list of the peer. Tagged messages, one-sided operations and
 * errors complete when they end.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_IN_ORDER_H
#define WEFT_IN_ORDER_H

#include "endpoint.h"
#include "peers.h"

/* engine_peer_ready - returns the value of peer->ready while the route is up */
static inline bool engine_peer_ready(const struct engine_peer *peer)
{
	return list_empty(&peer->queued) && list_empty(&peer->tx_order);
}

/* engine_tx_order - a message gets its turn among the sends to its peer, if it needs one */
void engine_tx_order(struct engine_tx *tx);

/*
 * engine_tx_in_turn - an operation with ENGINE_ORDERED has ended, and completes in its turn
 * @tx:     takes it; not linked but in peer->tx_order
 * @status: 0 or -FI_E*, which completes at once
 * @report: counts and completes an operation and frees it
 */
void engine_tx_in_turn(struct engine_tx *tx, int status,
		       void (*report)(struct engine_tx *tx, int status));

/*
 * engine_rx_order - a receive has taken a message: it gets its turn, if it needs one
 * Called once its peer and flags are set, unless it completes at once and peer->rx_order is empty.
 */
void engine_rx_order(struct engine_rx *rx);

/*
 * engine_rx_in_turn - a receive with ENGINE_ORDERED is whole, and completes in its turn by
 * engine_recv_done(); takes it
 */
void engine_rx_in_turn(struct engine_domain *domain, struct engine_rx *rx);

/* engine_rx_out_of_turn - end a receive with ENGINE_ORDERED by engine_recv_error() at once; takes it */
void engine_rx_out_of_turn(struct engine_domain *domain, struct engine_rx *rx, int err);

/* engine_rx_unorder - a receive loses its turn: it is freed without a completion */
void engine_rx_unorder(struct engine_rx *rx);

#endif
