/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A page with the right to write taken away. Called by providers on any thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>
#include "fault.h"
#include "gate.h"

static size_t page_len(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

int sys_gate_open(void **gate)
{
	int err = sys_fault(SYS_CALL_MMAP);
	void *addr;

	if (err)
		return -err;
	/* shared: the kernel merges it with no neighbour, so that it is never split off one */
	addr = mmap(NULL, page_len(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
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
