/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The platform interface in a Linux process: what is too long to stand in the header.
 * Called by the engine and its parts on any thread.
 */
#include <rdma/fi_errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
#include <sys/single_threaded.h>
#endif
#include "maps.h"
#include "membarrier.h"
#include "platform.h"
#include "touch.h"

/*
 * calloc() leaves memory untouched that is fresh from the kernel, which aligned_alloc() with a
 * memset() would not: pages of a slab are populated as they are used. The pointer that it returned
 * is in the word before the cache line that is returned.
 */
void *platform_alloc(size_t len)
{
	char *raw, *line;

	if (len > PTRDIFF_MAX - CACHE_LINE)
		return NULL;
	raw = calloc(1, len + CACHE_LINE);
	if (!raw)
		return NULL;
	line = (char *)(((uintptr_t)raw + CACHE_LINE) & ~(uintptr_t)(CACHE_LINE - 1));
	((void **)line)[-1] = raw;
	return line;
}

void platform_free(void *ptr)
{
	if (ptr)
		free(((void **)ptr)[-1]);
}

int platform_random(void *buf, size_t len)
{
	char *at = buf;

	while (len) {
		/* getrandom() is a cancellation point, and callers hold locks */
		ssize_t n = syscall(SYS_getrandom, at, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -FI_EIO;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

uint32_t platform_descriptor_max(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > UINT32_MAX)
		return UINT32_MAX;
	return (uint32_t)limit.rlim_cur;
}

/* Computes the whole pages of a range. Returns false if they are beyond the last address. */
static bool pages_of(const void *addr, size_t len, struct platform_range *pages)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), last;

	if (__builtin_add_overflow((uintptr_t)addr, len - 1, &last) || last > UINTPTR_MAX - page)
		return false;
	pages->from = (uintptr_t)addr & ~(page - 1);
	pages->end = (last & ~(page - 1)) + page;
	return true;
}

/* Returns 0, -FI_EFAULT: an access would end the process, or another -FI_E*: that is not known. */
static int range_ask(const void *addr, size_t len, const struct platform_range *pages,
		     bool write)
{
	size_t whole = pages->end - pages->from;
	void *from = (void *)pages->from;
	int ret = -FI_EINVAL;

	if (len <= PLATFORM_TOUCH_MAX)
		ret = sys_touch(from, whole, write);
	if (ret && ret != -FI_EFAULT)
		ret = sys_maps_allow(addr, len, write ? PROT_WRITE : PROT_READ);
	if (ret && ret != -FI_EFAULT)
		ret = sys_touch(from, whole, write); /* no /proc, or no descriptor for it */
	return ret;
}

/* Returns true if the kernel has what sys_touch() calls. */
static bool touch_works(void)
{
	struct platform_range pages;

	return pages_of(&pages, 1, &pages) &&
	       !sys_touch((void *)pages.from, pages.end - pages.from, true);
}

bool platform_accessible(const void *addr, size_t len, bool write, struct platform_range *found)
{
	struct platform_range pages;
	int ret;

	if (!pages_of(addr, len, &pages))
		return false;
	ret = range_ask(addr, len, &pages, write);
	if (ret && (ret == -FI_EFAULT || touch_works() ||
		    !sys_mapped((void *)pages.from, pages.end - pages.from)))
		return false;
	*found = pages;
	return true;
}

bool platform_mapped(const void *addr, size_t len, bool write)
{
	return !sys_maps_allow(addr, len, write ? PROT_READ | PROT_WRITE : PROT_READ);
}

/* Returns true if the process is known to have had no other thread yet. */
static bool platform_one_thread(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
	return __libc_single_threaded;
#else
	return false;
#endif
}

int platform_membarrier_open(void)
{
	int ret = sys_membarrier_open();

	return ret ? ret : sys_membarrier(); /* a filter may allow the one and not the other */
}

int platform_membarrier(void)
{
	/* A thread that begins later sees what was stored before it began. */
	return platform_one_thread() ? 0 : sys_membarrier();
}

void platform_yield(void)
{
	sched_yield();
}
