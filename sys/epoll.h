/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Descriptors that are readable while one of those put into them is ready, and sleeping until one
 * is. Used by platform/user for whoever waits, and by providers. Any thread. Source: epoll(7), ppoll(2).
 */
#ifndef WEFT_SYS_EPOLL_H
#define WEFT_SYS_EPOLL_H

#include <stdbool.h>
#include <stdint.h>

/* sys_epoll_open - an empty one; close-on-exec. The descriptor, owned (close() it), or -FI_E* */
int sys_epoll_open(void);

/*
 * sys_epoll_add - @epoll is readable while @fd has any of @events (EPOLLIN, EPOLLOUT; 0: put in and
 * not asked); what is in there already stays as it is
 * Returns 0 or -FI_E*: -FI_ENOMEM, -FI_ENOSPC, -ELOOP for epoll descriptors in one another too deep.
 */
int sys_epoll_add(int epoll, int fd, uint32_t events);

/* sys_epoll_add_known - the same for what is not in there, asked for EPOLLIN, and told by @what when it is ready */
int sys_epoll_add_known(int epoll, int fd, void *what);

/*
 * sys_epoll_next - one that is ready, of descriptors that were all added with a @what
 * Does not wait; those that stay ready take turns. Returns 1 and @what, 0 for none, or -FI_E*.
 */
int sys_epoll_next(int epoll, void **what);

/* sys_epoll_ready - is one of them ready? True also when that can't be told */
bool sys_epoll_ready(int epoll);

/* sys_epoll_change - ask @fd, which is in there, for other events */
void sys_epoll_change(int epoll, int fd, uint32_t events);

/* sys_epoll_remove - take it out; nothing for one that is not in there */
void sys_epoll_remove(int epoll, int fd);

/*
 * sys_sleep - sleep until one of @fds is readable
 * @cnt: of them, at most 2; 0: sleep all of the time
 * @ns:  at most so long; UINT64_MAX: for ever
 * A signal may end it before.
 */
void sys_sleep(const int *fds, int cnt, uint64_t ns);

#endif
