/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints that are not enabled release objects that the program closes (ep_early.c). The caller
 * holds the domain.
 */
#ifndef WEFT_EP_EARLY_H
#define WEFT_EP_EARLY_H

#include "engine.h"

/*
 * engine_early_part - the program closes a queue or a counter: unbind it if only endpoints that
 * are not enabled use it
 * @refs: its users; 0 afterwards, or unchanged if another object uses it
 */
void engine_early_part(struct engine_domain *domain, const struct fid *fid, _Atomic int *refs);

/* engine_early_part_av - the same for an address vector: av->eps is empty afterwards, or unchanged */
void engine_early_part_av(struct engine_av *av);

#endif
