/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * tools/bench/region.h without a provider: process_vm_readv(2) and process_vm_writev(2) by the side that
 * reads or writes, of malloc's memory in pages of the least size. A remote region's key is the process.
 */
#define _GNU_SOURCE
#include "region.h"

#include <err.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

int region_init(struct channel *ch, struct region *region, size_t len, uint64_t access)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	memset(region, 0, sizeof(*region));
	if (posix_memalign((void **)&region->mem, page, len)) {
		warnx("no memory for a region of %zu bytes", len);
		return -FI_ENOMEM;
	}
	/* Best effort: a kernel without huge pages refuses it. */
	madvise(region->mem, len, MADV_NOHUGEPAGE);
	memset(region->mem, 0, len);
	region->len = len;
	return 0;
}

void region_fini(struct region *region)
{
	free(region->mem);
	memset(region, 0, sizeof(*region));
}

int region_exchange(struct channel *ch, const struct region *region,
		    struct remote_region *remote)
{
	struct remote_region mine = { 0 };
	size_t len = sizeof(*remote);
	int rc;

	if (region)
		mine = (struct remote_region){ .addr = (uintptr_t)region->mem,
					       .key = (uint64_t)getpid() };
	memset(remote, 0, sizeof(*remote));
	rc = oob_exchange(&ch->side->oob, &mine, sizeof(mine), remote, &len);
	if (rc)
		return rc;
	return region && len == sizeof(*remote) && remote->addr ? 0 : -FI_ECONNABORTED;
}

void region_forget(struct channel *ch, struct remote_region *remote)
{
}

static int refuse(const char *what)
{
	return fabric_complain(what, -FI_ENOSYS);
}

int region_expose(struct channel *ch, struct region *region, uint64_t access,
		  struct remote_region *name)
{
	return refuse("a key in a message, over pipes");
}

void region_hide(struct region *region)
{
}

int region_adds(struct channel *ch)
{
	return refuse("additions, over pipes");
}

int region_transfer(struct channel *ch, enum region_transfer_kind kind,
		    const struct region_access *access, struct channel_op *op)
{
	uint64_t addr = access->remote->addr + access->remote_at;
	struct iovec local = { access->local->mem + access->at, access->len };
	struct iovec remote = { (void *)(uintptr_t)addr, access->len };
	pid_t pid = (pid_t)access->remote->key;
	ssize_t done;

	if (kind != REGION_READ && kind != REGION_WRITE)
		return refuse("additions, over pipes");
	op->is_recv = false;
	done = kind == REGION_READ ? process_vm_readv(pid, &local, 1, &remote, 1, 0)
				   : process_vm_writev(pid, &local, 1, &remote, 1, 0);
	if (done != (ssize_t)access->len) {
		warn("process_vm of %zu bytes", access->len);
		return done < 0 ? -errno : -FI_EIO;
	}
	ch->tx_done++;
	return 0;
}
