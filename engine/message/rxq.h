/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The queues of a receive context, in which receives and messages meet.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_RXQ_H
#define WEFT_RXQ_H

#include "endpoint.h"

/* engine_matcher - where the receives and messages of these flags are */
static inline struct match *engine_matcher(struct engine_rxq *q, uint32_t flags)
{
	return flags & PACKET_TAGGED ? q->tagged : q->msg;
}

/*
 * engine_rxq_at - the queues of an endpoint, from 0 to ep->rx_cnt: those of its contexts, then
 * that of ep->group_rx, or NULL
 */
static inline struct engine_rxq *engine_rxq_at(const struct engine_ep *ep, uint32_t idx)
{
	if (idx < ep->rx_cnt)
		return ep->rxs[idx]->q;
	return ep->group_rx ? ep->group_rx->q : NULL;
}

/*
 * engine_rxq_next - the receive that is posted in @q after @rx, or the first for NULL: tagged ones
 * come first, then the others, each in post order. NULL at the end
 */
struct engine_rx *engine_rxq_next(const struct engine_rxq *q, const struct engine_rx *rx);
/* engine_rxq_unpost - forget the receives that are posted, without a word; messages stay */
void engine_rxq_unpost(struct engine_domain *domain, struct engine_rxq *q);
/* engine_rxq_rename - @q is shared, and another address than before names @peer */
void engine_rxq_rename(struct engine_rxq *q, struct engine_peer *peer);
/*
 * engine_rxq_hand - messages that wait in @from, which has no receives, wait in @to, or have met
 * one there
 */
void engine_rxq_hand(struct engine_rxq *from, struct engine_rxq *to);
/* engine_rxq_init - 0 or -FI_ENOMEM; @shared: by several endpoints */
int engine_rxq_init(struct engine_rxq *q, bool shared);
/* engine_rxq_fini - release it; receives that are still posted are forgotten */
void engine_rxq_fini(struct engine_domain *domain, struct engine_rxq *q);
/* engine_rxq_drop - release the messages that @ep holds in it: the endpoint ends */
void engine_rxq_drop(struct engine_ep *ep, struct engine_rxq *q);

#endif
