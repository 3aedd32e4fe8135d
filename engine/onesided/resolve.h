/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lookup of the memory that a peer names by a key. The regions are opened and closed in object/.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_RESOLVE_H
#define WEFT_RESOLVE_H

#include <rdma/fi_errno.h>
#include "checked.h"
#include "cntr.h"
#include "registrar.h"

/*
 * engine_mr_resolve - look up the memory that a key names, for an access that ends before this
 * thread makes progress again or gives up the domain; the registrar is out (engine_registrar_out())
 * @ep:     endpoint at which the access arrives
 * @addr:   as the initiator names it: a virtual address, or an offset, depending on the domain's
 *          mr_mode
 * @len:    bytes
 * @access: FI_REMOTE_READ, FI_REMOTE_WRITE or both
 * @iov:    out: the pieces; room for MR_IOV_MAX of them
 * @cnt:    out: number of pieces, at least 1, also for zero bytes
 * @mr:     out: the region; borrowed
 *
 * Returns 0; -FI_EKEYREJECTED: the key is unknown, closed, not enabled, or of another endpoint;
 * -FI_EACCES: the access is not granted, the range is not inside the region, or its memory does not
 * allow the access. Out-parameters are written on success only.
 * Source: fi_mr(3), fi_rma(3).
 */
static inline int engine_mr_resolve(struct engine_domain *domain, struct engine_ep *ep,
				    uint64_t key, uint64_t addr, uint64_t len, uint64_t access,
				    struct iovec *iov, size_t *cnt, struct engine_mr **mr)
{
	const struct mr_region *region = mr_find(&domain->mr->table, key);
	struct engine_mr *found;
	int ret;

	if (unlikely(!region))
		return -FI_EKEYREJECTED;
	found = region->object;
	if (unlikely(found->ep && found->ep != ep))
		return -FI_EKEYREJECTED;
	ret = mr_range(region, addr, len, access | MR_CHECKED(access), iov, cnt);
	if (unlikely(ret))
		ret = engine_mr_check(region, addr, len, access, iov, cnt);
	if (unlikely(ret))
		return ret;
	*mr = found;
	return 0;
}

/*
 * engine_mr_acquire - engine_mr_resolve() for a transfer that takes longer
 * On success the caller releases @mr by engine_mr_release(). Until then fi_close of the region
 * waits, for up to a second, and then fails.
 */
static inline int engine_mr_acquire(struct engine_domain *domain, struct engine_ep *ep,
				    uint64_t key, uint64_t addr, uint64_t len, uint64_t access,
				    struct iovec *iov, size_t *cnt, struct engine_mr **mr)
{
	int ret;

	engine_registrar_out(domain);
	ret = engine_mr_resolve(domain, ep, key, addr, len, access, iov, cnt, mr);
	if (likely(!ret))
		(*mr)->refs++;
	return ret;
}

/* engine_mr_release - a transfer no longer accesses the region that engine_mr_acquire() got */
static inline void engine_mr_release(struct engine_mr *mr)
{
	engine_registrar_out(mr->domain);
	assert(mr->refs);
	mr->refs--;
}

/*
 * engine_mr_count - count an access of a peer in the counters bound to the region
 * @access: with FI_REMOTE_WRITE it counts as a write, whether or not the memory was read too
 * @len:    bytes
 * Source: fi_mr(3), fi_mr_bind.
 */
static inline void engine_mr_count(struct engine_mr *mr, uint64_t access, uint64_t len)
{
	engine_count(access & FI_REMOTE_WRITE ? mr->writes.cntr : mr->reads.cntr, 0, len);
}

#endif
