/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared contexts. The caller holds the domain, unless it calls a slot. */
#ifndef WEFT_SRX_FID_H
#define WEFT_SRX_FID_H

#include "engine.h"

/* Slots of struct fi_ops_domain. */
int engine_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		    void *context);
int engine_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **srx,
		    void *context);

/*
 * engine_shared_bind - fi_ep_bind of an endpoint to a shared context
 * engine_shared_unbind - undo it
 */
int engine_shared_bind(struct engine_ep *ep, struct fid *target, uint64_t flags);
void engine_shared_unbind(struct engine_ep *ep);

/*
 * engine_srx_choose_cq - set the queue that reports what belongs to no endpoint: the bound one, or
 * that of the first endpoint
 */
void engine_srx_choose_cq(struct engine_srx *srx);

/* engine_srx_left - an endpoint has left the context: free it if it was the last, and it is closed */
void engine_srx_left(struct engine_srx *srx);

/*
 * engine_shared_check - check that the endpoints which share a receive context have one address
 * vector
 * Returns 0 or -FI_E*.
 */
int engine_shared_check(const struct engine_ep *ep);

#endif
