/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checks of the memory that requests of peers access. Called with the domain held, by progress, where
 * the key table does not say that a region's memory was checked.
 */
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "checked.h"
#include "domain.h"

/* Accesses after which the whole region is asked about; again after twice as many, and so on */
#define CHECKS_MIN 16u

/* Returns true if the region is the whole address space, not all of which is mapped. */
static bool mr_is_whole(const struct engine_mr *mr)
{
	return mr->iov[0].iov_len == UINTPTR_MAX;
}

/* Keeps what was found: with what was found before if they touch each other, else instead of it. */
static void found_keep(struct platform_range *kept, const struct platform_range *found)
{
	if (found->from > kept->end || kept->from > found->end) {
		*kept = *found;
		return;
	}
	if (found->from < kept->from)
		kept->from = found->from;
	if (found->end > kept->end)
		kept->end = found->end;
}

/* Returns true if a piece of a region, not empty, allows loads, or with @write stores. */
static bool piece_allows(struct engine_mr *mr, const struct iovec *piece, bool write)
{
	struct platform_range *kept = &mr->checks.found[write], found;
	uintptr_t from = (uintptr_t)piece->iov_base;

	if (from >= kept->from && from < kept->end && piece->iov_len <= kept->end - from)
		return true;
	if (!platform_accessible(piece->iov_base, piece->iov_len, write, &found))
		return false;
	if (!mr_is_whole(mr))
		found_keep(kept, &found);
	return true;
}

/* Returns true if all of a region is mapped for loads, and with @write for stores too. */
static bool mr_allows(const struct engine_mr *mr, bool write)
{
	for (size_t i = 0; i < mr->iov_cnt; i++)
		if (!platform_mapped(mr->iov[i].iov_base, mr->iov[i].iov_len, write))
			return false;
	return true;
}

/* Returns true if it is time to ask about the whole region. */
static bool mr_is_due(const struct engine_mr *mr)
{
	uint32_t cnt = mr->checks.cnt;

	return cnt >= CHECKS_MIN && !(cnt & (cnt - 1)) && !mr_is_whole(mr);
}

/* Bytes of a region before a piece of it. */
static size_t mr_offset(const struct engine_mr *mr, const struct iovec *piece)
{
	size_t before = 0;

	for (size_t i = 0; i < mr->iov_cnt; i++) {
		uintptr_t at = (uintptr_t)piece->iov_base - (uintptr_t)mr->iov[i].iov_base;

		if (at < mr->iov[i].iov_len)
			return before + at;
		before += mr->iov[i].iov_len;
	}
	return before;
}

/* Logs the first refusal of a region. The log of a kernel is not to have addresses in it. */
static void refusal_tell(struct engine_mr *mr, const struct iovec *piece, bool write)
{
	if (mr->checks.told)
		return;
	mr->checks.told = true;
	FI_WARN(mr->domain->family->provider, FI_LOG_MR,
		"a peer's access to the memory of key %#llx is refused (%s): %s %zu bytes at offset %zu "
		"would be a fault. Memory that peers access is mapped, and for writes and atomics "
		"writable, until its region is closed. Later ones to this region are not logged\n",
		(unsigned long long)mr->fid.key, fi_strerror(FI_EACCES),
		write ? "writing" : "reading", piece->iov_len, mr_offset(mr, piece));
}

int engine_mr_check(const struct mr_region *region, uint64_t addr, uint64_t len,
		    uint64_t access, struct iovec *iov, size_t *cnt)
{
	struct engine_mr *mr = region->object;
	bool write = access & FI_REMOTE_WRITE;
	struct iovec pieces[MR_IOV_MAX];
	size_t piece_cnt;
	int ret = mr_range(region, addr, len, access, pieces, &piece_cnt);

	if (ret)
		return ret;
	mr->checks.cnt++;
	for (size_t i = 0; i < piece_cnt; i++) {
		if (!pieces[i].iov_len || piece_allows(mr, &pieces[i], write))
			continue;
		refusal_tell(mr, &pieces[i], write);
		return -FI_EACCES;
	}
	if (mr_is_due(mr) && mr_allows(mr, write))
		mr_set_checked(&mr->domain->mr->table, mr->index,
			       write ? FI_REMOTE_READ | FI_REMOTE_WRITE : FI_REMOTE_READ);
	memcpy(iov, pieces, piece_cnt * sizeof(*iov));
	*cnt = piece_cnt;
	return 0;
}
