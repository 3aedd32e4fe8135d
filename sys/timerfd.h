/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Descriptors that become readable after a time. Used by platform/user for programs that sleep on a
 * descriptor of ours. Any thread. Source: timerfd_create(2).
 */
#ifndef WEFT_SYS_TIMERFD_H
#define WEFT_SYS_TIMERFD_H

#include <stdint.h>

/* sys_timerfd_open - make one that does not run, close-on-exec. Returns it, owned (close() it), or -FI_E* */
int sys_timerfd_open(void);

/* sys_timerfd_set - make it readable in @ns from now, and not before; 0: never */
void sys_timerfd_set(int fd, uint64_t ns);

#endif
