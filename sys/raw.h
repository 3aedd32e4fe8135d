/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The system calls that change mappings, behind the names that libweft-mem.so and other libraries put in front of
 * them. They answer like the functions of the C library, and are called where those would take addresses of the arena for
 * a program's: libweft-mem.so's own wait for the arena's lock, which the caller may hold. Any thread.
 */
#ifndef WEFT_SYS_RAW_H
#define WEFT_SYS_RAW_H

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Linux 6.13; of files' memory 6.15 */
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE  103
#endif

/*
 * ThreadSanitizer is to see that an address means other memory. What is mapped in place has the contents it had: there it
 * would take that for a store. libweft-mem.so is not built with it.
 */
#ifdef __SANITIZE_THREAD__
#define raw_munmap munmap
#else
static inline int raw_munmap(void *addr, size_t len)
{
	return (int)syscall(SYS_munmap, addr, len);
}
#endif

static inline void *raw_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
#ifdef __SANITIZE_THREAD__
	if (!(flags & MAP_FIXED))
		return mmap(addr, len, prot, flags, fd, offset);
#endif
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
}

static inline int raw_mprotect(void *addr, size_t len, int prot)
{
	return (int)syscall(SYS_mprotect, addr, len, prot);
}

static inline int raw_madvise(void *addr, size_t len, int advice)
{
	return (int)syscall(SYS_madvise, addr, len, advice);
}

static inline int raw_prlimit(pid_t pid, int resource, const void *next, void *old)
{
	return (int)syscall(SYS_prlimit64, pid, resource, next, old);
}

static inline void *raw_mremap(void *addr, size_t len, size_t new_len, int flags, void *to)
{
	return (void *)syscall(SYS_mremap, addr, len, new_len, flags, to);
}

#endif
