/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The domain object. */
#ifndef WEFT_DOMAIN_FID_H
#define WEFT_DOMAIN_FID_H

#include "engine.h"

/* The slot of struct fi_ops_fabric. */
int engine_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		       struct fid_domain **domain, void *context);

/*
 * engine_domain_eq - the event queue bound to the domain, or NULL; it stays bound to it
 *
 * The caller does not hold the domain.
 */
struct engine_eq *engine_domain_eq(struct engine_domain *domain);

#endif
