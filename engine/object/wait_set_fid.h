/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Wait sets of queues, counters and event queues. wait_obj.h has the rank of their lock. */
#ifndef WEFT_WAIT_SET_FID_H
#define WEFT_WAIT_SET_FID_H

#include "engine.h"

/*
 * engine_wait_obj_join - add a queue or counter that is being opened to @set
 * Returns 0, -FI_EINVAL if @set is not a wait set of its fabric, or another -FI_E*.
 */
int engine_wait_obj_join(struct engine_wait_obj *w, struct fid_wait *set);

/*
 * engine_wait_obj_leave_set - remove a queue or counter from its set, if it has one
 * The caller has called engine_wait_obj_enter().
 */
void engine_wait_obj_leave_set(struct engine_wait_obj *w);

/*
 * engine_set_put - drop a reference, of the program or a member; the last one frees the set
 * The caller holds nothing.
 */
void engine_set_put(struct engine_waitset *set);

/*
 * engine_waitset_join - add an event queue that is being opened to @set
 * Returns as engine_wait_obj_join().
 * engine_waitset_leave - remove it
 */
int engine_waitset_join(struct engine_eq *eq, struct fid_wait *set);
void engine_waitset_leave(struct engine_eq *eq);

/*
 * engine_waitset_get_wait - FI_GETWAIT of a set, or of an object in it
 * @descriptor: out
 *
 * Returns 0, -FI_ENODATA when it has no descriptor, or another -FI_E*.
 */
int engine_waitset_get_wait(struct engine_waitset *set, int *descriptor);

/* engine_waitset_open - the slot of fi_wait_open. Source: fi_poll(3) */
int engine_waitset_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
			struct fid_wait **waitset);
/* engine_trywait - the slot of fi_trywait. Source: fi_poll(3) */
int engine_trywait(struct fid_fabric *fabric, struct fid **fids, int cnt);

#endif
