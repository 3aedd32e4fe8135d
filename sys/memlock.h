/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How much memory this process may lock. Any thread. */
#ifndef WEFT_SYS_MEMLOCK_H
#define WEFT_SYS_MEMLOCK_H

#include <stdint.h>

/*
 * sys_memlock_limit - returns the bytes that may be locked (RLIMIT_MEMLOCK), for devices too that
 * count what is registered with them; UINT64_MAX: no limit, or it is not known
 * A process with CAP_IPC_LOCK may lock more. Source: getrlimit(2).
 */
uint64_t sys_memlock_limit(void);

#endif
