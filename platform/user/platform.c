/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The platform interface in a Linux process: what is too long to stand in the header.
 * Called by the engine and its parts on any thread.
 */
#include <rdma/fi_errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
#include <sys/single_threaded.h>
#endif
#include "membarrier.h"
#include "platform.h"

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

bool platform_mapped(const void *addr, size_t len)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)addr & ~(page - 1),
		  end;
	unsigned char resident[512];
	size_t step;

	if (__builtin_add_overflow((uintptr_t)addr, len, &end))
		return false;
	for (; at < end; at += step) {
		step = end - at < sizeof(resident) * page ? end - at : sizeof(resident) * page;
		if (mincore((void *)at, step, resident))
			return false;
	}
	return true;
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
