/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of the pool. */
#include <setjmp.h>
#include <stdarg.h>
#include <rdma/fi_errno.h>
#include "pool.h"
#include "seeded.h"
#include <cmocka.h>

/* Memory runs out when a test says so: the linker leads platform_alloc() here. */
void *__real_platform_alloc(size_t len);
void *__wrap_platform_alloc(size_t len);
static bool no_memory;

void *__wrap_platform_alloc(size_t len)
{
	return no_memory ? NULL : __real_platform_alloc(len);
}

struct thing {
	struct pool_object object;
	/* as it was when taken */
	uint64_t id;
	char payload[100];
};

static uint64_t seed = 0x5eed0001;

static uint64_t next_random(void)
{
	return seeded_random(&seed);
}

static void pool_allocates_nothing_before_the_first_object(void **state)
{
	struct pool pool;

	pool_init(&pool, sizeof(struct thing), 0);
	assert_int_equal(pool.object_len, 128);
	assert_null(pool.slabs[0]);
	assert_null(pool_find(&pool, 0));
	assert_null(pool_find(&pool, 1ull << 32));
	assert_non_null(pool_get(&pool));
	assert_non_null(pool.slabs[0]);
	assert_null(pool.slabs[1]);
	assert_int_equal(pool.cap, POOL_SLAB_FIRST);
	pool_fini(&pool);
	assert_int_equal(pool.used, 0);
}

static void objects_never_move_and_slabs_double(void **state)
{
	enum { CNT = 5000 };
	static struct thing *things[CNT];
	struct pool pool;

	pool_init(&pool, sizeof(struct thing), 0);
	for (uint32_t i = 0; i < CNT; i++) {
		things[i] = pool_get(&pool);
		assert_non_null(things[i]);
		assert_int_equal((uintptr_t)things[i] % 64, 0);
		assert_int_equal(things[i]->object.index, i);
		memset(things[i]->payload, (int)i, sizeof(things[i]->payload));
		things[i]->id = pool_id(things[i]);
	}
	assert_int_equal(pool.used, CNT);
	assert_int_equal(pool.cap, 8192);
	for (uint32_t i = 0; i < CNT; i++) {
		assert_ptr_equal(pool_find(&pool, things[i]->id), things[i]);
		assert_int_equal((unsigned char)things[i]->payload[99], i & 0xff);
	}
	pool_fini(&pool);
}

static void given_back_id_is_stale(void **state)
{
	struct pool pool;
	struct thing *a, *b;
	uint64_t id;

	pool_init(&pool, sizeof(struct thing), 0);
	a = pool_get(&pool);
	id = pool_id(a);
	assert_int_not_equal(id, 0);
	pool_put(&pool, a);
	assert_null(pool_find(&pool, id));
	b = pool_get(&pool);
	assert_ptr_equal(a, b); /* same place, last in first out */
	assert_int_not_equal(pool_id(b), id);
	assert_null(pool_find(&pool, id));
	assert_ptr_equal(pool_find(&pool, pool_id(b)), b);
	pool_fini(&pool);
}

static void any_id_may_be_asked(void **state)
{
	struct pool pool;

	pool_init(&pool, sizeof(struct thing), 0);
	for (int i = 0; i < 40; i++)
		assert_non_null(pool_get(&pool));
	printf("seed %#llx\n", (unsigned long long)seed);
	for (int i = 0; i < 100000; i++) {
		uint64_t id = next_random() >> (next_random() % 64);
		struct thing *t = pool_find(&pool, id);

		if (t)
			assert_int_equal(pool_id(t), id);
	}
	/* Indexes at the edges of slabs and beyond them. */
	for (uint64_t bit = 1; bit <= UINT32_MAX; bit <<= 1) {
		for (uint64_t index = bit - 1; index <= bit + 1; index++) {
			struct thing *t = pool_find(&pool, 1ull << 32 | (uint32_t)index);

			assert_int_equal(t != NULL, (uint32_t)index < 40);
		}
	}
	pool_fini(&pool);
}

static void max_is_kept(void **state)
{
	static const uint32_t max[] = { 1, 2, 15, 16, 17, 33, 100, 1000 };

	for (size_t i = 0; i < sizeof(max) / sizeof(max[0]); i++) {
		struct thing *last = NULL;
		struct pool pool;

		pool_init(&pool, sizeof(struct thing), max[i]);
		for (uint32_t n = 0; n < max[i]; n++) {
			last = pool_get(&pool);
			assert_non_null(last);
			memset(last->payload, 1, sizeof(last->payload));
		}
		assert_null(pool_get(&pool));
		assert_int_equal(pool_grow(&pool), -FI_EAGAIN);
		assert_int_equal(pool.used, max[i]);
		pool_put(&pool, last);
		assert_ptr_equal(pool_get(&pool), last);
		assert_null(pool_get(&pool));
		pool_fini(&pool);
	}
}

static void without_memory_get_returns_null_and_the_pool_stays(void **state)
{
	struct thing *things[POOL_SLAB_FIRST];
	struct pool pool;

	pool_init(&pool, SIZE_MAX / 8, 0);
	assert_null(pool_get(&pool)); /* 16 objects overflow */
	assert_int_equal(pool_grow(&pool), -FI_ENOMEM);
	pool_fini(&pool);
	pool_init(&pool, SIZE_MAX / 32, 0);
	assert_null(pool_get(&pool)); /* they do not, but there is no such memory */
	pool_fini(&pool);

	pool_init(&pool, sizeof(struct thing), 0);
	for (uint32_t i = 0; i < POOL_SLAB_FIRST; i++)
		things[i] = pool_get(&pool);
	no_memory = true;
	assert_null(pool_get(&pool));
	assert_int_equal(pool.used, POOL_SLAB_FIRST);
	pool_put(&pool, things[3]);
	assert_ptr_equal(pool_get(&pool), things[3]);
	assert_null(pool_get(&pool));
	no_memory = false;
	assert_non_null(pool_get(&pool));
	pool_fini(&pool);
}

static void an_object_that_is_ready_needs_no_memory(void **state)
{
	struct pool pool;

	pool_init(&pool, sizeof(struct thing), 0);
	no_memory = true;
	assert_int_equal(pool_ready(&pool), -FI_ENOMEM);
	no_memory = false;
	assert_int_equal(pool_ready(&pool), 0);
	assert_int_equal(pool.used, 0);
	no_memory = true;
	assert_int_equal(pool_ready(&pool), 0);
	assert_non_null(pool_get(&pool));
	no_memory = false;
	pool_fini(&pool);
}

static void each_meets_every_object_in_use(void **state)
{
	enum { CNT = 100 };
	struct thing *things[CNT];
	struct pool pool;
	uint32_t index = 0, met = 0;
	struct thing *t;

	pool_init(&pool, sizeof(struct thing), 0);
	assert_null(pool_each(&pool, &index));
	for (int i = 0; i < CNT; i++)
		things[i] = pool_get(&pool);
	for (int i = 0; i < CNT; i += 3)
		pool_put(&pool, things[i]);
	index = 0;
	while ((t = pool_each(&pool, &index))) {
		assert_int_not_equal(t->object.index % 3, 0);
		assert_int_equal(index, t->object.index + 1);
		pool_put(&pool, t);
		met++;
	}
	assert_int_equal(met, CNT - (CNT + 2) / 3);
	assert_int_equal(pool.used, 0);
	pool_fini(&pool);
}

static void random_use_agrees_with_a_plain_array(void **state)
{
	enum { MOST = 600 };
	static struct thing *in_use[MOST];
	static uint64_t stale[MOST];
	uint32_t used = 0;
	struct pool pool;

	printf("seed %#llx\n", (unsigned long long)seed);
	pool_init(&pool, sizeof(struct thing), MOST);
	for (int i = 0; i < 100000; i++) {
		if (next_random() % 2) {
			struct thing *t = pool_get(&pool);

			assert_int_equal(t != NULL, used < MOST);
			if (t) {
				t->id = pool_id(t);
				in_use[used++] = t;
			}
		} else if (used) {
			uint32_t at = (uint32_t)(next_random() % used);

			stale[next_random() % MOST] = in_use[at]->id;
			pool_put(&pool, in_use[at]);
			in_use[at] = in_use[--used];
		}
		assert_int_equal(pool.used, used);
		if (used) {
			struct thing *t = in_use[next_random() % used];

			assert_ptr_equal(pool_find(&pool, t->id), t);
		}
		assert_null(pool_find(&pool, stale[next_random() % MOST]));
	}
	pool_fini(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pool_allocates_nothing_before_the_first_object),
		cmocka_unit_test(objects_never_move_and_slabs_double),
		cmocka_unit_test(given_back_id_is_stale),
		cmocka_unit_test(any_id_may_be_asked),
		cmocka_unit_test(max_is_kept),
		cmocka_unit_test(without_memory_get_returns_null_and_the_pool_stays),
		cmocka_unit_test(an_object_that_is_ready_needs_no_memory),
		cmocka_unit_test(each_meets_every_object_in_use),
		cmocka_unit_test(random_use_agrees_with_a_plain_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
