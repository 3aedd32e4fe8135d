/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory regions of a domain: the object behind fi_mr_reg, and how transfers get from a key to
 * memory. Everything here is called with the domain held.
 */
#ifndef WEFT_MR_FID_H
#define WEFT_MR_FID_H

#include "cntr.h"
#include "engine.h"
#include "mr.h"

/* The regions of a domain. */
struct engine_mrs {
	struct mr_table table; /* those with remote access; object: struct engine_mr */
	int mode;	       /* mr_mode of the domain; FI_MR_BASIC is written out */
	struct list bound;     /* struct engine_mr.ep_link */
	bool told;	       /* peers tell of all that they do to regions of this domain */
	const struct wire_ops
		*shows;		  /* of the wire over which peers look at the table, or NULL */
	struct wire_share *share; /* its own, for this domain */
};

struct engine_mr {
	struct fid_mr fid;
	struct engine_domain *domain;
	struct engine_ep
		*ep; /* FI_MR_ENDPOINT: the one that it serves; NULL: none yet, or all */
	struct engine_mr
		*base;	     /* the region that it is part of (fi_mr_attr.base_mr), or NULL */
	struct list ep_link; /* while ep is set */
	uint32_t index;	     /* in the table; 0: without remote access, and without key */
	uint32_t refs;	     /* transfers in flight */
	uint32_t subs;	     /* regions that are part of it */
	struct cntr_region reads, writes; /* what counts those of peers */
	bool enabled;
	bool closing;
	size_t iov_cnt;
	struct iovec iov[MR_IOV_MAX];
};

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

/*
 * engine_mrs_tell - something counts from now on what peers do to any region of the domain: they do it
 * by packets alone
 */
void engine_mrs_tell(struct engine_domain *domain);

/* engine_mr_bound - is a region bound to this endpoint? Then it can't be closed (fi_mr(3)) */
bool engine_mr_bound(const struct engine_domain *domain, const struct engine_ep *ep);

/* engine_mrs_share - what the domain shows over that kind of wire, or NULL */
static inline struct wire_share *engine_mrs_share(const struct engine_domain *domain,
						  const struct wire_ops *wire)
{
	return domain->mr->shows == wire ? domain->mr->share : NULL;
}

/* engine_mrs_open - the regions of a domain with this mr_mode; its family is set. Returns 0 or -FI_ENOMEM */
int engine_mrs_open(struct engine_domain *domain, int mr_mode);
/* engine_mrs_close - end of a domain; all its regions were closed */
void engine_mrs_close(struct engine_domain *domain);

/*
 * engine_mr_control - the commands of fi_control on a domain that are about regions:
 * FI_MAP_RAW_MR, FI_UNMAP_KEY. A raw key is the key, 8 bytes in little-endian order.
 * Returns 0 or -FI_E*, -FI_ENOSYS for any other command.
 */
int engine_mr_control(struct engine_domain *domain, int command, void *arg);

/* The table of a domain that registers memory. */
extern struct fi_ops_mr engine_mr_ops;

#endif
