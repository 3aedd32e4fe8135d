/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * madvise(2) and mincore(2) about memory that this process is about to access. Called on any thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "touch.h"

/* For headers older than Linux 5.14 */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* Pages of one mincore(2) */
#define SEEN_MAX 512u

int sys_touch(void *addr, size_t len, bool write)
{
	int err = sys_fault(SYS_CALL_TOUCH);

	if (err)
		return -err;
	/* by its number: programs put functions of their own before madvise() */
	if (!syscall(SYS_madvise, addr, len, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		return 0;
	return errno == EHWPOISON ? -FI_EFAULT : -errno;
}

bool sys_mapped(void *addr, size_t len)
{
	size_t most = SEEN_MAX * (size_t)sysconf(_SC_PAGESIZE), step;
	unsigned char seen[SEEN_MAX];

	for (char *at = addr; len; at += step, len -= step) {
		step = len < most ? len : most;
		if (mincore(at, step, seen))
			return false;
	}
	return true;
}
