/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The event queue object: which domains its readers drive, and how threads block on it. Called on
 * any thread.
 */
#ifndef WEFT_EQ_FID_H
#define WEFT_EQ_FID_H

#include "engine.h"

/* The slot of struct fi_ops_fabric. */
int engine_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		   void *context);

/* From eq_watch.c */

/*
 * engine_eq_watch - an object of @domain is bound to the queue
 *
 * The queue exists until engine_eq_drop(), even when the program closes it. A read of the empty
 * queue drives the domain, unless the program makes progress itself meanwhile, and the queue's
 * channel holds the domain's. The caller does not hold the domain. Returns 0 or -FI_E*.
 */
int engine_eq_watch(struct engine_eq *eq, struct engine_domain *domain);
/* engine_eq_drop - undo engine_eq_watch(); the caller does not hold the domain */
void engine_eq_drop(struct engine_eq *eq, struct engine_domain *domain);

/*
 * engine_eq_put - drop a reference: of the program, or of a domain whose last object was unbound
 * The last one frees the queue.
 * engine_eq_free - free a queue without references
 */
void engine_eq_put(struct engine_eq *eq);
void engine_eq_free(struct engine_eq *eq);

/*
 * engine_eq_check - returns true if the queue has an event; an empty one drives its domains, as a
 * read does
 */
bool engine_eq_check(struct engine_eq *eq);

/*
 * engine_eq_trywait - fi_trywait on the queue: -FI_EAGAIN if it has an event; 0 if the program may
 * block on its descriptor, which is armed; or another -FI_E*. In a fabric that sleeps on events, 0
 * with a descriptor that is readable if it has an event.
 * engine_eq_awake - the program does not block on it any more
 */
int engine_eq_trywait(struct engine_eq *eq);
void engine_eq_awake(struct engine_eq *eq);
/*
 * engine_eq_event_read - an event was read: the bell is cleared after the last one; with the
 * queue's lock
 */
void engine_eq_event_read(struct engine_eq *eq);
/*
 * engine_eq_sleep - sleep until the queue has or may have an event, or until the deadline
 * The last of several threads that wakes disarms.
 */
void engine_eq_sleep(struct engine_eq *eq, struct engine_sleeper *sleeper);
/*
 * engine_eq_get_wait - FI_GETWAIT of the queue
 * @descriptor: out: readable at once if the queue has events
 *
 * A queue with FI_WAIT_UNSPEC opens its descriptor at the first call. Returns 0, -FI_ENODATA when it
 * has no descriptor, or another -FI_E*.
 */
int engine_eq_get_wait(struct engine_eq *eq, int *descriptor);

/*
 * engine_eq_join - have @channel hold that of the queue: threads that block there wake for it too.
 * Returns 0 or -FI_E*
 * engine_eq_leave - remove it
 */
int engine_eq_join(struct engine_eq *eq, struct engine_channel *channel);
void engine_eq_leave(struct engine_eq *eq, struct engine_channel *channel);

#endif
