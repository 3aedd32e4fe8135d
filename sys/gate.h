/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A byte of ours by which writes of other processes into our memory can be called off.
 *
 * Who is allowed to write somewhere by process_vm_writev(2) may be stopped before the call, and make it
 * long after the memory means something else. So it writes to a gate first, in the same call
 * (sys_process_vm_write_gated()): the kernel goes from piece to piece, and at a gate that is shut it
 * ends. A call that has passed the gate already runs in the kernel, where nobody stops it, and is over
 * soon.
 *
 * A gate stands at a random address, of those that the kernel comes to last when it looks for room. So
 * another program that has begun in our process meanwhile (execve(2)) has no memory there, whatever
 * it has elsewhere: nothing passes. Any thread.
 */
#ifndef WEFT_SYS_GATE_H
#define WEFT_SYS_GATE_H

/*
 * sys_gate_open - a new one, at an address of its own
 * Random as far as the kernel has random bytes and the room. Returns 0, or -FI_E*.
 */
int sys_gate_open(void **gate);

/*
 * sys_gate_shut - nobody passes any more; its address means nothing else until the process ends
 * Returns 0, or -FI_E*.
 */
int sys_gate_shut(void *gate);

/* sys_gate_close - release one to which nobody writes any more, whoever knows it; NULL: nothing */
void sys_gate_close(void *gate);

#endif
