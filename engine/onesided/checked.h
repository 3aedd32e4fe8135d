/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of regions is checked before a peer's packet accesses it: programs may register what is not
 * mapped, or not writable, or the whole address space, and registration looks at nothing.
 *
 * The first accesses to a region ask the kernel about their own pages, and what was found is kept, so
 * that the next ones to those pages ask nothing. Now and then an access asks about the whole region
 * instead, and if that allows all accesses of its kind, the key table says so (MR_CHECKED()): then
 * mr_range() alone decides. So memory that the program unmaps while its region is open is not always
 * noticed. A region that is the whole address space, of which programs map and unmap parts, is checked
 * by each access.
 *
 * The caller holds the domain; the registrar is out.
 */
#ifndef WEFT_CHECKED_H
#define WEFT_CHECKED_H

#include "regions.h"

/*
 * engine_mr_check - mr_range() for an access to memory that is not known to allow it
 * Returns 0, or -FI_EACCES: not granted, outside of the region, or the memory does not allow it; that is
 * logged, once for a region.
 */
int engine_mr_check(const struct mr_region *region, uint64_t addr, uint64_t len,
		    uint64_t access, struct iovec *iov, size_t *cnt);

#endif
