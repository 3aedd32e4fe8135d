/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Barriers on other cores. Called by platform/user and by providers, on any thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "fault.h"
#include "membarrier.h"

static int membarrier(int command)
{
	int err = sys_fault(SYS_CALL_MEMBARRIER);

	if (err)
		return -err;
	return syscall(SYS_membarrier, command, 0, 0) ? -errno : 0;
}

int sys_membarrier_open(void)
{
	return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

int sys_membarrier(void)
{
	return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

int sys_membarrier_all_open(void)
{
	int err = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);

	return err ? err
		   : sys_membarrier_all(); /* a filter may allow the one and not the other */
}

int sys_membarrier_all(void)
{
	return membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}
