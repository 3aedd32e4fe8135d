/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Write guards: a page whose right to be written is taken away. Called by providers on any thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "fault.h"
#include "write_guard.h"

static size_t page_len(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/*
 * The range of addresses that guards are asked for: 28 of the 128 TiB of a process. Nothing else is
 * mapped there: it lies above the program and its heap and some TiB below the stack, from where the
 * kernel places mappings downwards.
 */
#define RANGE_LOW  0x600000000000u
#define RANGE_HIGH 0x7c0000000000u

/*
 * A random address as mmap(2)'s hint, or NULL for none. The kernel chooses another one where something is
 * mapped already, or nothing can be.
 */
static void *random_hint(void)
{
	uint64_t random;

	if (sizeof(void *) < sizeof(random) ||
	    /* getrandom() is a cancellation point, and the domain is held */
	    syscall(SYS_getrandom, &random, sizeof(random), GRND_NONBLOCK) !=
		    (long)sizeof(random))
		return NULL;
	random = RANGE_LOW + random % (RANGE_HIGH - RANGE_LOW);
	return (void *)(uintptr_t)(random / page_len() * page_len());
}

int sys_write_guard_open(void **write_guard)
{
	int err = sys_fault(SYS_CALL_MMAP);
	void *addr;

	if (err)
		return -err;
	/* shared: the kernel merges it with no neighbour, so that shutting it never splits one */
	addr = mmap(random_hint(), page_len(), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (addr == MAP_FAILED)
		return -errno;
	*write_guard = addr;
	return 0;
}

int sys_write_guard_shut(void *write_guard)
{
	int err = sys_fault(SYS_CALL_MPROTECT);

	if (err)
		return -err;
	return mprotect(write_guard, page_len(), PROT_NONE) ? -errno : 0;
}

void sys_write_guard_close(void *write_guard)
{
	if (write_guard)
		munmap(write_guard, page_len());
}
