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
 * @local:  our memory; borrowed during the call, any number of pieces
 * @remote: the process's, any addresses
 *
 * Moves as many bytes as the shorter of the two lists holds, all of them: where the kernel
 * stops early the rest is asked for again. Bytes may have been written when it fails.
 * Returns the number of bytes, or -FI_E*: -FI_EPERM without the right, -ESRCH when the
 * process is gone, -FI_EFAULT when any byte is not mapped, -FI_ENOSYS, -FI_ENOMEM.
 */
ssize_t sys_process_vm_read(pid_t pid, const struct iovec *local, size_t local_cnt,
			    const struct iovec *remote, size_t remote_cnt);

/* sys_process_vm_write - copy from our memory into the process's; otherwise as above */
ssize_t sys_process_vm_write(pid_t pid, const struct iovec *local, size_t local_cnt,
			     const struct iovec *remote, size_t remote_cnt);

#define SYS_GATED_MAX 8u /* pieces of each side */

/*
 * sys_process_vm_write_gated - the same if a byte can be written to @gate first, with one call
 * @gate:   address in the process, of sys_gate_open() there
 * @remote: its pieces and @local's: at most SYS_GATED_MAX each
 *
 * Nothing is written when the gate is shut: -FI_EFAULT, as when not all could be written.
 */
ssize_t sys_process_vm_write_gated(pid_t pid, void *gate, const struct iovec *local,
				   size_t local_cnt, const struct iovec *remote,
				   size_t remote_cnt);

#endif
