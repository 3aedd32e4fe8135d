/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Borrowers that hear of events. Any thread. An event is sent at once or not at all: who does not take its events is
 * cut off, and sees that.
 */
#ifndef WEFT_DEVICES_LENDER_WATCH_H
#define WEFT_DEVICES_LENDER_WATCH_H

#include <stdint.h>

#include "connections.h"
#include "message.h"

struct watchers;

/* watchers_create - returns NULL without memory; @connections: in which they are counted, as long as they are here */
struct watchers *watchers_create(struct connections *connections);

/* watchers_destroy - end all of their connections */
void watchers_destroy(struct watchers *watchers);

/*
 * watchers_add - have a connection hear of events; takes @fd
 * @answer: sent before the first event, so that none is missed after it
 * One of a user who has as many connections as one may is ended.
 */
void watchers_add(struct watchers *watchers, int fd, const struct lease_message *answer);

/* watchers_tell - tell all of an event: enum weft_event_kind */
void watchers_tell(struct watchers *watchers, uint32_t kind, uint64_t device, uint32_t lease);

#endif
