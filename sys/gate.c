/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A page with the right to write taken away. Called by providers on any thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>
#include "fault.h"
#include "gate.h"

static size_t page_len(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/*
 * Where nobody else is: 28 of the 128 TiB that a process has, above its program and its heap and, by some
 * TiB, below its stack, from which the kernel goes down from region to region.
 */
#define PLACE_LOW  0x600000000000u
#define PLACE_HIGH 0x7c0000000000u

/* An address to ask the kernel for; NULL: any. It takes another where there is something, or nothing can be. */
static void *place(void)
{
	uint64_t random;

	if (sizeof(void *) < sizeof(random) ||
	    getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
		return NULL;
	random = PLACE_LOW + random % (PLACE_HIGH - PLACE_LOW);
	return (void *)(uintptr_t)(random / page_len() * page_len());
}

int sys_gate_open(void **gate)
{
	int err = sys_fault(SYS_CALL_MMAP);
	void *addr;

	if (err)
		return -err;
	/* shared: the kernel merges it with no neighbour, so that it is never split off one */
	addr = mmap(place(), page_len(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		    0);
	if (addr == MAP_FAILED)
		return -errno;
	*gate = addr;
	return 0;
}

int sys_gate_shut(void *gate)
{
	int err = sys_fault(SYS_CALL_MPROTECT);

	if (err)
		return -err;
	return mprotect(gate, page_len(), PROT_NONE) ? -errno : 0;
}

void sys_gate_close(void *gate)
{
	if (gate)
		munmap(gate, page_len());
}
