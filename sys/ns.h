/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The host and pid namespace of this process, which an address contains so that a peer can find out
 * whether process numbers and memory can be shared. Called by providers when an endpoint is made.
 */
#ifndef WEFT_SYS_NS_H
#define WEFT_SYS_NS_H

#include <stdint.h>

/*
 * sys_ns_pid - the inode number of our pid namespace
 * Process numbers mean the same to two processes with the same inode number on one host.
 * Returns 0 or -FI_E*: -FI_ENOENT without /proc.
 */
int sys_ns_pid(uint32_t *inode);

/*
 * sys_ns_host - a hash of the host's boot id: equal for all processes of one running kernel
 * Never 0. A hint: containers can hide the file or show another, and a clone of a running
 * virtual machine has the same. Returns 0 or -FI_E*.
 */
int sys_ns_host(uint64_t *hash);

#endif
