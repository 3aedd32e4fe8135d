/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pool of equal objects that never move, each with an id that goes stale when the
 * object is given back: an id from the wire is looked up, never trusted.
 * Used by the engine and by wires, on the thread that holds their domain: the caller
 * serializes.
 *
 * Grows by slabs, each as large as all before it; nothing is allocated before the first
 * object, and the memory of a slab is touched only as its objects are first used. The
 * sizes of the slabs are fixed, so an index leads to its slab by arithmetic.
 */
#ifndef WEFT_POOL_H
#define WEFT_POOL_H

#include "platform.h"

#define POOL_SLAB_FIRST 16u /* objects of the first slab and of the second, then 32, 64, ... */
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
	/* objects that were ever free: index of the first untouched one */
	uint32_t cnt;
	/* objects that the slabs hold */
	uint32_t cap;
	uint32_t max;
	void *slabs[POOL_SLAB_CNT];
};

/*
 * pool_init - an empty pool
 * @object_len: bytes of an object, its struct pool_object included
 * @max:	objects at most; 0: as many as memory holds
 */
void pool_init(struct pool *pool, size_t object_len, uint32_t max);

/* pool_fini - release everything, objects in use too */
void pool_fini(struct pool *pool);

/*
 * pool_grow - free objects more; called by pool_get() and pool_ready() alone
 * Returns 0, -FI_EAGAIN at max, -FI_ENOMEM.
 */
int pool_grow(struct pool *pool);

/*
 * pool_get - an object, zeroed at its first use, then as it was left (behind its pool_object)
 * Returns NULL at max or without memory. The last one given back comes first.
 */
static inline void *pool_get(struct pool *pool)
{
	struct pool_object *o = pool->free;

	if (unlikely(!o)) {
		if (pool_grow(pool))
			return NULL;
		o = pool->free;
	}
	pool->free = o->next_free;
	pool->used++;
	o->generation++;
	return o;
}

/* pool_ready - have an object that the next pool_get() gives, whatever memory there is then. 0 or as pool_grow() */
static inline int pool_ready(struct pool *pool)
{
	return pool->free ? 0 : pool_grow(pool);
}

/* pool_put - give an object back; its id is stale from now on */
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
 * pool_find - the object in use that has this id, or NULL; any 64 bits may be asked
 * An id comes to life again after 2^31 uses of its object.
 */
void *pool_find(const struct pool *pool, uint64_t id);

/*
 * pool_each - the first object in use with an index of at least *index
 * @index: in: where to begin, 0 at first; out: one past the object
 * Returns the object or NULL. It may be given back during the walk; objects that are taken
 * meanwhile may be met or not.
 */
void *pool_each(const struct pool *pool, uint32_t *index);

#endif
