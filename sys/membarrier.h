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

#endif
