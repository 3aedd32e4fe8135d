/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The event queue object, which domains its readers drive, and how it is slept on. Called on any thread.
 */
#ifndef WEFT_EQ_FID_H
#define WEFT_EQ_FID_H

#include "engine.h"

/* The slot of struct fi_ops_fabric. */
int engine_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		   void *context);

/* From eq_watch.c */

/*
 * engine_eq_watch - an object of @domain was bound: the queue is there until engine_eq_drop(), closed or
 * not, and whoever reads it while it is empty drives the domain, unless the program does
 * so itself meanwhile; what is slept on for the queue holds the domain's waiter.
 *
 * The caller does not hold the domain. Returns 0 or -FI_E*.
 */
int engine_eq_watch(struct engine_eq *eq, struct engine_domain *domain);
/* engine_eq_drop - takes that back; the caller does not hold the domain */
void engine_eq_drop(struct engine_eq *eq, struct engine_domain *domain);

/*
 * engine_eq_put - the program has closed the queue, or nothing of a domain is bound to it any more: the last one
 *	ends it
 * engine_eq_free - release one that nobody has
 */
void engine_eq_put(struct engine_eq *eq);
void engine_eq_free(struct engine_eq *eq);

/*
 * engine_eq_look - returns true if it has something to read; if it has not, the look drives what it watches, as a
 * read does
 */
bool engine_eq_look(struct engine_eq *eq);

/*
 * engine_eq_trywait - what fi_trywait answers for it: -FI_EAGAIN when it has something to read, 0:
 * sleep, what it is slept on by is armed, or another -FI_E*
 * engine_eq_awake - nobody sleeps on it any more
 */
int engine_eq_trywait(struct engine_eq *eq);
void engine_eq_awake(struct engine_eq *eq);
/* engine_eq_went - something was read: it rings no more when it was the last; with lock */
void engine_eq_went(struct engine_eq *eq);
/* engine_eq_sleep - until it has something or may have, or @end_ns; of several threads the last one disarms */
void engine_eq_sleep(struct engine_eq *eq, uint64_t end_ns);
/*
 * engine_eq_give - @descriptor: out: what it is slept on by, which rings for what it has already. One whose way
 *	of waiting is ours has it from the first such call on. 0 or -FI_E*
 */
int engine_eq_give(struct engine_eq *eq, int *descriptor);

/*
 * engine_eq_join - who sleeps on @poll set sleeps on this queue too; 0 or -FI_E*
 * engine_eq_part - no more
 */
int engine_eq_join(struct engine_eq *eq, struct engine_poll_set *poll_set);
void engine_eq_part(struct engine_eq *eq, struct engine_poll_set *poll_set);

#endif
