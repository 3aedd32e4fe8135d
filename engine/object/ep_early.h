/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Endpoints that are not enabled let go of what is closed; see ep_early.c. The caller holds the domain. */
#ifndef WEFT_EP_EARLY_H
#define WEFT_EP_EARLY_H

#include "engine.h"

/*
 * engine_early_part - a queue or counter that nobody else uses is to be closed
 * @refs: its users; 0 afterwards, or as many as before
 */
void engine_early_part(struct engine_domain *domain, const struct fid *fid, _Atomic int *refs);

/* engine_early_part_av - the same of an address vector: av->eps is empty afterwards, or as it was */
void engine_early_part_av(struct engine_av *av);

#endif
