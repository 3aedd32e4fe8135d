/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registering memory; registering.h has the contract. Called by 'weft bench' on side 0. */
#include "registering.h"
#include "clock.h"
#include "region.h"

#include <rdma/fi_domain.h>

#define ACCESS (FI_REMOTE_READ | FI_REMOTE_WRITE)

int registering_run(struct channel *ch, size_t size, uint32_t cnt, uint64_t *taken)
{
	struct remote_region name;
	struct region region;
	uint64_t start;
	uint32_t i;
	int rc = region_init(ch, &region, size, ACCESS);

	*taken = 0;
	if (rc)
		return rc;
	start = clock_ns();
	/* Each ends the registration before it. */
	for (i = 0; i < cnt && !rc; i++)
		rc = region_expose(ch, &region, ACCESS, &name);
	*taken = clock_ns() - start;
	region_fini(&region);
	return rc;
}
