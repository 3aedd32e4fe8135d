/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Events that the engine's objects report. Called on any thread, also with the domain held. A queue
 * that is closed accepts events and drops them.
 */
#ifndef WEFT_EVENTS_H
#define WEFT_EVENTS_H

#include "queues.h"

/* engine_eq_post - append an event from eq_event_new(); takes it */
void engine_eq_post(struct engine_eq *eq, struct eq_event *event);

/*
 * engine_eq_push - append an event
 * @event: FI_NOTIFY, FI_AV_COMPLETE, ...
 * @buf:   the entry, copied; @len bytes
 * Returns 0 or -FI_ENOMEM.
 */
int engine_eq_push(struct engine_eq *eq, uint32_t event, const void *buf, size_t len);

/* engine_eq_push_error - append an error entry; see eq_push_error(). Returns 0 or -FI_ENOMEM */
int engine_eq_push_error(struct engine_eq *eq, const struct fi_eq_err_entry *err);

/*
 * engine_eq_forget - remove what eq_forget() removes
 * @drop: called with the queue's lock held
 */
void engine_eq_forget(struct engine_eq *eq, const struct fid *fid,
		      void (*drop)(void *arg, const struct fi_eq_cm_entry *entry), void *arg);

/*
 * engine_eq_wake - wake the readers that sleep on the queue: it has an event, or they have to check
 * again
 * The caller holds the queue's lock.
 */
void engine_eq_wake(struct engine_eq *eq);

#endif
