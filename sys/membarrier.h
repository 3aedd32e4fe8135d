/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A memory barrier on every core that runs a thread of this process, so that those threads need none of their
 * own. Any thread. Source: membarrier(2).
 */
#ifndef WEFT_SYS_MEMBARRIER_H
#define WEFT_SYS_MEMBARRIER_H

/*
 * sys_membarrier_open - register this process for the barrier; further calls change nothing
 * Returns 0 or -FI_E*: -FI_ENOSYS before Linux 4.14, -FI_EPERM where a filter forbids it.
 */
int sys_membarrier_open(void);

/* sys_membarrier - make the barrier. Returns 0, or -FI_E*: without sys_membarrier_open(), or forbidden since */
int sys_membarrier(void);

/*
 * sys_membarrier_all_open - register this process for barriers among processes, and try one
 * Source: membarrier(2), MEMBARRIER_CMD_GLOBAL_EXPEDITED. Returns 0 or -FI_E*: -FI_EINVAL before Linux
 * 4.16, otherwise as above.
 */
int sys_membarrier_all_open(void);

/* sys_membarrier_all - a barrier on every core that runs a thread of a registered process. 0 or -FI_E* */
int sys_membarrier_all(void);

#endif
