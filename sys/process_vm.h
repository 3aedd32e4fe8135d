/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies between our memory and another process's with one system call
 * (process_vm_readv(2)). Used by providers for large transfers. The right to do it is
 * asked of the kernel on each call and can differ from that of opening /proc files:
 * probe before relying on it. Any thread; no state.
 */
#ifndef WEFT_SYS_PROCESS_VM_H
#define WEFT_SYS_PROCESS_VM_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

/*
 * sys_process_vm_read - copy from the process's memory into ours
 * @pid:    process
 * @local:  pieces of our memory, any number; borrowed during the call
 * @remote: pieces of the process's, any number; not trusted
 *
 * Copies as many bytes as the shorter list holds: where the kernel stops early it is called again for the
 * rest. Some bytes may have been copied when it fails.
 * Returns the number of bytes, or -FI_E*: -FI_EPERM without the right, -ESRCH when the
 * process is gone, -FI_EFAULT when any byte is not mapped, -FI_ENOSYS, -FI_ENOMEM.
 */
ssize_t sys_process_vm_read(pid_t pid, const struct iovec *local, size_t local_cnt,
			    const struct iovec *remote, size_t remote_cnt);

/* Pieces of each side in a guarded write: it is one system call. */
#define SYS_WRITE_GUARDED_MAX 8u

/*
 * sys_process_vm_write_guarded - copy from our memory into the process's, with one system call that
 * writes a byte to a write guard first
 * @write_guard: its address in that process: sys/write_guard.h
 * @local_cnt, @remote_cnt: at most SYS_WRITE_GUARDED_MAX; both lists hold the same number of bytes
 *
 * Returns the number of bytes; -FI_EFAULT when the guard is shut, and nothing was written, or when not
 * all of them could be; -FI_EINVAL for lists that can't be; otherwise as sys_process_vm_read().
 */
ssize_t sys_process_vm_write_guarded(pid_t pid, void *write_guard, const struct iovec *local,
				     size_t local_cnt, const struct iovec *remote,
				     size_t remote_cnt);

#endif
