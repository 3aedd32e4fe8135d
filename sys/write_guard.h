/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A page of this process by which writes of other processes into its memory are revoked.
 *
 * A process that may write here by process_vm_writev(2) can be stopped just before the call, and
 * make it long after the memory has come to mean something else. So each such call writes a byte to a
 * write guard first (sys_process_vm_write_guarded()). The kernel copies one piece after the other,
 * and ends the call at a guard that is shut. A call that has passed the guard already runs in the
 * kernel, where it can't be stopped, and is over soon.
 *
 * A write guard is mapped at a random address in a range that the kernel uses last when it places
 * mappings. A program that replaces this one (execve(2)) therefore has nothing mapped there, whatever
 * it has elsewhere, and a guarded write to it fails at the first byte. Any thread.
 * Source: process_vm_writev(2), mmap(2), mprotect(2).
 */
#ifndef WEFT_SYS_WRITE_GUARD_H
#define WEFT_SYS_WRITE_GUARD_H

/*
 * sys_write_guard_open - map a write guard, one page, open
 * @write_guard: out: its address, owned; sys_write_guard_close() releases it
 *
 * The address is random as far as the kernel has random bytes and free room in the range.
 * Returns 0, or -FI_E*: -FI_ENOMEM.
 */
int sys_write_guard_open(void **write_guard);

/*
 * sys_write_guard_shut - make every later guarded write fail with -FI_EFAULT
 * Its page stays mapped, without access, until the process ends: the address is not used again.
 * Returns 0, or -FI_E*: the guard is as open as before.
 */
int sys_write_guard_shut(void *write_guard);

/* sys_write_guard_close - unmap a guard that no process writes to any more, or NULL */
void sys_write_guard_close(void *write_guard);

#endif
