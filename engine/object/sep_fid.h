/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Scalable endpoints and their contexts. The caller holds the domain, unless a slot is meant. */
#ifndef WEFT_SEP_FID_H
#define WEFT_SEP_FID_H

#include "engine.h"

/* The slot of struct fi_ops_domain. */
int engine_sep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep,
		    void *context);

/*
 * engine_sep_busy - is one open; engine_sep_free - release them
 * engine_sep_awaits - is one enabled, and the endpoint can be? It has been asked for then
 * engine_sep_bind - a queue or counter for all contexts that are open, or for none: 0 or -FI_E*
 */
bool engine_sep_busy(const struct engine_ep *ep);
bool engine_sep_awaits(const struct engine_ep *ep);
int engine_sep_bind(struct engine_ep *ep, struct fid *target, uint64_t flags);
void engine_sep_free(struct engine_ep *ep);

#endif
