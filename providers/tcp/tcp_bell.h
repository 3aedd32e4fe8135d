/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Waking a thread that sleeps. tcp_bell(), tcp_arm(), tcp_disarm(): see wire.h.
 */
#ifndef WEFT_TCP_BELL_H
#define WEFT_TCP_BELL_H

#include "tcp_wire.h"

int tcp_bell(struct wire *wire, int poll_set);
uint64_t tcp_arm(struct wire *wire);
void tcp_disarm(struct wire *wire);

/* tcp_wake - wake the thread that sleeps: poll has work that no socket reports */
void tcp_wake(struct tcp_wire *wire);

/*
 * tcp_wake_by - the same: poll has to look at @due_ns
 * Within a poll: after it, if the thread sleeps for longer than that.
 */
void tcp_wake_by(struct tcp_wire *wire, uint64_t due_ns);

#endif
