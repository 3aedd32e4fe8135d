/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that is registered before anyone asks: peers on the same host reach it by loads and stores,
 * and wires that pin memory have it pinned already. Answered by the fabrics and domains of Weft's
 * providers; a stock libfabric answers fi_open_ops with an error, and a caller uses malloc then:
 *
 *	struct weft_mem_ops *mem;
 *	void *buf;
 *
 *	if (!fi_open_ops(&domain->fid, WEFT_MEM_OPS, 0, (void **)&mem, NULL) &&
 *	    !mem->alloc(len, 64, WEFT_MEM_REMOTE_WRITE, &buf))
 *		... fi_mr_reg(domain, buf, len, FI_REMOTE_WRITE, ...), fi_send, ...; mem->free(buf)
 *
 * The memory belongs to the process, not to the object that was asked. It is ordinary memory to the
 * program, but for this: it is not to be unmapped or remapped, and the child of a fork has a copy of
 * its own only as far as docs/mem.md says.
 */
#ifndef WEFT_MEM_H
#define WEFT_MEM_H

#include <rdma/fabric.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_MEM_OPS "weft_mem"

/*
 * Flags of alloc:
 * WEFT_MEM_REMOTE_WRITE - peers may store there by themselves, once it is registered with
 *	FI_REMOTE_WRITE. A process of the same user that has access to one such allocation has access
 *	to all of them, and to nothing else; other memory it can only read. Without the flag writes
 *	of peers are carried out by this process, or by the kernel.
 * WEFT_MEM_HUGE - of the host's pool of huge pages (2 MiB; vm.nr_hugepages), where it has enough that are
 *	free; else, and together with WEFT_MEM_REMOTE_WRITE, as without the flag. All of it has pages when
 *	alloc returns; the pool has them back when nothing of its chunk (32 MiB and more) is allocated any
 *	more. It stays this process's when it forks: an access of the child ends the child.
 */
#define WEFT_MEM_REMOTE_WRITE (1ULL << 0)
#define WEFT_MEM_HUGE	      (1ULL << 1)

/*
 * struct weft_mem_usage - bytes of this process's registered memory
 * @live:     allocated
 * @retained: freed, with pages that are kept for what is allocated next
 */
struct weft_mem_usage {
	uint64_t live;
	uint64_t retained;
};

/*
 * struct weft_mem_ops - what fi_open_ops(WEFT_MEM_OPS) gives. Any thread.
 * @size:  bytes of this table in the library that gave it: a call that lies beyond is not there. The
 *	   table only grows at its end.
 * @alloc: allocate @len bytes, not 0, whose address is a multiple of @align, 0 or a power of two.
 *	   Pages are given out whole. The contents are not defined.
 *	   Returns 0 and the memory at @addr; -FI_EINVAL for @len, @align or @flags; -FI_ENOMEM.
 * @free:  free what alloc returned. Keys of regions over it may be closed before or after.
 *	   Returns 0, or -FI_EINVAL: no allocation begins at @addr.
 * @usage: how much there is.
 */
struct weft_mem_ops {
	size_t size;
	int (*alloc)(size_t len, size_t align, uint64_t flags, void **addr);
	int (*free)(void *addr);
	int (*usage)(struct weft_mem_usage *usage);
};

#ifdef __cplusplus
}
#endif

#endif
