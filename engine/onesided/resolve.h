/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How an access of a peer gets from a key to memory. The regions themselves are what object/ opens
 * and closes.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_RESOLVE_H
#define WEFT_RESOLVE_H

#include <rdma/fi_errno.h>
#include "cntr.h"
#include "regions.h"

/*
 * engine_mr_resolve - from a key to memory, for an access that is done before this thread makes
 * progress again or lets go of the domain
 * @ep:	    that the access comes through
 * @addr:   as the initiator names it: virtual, or an offset, after the domain's mr_mode
 * @access: FI_REMOTE_READ, FI_REMOTE_WRITE or both
 * @iov:    out: room for MR_IOV_MAX pieces
 * @cnt:    out: how many there are, at least one, also for zero bytes
 * @mr:	    out: the region
 *
 * Returns 0; -FI_EKEYREJECTED for a key that is unknown, closed, not enabled, or of another
 * endpoint; -FI_EACCES for an access that was not granted or a range that is not inside. After
 * an error nothing was written.
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
	ret = mr_range(region, addr, len, access, iov, cnt);
	if (unlikely(ret))
		return ret;
	*mr = found;
	return 0;
}

/*
 * engine_mr_acquire - engine_mr_resolve() for a transfer that takes longer
 * Until engine_mr_release() fi_close of the region waits, up to a second, and then fails.
 */
static inline int engine_mr_acquire(struct engine_domain *domain, struct engine_ep *ep,
				    uint64_t key, uint64_t addr, uint64_t len, uint64_t access,
				    struct iovec *iov, size_t *cnt, struct engine_mr **mr)
{
	int ret = engine_mr_resolve(domain, ep, key, addr, len, access, iov, cnt, mr);

	if (likely(!ret))
		(*mr)->refs++;
	return ret;
}

/* engine_mr_release - the transfer does not touch the memory any more */
static inline void engine_mr_release(struct engine_mr *mr)
{
	assert(mr->refs);
	mr->refs--;
}

/*
 * engine_mr_count - a peer has done this to @len bytes of the region: its counters say so
 * @access: with FI_REMOTE_WRITE the memory was modified, whatever was read. Source: fi_mr(3), fi_mr_bind.
 */
static inline void engine_mr_count(struct engine_mr *mr, uint64_t access, uint64_t len)
{
	engine_count(access & FI_REMOTE_WRITE ? mr->writes.cntr : mr->reads.cntr, 0, len);
}

/* engine_mr_whole - is it the whole address space, where there may be memory or not */
static inline bool engine_mr_whole(const struct engine_mr *mr)
{
	return unlikely(mr->iov[0].iov_len == UINTPTR_MAX);
}

#endif
