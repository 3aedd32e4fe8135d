/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether what a socket has sent to another one of this host has arrived there.
 */
#ifndef WEFT_SYS_NET_ARRIVED_H
#define WEFT_SYS_NET_ARRIVED_H

#include <stdbool.h>

/*
 * sys_socket_arrived - ask the kernel how much the other end of a TCP connection has received
 * @fd: connected, both ends on this host; the kernel has sent all that it was given
 *
 * What has left a socket may still be in the queue of a processor, and a reset that another processor
 * sends overtakes it: the other end has it only when its own counter says so. The kernel may acknowledge
 * it 40 ms later.
 * Returns true if it has all bytes; false if not, or if the kernel does not tell: its acknowledgement counts
 * then. Source: sock_diag(7), tcp(7).
 */
bool sys_socket_arrived(int fd);

#endif
