/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sockets without a kernel: while it is switched on, the calls of libc by which the tcp provider
 * connects, sends and receives are answered here, so that it has as many connected peers as memory
 * allows. All other descriptors are the kernel's. One thread.
 *
 * A peer answers a greeting as the last real one did, whatever that was; after that it takes all
 * that it is sent and says nothing.
 */
#ifndef WEFT_BENCH_PEERS_SOCKETS_H
#define WEFT_BENCH_PEERS_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * sockets_record - keep what the next socket that connects receives first: the answer to a
 * greeting
 */
void sockets_record(void);

/* sockets_recorded - bytes of that answer; 0: none yet */
uint32_t sockets_recorded(void);

/* sockets_pretend - TCP sockets are made up from here on; at most @cnt. 0, or -1 without memory */
int sockets_pretend(uint32_t cnt);

/* sockets_sent - bytes that were sent to those that are made up */
uint64_t sockets_sent(void);

#endif
