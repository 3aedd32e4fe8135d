/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registered memory and one-sided transfers; region.h has the contract. Called by the
 * patterns in onesided.c on both sides.
 */
#define _GNU_SOURCE
#include "region.h"
#include "memory.h"

#include <endian.h>
#include <err.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>

#define RAW_KEY_MAX 1024

/* Description of a region that the sides exchange; integers are little-endian. */
struct region_desc {
	/* 1: there is none */
	uint64_t failed;
	uint64_t base;
	uint64_t key;
	/* 0: the key above counts */
	uint64_t raw_len;
	uint8_t raw[RAW_KEY_MAX];
};

_Static_assert(sizeof(struct region_desc) == 32 + RAW_KEY_MAX, "a desc has no holes");
_Static_assert(sizeof(struct region_desc) <= OOB_BLOB_MAX, "a desc fits the channel");

static int mr_mode(const struct channel *ch)
{
	return ch->info->domain_attr->mr_mode;
}

int region_init(struct channel *ch, struct region *region, size_t len, uint64_t access)
{
	bool remote = access & (FI_REMOTE_READ | FI_REMOTE_WRITE);
	int rc = 0;

	memset(region, 0, sizeof(*region));
	region->ch = ch;
	region->mem = memory_alloc(ch, len, access);
	if (!region->mem)
		return fabric_complain("memory of a region", -FI_ENOMEM);
	memset(region->mem, 0, len);
	region->len = len;
	if (remote || mr_mode(ch) & FI_MR_LOCAL)
		rc = channel_mr_reg(ch, region->mem, len, access, &region->mr);
	if (!rc && region->mr)
		region->desc = fi_mr_desc(region->mr);
	if (rc)
		region_fini(region);
	return rc;
}

int region_expose(struct channel *ch, struct region *region, uint64_t access,
		  struct remote_region *name)
{
	int rc;

	region_hide(region);
	if (mr_mode(ch) & FI_MR_RAW)
		return fabric_complain("a key for a message", -FI_ENOSYS);
	rc = channel_mr_reg(ch, region->mem, region->len, access, &region->mr);
	if (rc)
		return rc;
	region->desc = fi_mr_desc(region->mr);
	name->addr = mr_mode(ch) & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)region->mem : 0;
	name->key = fi_mr_key(region->mr);
	return 0;
}

void region_hide(struct region *region)
{
	if (region->mr)
		fabric_close(&region->mr->fid, "fi_close of a memory region");
	region->mr = NULL;
	region->desc = NULL;
}

void region_fini(struct region *region)
{
	region_hide(region);
	if (region->mem)
		memory_free(region->ch, region->mem);
	memset(region, 0, sizeof(*region));
}

static int write_desc(struct channel *ch, const struct region *region, struct region_desc *desc)
{
	uint64_t base = 0;
	size_t raw_len = sizeof(desc->raw);
	int rc;

	memset(desc, 0, sizeof(*desc));
	desc->failed = htole64(!region);
	if (!region)
		return 0;
	if (mr_mode(ch) & FI_MR_VIRT_ADDR)
		base = (uint64_t)(uintptr_t)region->mem;
	if (mr_mode(ch) & FI_MR_RAW) {
		rc = fi_mr_raw_attr(region->mr, &base, desc->raw, &raw_len, 0);
		if (rc) {
			desc->failed = htole64(1);
			return fabric_complain("fi_mr_raw_attr", rc);
		}
		desc->raw_len = htole64(raw_len);
	} else {
		desc->key = htole64(fi_mr_key(region->mr));
	}
	desc->base = htole64(base);
	return 0;
}

static int read_desc(struct channel *ch, struct region_desc *desc, size_t len,
		     struct remote_region *remote)
{
	uint64_t raw_len = le64toh(desc->raw_len), base = le64toh(desc->base);
	int rc;

	if (len != sizeof(*desc) || raw_len > sizeof(desc->raw)) {
		warnx("the other side's key cannot be read");
		return -FI_EPROTO;
	}
	if (desc->failed)
		return -FI_ECONNABORTED;
	remote->addr = base;
	remote->key = le64toh(desc->key);
	if (!raw_len)
		return 0;
	rc = fi_mr_map_raw(ch->end.domain, base, desc->raw, raw_len, &remote->key, 0);
	if (rc)
		return fabric_complain("fi_mr_map_raw", rc);
	remote->mapped = true;
	return 0;
}

int region_exchange(struct channel *ch, const struct region *region,
		    struct remote_region *remote)
{
	struct region_desc mine, theirs;
	size_t len = sizeof(theirs);
	int rc, failed;

	memset(remote, 0, sizeof(*remote));
	failed = write_desc(ch, region, &mine);
	rc = oob_exchange(&ch->side->oob, &mine, sizeof(mine), &theirs, &len);
	if (rc || failed)
		return rc ? rc : failed;
	return region ? read_desc(ch, &theirs, len, remote) : -FI_ECONNABORTED;
}

void region_forget(struct channel *ch, struct remote_region *remote)
{
	int rc = 0;

	if (remote->mapped)
		rc = fi_mr_unmap_key(ch->end.domain, remote->key);
	if (rc)
		fabric_complain("fi_mr_unmap_key", rc);
	memset(remote, 0, sizeof(*remote));
}

int region_adds(struct channel *ch)
{
	size_t cnt;
	int rc = fi_fetch_atomicvalid(ch->end.ep, FI_UINT64, FI_SUM, &cnt);

	if (!rc)
		rc = fi_atomicvalid(ch->end.ep, FI_UINT64, FI_SUM, &cnt);
	return rc ? fabric_complain("an atomic sum of 64 bits", rc) : 0;
}

static bool injects(const struct channel *ch, enum region_transfer_kind kind, size_t len)
{
	return kind == REGION_ADD || (kind == REGION_WRITE && len <= ch->inject_size);
}

static ssize_t post(struct channel *ch, enum region_transfer_kind kind,
		    const struct region_access *access, struct channel_op *op)
{
	char *at = access->local->mem + access->at;
	void *desc = access->local->desc;
	uint64_t addr = access->remote->addr + access->remote_at, key = access->remote->key;

	switch (kind) {
	case REGION_READ:
		return fi_read(ch->end.ep, at, access->len, desc, ch->peer, addr, key,
			       &op->context);
	case REGION_WRITE:
		if (injects(ch, kind, access->len))
			return fi_inject_write(ch->end.ep, at, access->len, ch->peer, addr, key);
		return fi_write(ch->end.ep, at, access->len, desc, ch->peer, addr, key,
				&op->context);
	case REGION_FETCH_ADD:
		return fi_fetch_atomic(ch->end.ep, at, 1, desc, at + sizeof(uint64_t), desc,
				       ch->peer, addr, key, FI_UINT64, FI_SUM, &op->context);
	case REGION_ADD:
		return fi_inject_atomic(ch->end.ep, at, 1, ch->peer, addr, key, FI_UINT64,
					FI_SUM);
	}
	return -FI_EINVAL;
}

int region_transfer(struct channel *ch, enum region_transfer_kind kind,
		    const struct region_access *access, struct channel_op *op)
{
	static const char *const names[] = { "fi_read", "fi_write", "fi_fetch_atomic",
					     "fi_inject_atomic" };
	struct channel_deadline deadline = { 0 };
	ssize_t rc;
	int ran;

	op->is_recv = false;
	while ((rc = post(ch, kind, access, op)) == -FI_EAGAIN) {
		ran = channel_turn(ch, &deadline);
		if (ran < 0)
			return ran;
	}
	if (rc)
		return fabric_complain(names[kind], (int)rc);
	/* What is injected brings no completion. */
	if (injects(ch, kind, access->len))
		ch->tx_done++;
	else
		op->busy = true;
	return 0;
}
