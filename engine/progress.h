/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Progress: polls the wires of endpoints and serves peers that have something queued. The
 * caller holds the domain; reading or waiting on any object of a domain comes through here.
 */
#ifndef WEFT_PROGRESS_H
#define WEFT_PROGRESS_H

#include "engine.h"

/* engine_progress - one round for one endpoint */
void engine_progress(struct engine_ep *ep);

/* engine_domain_progress - one round for every enabled endpoint of a domain */
static inline void engine_domain_progress(struct engine_domain *domain)
{
	struct list *node, *after;

	domain->gathered = false;
	list_for_each(node, after, &domain->eps)
		engine_progress(container_of(node, struct engine_ep, domain_link));
}

#endif
