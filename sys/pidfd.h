/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process held by a descriptor, which unlike its number never refers to another process. Used by
 * providers to find out that a peer has died, where sys/image.h can't. Any thread; no state.
 */
#ifndef WEFT_SYS_PIDFD_H
#define WEFT_SYS_PIDFD_H

#include <sys/types.h>

/*
 * sys_pidfd_open - hold the process that has this number now
 * Close-on-exec. Needs no right over the process.
 * Returns the descriptor, owned (close() it), or -FI_E*: -ESRCH for no such process (the
 * interface has no name of its own for it), -FI_EMFILE, -FI_ENOSYS before Linux 5.3.
 */
int sys_pidfd_open(pid_t pid);

/*
 * sys_pidfd_take - copy another process's descriptor: pidfd_getfd(2)
 * @pid: process
 * @fd:	 its descriptor, of any kind
 *
 * For where /proc does not lead there. Needs the right that process_vm_readv(2) needs. The copy is the same
 * open file, with the access mode that it was opened with; close-on-exec.
 * Returns it, owned, or -FI_E*: -FI_EPERM without the right, -ESRCH for no such process, -FI_EBADF for
 * no such descriptor, -FI_EMFILE, -FI_ENOSYS before Linux 5.6.
 */
int sys_pidfd_take(pid_t pid, int fd);

/*
 * sys_pidfd_dead - look whether the process has ended
 * Does not wait. A zombie counts as ended; a process whose first thread has ended does not, while another
 * thread runs. Returns 1 if it has, 0 if not, or -FI_E*.
 */
int sys_pidfd_dead(int pidfd);

/*
 * sys_procdir_open, sys_procdir_dead - the same by the process's folder in /proc
 * For where there are no pidfds: before Linux 5.3, and under valgrind. A zombie does not count as ended
 * here. sys_procdir_open() returns -ESRCH for no such process.
 */
int sys_procdir_open(pid_t pid);
int sys_procdir_dead(int fd);

#endif
