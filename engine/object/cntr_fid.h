/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The counter object, and binding it; cntr.h counts. The caller holds the domain, unless it calls
 * a slot.
 */
#ifndef WEFT_CNTR_FID_H
#define WEFT_CNTR_FID_H

#include "contexts.h"

/* The slot of struct fi_ops_domain. */
int engine_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		     struct fid_cntr **cntr, void *context);

/*
 * engine_cntr_seen - the program has read the values; engine_cntr_polled - fi_poll has reported
 * the counter
 */
void engine_cntr_seen(struct engine_cntr *cntr);
void engine_cntr_polled(struct engine_cntr *cntr);

/*
 * engine_cntr_bind - bind a counter to the contexts of an endpoint
 * @tx, @rx: contexts whose events @flags selects; NULL: the object has no such direction
 * @flags:   FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE
 *
 * Replaces the counters bound before for operations that end from now on. Returns 0, -FI_EBADFLAGS,
 * or -FI_EINVAL for a counter of another domain (nothing is bound). Source: fi_endpoint(3),
 * fi_ep_bind; libfabric's sockets provider for the replacement.
 */
int engine_cntr_bind(struct engine_tx_ctx *tx, struct engine_rx_ctx *rx,
		     struct engine_domain *domain, struct fid *cntr, uint64_t flags);

/* engine_tx_unbind, engine_rx_unbind - release the counters of a context */
void engine_tx_unbind(struct engine_tx_ctx *tx);
void engine_rx_unbind(struct engine_rx_ctx *rx);

#endif
