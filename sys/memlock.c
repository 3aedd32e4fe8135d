/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The limit of locked memory. */
#include <sys/resource.h>
#include "fault.h"
#include "memlock.h"

uint64_t sys_memlock_limit(void)
{
	struct rlimit limit;

	if (sys_fault(SYS_CALL_GETRLIMIT) || getrlimit(RLIMIT_MEMLOCK, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}
