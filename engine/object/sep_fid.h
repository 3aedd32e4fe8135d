/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Scalable endpoints and their contexts. The caller holds the domain, unless it calls a slot. */
#ifndef WEFT_SEP_FID_H
#define WEFT_SEP_FID_H

#include "engine.h"

/* The slot of struct fi_ops_domain. */
int engine_sep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep,
		    void *context);

/*
 * engine_sep_busy - returns true if a context is open
 * engine_sep_free - free all contexts
 * engine_sep_awaits - returns true if the program has enabled a context, and the endpoint can be
 * enabled now
 * engine_sep_bind - bind a queue or a counter to all open contexts, or to none. Returns 0 or -FI_E*
 */
bool engine_sep_busy(const struct engine_ep *ep);
bool engine_sep_awaits(const struct engine_ep *ep);
int engine_sep_bind(struct engine_ep *ep, struct fid *target, uint64_t flags);
void engine_sep_free(struct engine_ep *ep);

/*
 * Before a context is closed: release its queues and counters, drop what has not begun, and wait for
 * what is under way. An operation that does not end in time is ended with its conn.
 */
void engine_sep_tx_end(struct engine_ep *ep, struct engine_tx_ctx *tx);
void engine_sep_rx_end(struct engine_ep *ep, struct engine_rx_ctx *rx);

#endif
