/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The queues of a receive context: its matchers, in which posted receives wait for messages and
 * messages for receives, and the messages that FI_CLAIM has taken.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_RXQ_H
#define WEFT_RXQ_H

#include "endpoint.h"

/* engine_matcher - returns the matcher for receives and messages with these flags */
static inline struct match *engine_matcher(struct engine_rxq *q, uint32_t flags)
{
	return flags & PACKET_TAGGED ? q->tagged : q->msg;
}

/*
 * engine_rxq_at - returns queue @idx of an endpoint, or NULL if there is no ep->group_rx
 * @idx: below ep->rx_cnt: a receive context; ep->rx_cnt: ep->group_rx
 */
static inline struct engine_rxq *engine_rxq_at(const struct engine_ep *ep, uint32_t idx)
{
	if (idx < ep->rx_cnt)
		return ep->rxs[idx]->q;
	return ep->group_rx ? ep->group_rx->q : NULL;
}

/*
 * engine_rxq_next - returns the receive that follows @rx in @q, or NULL at the end
 * @rx: posted; NULL: return the first one
 * Tagged receives precede the others; each kind is in post order.
 */
struct engine_rx *engine_rxq_next(const struct engine_rxq *q, const struct engine_rx *rx);

/*
 * engine_rxq_unpost - free the posted receives without completions; messages stay
 * A multi-receive buffer with parts is released with the last one.
 */
void engine_rxq_unpost(struct engine_domain *domain, struct engine_rxq *q);

/*
 * engine_rxq_rename - the address of @peer in the address vector has changed: give its messages in
 * @q, which is shared, the new source, and match them again
 */
void engine_rxq_rename(struct engine_rxq *q, struct engine_peer *peer);

/*
 * engine_rxq_hand - move the messages of @from to @to, and match them with the receives there
 * @from: has no receives
 */
void engine_rxq_hand(struct engine_rxq *from, struct engine_rxq *to);

/*
 * engine_rxq_init - initialize empty queues
 * @shared: several endpoints use them
 * Returns 0 or -FI_ENOMEM.
 */
int engine_rxq_init(struct engine_rxq *q, bool shared);

/*
 * engine_rxq_fini - engine_rxq_unpost(), and free the matchers
 * Does nothing unless @q is initialized.
 */
void engine_rxq_fini(struct engine_domain *domain, struct engine_rxq *q);

/* engine_rxq_drop - free the messages of @ep in @q, because the endpoint is closed */
void engine_rxq_drop(struct engine_ep *ep, struct engine_rxq *q);

#endif
