/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The pool's slabs. Called through pool.h by whoever owns the pool, on its thread.
 */
#include <rdma/fi_types.h>
#include <rdma/fi_errno.h>
#include "pool.h"

#define OBJECT_ALIGN 64u
#define BATCH	     16u /* objects that are made ready at once: their memory is touched then */

/* slab_of - slab that holds an index */
static uint32_t slab_of(uint32_t index)
{
	if (index < POOL_SLAB_FIRST)
		return 0;
	return 32u - (uint32_t)__builtin_clz(index / POOL_SLAB_FIRST);
}

/* slab_base - first index of a slab */
static uint32_t slab_base(uint32_t slab)
{
	return slab ? POOL_SLAB_FIRST << (slab - 1) : 0;
}

static struct pool_object *object_at(const struct pool *pool, uint32_t index)
{
	uint32_t slab = slab_of(index);
	size_t at = (size_t)(index - slab_base(slab)) * pool->object_len;

	return (struct pool_object *)((char *)pool->slabs[slab] + at);
}

void pool_init(struct pool *pool, size_t object_len, uint32_t max)
{
	assert(object_len >= sizeof(struct pool_object));
	*pool = (struct pool){
		.object_len = (object_len + OBJECT_ALIGN - 1) & ~(size_t)(OBJECT_ALIGN - 1),
		.max = max ? max : UINT32_MAX,
	};
}

void pool_fini(struct pool *pool)
{
	for (uint32_t i = 0; i < POOL_SLAB_CNT; i++)
		platform_free(pool->slabs[i]);
	*pool = (struct pool){ .object_len = pool->object_len, .max = pool->max };
}

/* Adds the next slab; the last one is shorter if @max does not leave room for a whole one. */
static int add_slab(struct pool *pool)
{
	uint32_t slab = slab_of(pool->cap);
	uint32_t cnt = pool->cap ? pool->cap : POOL_SLAB_FIRST;
	size_t len;

	if (cnt > pool->max - pool->cap)
		cnt = pool->max - pool->cap;
	if (__builtin_mul_overflow((size_t)cnt, pool->object_len, &len))
		return -FI_ENOMEM;
	pool->slabs[slab] = platform_alloc(len);
	if (!pool->slabs[slab])
		return -FI_ENOMEM;
	pool->cap += cnt;
	return 0;
}

int pool_grow(struct pool *pool)
{
	uint32_t end;

	if (pool->cnt == pool->max)
		return -FI_EAGAIN;
	if (pool->cnt == pool->cap && add_slab(pool))
		return -FI_ENOMEM;

	end = pool->cap - pool->cnt > BATCH ? pool->cnt + BATCH : pool->cap;
	for (uint32_t index = end; index-- > pool->cnt;) {
		struct pool_object *o = object_at(pool, index);

		o->index = index;
		o->next_free = pool->free;
		pool->free = o;
	}
	pool->cnt = end;
	return 0;
}

void *pool_find(const struct pool *pool, uint64_t id)
{
	uint32_t index = (uint32_t)id;
	uint32_t generation = (uint32_t)(id >> 32);
	struct pool_object *o;

	if (index >= pool->cnt || !(generation & 1))
		return NULL;
	o = object_at(pool, index);
	return o->generation == generation ? o : NULL;
}

void *pool_each(const struct pool *pool, uint32_t *index)
{
	while (*index < pool->cnt) {
		struct pool_object *o = object_at(pool, (*index)++);

		if (o->generation & 1)
			return o;
	}
	return NULL;
}
