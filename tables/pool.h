/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pool of objects of one size that never move. Each object in use has an id, which becomes invalid when the
 * object is freed, so that an id from the network can be checked. The engine and the wires use pools on the
 * thread that holds their domain: the caller serializes.
 *
 * A pool grows by slabs, each as large as all before it. Nothing is allocated before the first object, and
 * the memory of a slab is touched only when its objects are first used. The sizes of the slabs are fixed, so
 * that the slab follows from an index by arithmetic.
 */
#ifndef WEFT_POOL_H
#define WEFT_POOL_H

#include "platform.h"

#define POOL_SLAB_FIRST 16u /* objects in the first slab and in the second, then 32, 64, ... */
#define POOL_SLAB_CNT	29u /* slabs at most: together 2^32 objects */

/* First member of every pooled object. */
struct pool_object {
	struct pool_object *next_free;
	uint32_t index;
	/* odd while in use */
	uint32_t generation;
};

struct pool {
	struct pool_object *free;
	/* bytes, a multiple of 64 */
	size_t object_len;
	/* objects in use */
	uint32_t used;
	/* objects that were ever used: index of the first untouched one */
	uint32_t cnt;
	/* objects in all slabs */
	uint32_t cap;
	uint32_t max;
	void *slabs[POOL_SLAB_CNT];
};

/*
 * pool_init - an empty pool
 * @object_len: bytes of an object, its struct pool_object included
 * @max:	maximum number of objects; 0: no limit
 */
void pool_init(struct pool *pool, size_t object_len, uint32_t max);

/* pool_fini - free all slabs, also with objects in use */
void pool_fini(struct pool *pool);

/*
 * pool_grow - add free objects; called only by pool_get() and pool_ready()
 * Returns 0, -FI_EAGAIN at max, -FI_ENOMEM.
 */
int pool_grow(struct pool *pool);

/* pool_take - pool_get(), but it does not grow the pool. Returns NULL if no object is free */
static inline void *pool_take(struct pool *pool)
{
	struct pool_object *o = pool->free;

	if (unlikely(!o))
		return NULL;
	pool->free = o->next_free;
	pool->used++;
	o->generation++;
	return o;
}

/*
 * pool_get - allocate an object: zeroed at its first use, later as it was freed (behind its pool_object)
 * Returns NULL at max or without memory. The object that was freed last is returned first.
 */
static inline void *pool_get(struct pool *pool)
{
	if (unlikely(!pool->free) && pool_grow(pool))
		return NULL;
	return pool_take(pool);
}

/* pool_ready - make sure that the next pool_get() succeeds. Returns 0, or an error of pool_grow() */
static inline int pool_ready(struct pool *pool)
{
	return pool->free ? 0 : pool_grow(pool);
}

/* pool_put - free an object; its id becomes invalid */
static inline void pool_put(struct pool *pool, void *object)
{
	struct pool_object *o = object;

	o->generation++;
	o->next_free = pool->free;
	pool->free = o;
	pool->used--;
}

/* pool_id - 64-bit id of an object in use; never zero */
static inline uint64_t pool_id(const void *object)
{
	const struct pool_object *o = object;

	return (uint64_t)o->generation << 32 | o->index;
}

/*
 * pool_find - the object in use with this id, or NULL; @id may be any 64 bits
 * An id repeats after 2^31 uses of its object.
 */
void *pool_find(const struct pool *pool, uint64_t id);

/*
 * pool_each - iterate: the first object in use with an index of at least *index
 * @index: in: where to begin, 0 at first; out: index of the object plus one
 * Returns the object or NULL. It may be freed during the iteration; objects that are allocated meanwhile may
 * or may not be returned.
 */
void *pool_each(const struct pool *pool, uint32_t *index);

#endif
