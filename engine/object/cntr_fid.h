/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The counter object, and binding one; cntr.h has what counts. The caller holds the domain, unless a slot is meant. */
#ifndef WEFT_CNTR_FID_H
#define WEFT_CNTR_FID_H

#include "contexts.h"

/* The slot of struct fi_ops_domain. */
int engine_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		     struct fid_cntr **cntr, void *context);

/* engine_cntr_seen - the program knows its values; engine_cntr_polled - as fi_poll wants it */
void engine_cntr_seen(struct engine_cntr *cntr);
void engine_cntr_polled(struct engine_cntr *cntr);

/*
 * engine_cntr_bind - a counter for the contexts of an endpoint
 * @tx, @rx: contexts that the events of @flags are of; NULL: the object has none, and nothing to count
 * @flags:   FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE
 *
 * Takes the place of what counted them before, for what ends from then on. Returns 0; -FI_EBADFLAGS, or
 * -FI_EINVAL: another domain's counter (nothing is bound). Source: fi_endpoint(3), fi_ep_bind; libfabric's
 * sockets for the place that is taken.
 */
int engine_cntr_bind(struct engine_tx_ctx *tx, struct engine_rx_ctx *rx,
		     struct engine_domain *domain, struct fid *cntr, uint64_t flags);

/* engine_tx_unbind, engine_rx_unbind - release the counters of a context */
void engine_tx_unbind(struct engine_tx_ctx *tx);
void engine_rx_unbind(struct engine_rx_ctx *rx);

#endif
