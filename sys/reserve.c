/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reserved addresses. Called by mem/ when a chunk is made, on any thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "reserve.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
/* What only such a table points to is no leak; by itself the checker looks elsewhere. */
#define IS_LOOKED_INTO(addr, len) __lsan_register_root_region(addr, len)
#else
#define IS_LOOKED_INTO(addr, len)
#endif

#define RESERVED (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

int sys_reserve(size_t len, size_t align, void **out)
{
	int err = sys_fault(SYS_CALL_MMAP);
	size_t before, after;
	char *addr;

	if (err)
		return -err;
	if (!len || len > SIZE_MAX - align)
		return -FI_EINVAL;
	addr = mmap(NULL, len + align, PROT_NONE, RESERVED, -1, 0);
	if (addr == MAP_FAILED)
		return -errno;
	before = -(uintptr_t)addr & (align - 1);
	after = align - before;
	if (before)
		munmap(addr, before);
	if (after)
		munmap(addr + before + len, after);
	*out = addr + before;
	return 0;
}

void sys_reserve_end(void *addr, size_t len)
{
	if (addr)
		munmap(addr, len);
}

int sys_reserve_map(void *addr, size_t len, int fd)
{
	int err = sys_fault(SYS_CALL_MMAP);

	if (err)
		return -err;
	if (mmap(addr, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		return -errno;
	if (!madvise(addr, len, MADV_DONTFORK))
		return 0;
	err = errno;
	/* A child that shares the pages would write to this process's memory. */
	if (mmap(addr, len, PROT_NONE, RESERVED | MAP_FIXED, -1, 0) == MAP_FAILED)
		munmap(addr, len);
	return -err;
}

void *sys_reserve_zero(size_t len)
{
	void *addr;

	if (sys_fault(SYS_CALL_MMAP))
		return NULL;
	addr = mmap(NULL, len, PROT_READ | PROT_WRITE, RESERVED, -1, 0);
	if (addr == MAP_FAILED)
		return NULL;
	IS_LOOKED_INTO(addr, len);
	return addr;
}
