/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event queue storage: a list of copies. Called by the engine's eq object under its
 * serialization; events are rare and may allocate.
 */
#include "eq.h"

struct eq_event {
	struct list node;
	uint32_t event;
	/* payload is a struct fi_eq_err_entry and its data */
	bool error;
	size_t len;
	_Alignas(16) unsigned char payload[];
};

void eq_init(struct eq *q)
{
	list_init(&q->events);
	q->lent = NULL;
	q->api_version = 0;
}

static struct eq_event *first_of(const struct eq *q)
{
	return container_of(q->events.next, struct eq_event, node);
}

/* Error data that fi_eq_readerr lent to the program are valid until its next read: free them. */
static void drop_lent(struct eq *q)
{
	platform_free(q->lent);
	q->lent = NULL;
}

void eq_fini(struct eq *q)
{
	struct list *node;

	drop_lent(q);
	while ((node = list_pop(&q->events)))
		platform_free(container_of(node, struct eq_event, node));
}

struct eq_event *eq_event_new(uint32_t event, const void *buf, size_t len)
{
	struct eq_event *e;

	if (len > PTRDIFF_MAX - sizeof(*e))
		return NULL;
	e = platform_alloc(sizeof(*e) + len);
	if (!e)
		return NULL;
	e->event = event;
	e->len = len;
	if (len && buf)
		memcpy(e->payload, buf, len);
	return e;
}

void eq_event_fill(struct eq_event *e, const void *buf, size_t len)
{
	assert(len == e->len);
	memcpy(e->payload, buf, len);
}

void eq_event_free(struct eq_event *e)
{
	platform_free(e);
}

void eq_post(struct eq *q, struct eq_event *e)
{
	list_add_tail(&q->events, &e->node);
}

int eq_push_error(struct eq *q, const struct fi_eq_err_entry *err)
{
	size_t data_len = err->err_data ? err->err_data_size : 0;
	struct fi_eq_err_entry copy = *err;
	struct eq_event *e;

	if (data_len > PTRDIFF_MAX)
		return -FI_ENOMEM;
	e = eq_event_new(0, NULL, sizeof(copy) + data_len);
	if (!e)
		return -FI_ENOMEM;
	e->error = true;
	copy.err_data = data_len ? e->payload + sizeof(copy) : NULL;
	copy.err_data_size = data_len;
	memcpy(e->payload, &copy, sizeof(copy));
	if (data_len)
		memcpy(copy.err_data, err->err_data, data_len);
	eq_post(q, e);
	return 0;
}

static bool is_connection(const struct eq_event *e)
{
	return (e->event == FI_CONNREQ || e->event == FI_CONNECTED || e->event == FI_SHUTDOWN) &&
	       e->len >= sizeof(struct fi_eq_cm_entry);
}

/* Returns true for an error or a connection event of @fid. */
static bool is_about(const struct eq_event *e, const struct fid *fid)
{
	if (e->error)
		return ((const struct fi_eq_err_entry *)(const void *)e->payload)->fid == fid;
	return is_connection(e) &&
	       ((const struct fi_eq_cm_entry *)(const void *)e->payload)->fid == fid;
}

void eq_forget(struct eq *q, const struct fid *fid,
	       void (*drop)(void *arg, const struct fi_eq_cm_entry *entry), void *arg)
{
	struct list *node, *after;

	list_for_each(node, after, &q->events) {
		struct eq_event *e = container_of(node, struct eq_event, node);

		if (!is_about(e, fid))
			continue;
		if (drop && !e->error && e->event == FI_CONNREQ)
			drop(arg, (const void *)e->payload);
		list_remove(&e->node);
		platform_free(e);
	}
}

/* Bytes that a reader must have room for. */
static size_t least_room(const struct eq_event *e)
{
	switch (e->event) {
	case FI_CONNREQ:
	case FI_CONNECTED:
	case FI_SHUTDOWN:
		if (e->len > sizeof(struct fi_eq_cm_entry))
			return sizeof(struct fi_eq_cm_entry);
		break;
	default:
		break;
	}
	return e->len;
}

ssize_t eq_take(struct eq *q, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	struct eq_event *e;

	drop_lent(q);
	if (list_empty(&q->events))
		return -FI_EAGAIN;
	e = first_of(q);
	if (e->error)
		return -FI_EAVAIL;
	if (len < least_room(e))
		return -FI_ETOOSMALL;

	if (len > e->len)
		len = e->len;
	*event = e->event;
	if (len)
		memcpy(buf, e->payload, len);
	if (!(flags & FI_PEEK)) {
		list_remove(&e->node);
		platform_free(e);
	}
	return (ssize_t)len;
}

ssize_t eq_take_error(struct eq *q, struct fi_eq_err_entry *err, uint64_t flags)
{
	bool sized = !q->api_version || FI_VERSION_GE(q->api_version, FI_VERSION(1, 5));
	size_t room = sized && err->err_data ? err->err_data_size : 0;
	struct fi_eq_err_entry copy;
	struct eq_event *e;

	drop_lent(q);
	if (list_empty(&q->events))
		return -FI_EAGAIN;
	e = first_of(q);
	if (!e->error)
		return -FI_EAGAIN;

	memcpy(&copy, e->payload, sizeof(copy));
	if (room) {
		size_t data_len = copy.err_data_size < room ? copy.err_data_size : room;

		if (data_len)
			memcpy(err->err_data, copy.err_data, data_len);
		copy.err_data = err->err_data;
		copy.err_data_size = data_len;
	}
	*err = copy;
	if (!(flags & FI_PEEK)) {
		list_remove(&e->node);
		q->lent = e;
	}
	return sizeof(*err);
}
