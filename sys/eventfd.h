/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Descriptors that a program sleeps on until this library has something for it. Any thread.
 * Source: eventfd(2).
 */
#ifndef WEFT_SYS_EVENTFD_H
#define WEFT_SYS_EVENTFD_H

/* sys_eventfd_open - one that is not readable; close-on-exec. The descriptor, owned, or -FI_E* */
int sys_eventfd_open(void);

/* sys_eventfd_ring - readable from now on; what sleeps on it wakes */
void sys_eventfd_ring(int fd);

/* sys_eventfd_clear - not readable any more */
void sys_eventfd_clear(int fd);

/* sys_eventfd_close - takes the descriptor */
void sys_eventfd_close(int fd);

#endif
