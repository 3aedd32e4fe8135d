/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Wait sets: of queues, counters and event queues. wait.h has the rank of their lock. */
#ifndef WEFT_WAIT_SET_FID_H
#define WEFT_WAIT_SET_FID_H

#include "engine.h"

/*
 * engine_wait_join - a queue or counter that is being opened is waited for with @set
 * Returns 0, -FI_EINVAL for what is no wait set of its fabric, or another -FI_E*.
 * engine_wait_part - it is about to be closed: out of its set, if it is in one; the caller has engine_wait_enter()
 * engine_set_put - the program has closed the set, or a member has: the last one ends it. Nothing is held
 */
int engine_wait_join(struct engine_wait *w, struct fid_wait *set);
void engine_wait_part(struct engine_wait *w);
void engine_set_put(struct engine_waitset *set);

/*
 * engine_waitset_join - an event queue that is being opened is waited for with @set
 * Returns 0, or -FI_EINVAL for what is no wait set of its fabric.
 * engine_waitset_leave - it is closed
 */
int engine_waitset_join(struct engine_eq *eq, struct fid_wait *set);
void engine_waitset_leave(struct engine_eq *eq);

/*
 * engine_waitset_give - FI_GETWAIT of a set, or of what is in it
 * @descriptor: out. Returns 0, -FI_ENODATA when it has none, or another -FI_E*
 */
int engine_waitset_give(struct engine_waitset *set, int *descriptor);

/* engine_waitset_open - the slot of fi_wait_open. Source: fi_poll(3) */
int engine_waitset_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
			struct fid_wait **waitset);
/* engine_trywait - the slot of fi_trywait. Source: fi_poll(3) */
int engine_trywait(struct fid_fabric *fabric, struct fid **fids, int cnt);

#endif
