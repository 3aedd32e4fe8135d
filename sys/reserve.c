/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reserved addresses. Called by mem/, also with the arena's lock held, on any thread: mappings are changed by the
 * numbers of system calls (raw.h).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "maps.h"
#include "raw.h"
#include "reserve.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
/* What only such a table points to is no leak; by itself the checker looks elsewhere. */
#define IS_LOOKED_INTO(addr, len) __lsan_register_root_region(addr, len)
#else
#define IS_LOOKED_INTO(addr, len)
#endif

#define RESERVED (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

int sys_reserve(size_t len, size_t align, size_t around, void **out)
{
	int err = sys_fault(SYS_CALL_MMAP);
	size_t all, before, after;
	char *addr;

	if (err)
		return -err;
	if (!len || __builtin_add_overflow(len, align, &all) ||
	    __builtin_add_overflow(all, around, &all) ||
	    __builtin_add_overflow(all, around, &all))
		return -FI_EINVAL;
	addr = raw_mmap(NULL, all, PROT_NONE, RESERVED, -1, 0);
	if (addr == MAP_FAILED)
		return -errno;
	before = around + (-((uintptr_t)addr + around) & (align - 1));
	after = all - before - len;
	if (before)
		raw_munmap(addr, before);
	if (after)
		raw_munmap(addr + before + len, after);
	*out = addr + before;
	return 0;
}

void sys_reserve_end(void *addr, size_t len)
{
	if (addr)
		raw_munmap(addr, len);
}

int sys_reserve_map(void *addr, size_t len, int fd)
{
	int err = sys_fault(SYS_CALL_MMAP);

	if (err)
		return -err;
	if (raw_mmap(addr, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
	    MAP_FAILED)
		return -errno;
	/* Few hosts give them to all shared memory, more to what asks; where none are given it is as it was. */
	raw_madvise(addr, len, MADV_HUGEPAGE);
	if (!raw_madvise(addr, len, MADV_DONTFORK))
		return 0;
	err = errno;
	/* A child that shares the pages would write to this process's memory. */
	if (raw_mmap(addr, len, PROT_NONE, RESERVED | MAP_FIXED, -1, 0) == MAP_FAILED)
		raw_munmap(addr, len);
	return -err;
}

static int reserve_anew(void *addr, size_t len, int prot)
{
	int err = sys_fault(SYS_CALL_MMAP);

	if (err)
		return -err;
	return raw_mmap(addr, len, prot, RESERVED | MAP_FIXED, -1, 0) == MAP_FAILED ? -errno : 0;
}

int sys_reserve_again(void *addr, size_t len)
{
	return reserve_anew(addr, len, PROT_NONE);
}

int sys_reserve_zeros(void *addr, size_t len)
{
	return reserve_anew(addr, len, PROT_READ | PROT_WRITE);
}

struct leaving {
	int fd;
	const struct sys_memfd_id *id;
	/* parts that are private now, or were not to be made so */
	size_t cnt;
};

/* Returns whether a mapping is of that memfd, and stores to it go there. */
static bool is_shared_of(const struct sys_map *m, const struct sys_memfd_id *id)
{
	return m->shared && m->inode == id->inode && m->device == id->device;
}

static int leave_part(const struct sys_map *m, void *arg)
{
	struct leaving *leaving = arg;

	leaving->cnt++;
	if (!is_shared_of(m, leaving->id))
		return 0;
	/*
	 * The kernel replaces a mapping in one step: another thread waits, and finds the same contents. To
	 * a sanitizer that knows mmap() it would be a store to all of it.
	 */
	if (raw_mmap(m->addr, m->len, m->prot, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
		     leaving->fd, (off_t)m->offset) == MAP_FAILED)
		return -errno;
	return 0;
}

int sys_reserve_leave(void *addr, size_t len, int fd, const struct sys_memfd_id *id,
		      const uint64_t *offset)
{
	struct leaving leaving = { .fd = fd, .id = id };
	struct sys_map all = {
		.addr = addr,
		.len = len,
		.prot = PROT_READ | PROT_WRITE,
		.shared = true,
		.device = id->device,
		.inode = id->inode,
	};
	int err = sys_fault(SYS_CALL_MMAP);

	if (err)
		return -err;
	err = sys_maps_each(addr, len, leave_part, &leaving);
	if (!err || leaving.cnt || !offset)
		return err;
	all.offset = *offset;
	return leave_part(&all, &leaving);
}

static int remove_part(const struct sys_map *m, void *arg)
{
	const struct sys_memfd_id *id = arg;
	int err = is_shared_of(m, id) ? sys_fault(SYS_CALL_FALLOCATE) : 0;

	if (err || !is_shared_of(m, id))
		return -err;
	return raw_madvise(m->addr, m->len, MADV_REMOVE) ? -errno : 0;
}

int sys_reserve_remove(void *addr, size_t len, const struct sys_memfd_id *id)
{
	return sys_maps_each(addr, len, remove_part, (void *)(uintptr_t)id);
}

int sys_reserve_take(void *addr, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int err = sys_fault(SYS_CALL_POPULATE);

	if (err)
		return -err;
#ifdef MADV_POPULATE_WRITE
	if (!raw_madvise(addr, len, MADV_POPULATE_WRITE))
		return 0;
	if (errno != EINVAL)
		return -errno;
#endif
	for (size_t at = 0; at < len; at += page)
		atomic_fetch_add_explicit((_Atomic unsigned char *)addr + at, 0,
					  memory_order_relaxed);
	return 0;
}

static int own_part(const struct sys_map *m, void *arg)
{
	int *err = arg,
	    ret = m->prot & PROT_WRITE ? sys_reserve_take(m->addr, m->len) : -FI_EACCES;

	*err = ret ? ret : *err;
	return 0;
}

int sys_reserve_own(void *addr, size_t len)
{
	int err = 0, ret = sys_maps_each(addr, len, own_part, &err);

	return ret ? ret : err;
}

static int clear_part(const struct sys_map *m, void *arg)
{
	if (raw_mmap(m->addr, m->len, m->prot, RESERVED | MAP_FIXED, -1, 0) == MAP_FAILED)
		return -errno;
	return 0;
}

int sys_reserve_clear(void *addr, size_t len)
{
	int err = sys_fault(SYS_CALL_MMAP);

	return err ? -err : sys_maps_each(addr, len, clear_part, NULL);
}

static int discard_part(const struct sys_map *m, void *arg)
{
	const struct sys_memfd_id *id = arg;

	if (m->inode == id->inode && m->device == id->device)
		return clear_part(m, NULL);
	return raw_madvise(m->addr, m->len, MADV_DONTNEED) ? -errno : 0;
}

int sys_reserve_discard(void *addr, size_t len, const struct sys_memfd_id *id)
{
	int err = sys_fault(SYS_CALL_MMAP);

	return err ? -err : sys_maps_each(addr, len, discard_part, (void *)(uintptr_t)id);
}

void *sys_reserve_zero(size_t len)
{
	void *addr;

	if (sys_fault(SYS_CALL_MMAP))
		return NULL;
	addr = raw_mmap(NULL, len, PROT_READ | PROT_WRITE, RESERVED, -1, 0);
	if (addr == MAP_FAILED)
		return NULL;
	IS_LOOKED_INTO(addr, len);
	return addr;
}

uint64_t sys_reserve_limit(void)
{
	struct rlimit limit;

	if (sys_fault(SYS_CALL_GETRLIMIT) || getrlimit(RLIMIT_AS, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}
