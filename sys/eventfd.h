/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event descriptors: readable from ring to clear, for threads that sleep on them. Any thread.
 * Source: eventfd(2).
 */
#ifndef WEFT_SYS_EVENTFD_H
#define WEFT_SYS_EVENTFD_H

/* sys_eventfd_open - make one that is not readable, close-on-exec. Returns it, owned, or -FI_E* */
int sys_eventfd_open(void);

/* sys_eventfd_ring - make it readable; threads that sleep on it wake */
void sys_eventfd_ring(int fd);

/* sys_eventfd_clear - make it not readable */
void sys_eventfd_clear(int fd);

/* sys_eventfd_close - takes the descriptor */
void sys_eventfd_close(int fd);

#endif
