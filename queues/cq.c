/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queue storage: growth, formats, errors. Called by the engine's cq object on
 * the thread that holds its domain.
 */
#include "cq.h"

#define SIZE_DEFAULT 256u
#define SIZE_MIN     16u
#define SIZE_HINT    (1u << 16) /* most room that a hint is given at once */
#define CNT_MAX	     (1u << 31)

_Static_assert(sizeof(struct cq_entry) == 64, "one cache line");
_Static_assert(offsetof(struct cq_entry, context) ==
		       offsetof(struct fi_cq_tagged_entry, op_context),
	       "layout");
_Static_assert(offsetof(struct cq_entry, flags) == offsetof(struct fi_cq_tagged_entry, flags),
	       "layout");
_Static_assert(offsetof(struct cq_entry, len) == offsetof(struct fi_cq_tagged_entry, len),
	       "layout");
_Static_assert(offsetof(struct cq_entry, buf) == offsetof(struct fi_cq_tagged_entry, buf),
	       "layout");
_Static_assert(offsetof(struct cq_entry, data) == offsetof(struct fi_cq_tagged_entry, data),
	       "layout");
_Static_assert(offsetof(struct cq_entry, tag) == offsetof(struct fi_cq_tagged_entry, tag),
	       "layout");
_Static_assert(offsetof(struct cq_entry, src) == sizeof(struct fi_cq_tagged_entry), "layout");

/* Each format is a prefix of the next. */
_Static_assert(sizeof(struct fi_cq_entry) == offsetof(struct fi_cq_tagged_entry, flags),
	       "prefix");
_Static_assert(sizeof(struct fi_cq_msg_entry) == offsetof(struct fi_cq_tagged_entry, buf),
	       "prefix");
_Static_assert(sizeof(struct fi_cq_data_entry) == offsetof(struct fi_cq_tagged_entry, tag),
	       "prefix");

int cq_init(struct cq *q, size_t size)
{
	uint32_t cnt = SIZE_MIN;

	if (!size)
		size = SIZE_DEFAULT;
	while (cnt < size && cnt < SIZE_HINT)
		cnt *= 2;
	*q = (struct cq){ .mask = cnt - 1, .limit = cnt };
	q->ring = platform_alloc(cnt * sizeof(*q->ring));
	return q->ring ? 0 : -FI_ENOMEM;
}

void cq_fini(struct cq *q)
{
	while (!cq_empty(q))
		cq_drop_first(q);
	platform_free(q->lent);
	platform_free(q->ring);
	*q = (struct cq){ 0 };
}

static int grow(struct cq *q)
{
	uint32_t mask = q->mask * 2 + 1;
	struct cq_entry *ring = NULL;

	if (q->mask < CNT_MAX - 1)
		ring = platform_alloc(((size_t)mask + 1) * sizeof(*ring));
	if (!ring) {
		q->overrun = true;
		return -FI_ENOMEM;
	}
	for (uint32_t at = q->head; at != q->tail; at++)
		ring[at & mask] = q->ring[at & q->mask];
	platform_free(q->ring);
	q->ring = ring;
	q->mask = mask;
	q->limit = mask + 1;
	return 0;
}

void cq_watch(struct cq *q, enum cq_watcher who, void (*watcher)(struct cq *q))
{
	q->watcher[who] = watcher;
	q->limit = 0;
}

void cq_unwatch(struct cq *q, enum cq_watcher who)
{
	bool watched = false;

	q->watcher[who] = NULL;
	for (int i = 0; i < CQ_WATCHERS; i++)
		watched |= q->watcher[i] != NULL;
	q->limit = watched ? 0 : q->mask + 1;
}

int cq_room(struct cq *q)
{
	for (int i = 0; i < CQ_WATCHERS; i++) {
		void (*watcher)(struct cq * q) = q->watcher[i];

		cq_unwatch(q, (enum cq_watcher)i);
		if (watcher)
			watcher(q);
	}
	return q->tail - q->head > q->mask ? grow(q) : 0;
}

bool cq_reached(const struct cq *q, size_t cnt)
{
	if (q->tail - q->head >= cnt || q->overrun)
		return true;
	for (uint32_t at = q->head; at != q->tail; at++)
		if (q->ring[at & q->mask].flags & CQ_ERROR)
			return true;
	return false;
}

void cq_push_error(struct cq *q, const struct fi_cq_err_entry *err)
{
	size_t data_len = err->err_data ? err->err_data_size : 0;
	struct cq_entry *e = cq_slot(q);
	struct fi_cq_err_entry *copy;

	if (!e)
		return;
	copy = platform_alloc(sizeof(*copy) + data_len);
	if (!copy) {
		q->overrun = true;
		return;
	}
	*copy = *err;
	copy->err_data = data_len ? copy + 1 : NULL;
	copy->err_data_size = data_len;
	if (data_len)
		memcpy(copy + 1, err->err_data, data_len);

	*e = (struct cq_entry){
		.context = err->op_context,
		.flags = err->flags | CQ_ERROR,
		.src = err->src_addr,
		.error = copy,
	};
	cq_push(q);
}

void cq_drop_first(struct cq *q)
{
	const struct cq_entry *e = &q->ring[q->head & q->mask];

	if (e->flags & CQ_ERROR)
		platform_free(e->error);
	q->head++;
	if (cq_empty(q))
		q->head = q->tail = 0;
}

/* Error data that fi_cq_readerr lent to the program are valid until its next read: free them. */
static void drop_lent(struct cq *q)
{
	if (unlikely(q->lent != NULL)) {
		platform_free(q->lent);
		q->lent = NULL;
	}
}

static ssize_t take_none(const struct cq *q)
{
	if (cq_empty(q))
		return q->overrun ? -FI_EOVERRUN : -FI_EAGAIN;
	return q->ring[q->head & q->mask].flags & CQ_ERROR ? -FI_EAVAIL : 0;
}

/* One entry in the given format; the address behind it is returned. */
static inline void *put(void *buf, const struct cq_entry *e, enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_UNSPEC:
	case FI_CQ_FORMAT_CONTEXT:
		memcpy(buf, e, sizeof(struct fi_cq_entry));
		return (char *)buf + sizeof(struct fi_cq_entry);
	case FI_CQ_FORMAT_MSG:
		memcpy(buf, e, sizeof(struct fi_cq_msg_entry));
		return (char *)buf + sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		memcpy(buf, e, sizeof(struct fi_cq_data_entry));
		return (char *)buf + sizeof(struct fi_cq_data_entry);
	case FI_CQ_FORMAT_TAGGED:
		break;
	}
	memcpy(buf, e, sizeof(struct fi_cq_tagged_entry));
	return (char *)buf + sizeof(struct fi_cq_tagged_entry);
}

ssize_t cq_take_several(struct cq *q, enum fi_cq_format format, void *buf, size_t count,
			fi_addr_t *src)
{
	size_t n = 0;

	drop_lent(q);
	for (; n < count && !cq_empty(q); n++, q->head++) {
		const struct cq_entry *e = &q->ring[q->head & q->mask];

		if (unlikely(e->flags & CQ_ERROR))
			break;
		buf = put(buf, e, format);
		if (src)
			src[n] = e->src;
	}
	if (unlikely(!n))
		return take_none(q);
	/* An empty queue starts over at the first entries: their cache lines are warm. */
	if (cq_empty(q))
		q->head = q->tail = 0;
	return (ssize_t)n;
}

/* Bytes of struct fi_cq_err_entry that a caller of that version has. */
static size_t err_entry_len(uint32_t api_version)
{
	if (FI_VERSION_LT(api_version, FI_VERSION(1, 5)))
		return offsetof(struct fi_cq_err_entry, err_data_size);
	if (FI_VERSION_LT(api_version, FI_VERSION(1, 20)))
		return offsetof(struct fi_cq_err_entry, src_addr);
	return sizeof(struct fi_cq_err_entry);
}

ssize_t cq_take_error(struct cq *q, struct fi_cq_err_entry *err, uint32_t api_version)
{
	bool has_size = FI_VERSION_GE(api_version, FI_VERSION(1, 5));
	size_t room = has_size ? err->err_data_size : 0;
	struct fi_cq_err_entry *from;
	struct cq_entry *e;

	drop_lent(q);
	if (cq_empty(q))
		return -FI_EAGAIN;
	e = &q->ring[q->head & q->mask];
	if (!(e->flags & CQ_ERROR))
		return -FI_EAGAIN;

	from = e->error;
	q->lent = from;
	if (room && err->err_data) {
		size_t len = from->err_data_size < room ? from->err_data_size : room;

		if (len)
			memcpy(err->err_data, from->err_data, len);
		from->err_data = err->err_data;
		from->err_data_size = len;
	}
	memcpy(err, from, err_entry_len(api_version));
	q->head++;
	return 1;
}
