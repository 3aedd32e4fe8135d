/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the objects of the engine tell an event queue. Called by those objects, on any thread.
 */
#ifndef WEFT_EVENTS_H
#define WEFT_EVENTS_H

#include "queues.h"

/* To a queue that is closed what follows does nothing, and says that it went well. */

/* engine_eq_post - append an event that eq_event_new() made; takes it. May be called with the domain held */
void engine_eq_post(struct engine_eq *eq, struct eq_event *event);

/*
 * engine_eq_push - append an event; @buf is copied. May be called with the domain held
 * Returns 0 or -FI_ENOMEM.
 */
int engine_eq_push(struct engine_eq *eq, uint32_t event, const void *buf, size_t len);

/* engine_eq_push_error - append an error, as eq_push_error(). May be called with the domain held */
int engine_eq_push_error(struct engine_eq *eq, const struct fi_eq_err_entry *err);

/*
 * engine_eq_came - it has something, or its readers are to look: what it is slept on by rings
 * The caller holds the queue's lock.
 */
void engine_eq_came(struct engine_eq *eq);

#endif
