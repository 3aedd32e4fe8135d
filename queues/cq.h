/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queue storage: the engine appends entries, and fi_cq_read and the other read calls
 * remove them. It grows instead of overrunning. The engine's completion queue object owns one; the
 * caller serializes.
 */
#ifndef WEFT_CQ_H
#define WEFT_CQ_H

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include "platform.h"

/* The first 48 bytes are struct fi_cq_tagged_entry, asserted in cq.c. */
struct cq_entry {
	void *context;
	/* FI_SEND, FI_RECV, FI_TAGGED, ...; CQ_ERROR: the entry is an error */
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
	/* Source, or FI_ADDR_NOTAVAIL */
	fi_addr_t src;
	/* struct fi_cq_err_entry, owned, when flags has CQ_ERROR */
	void *error;
};

#define CQ_ERROR (1ull << 63)

/*
 * Users of cq_watch(): threads that sleep until there is an entry, and the task that passes entries
 * to an imported queue's owner.
 */
enum cq_watcher { CQ_SLEEPERS, CQ_OWNER, CQ_WATCHERS };

struct cq {
	struct cq_entry *ring;
	uint32_t mask;
	/* next to read */
	uint32_t head;
	/* next to write */
	uint32_t tail;
	/* memory ran out: a completion was lost */
	bool overrun;
	/*
	 * Number of entries from which on cq_slot() calls cq_room(): the capacity, or 0 while the
	 * queue is watched
	 */
	uint32_t limit;
	/* Error data that the program may read until its next read */
	void *lent;
	/* NULL: none */
	void (*watcher[CQ_WATCHERS])(struct cq *q);
};

/*
 * cq_init - an empty queue
 * @size: entries there is room for at first, a hint from anywhere (0: a default)
 * Returns 0 or -FI_ENOMEM.
 */
int cq_init(struct cq *q, size_t size);
/* cq_fini - drop what was not read and release the memory */
void cq_fini(struct cq *q);

/*
 * cq_room - call the watchers, and double the capacity if the queue is full; only for cq_slot()
 * Returns 0 or -FI_ENOMEM (overrun is set).
 */
int cq_room(struct cq *q);

/*
 * cq_watch - call @watcher once, right before the next entry is written or lost; it must not touch
 * the queue. Writing costs nothing more while there is no watcher.
 * cq_unwatch - cancel that; without effect if there is no watcher
 * @who: a queue has one watcher of each kind
 */
void cq_watch(struct cq *q, enum cq_watcher who, void (*watcher)(struct cq *q));
void cq_unwatch(struct cq *q, enum cq_watcher who);

static inline bool cq_empty(const struct cq *q)
{
	return q->head == q->tail;
}

/*
 * cq_reached - returns true if there are @cnt entries, or an error among those there are, or if a
 * completion was lost, so that no more will be written
 * @cnt: at least 1
 */
bool cq_reached(const struct cq *q, size_t cnt);

/*
 * cq_slot - returns the entry that cq_push() will publish, to be filled in place
 * Without cq_push() nothing is published. Returns NULL without memory (overrun is set).
 */
static inline struct cq_entry *cq_slot(struct cq *q)
{
	if (unlikely(q->tail - q->head >= q->limit) && cq_room(q))
		return NULL;
	return &q->ring[q->tail & q->mask];
}

static inline void cq_push(struct cq *q)
{
	q->tail++;
}

/*
 * cq_push_error - append an error; copied, with err_data_size bytes at err_data
 * Without memory for it overrun is set.
 */
void cq_push_error(struct cq *q, const struct fi_cq_err_entry *err);

/*
 * cq_first - returns the first entry, valid until cq_drop_first(), or NULL. With CQ_ERROR, ->error
 * is the whole error
 */
static inline const struct cq_entry *cq_first(const struct cq *q)
{
	return cq_empty(q) ? NULL : &q->ring[q->head & q->mask];
}

/* cq_drop_first - remove the first entry, which the caller has passed on; the queue is not empty */
void cq_drop_first(struct cq *q);

/* What cq_take() does with several, with other formats, and where there is none. */
ssize_t cq_take_several(struct cq *q, enum fi_cq_format format, void *buf, size_t count,
			fi_addr_t *src);

/*
 * cq_copy_tagged - copy an entry field by field, as it was written: a wider load of a field that
 * has just been stored waits until the store has left the store buffer
 */
static inline void cq_copy_tagged(struct fi_cq_tagged_entry *to,
				  const struct fi_cq_tagged_entry *from)
{
	const volatile struct fi_cq_tagged_entry *each = from;

	to->op_context = each->op_context;
	to->flags = each->flags;
	to->len = each->len;
	to->buf = each->buf;
	to->data = each->data;
	to->tag = each->tag;
}

/*
 * cq_take - move up to @count completions to @buf
 * @format: layout of @buf's entries
 * @src:    NULL, or room for @count sources
 *
 * Returns the number moved (completions before an error come first; 0 for a count of 0),
 * -FI_EAGAIN when empty, -FI_EAVAIL when an error is first, -FI_EOVERRUN when empty after
 * a completion was lost, for good: waiting for it would not end.
 * Source: fi_cq(3), fi_cq_read.
 */
static inline ssize_t cq_take(struct cq *q, enum fi_cq_format format, void *buf, size_t count,
			      fi_addr_t *src)
{
	const struct cq_entry *e = &q->ring[q->head & q->mask];

	/* The common case: one entry, which is read whole. */
	if (unlikely(q->tail - q->head != 1 || format != FI_CQ_FORMAT_TAGGED || !count ||
		     e->flags & CQ_ERROR || q->lent))
		return cq_take_several(q, format, buf, count, src);
	cq_copy_tagged(buf, (const struct fi_cq_tagged_entry *)e);
	if (src)
		*src = e->src;
	q->head = q->tail = 0;
	return 1;
}

/*
 * cq_take_error - move the error that stands first
 * @err: in: err_data and err_data_size as the caller set them; out: the error
 * @api_version: of the caller: its struct fi_cq_err_entry may be shorter than ours, without
 *		 err_data_size before 1.5 and without src_addr before 1.20
 *
 * Error data are copied to the caller's buffer, as much as fits; a caller that has none
 * (or is older than 1.5) gets a pointer that is good until the next cq_take() or
 * cq_take_error(). Returns 1, or -FI_EAGAIN when no error is first (nothing written).
 * Source: fi_cq(3), fi_cq_readerr.
 */
ssize_t cq_take_error(struct cq *q, struct fi_cq_err_entry *err, uint32_t api_version);

#endif
