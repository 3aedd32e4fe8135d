/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory regions of a domain: the object behind fi_mr_reg. resolve.h finds the memory of a key.
 * The caller holds the domain.
 */
#ifndef WEFT_MR_FID_H
#define WEFT_MR_FID_H

#include "engine.h"
#include "regions.h"

/* From domain_mrs.c */

/*
 * engine_mrs_notify - an object counts remote accesses to the regions of the domain from now on:
 * peers access them by packets alone
 */
void engine_mrs_notify(struct engine_domain *domain);

/*
 * engine_mr_bound - returns true if a region is bound to this endpoint, which then can't be closed
 * (fi_mr(3))
 */
bool engine_mr_bound(const struct engine_domain *domain, const struct engine_ep *ep);

/* engine_mrs_share - the key table that the domain shows to peers over that kind of wire, or NULL */
static inline struct wire_share *engine_mrs_share(const struct engine_domain *domain,
						  const struct wire_ops *wire)
{
	return domain->mr->shows == wire ? domain->mr->share : NULL;
}

/*
 * engine_mrs_open - create the regions of a domain with this mr_mode; its family is set. Returns 0
 * or -FI_ENOMEM
 */
int engine_mrs_open(struct engine_domain *domain, int mr_mode);
/* engine_mrs_close - free them; all regions were closed */
void engine_mrs_close(struct engine_domain *domain);

/* From mr_fid.c */

/*
 * engine_mr_control - fi_control of a domain: FI_MAP_RAW_MR, FI_UNMAP_KEY
 *
 * A raw key is the key, 8 bytes in little-endian order. Returns 0 or -FI_E*, -FI_ENOSYS for any
 * other command.
 */
int engine_mr_control(struct engine_domain *domain, int command, void *arg);

/*
 * engine_mr_holds_all - returns true if each of these ranges is inside one of the pieces of a
 * region
 */
bool engine_mr_holds_all(const struct engine_mr *mr, const struct iovec *iov, size_t cnt);

/*
 * engine_mr_unpin_some - take back the first @cnt registrations of mr->pins; a piece without bytes
 * has none
 */
static inline void engine_mr_unpin_some(struct engine_mr *mr, size_t cnt)
{
	const struct engine_mrs *mrs = mr->domain->mr;
	struct mr_pin *pin = mr->pins, *end = pin + cnt;

	for (const struct iovec *iov = mr->iov; pin < end; iov++) {
		for (uint32_t i = 0; i < mrs->device_cnt && pin < end; i++, pin++) {
			if (iov->iov_len)
				mrs->devices[i].ops->dereg(mrs->devices[i].device, pin);
		}
	}
}

/*
 * engine_mr_pin - register the pieces of a region with the devices of its domain
 * engine_mr_unpin - take that back
 * Returns 0, or -FI_E*: it is registered with none.
 */
static inline int engine_mr_pin(struct engine_mr *mr, uint64_t access)
{
	const struct engine_mrs *mrs = mr->domain->mr;
	const struct iovec *end = mr->iov + mr->iov_cnt;
	struct mr_pin *pin = mr->pins;

	for (const struct iovec *iov = mr->iov; iov < end; iov++) {
		for (uint32_t i = 0; i < mrs->device_cnt; i++, pin++) {
			int ret = 0;

			if (likely(iov->iov_len))
				ret = mrs->devices[i].ops->reg(mrs->devices[i].device,
							       iov->iov_base, iov->iov_len,
							       access, pin);
			if (unlikely(ret)) {
				engine_mr_unpin_some(mr, (size_t)(pin - mr->pins));
				return ret;
			}
		}
	}
	return 0;
}

static inline void engine_mr_unpin(struct engine_mr *mr)
{
	engine_mr_unpin_some(mr, mr->iov_cnt * mr->domain->mr->device_cnt);
}

/* engine_mrs_count - there are @more regions, UINT32_MAX: one less. By who has the regions (registrar.h) */
static inline void engine_mrs_count(struct engine_mrs *mrs, uint32_t more)
{
	uint32_t cnt = atomic_load_explicit(&mrs->cnt, memory_order_relaxed);

	atomic_store_explicit(&mrs->cnt, cnt + more, memory_order_relaxed);
}

/* engine_mr_iova - the address that peers use for its first byte */
static inline uint64_t engine_mr_iova(const struct engine_mr *mr)
{
	return mr->domain->mr->mode & FI_MR_VIRT_ADDR ? (uintptr_t)mr->iov[0].iov_base : 0;
}

/* The slots of a region. */
extern struct fi_ops engine_mr_fi_ops;

/* From mr_reg.c: the table of a domain that registers memory. */
extern struct fi_ops_mr engine_mr_ops;

#endif
