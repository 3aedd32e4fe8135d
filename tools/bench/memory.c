/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Where buffers come from. Called by traffic.c and region.c. */
#include "memory.h"

#include <err.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <weft/mem.h>

#define ALIGNMENT 64

static struct weft_mem_ops *mem_ops(const struct channel *ch)
{
	struct weft_mem_ops *ops;

	if (fi_open_ops(&ch->end.domain->fid, WEFT_MEM_OPS, 0, (void **)&ops, NULL))
		return NULL;
	return ops;
}

void *memory_alloc(const struct channel *ch, size_t len, uint64_t access)
{
	uint64_t flags = access & FI_REMOTE_WRITE ? WEFT_MEM_REMOTE_WRITE : 0;
	struct weft_mem_ops *ops;
	void *mem = NULL;

	if (!ch->mem)
		return posix_memalign(&mem, ALIGNMENT, len) ? NULL : mem;
	ops = mem_ops(ch);
	if (!ops)
		warnx("the provider has no registered memory to allocate: --mem needs Weft");
	return ops && !ops->alloc(len, ALIGNMENT, flags, &mem) ? mem : NULL;
}

void memory_free(const struct channel *ch, void *mem)
{
	struct weft_mem_ops *ops = ch->mem ? mem_ops(ch) : NULL;

	if (!ops)
		free(mem);
	else if (mem)
		ops->free(mem);
}
