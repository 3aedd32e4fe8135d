/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * In the place of devices/port: an endpoint whose provider is the fuzz target. What is begun at it is kept until the
 * target says how it ends; what a peer sends arrives in the receive that was posted first. One port at a time, one thread.
 *
 * Each operation's memory has to be in a range that was registered.
 */
#ifndef WEFT_FUZZ_FAKE_PORT_H
#define WEFT_FUZZ_FAKE_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* fake_port_begin - forget all; @refuse: calls are refused with -FI_EAGAIN or an error where it returns one */
void fake_port_begin(int (*refuse)(void));

/* fake_port_message - a peer sends. Returns whether a receive was posted for it; one that is too short ends with an error */
bool fake_port_message(const void *bytes, size_t len);

/* fake_port_written - a peer has written to memory, with remote CQ data */
void fake_port_written(uint32_t data);

/* fake_port_under_way - operations that have not ended */
uint32_t fake_port_under_way(void);

/*
 * fake_port_finish - end one of them, the @which-th, as far as there are any
 * @fill: bytes that a read brings are this function's
 * @err:  0, or FI_E*
 */
void fake_port_finish(uint32_t which, int err, void (*fill)(void *mem, size_t len));

/* fake_port_said - the first message that was sent and not taken yet. Returns its bytes, at most @room, or 0: none */
size_t fake_port_said(void *bytes, size_t room);

/* fake_port_reaches - whether a byte is in memory that is registered, which a peer may access */
bool fake_port_reaches(const void *byte);

/* fake_port_left - objects of libfabric that are open */
uint32_t fake_port_left(void);

#endif
