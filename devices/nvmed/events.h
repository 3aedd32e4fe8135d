/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Asynchronous events: what happened, until an Asynchronous Event Request takes it. After one of a type was told,
 * further ones of it wait until its log page is read. The loop's thread alone.
 * Source: NVMe 1.4, section 5.2.
 */
#ifndef WEFT_NVMED_EVENTS_H
#define WEFT_NVMED_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct nvmed;
struct command;

#define EVENT_REQUESTS_MAX 4u
#define EVENTS_PENDING_MAX 16u

/*
 * struct events
 * @requests: that wait, the oldest first
 * @pending:  dwords of events that no request has taken, the oldest first, each once
 * @masked:   types, a bit each, of which one was told and the log page not read
 */
struct events {
	struct command *requests[EVENT_REQUESTS_MAX];
	uint32_t request_cnt;
	uint32_t pending[EVENTS_PENDING_MAX];
	uint32_t pending_cnt;
	uint32_t masked;
};

/* event_raise - something happened. @event is of NVME_EVENT() */
void event_raise(struct nvmed *c, uint32_t event);

/* event_request - hold an Asynchronous Event Request. Returns 0 or an NVMe status */
int event_request(struct nvmed *c, struct command *cmd);

/* events_read - a log page was read: events of the type that it tells more about may be told again */
void events_read(struct nvmed *c, uint32_t page);

/* events_tell - complete requests for what is pending, as far as the completion queue has room */
void events_tell(struct nvmed *c);

/* events_forget - a request ends otherwise. Returns whether it was one; it has no completion entry reserved then */
bool events_forget(struct nvmed *c, const struct command *cmd);

/* events_reset - nothing is pending or masked */
void events_reset(struct nvmed *c);

#endif
