/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event queue storage behind fi_eq_read and its kin. The engine's eq object owns one; the
 * caller serializes.
 */
#ifndef WEFT_EQ_H
#define WEFT_EQ_H

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include "list.h"

struct eq_event;

struct eq {
	/* struct eq_event, in order */
	struct list events;
	/* Event whose error data the program may read until the next eq_take(); or NULL */
	struct eq_event *lent;
	/* API version of the caller; 0, as eq_init() sets it: the newest */
	uint32_t api_version;
};

/* eq_init - an empty queue */
void eq_init(struct eq *q);
/*
 * eq_fini - free the events that were not read, and the memory of the queue
 * Objects that an event refers to (the info of an FI_CONNREQ) belong to the caller, who removes
 * such events first.
 */
void eq_fini(struct eq *q);

static inline bool eq_empty(const struct eq *q)
{
	return list_empty(&q->events);
}

/*
 * eq_event_new - allocate an event for eq_post(), which can't fail; @buf is copied, or filled in later
 * by eq_event_fill()
 * Returns the event, owned, or NULL without memory.
 */
struct eq_event *eq_event_new(uint32_t event, const void *buf, size_t len);
/* eq_event_fill - write the data of an event; @len as in eq_event_new() */
void eq_event_fill(struct eq_event *e, const void *buf, size_t len);
/* eq_event_free - free an event that was not posted; NULL is allowed */
void eq_event_free(struct eq_event *e);
/* eq_post - append an event; takes it */
void eq_post(struct eq *q, struct eq_event *e);

/*
 * eq_push_error - append an error; copied, with err_data_size bytes at err_data
 * Returns 0 or -FI_ENOMEM.
 */
int eq_push_error(struct eq *q, const struct fi_eq_err_entry *err);

/*
 * eq_forget - remove the connection events and errors of an object that is closed
 * @drop: called for each FI_CONNREQ, before it is freed: its info has no other owner; NULL: none is
 *	  there
 */
void eq_forget(struct eq *q, const struct fid *fid,
	       void (*drop)(void *arg, const struct fi_eq_cm_entry *entry), void *arg);

/*
 * eq_take - move the first event to @buf
 * @event: out: FI_CONNREQ, ...
 * @flags: FI_PEEK leaves it in place
 *
 * The data that follow a struct fi_eq_cm_entry are truncated to fit.
 * Returns the bytes moved; -FI_EAGAIN if empty; -FI_EAVAIL if an error is first; -FI_ETOOSMALL if @len is
 * too small for the event without those data (the event stays).
 * Source: fi_eq(3), fi_eq_read.
 */
ssize_t eq_take(struct eq *q, uint32_t *event, void *buf, size_t len, uint64_t flags);

/*
 * eq_take_error - move the error that stands first
 * @err:   in: err_data and err_data_size as the caller set them; out: the error
 * @flags: FI_PEEK leaves it in place
 *
 * Error data are copied to the caller's buffer, as much as fits; a caller that has none (or
 * is older than 1.5) gets a pointer that is good until the next take of either kind.
 * Returns the bytes of struct fi_eq_err_entry, or -FI_EAGAIN when no error is first.
 * Source: fi_eq(3), fi_eq_readerr.
 */
ssize_t eq_take_error(struct eq *q, struct fi_eq_err_entry *err, uint64_t flags);

#endif
