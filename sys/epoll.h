/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Epoll descriptors, which are readable while a descriptor that they hold is ready, and sleeping on
 * descriptors. Used by platform/user and by providers. Any thread. Source: epoll(7), ppoll(2).
 */
#ifndef WEFT_SYS_EPOLL_H
#define WEFT_SYS_EPOLL_H

#include <stdbool.h>
#include <stdint.h>

/* sys_epoll_open - make one that holds nothing, close-on-exec. Returns it, owned (close() it), or -FI_E* */
int sys_epoll_open(void);

/*
 * sys_epoll_add - have @epoll hold @fd, and be readable while that has any of @events
 * @events: EPOLLIN, EPOLLOUT, or 0: none yet. A descriptor that it holds already keeps its events.
 * Returns 0 or -FI_E*: -FI_ENOMEM, -FI_ENOSPC, -ELOOP for epoll descriptors in one another too deep.
 */
int sys_epoll_add(int epoll, int fd, uint32_t events);

/* sys_epoll_add_known - the same for a new @fd and EPOLLIN; sys_epoll_next() returns @what for it */
int sys_epoll_add_known(int epoll, int fd, void *what);

/*
 * sys_epoll_next - find a descriptor that is ready; all of them were added with a @what
 * Does not wait; those that stay ready take turns. Returns 1 and @what, 0 for none, or -FI_E*.
 */
int sys_epoll_next(int epoll, void **what);

/* sys_epoll_ready - returns true if one of them is ready, or if that can't be found out */
bool sys_epoll_ready(int epoll);

/* sys_epoll_change - give @fd, which it holds, other events */
void sys_epoll_change(int epoll, int fd, uint32_t events);

/*
 * sys_epoll_hold - have @epoll hold @fd, or change what it looks for there
 * @events: as for sys_epoll_add()
 * @what:   sys_epoll_take() finds it while @fd is ready
 * Returns 0 or -FI_E*, as sys_epoll_add().
 */
int sys_epoll_hold(int epoll, int fd, uint32_t events, void *what);

/*
 * sys_epoll_take - find descriptors that are ready, without waiting
 * @what: out: of each, what it was held with, NULL for one that was added without
 * @cnt:  room there, at most SYS_EPOLL_TAKE_MAX; those that stay ready take turns
 * Returns their number, or -FI_E*.
 */
#define SYS_EPOLL_TAKE_MAX 32
int sys_epoll_take(int epoll, void **what, int cnt);

/* sys_epoll_remove - have it hold @fd no more; does nothing for one that it does not hold */
void sys_epoll_remove(int epoll, int fd);

/*
 * sys_sleep - sleep until one of @fds is readable
 * @cnt: of them, at most 2; 0: sleep for all of @ns
 * @ns:  at most so long; UINT64_MAX: without a limit
 * Returns 0, or -EINTR if a signal handler has run and ended it before.
 */
int sys_sleep(const int *fds, int cnt, uint64_t ns);

#endif
