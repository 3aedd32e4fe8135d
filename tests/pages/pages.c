/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pages of WEFT_PAGES bytes, for a program that this is loaded into (LD_PRELOAD): what the C library says
 * of pages, and the system calls for which they matter, as on a machine that has them. Addresses and
 * offsets that do not begin such a page are refused, mappings begin at one and have whole ones. What the
 * C library calls by itself has the pages of this machine.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static size_t page(void)
{
	static size_t len;
	const char *value = getenv("WEFT_PAGES");

	if (!len)
		len = value ? strtoul(value, NULL, 10) : 4096;
	return len;
}

static int is_inside(uintptr_t at)
{
	return (at & (page() - 1)) != 0;
}

static size_t whole(size_t len)
{
	return (len + page() - 1) & ~(page() - 1);
}

/* A system call's answer: -1 and errno. */
static long refused(int err)
{
	errno = err;
	return -1;
}

long sysconf(int name)
{
	static long (*next)(int);

	if (name == _SC_PAGESIZE)
		return (long)page();
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "sysconf");
	return next(name);
}

int getpagesize(void)
{
	return (int)page();
}

static void *raw_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t at)
{
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, at);
}

/* Reserves whole pages, from the start of one. Returns where, or MAP_FAILED. */
static char *reserve(void *hint, size_t len)
{
	char *all = raw_mmap(hint, len + page(), PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t before;

	if (all == MAP_FAILED)
		return all;
	before = whole((uintptr_t)all) - (uintptr_t)all;
	if (before)
		syscall(SYS_munmap, all, before);
	syscall(SYS_munmap, all + before + len, page() - before);
	return all + before;
}

/* Bytes of the last page behind what is mapped of this machine's pages are there, and nobody else's. */
void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t at)
{
	size_t all = whole(len), got = (len + 4095) & ~(size_t)4095;
	int fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
	char *place = addr;
	void *ret;

	if (!len || is_inside((uintptr_t)at) || (fixed && is_inside((uintptr_t)addr)))
		return (void *)refused(EINVAL);
	if (!fixed)
		place = reserve((void *)whole((uintptr_t)addr), all);
	if (place == MAP_FAILED)
		return place;
	ret = raw_mmap(place, got, prot, flags | (fixed ? 0 : MAP_FIXED), fd, at);
	if (ret == MAP_FAILED) {
		int err = errno;

		if (!fixed)
			syscall(SYS_munmap, place, all);
		errno = err;
	} else if (all > got) {
		raw_mmap(place + got, all - got, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			 -1, 0);
	}
	return ret;
}

void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t at)
	__attribute__((alias("mmap")));

int munmap(void *addr, size_t len)
{
	if (!len || is_inside((uintptr_t)addr))
		return (int)refused(EINVAL);
	return (int)syscall(SYS_munmap, addr, whole(len));
}

int mprotect(void *addr, size_t len, int prot)
{
	if (is_inside((uintptr_t)addr))
		return (int)refused(EINVAL);
	return (int)syscall(SYS_mprotect, addr, whole(len), prot);
}

int madvise(void *addr, size_t len, int advice)
{
	if (is_inside((uintptr_t)addr))
		return (int)refused(EINVAL);
	return (int)syscall(SYS_madvise, addr, whole(len), advice);
}

int msync(void *addr, size_t len, int flags)
{
	if (is_inside((uintptr_t)addr))
		return (int)refused(EINVAL);
	return (int)syscall(SYS_msync, addr, whole(len), flags);
}

/* One byte of @resident for each page: that of its first bytes. */
int mincore(void *addr, size_t len, unsigned char *resident)
{
	if (is_inside((uintptr_t)addr))
		return (int)refused(EINVAL);
	for (size_t at = 0; at < len; at += page()) {
		unsigned char here[1u << 8];

		if (page() / 4096 > sizeof(here))
			return (int)refused(EINVAL);
		if (syscall(SYS_mincore, (char *)addr + at, page(), here))
			return -1;
		*resident++ = here[0];
	}
	return 0;
}
