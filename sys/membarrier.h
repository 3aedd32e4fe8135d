/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A memory barrier on every core that runs a thread of this process, so that others need none of
 * their own. Any thread. Source: membarrier(2).
 */
#ifndef WEFT_SYS_MEMBARRIER_H
#define WEFT_SYS_MEMBARRIER_H

/*
 * sys_membarrier_open - say once that this process will use it; again: nothing happens
 * Returns 0 or -FI_E*: -FI_ENOSYS before Linux 4.14, -FI_EPERM where a filter forbids it.
 */
int sys_membarrier_open(void);

/* sys_membarrier - the barrier; 0 or -FI_E*, which it never is after sys_membarrier_open() went well */
int sys_membarrier(void);

/*
 * sys_membarrier_all_open - the same for barriers among processes: take part, and see whether it works
 * Source: membarrier(2), MEMBARRIER_CMD_GLOBAL_EXPEDITED. Returns 0 or -FI_E*: -FI_EINVAL before Linux
 * 4.16, otherwise as above.
 */
int sys_membarrier_all_open(void);

/* sys_membarrier_all - a barrier on every core that runs a thread of a process that takes part. 0 or -FI_E* */
int sys_membarrier_all(void);

#endif
