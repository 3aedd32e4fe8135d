/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * tools/bench/region.h over pipes: there is none of it. bench/run asks for messages alone.
 */
#include "region.h"

#include <rdma/fi_errno.h>
#include <string.h>

static int refuse(void)
{
	return fabric_complain("one-sided transfers, over pipes", -FI_ENOSYS);
}

int region_init(struct channel *ch, struct region *region, size_t len, uint64_t access)
{
	memset(region, 0, sizeof(*region));
	return refuse();
}

void region_fini(struct region *region)
{
}

int region_expose(struct channel *ch, struct region *region, uint64_t access,
		  struct remote_region *name)
{
	return refuse();
}

void region_hide(struct region *region)
{
}

int region_exchange(struct channel *ch, const struct region *region,
		    struct remote_region *remote)
{
	memset(remote, 0, sizeof(*remote));
	return refuse();
}

void region_forget(struct channel *ch, struct remote_region *remote)
{
}

int region_adds(struct channel *ch)
{
	return refuse();
}

int region_transfer(struct channel *ch, enum region_transfer_kind kind,
		    const struct region_access *access, struct channel_op *op)
{
	return refuse();
}
