/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ways to wait for completion queues and counters: descriptors that programs sleep on.
 * struct engine_wait is part of each such object.
 *
 * The lock of a wait set has rank 0: whoever holds it may hold a domain after it, never before.
 */
#ifndef WEFT_WAIT_H
#define WEFT_WAIT_H

#include "engine.h"

/* The calls that open what is waited for, as log lines name them. */
#define OPEN_WAIT "fi_cq_open, fi_cntr_open or fi_eq_open with a wait object"

/*
 * engine_wait_open - for a new queue or counter, last of what may fail
 * @fid: it; @domain: its domain
 * @obj, @set: as in its attributes
 *
 * A domain with many objects that have a descriptor gets a thread. The caller does not hold the
 * domain. Returns 0 or -FI_E*: -FI_ENOSYS for what is not offered, -FI_EINVAL.
 */
int engine_wait_open(struct engine_wait *w, struct fid *fid, struct engine_domain *domain,
		     enum fi_wait_obj obj, struct fid_wait *set);

/*
 * engine_wait_enter, engine_wait_leave - hold the domain, and before it the wait set, to close the object
 * engine_wait_forget - take it out of all sets, between these; nothing finds it afterwards
 * engine_wait_close - and its descriptor, when nothing is held
 */
void engine_wait_enter(struct engine_wait *w);
void engine_wait_leave(struct engine_wait *w);
void engine_wait_forget(struct engine_wait *w);
void engine_wait_close(struct engine_wait *w);

/*
 * engine_wait_control - FI_GETWAIT and FI_GETWAITOBJ of the object; -FI_ENOSYS for another command
 * One that was opened with FI_WAIT_UNSPEC has its descriptor from the first FI_GETWAIT on, one in a wait
 * set has that of the set.
 */
int engine_wait_control(struct engine_wait *w, int command, void *arg);

/* engine_wait_obj - what FI_GETWAITOBJ says of an object that was opened with @obj: in a set, what the set is */
enum fi_wait_obj engine_wait_obj(enum fi_wait_obj obj, const struct engine_waitset *set);

/* engine_wait_blocks - may the object's own blocking call be used? */
static inline bool engine_wait_blocks(const struct engine_wait *w)
{
	return w->obj != FI_WAIT_NONE;
}

/* engine_wait_signal - wake those who sleep on the object; any thread */
void engine_wait_signal(struct engine_wait *w);

/*
 * engine_wait_ready - is there something? A counter: a change that the program has not seen
 * engine_wait_look - a round of progress, if the object has nothing yet. Is there something?
 * The caller holds the domain.
 */
bool engine_wait_ready(const struct engine_wait *w);
bool engine_wait_look(struct engine_wait *w);

/* engine_wait_try - what fi_trywait answers for the object; the caller does not hold the domain */
int engine_wait_try(struct engine_wait *w);

#endif
