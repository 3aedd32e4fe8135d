/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The controller's one thread: rounds over queues while there is something to do, and for a while after; then it sleeps
 * until a doorbell, the slot, the backend, a deadline or a signal wakes it.
 */
#ifndef WEFT_NVMED_LOOP_H
#define WEFT_NVMED_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "slot_socket.h"

struct nvmed;

/*
 * struct loop
 * @timer:    for deadlines and coalescing, set to @armed; UINT64_MAX: not set, 0: it has fired
 * @signal:   a signalfd of what ends the process, or -1
 * @rounds:   since the clock was read
 * @polled:   when descriptors were last looked at
 * @moved:    when something last happened
 * @spin_ns:  how long nothing may happen before it sleeps: what is configured, and less after waits that took longer
 * @vain:     such waits in a row
 */
struct loop {
	struct nvmed *c;
	struct slot slot;
	int epoll;
	int timer;
	int signal;
	bool stop;
	uint32_t rounds;
	uint64_t armed;
	uint64_t polled;
	uint64_t moved;
	uint64_t spin_ns;
	uint32_t vain;
};

/*
 * loop_init - make ready to run
 * @path:   of the slot's socket
 * @signal: borrowed; -1: none
 *
 * Returns 0 or a negative errno: of slot_open(), or of what is short.
 */
int loop_init(struct loop *l, struct nvmed *c, const char *path, int signal);
void loop_fini(struct loop *l);

/* loop_round - do what there is to do now. Returns whether anything moved */
bool loop_round(struct loop *l);

/* loop_step - a round; after a while without anything, sleep until there is something */
void loop_step(struct loop *l);

#endif
