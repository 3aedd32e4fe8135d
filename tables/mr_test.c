/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of the memory-region key table: the owner, and readers in memory that changes. */
#include <setjmp.h>
#include <stdarg.h>
#include "mr.h"
#include "seeded.h"
#include <cmocka.h>

#define RMA (FI_REMOTE_READ | FI_REMOTE_WRITE)

/* Memory runs out when a test says so: the linker leads platform_alloc() here. */
void *__real_platform_alloc(size_t len);
void *__wrap_platform_alloc(size_t len);
static int allocs_left = -1; /* below 0: no end */

void *__wrap_platform_alloc(size_t len)
{
	if (!allocs_left)
		return NULL;
	if (allocs_left > 0)
		allocs_left--;
	return __real_platform_alloc(len);
}

/* Shared slabs, as a reader maps them. */
static void *_Atomic mapped[MR_SLAB_CNT];

static void *slab_alloc(void *arg, uint32_t slab)
{
	void *memory = platform_alloc(mr_slab_len(slab));

	assert_null(atomic_load(&mapped[slab]));
	atomic_store(&mapped[slab], memory);
	return memory;
}

static void slab_free(void *arg, uint32_t slab, void *memory)
{
	assert_ptr_equal(atomic_exchange(&mapped[slab], NULL), memory);
	platform_free(memory);
}

static const struct mr_memory memory = { .alloc = slab_alloc, .free = slab_free };

static int add(struct mr_table *t, uint64_t base, uint64_t len, uint64_t name, uint64_t key,
	       uint32_t *index)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)base, .iov_len = len };
	struct mr_spec spec = {
		.iov = &iov,
		.iov_cnt = 1,
		.access = RMA,
		.iova = name,
		.key = key,
		.object = t,
		.live = true,
	};

	return mr_insert(t, &spec, index);
}

/* Resolves into one piece: 0 or an error; *at is where. */
static int where(const struct mr_table *t, uint64_t key, uint64_t addr, uint64_t len,
		 uint64_t *at)
{
	const struct mr_region *r = mr_find(t, key);
	struct iovec iov[MR_IOV_MAX];
	size_t cnt = 0;
	int ret;

	if (!r)
		return -FI_EKEYREJECTED;
	ret = mr_range(r, addr, len, FI_REMOTE_WRITE, iov, &cnt);
	if (ret)
		return ret;
	assert_int_equal(cnt, 1);
	assert_true(iov[0].iov_len == len);
	*at = (uintptr_t)iov[0].iov_base;
	return 0;
}

static void a_region_resolves_to_the_byte(void **state)
{
	struct mr_table t;
	uint32_t index;
	uint64_t at = 0;

	mr_init(&t, MR_KEYS_GIVEN, NULL);
	assert_int_equal(where(&t, 1, 0, 1, &at), -FI_EKEYREJECTED);
	assert_int_equal(add(&t, 0x1000, 100, 0, 1, &index), 0);
	assert_int_equal(add(&t, 0x1000, 100, 0x1000, 2, &index), 0); /* overlaps */
	assert_int_equal(where(&t, 1, 0, 100, &at), 0);
	assert_int_equal(at, 0x1000);
	assert_int_equal(where(&t, 1, 99, 1, &at), 0);
	assert_int_equal(at, 0x1063);
	assert_int_equal(where(&t, 1, 100, 0, &at), 0);
	assert_int_equal(where(&t, 1, 100, 1, &at), -FI_EACCES);
	assert_int_equal(where(&t, 1, 101, 0, &at), -FI_EACCES);
	assert_int_equal(where(&t, 1, 1, UINT64_MAX, &at), -FI_EACCES);
	assert_int_equal(where(&t, 1, UINT64_MAX, 2, &at), -FI_EACCES);
	assert_int_equal(where(&t, 2, 0x1001, 99, &at), 0);
	assert_int_equal(at, 0x1001);
	assert_int_equal(where(&t, 2, 0xfff, 1, &at), -FI_EACCES);
	assert_int_equal(where(&t, 2, 0, 1, &at), -FI_EACCES);
	assert_int_equal(where(&t, 3, 0, 1, &at), -FI_EKEYREJECTED);
	mr_fini(&t);
}

static void only_what_was_granted_is_allowed(void **state)
{
	static const uint64_t bits[] = { FI_SEND,  FI_RECV,	   FI_READ,
					 FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE };
	struct iovec iov = { .iov_base = (void *)64, .iov_len = 64 }, out[MR_IOV_MAX];
	struct mr_table t;
	uint32_t index;
	size_t cnt;

	mr_init(&t, MR_KEYS_ISSUED, NULL);
	for (uint32_t granted = 0; granted < 64; granted++) {
		struct mr_spec spec = { .iov = &iov, .iov_cnt = 1, .object = &t, .live = true };

		for (uint32_t i = 0; i < 6; i++)
			spec.access |= granted >> i & 1 ? bits[i] : 0;
		assert_int_equal(mr_insert(&t, &spec, &index), 0);
		for (uint32_t i = 0; i < 6; i++)
			assert_int_equal(mr_range(mr_at(&t, index), 0, 1, bits[i], out, &cnt),
					 granted >> i & 1 ? 0 : -FI_EACCES);
		assert_int_equal(mr_range(mr_at(&t, index), 0, 1,
					  FI_REMOTE_READ | FI_REMOTE_WRITE, out, &cnt),
				 granted >> 4 == 3 ? 0 : -FI_EACCES);
	}
	mr_fini(&t);
}

/* Peers see nothing of that. */
static void what_was_checked_is_known_of_one_kind(void **state)
{
	struct iovec iov = { .iov_base = (void *)64, .iov_len = 64 }, out[MR_IOV_MAX];
	struct mr_spec spec = {
		.iov = &iov, .iov_cnt = 1, .access = RMA, .key = 1, .object = &iov, .live = true
	};
	const struct mr_region *r;
	struct mr_reader reader;
	struct mr_view view;
	struct mr_table t;
	uint32_t index;
	size_t cnt;

	mr_init(&t, MR_KEYS_GIVEN, &memory);
	spec.access |= MR_CHECKED(RMA); /* is no access that is granted */
	assert_int_equal(mr_insert(&t, &spec, &index), 0);
	r = mr_at(&t, index);
	assert_int_equal(mr_range(r, 0, 1, RMA, out, &cnt), 0);
	assert_int_equal(
		mr_range(r, 0, 1, FI_REMOTE_READ | MR_CHECKED(FI_REMOTE_READ), out, &cnt),
		-FI_EACCES);
	mr_set_checked(&t, index, FI_REMOTE_READ);
	assert_int_equal(
		mr_range(r, 0, 1, FI_REMOTE_READ | MR_CHECKED(FI_REMOTE_READ), out, &cnt), 0);
	assert_int_equal(
		mr_range(r, 0, 1, FI_REMOTE_WRITE | MR_CHECKED(FI_REMOTE_WRITE), out, &cnt),
		-FI_EACCES);
	assert_int_equal(mr_range(r, 0, 1, RMA | MR_CHECKED(RMA), out, &cnt), -FI_EACCES);
	mr_set_checked(&t, index, FI_REMOTE_WRITE);
	assert_int_equal(mr_range(r, 0, 1, RMA | MR_CHECKED(RMA), out, &cnt), 0);
	mr_invalidate(&t, index);
	mr_validate(&t, index);
	assert_int_equal(mr_range(r, 0, 1, RMA | MR_CHECKED(RMA), out, &cnt), 0);
	assert_int_equal(mr_reader_init(&reader, mapped[0]), 0);
	assert_int_equal(mr_reader_find(&reader, 1, &view), 0);
	assert_int_equal(view.access, RMA);
	/* A key that is given again is another region's. */
	mr_remove(&t, index);
	assert_int_equal(mr_insert(&t, &spec, &index), 0);
	assert_int_equal(mr_range(mr_at(&t, index), 0, 1,
				  FI_REMOTE_READ | MR_CHECKED(FI_REMOTE_READ), out, &cnt),
			 -FI_EACCES);
	mr_fini(&t);
}

static void the_whole_address_space_is_a_region(void **state)
{
	struct mr_table t;
	uint32_t index;
	uint64_t at;

	mr_init(&t, MR_KEYS_GIVEN, NULL);
	assert_int_equal(add(&t, 0, UINTPTR_MAX, 0, 7, &index), 0);
	assert_int_equal(where(&t, 7, (uintptr_t)&t, sizeof(t), &at), 0);
	assert_true(at == (uintptr_t)&t);
	assert_int_equal(where(&t, 7, 0, UINTPTR_MAX, &at), 0);
	assert_int_equal(where(&t, 7, UINTPTR_MAX - 1, 1, &at), 0);
	assert_int_equal(where(&t, 7, UINTPTR_MAX, 1, &at), -FI_EACCES);
	assert_int_equal(where(&t, 7, 2, UINTPTR_MAX - 1, &at), -FI_EACCES);
	/* From any address to the last one, and no byte further. */
	assert_int_equal(add(&t, 0x5000, UINTPTR_MAX - 0x4fff, 0x5000, 8, &index), 0);
	assert_int_equal(where(&t, 8, UINTPTR_MAX, 1, &at), 0);
	assert_int_equal(where(&t, 8, UINTPTR_MAX, 2, &at), -FI_EACCES);
	assert_int_equal(add(&t, 0x5000, UINTPTR_MAX - 0x4ffe, 0x5000, 9, &index), -FI_EINVAL);
	assert_int_equal(add(&t, 0x1000, 100, UINT64_MAX - 98, 9, &index), -FI_EINVAL);
	assert_int_equal(where(&t, 9, 0x5000, 0, &at), -FI_EKEYREJECTED);
	mr_fini(&t);
}

static void a_region_may_be_empty(void **state)
{
	struct mr_table t;
	uint32_t index;
	uint64_t at;

	mr_init(&t, MR_KEYS_GIVEN, NULL);
	assert_int_equal(add(&t, 0x1000, 0, 0, 7, &index), 0);
	assert_int_equal(where(&t, 7, 0, 0, &at), 0);
	assert_int_equal(where(&t, 7, 0, 1, &at), -FI_EACCES);
	assert_int_equal(where(&t, 7, 1, 0, &at), -FI_EACCES);
	mr_fini(&t);
}

static void a_key_of_the_application_is_free_once_removed(void **state)
{
	struct mr_table t;
	uint32_t a, b;
	uint64_t at;

	mr_init(&t, MR_KEYS_GIVEN, NULL);
	assert_int_equal(add(&t, 0x1000, 8, 0, FI_KEY_NOTAVAIL, &a), -FI_EKEYREJECTED);
	assert_int_equal(add(&t, 0x1000, 8, 0, 0, &a), 0);
	assert_int_equal(add(&t, 0x2000, 8, 0, 0, &b), -FI_ENOKEY);
	mr_invalidate(&t, a);
	assert_int_equal(where(&t, 0, 0, 8, &at), -FI_EKEYREJECTED);
	assert_int_equal(add(&t, 0x2000, 8, 0, 0, &b), -FI_ENOKEY); /* taken all the same */
	mr_validate(&t, a);
	assert_int_equal(where(&t, 0, 0, 8, &at), 0);
	mr_remove(&t, a);
	assert_int_equal(where(&t, 0, 0, 8, &at), -FI_EKEYREJECTED);
	assert_int_equal(add(&t, 0x2000, 8, 0, 0, &b), 0);
	assert_int_equal(where(&t, 0, 0, 8, &at), 0);
	assert_int_equal(at, 0x2000);
	mr_fini(&t);
}

static void an_issued_key_is_never_issued_again(void **state)
{
	struct mr_table t;
	uint64_t first = 0, last = 0, at;
	uint32_t index;

	mr_init(&t, MR_KEYS_ISSUED, NULL);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(add(&t, 0x1000, 8, 0, 0, &index), 0);
		assert_true(mr_at(&t, index)->key >
			    last); /* one slot: only the generation grows */
		last = mr_at(&t, index)->key;
		if (!first)
			first = last;
		mr_remove(&t, index);
	}
	assert_int_equal(where(&t, first, 0, 8, &at), -FI_EKEYREJECTED);
	/* The slot's last key, after which it is not used any more. */
	t.regions[index].generation = (1ull << 40) - 3;
	assert_int_equal(add(&t, 0x1000, 8, 0, 0, &index), 0);
	assert_true(mr_at(&t, index)->key == (((1ull << 40) - 2) << 24 | index));
	mr_remove(&t, index);
	first = index;
	for (int i = 0; i < 200; i++) {
		assert_int_equal(add(&t, 0x1000, 8, 0, 0, &index), 0);
		assert_int_not_equal(index, first);
		assert_true(mr_at(&t, index)->key != FI_KEY_NOTAVAIL);
	}
	mr_fini(&t);
}

static void any_key_may_be_asked(void **state)
{
	static const uint64_t odd[] = { 0,	    1,	       63, 64, 1 << 24, (1 << 24) - 1,
					5ull << 24, UINT64_MAX };
	struct mr_table t[2];
	uint32_t index;
	uint64_t at, seed = 0x5eed0003;

	mr_init(&t[0], MR_KEYS_GIVEN, NULL);
	mr_init(&t[1], MR_KEYS_ISSUED, NULL);
	for (int i = 0; i < 2; i++) {
		for (size_t k = 0; k < 8; k++)
			assert_int_equal(where(&t[i], odd[k], 0, 0, &at), -FI_EKEYREJECTED);
		assert_int_equal(add(&t[i], 0x1000, 8, 0, 4711, &index), 0);
		for (size_t k = 0; k < 8; k++)
			assert_int_equal(where(&t[i], odd[k], 0, 0, &at), -FI_EKEYREJECTED);
		for (size_t k = 0; k < 10000; k++)
			where(&t[i], seeded_random(&seed), 0, 0, &at);
		mr_fini(&t[i]);
	}
}

static void a_scattered_region_is_one_range(void **state)
{
	struct iovec iov[4] = {
		{ (void *)0x1000, 10 },
		{ (void *)0x9000, 0 },
		{ (void *)0x2000, 20 },
		{ (void *)0x3000, 30 },
	};
	struct mr_spec spec = { .iov = iov,
				.iov_cnt = 4,
				.access = RMA,
				.iova = 0x1000,
				.object = iov,
				.live = true };
	struct iovec out[MR_IOV_MAX];
	const struct mr_region *r;
	struct mr_table t;
	uint32_t index;
	size_t cnt;

	mr_init(&t, MR_KEYS_ISSUED, NULL);
	assert_int_equal(mr_insert(&t, &spec, &index), 0);
	memset(iov, 0, sizeof(iov)); /* it was copied */
	r = mr_at(&t, index);
	for (uint64_t from = 0; from <= 60; from++) {
		for (uint64_t to = from; to <= 61; to++) {
			uint64_t left = to - from, at = from;

			if (to == 61) {
				assert_int_equal(
					mr_range(r, 0x1000 + from, to - from, 0, out, &cnt),
					-FI_EACCES);
				continue;
			}
			assert_int_equal(mr_range(r, 0x1000 + from, to - from, 0, out, &cnt), 0);
			assert_in_range(cnt, 1, 3);
			for (size_t i = 0; i < cnt; i++) {
				uint64_t base = at < 10	  ? 0x1000 + at
						: at < 30 ? 0x2000 + at - 10
							  : 0x3000 + at - 30;

				assert_true(left == 0 || (uintptr_t)out[i].iov_base == base);
				assert_true(out[i].iov_len <= left && (out[i].iov_len || !left));
				left -= out[i].iov_len;
				at += out[i].iov_len;
			}
			assert_int_equal(left, 0);
		}
	}
	spec.iov_cnt = MR_IOV_MAX + 1;
	assert_int_equal(mr_insert(&t, &spec, &index), -FI_EINVAL);
	spec.iov_cnt = 0;
	assert_int_equal(mr_insert(&t, &spec, &index), -FI_EINVAL);
	spec.iov_cnt = 2;
	iov[0].iov_len = iov[1].iov_len = SIZE_MAX / 2 + 2;
	assert_int_equal(mr_insert(&t, &spec, &index), -FI_EINVAL);
	mr_fini(&t);
}

/* A reader of the slabs that are there. */
static void attach_all(struct mr_reader *reader)
{
	if (!reader->slab_cnt)
		assert_int_equal(mr_reader_init(reader, atomic_load(&mapped[0])), 0);
	while (reader->slab_cnt < mr_reader_wanted(reader))
		mr_reader_attach(reader, atomic_load(&mapped[reader->slab_cnt]));
}

struct model {
	uint64_t key;
	uint64_t base;
	uint64_t len;
	uint64_t iova;
	uint32_t index;
	bool used;
	bool live;
};

#define MODELS 700 /* several slabs */

static void compare(const struct mr_table *t, const struct mr_reader *reader, uint64_t key,
		    const struct model *m)
{
	bool live = m && m->used && m->live;
	struct mr_view view;
	uint64_t at;

	assert_int_equal(mr_find(t, key) != NULL, live);
	assert_int_equal(mr_reader_find(reader, key, &view), live ? 0 : -FI_EKEYREJECTED);
	if (!live)
		return;
	assert_true(mr_find(t, key)->base == m->base && view.base == m->base);
	assert_true(mr_find(t, key)->len == m->len && view.len == m->len);
	assert_true(mr_find(t, key)->iova == m->iova && view.iova == m->iova);
	assert_true(view.key == key && view.access == RMA &&
		    view.flags == (MR_LINE_LIVE | MR_LINE_DIRECT));
	assert_true(mr_reader_check(reader, &view));
	assert_int_equal(mr_view_range(&view, m->iova + 1, m->len - 1, FI_REMOTE_READ, &at), 0);
	assert_true(at == m->base + 1);
	assert_int_equal(mr_view_range(&view, m->iova + 1, m->len, FI_REMOTE_READ, &at),
			 -FI_EACCES);
	assert_int_equal(mr_view_range(&view, m->iova, 1, FI_SEND, &at), -FI_EACCES);
}

static void random_operations(enum mr_keys keys, uint64_t seed)
{
	static struct model models[MODELS];
	struct mr_reader reader = { .slab_cnt = 0 };
	struct mr_table t;
	uint32_t used = 0;

	printf("seed %#llx\n", (unsigned long long)seed);
	memset(models, 0, sizeof(models));
	mr_init(&t, keys, &memory);
	for (int i = 0; i < 500000; i++) {
		uint64_t what = seeded_random(&seed);
		struct model *m = &models[what % MODELS];
		uint64_t key = keys == MR_KEYS_GIVEN ? what % MODELS * 64 : m->key;

		if (!m->used) {
			*m = (struct model){ .base = seeded_random(&seed) >> 1,
					     .len = 1 + (what >> 40),
					     .used = true,
					     .live = true };
			m->iova = what >> 20 & 1 ? m->base : 0;
			assert_int_equal(add(&t, m->base, m->len, m->iova, key, &m->index), 0);
			m->key = mr_at(&t, m->index)->key;
			if (keys == MR_KEYS_ISSUED)
				assert_true(m->key != key);
			used++;
			attach_all(&reader);
		} else if (what >> 60 < 3) {
			if (m->live)
				mr_invalidate(&t, m->index);
			else
				mr_validate(&t, m->index);
			m->live = !m->live;
		} else if (what >> 60 < 8) {
			mr_remove(&t, m->index);
			m->used = false;
			used--;
		}
		if (i > 0 || m->used)
			compare(&t, &reader, m->key, m);
		assert_int_equal(t.cnt, used);
	}
	for (uint32_t i = 0; i < MODELS; i++)
		compare(&t, &reader, models[i].key, &models[i]);
	mr_fini(&t);
}

static void random_use_of_given_keys_agrees_with_a_plain_array(void **state)
{
	random_operations(MR_KEYS_GIVEN, 0x5eed0004);
}

static void random_use_of_issued_keys_agrees_with_a_plain_array(void **state)
{
	random_operations(MR_KEYS_ISSUED, 0x5eed0005);
}

static void without_memory_the_table_stays_as_it_is(void **state)
{
	struct iovec iov[2] = { { (void *)64, 64 }, { (void *)256, 64 } };
	struct mr_spec spec = {
		.iov = iov, .iov_cnt = 2, .access = RMA, .object = iov, .live = true
	};

	for (int keys = MR_KEYS_GIVEN; keys <= MR_KEYS_ISSUED; keys++) {
		struct mr_reader reader = { .slab_cnt = 0 };
		struct mr_table t;
		struct mr_view view;
		uint32_t index = 4711, failed = 0;

		mr_init(&t, (enum mr_keys)keys, &memory);
		for (uint64_t n = 0; n < 200; n++) {
			int ret;

			spec.key = n;
			for (int i = 0;; i++) {
				allocs_left = i;
				ret = mr_insert(&t, &spec, &index);
				allocs_left = -1;
				if (!ret)
					break;
				assert_int_equal(ret, -FI_ENOMEM);
				assert_int_equal(t.cnt, n);
				failed++;
				if (!n)
					continue;
				assert_non_null(mr_find(&t, mr_at(&t, index)->key));
				assert_int_equal(
					mr_reader_find(&reader, mr_at(&t, index)->key, &view),
					0);
			}
			attach_all(&reader);
			assert_int_equal(mr_reader_find(&reader, mr_at(&t, index)->key, &view),
					 0);
			assert_int_equal(mr_view_range(&view, 0, 1, FI_REMOTE_READ, &view.base),
					 -FI_EOPNOTSUPP);
		}
		/* Pieces each time; arrays and a slab for 64, 128 and 256. */
		assert_int_equal(failed, 200 + 3 * (keys == MR_KEYS_GIVEN ? 3 : 2));
		mr_fini(&t);
	}
}

/* What the owner and the reader of the next test share. */
#define KEYS 150u /* even ones stay, odd ones come and go */

static struct {
	enum mr_keys keys;
	_Atomic bool stop;
	_Atomic uint64_t looked;
	_Atomic uint64_t found;
	_Atomic uint64_t lost;
	_Atomic uint64_t torn;
	_Atomic uint64_t stale;
	_Atomic uint64_t key[KEYS];
	/* last version that was removed */
	_Atomic uint64_t done[KEYS];
} race;

/* All fields of a region follow from its number and version. */
static uint64_t mix(uint64_t number, uint64_t version)
{
	return (version << 8 | number) * 0x9e3779b97f4a7c15u;
}

static void *read_on(void *arg)
{
	struct mr_reader reader = { .slab_cnt = 0 };
	uint64_t seed = 0x5eed0006;

	while (!atomic_load(&race.stop)) {
		uint64_t n = seeded_random(&seed) % KEYS;
		uint64_t done = atomic_load(&race.done[n]), key = atomic_load(&race.key[n]);
		struct mr_view view;
		int ret;

		attach_all(&reader);
		ret = mr_reader_find(&reader, key, &view);
		atomic_fetch_add(&race.looked, 1);
		if (ret == -FI_EAGAIN)
			continue;
		if (ret) {
			if (ret != -FI_EKEYREJECTED ||
			    n % 2 == 0) /* those that stay are found */
				atomic_fetch_add(&race.lost, 1);
			continue;
		}
		atomic_fetch_add(&race.found, 1);
		if (view.key != key || view.base != mix(n, view.len) >> 1 ||
		    view.iova != mix(n, view.len) >> 2)
			atomic_fetch_add(&race.torn, 1);
		if (view.len <= done) /* removed before we looked */
			atomic_fetch_add(&race.stale, 1);
	}
	return NULL;
}

static void race_add(struct mr_table *t, uint64_t n, uint64_t version, uint32_t *index)
{
	uint64_t key = (n + 1) << 48 | (n >> 1 & 1); /* given keys: two chains */

	assert_int_equal(
		add(t, mix(n, version) >> 1, version, mix(n, version) >> 2, key, index), 0);
	atomic_store(&race.key[n], mr_at(t, *index)->key);
}

static void race_run(enum mr_keys keys)
{
	uint64_t version[KEYS], seed = 0x5eed0007, end = platform_now_ns() + 120000000000u;
	uint32_t index[KEYS];
	struct mr_table t;
	pthread_t thread;

	memset(&race, 0, sizeof(race));
	race.keys = keys;
	mr_init(&t, keys, &memory);
	for (uint64_t n = 0; n < KEYS; n += 2) {
		version[n] = 1;
		race_add(&t, n, 1, &index[n]);
	}
	for (uint64_t n = 1; n < KEYS; n += 2)
		version[n] = 0;
	assert_int_equal(pthread_create(&thread, NULL, read_on, NULL), 0);
	/* Odd versions: closed. The table grows meanwhile. */
	for (uint64_t i = 0; i < 300000 || atomic_load(&race.found) < 5000; i++) {
		uint64_t n = seeded_random(&seed) % KEYS | 1;

		assert_true(platform_now_ns() < end);
		version[n]++;
		if (version[n] % 2) {
			race_add(&t, n, version[n], &index[n]);
		} else {
			mr_remove(&t, index[n]);
			atomic_store(&race.done[n], version[n] - 1);
		}
	}
	atomic_store(&race.stop, true);
	pthread_join(thread, NULL);
	printf("%llu lookups, %llu found\n", (unsigned long long)race.looked,
	       (unsigned long long)race.found);
	assert_int_equal(race.lost, 0);
	assert_int_equal(race.torn, 0);
	assert_int_equal(race.stale, 0);
	mr_fini(&t);
}

static void a_reader_accepts_nothing_torn_or_stale(void **state)
{
	race_run(MR_KEYS_GIVEN);
	race_run(MR_KEYS_ISSUED);
}

static void a_reader_leaves_alone_what_the_owner_is_told_of(void **state)
{
	struct iovec iov = { (void *)0x1000, 100 };
	struct mr_spec spec = { .iov = &iov,
				.iov_cnt = 1,
				.access = RMA,
				.key = 1,
				.object = &iov,
				.live = true,
				.notify = true };
	struct mr_reader reader;
	struct mr_view view;
	struct mr_table t;
	uint32_t index;
	uint64_t at;

	mr_init(&t, MR_KEYS_GIVEN, &memory);
	assert_int_equal(mr_insert(&t, &spec, &index), 0);
	assert_int_equal(add(&t, 0x2000, 100, 0, 2, &index), 0);
	assert_int_equal(mr_reader_init(&reader, atomic_load(&mapped[0])), 0);
	assert_int_equal(mr_reader_find(&reader, 1, &view), 0);
	assert_int_equal(mr_view_range(&view, 0, 1, RMA, &at), -FI_EOPNOTSUPP);
	assert_int_equal(mr_view_range(&view, 0, 101, RMA, &at), -FI_EACCES);
	assert_int_equal(mr_reader_find(&reader, 2, &view), 0);
	assert_int_equal(mr_view_range(&view, 0, 1, RMA, &at), 0);
	mr_set_notify(&t, index);
	assert_false(mr_reader_check(&reader, &view));
	assert_int_equal(mr_reader_find(&reader, 2, &view), 0);
	assert_int_equal(mr_view_range(&view, 0, 1, RMA, &at), -FI_EOPNOTSUPP);
	assert_int_equal(where(&t, 2, 0, 1, &at), 0); /* the owner itself continues */
	mr_fini(&t);
}

static void a_reader_gives_up_on_an_owner_that_ended_amid_a_change(void **state)
{
	for (int keys = MR_KEYS_GIVEN; keys <= MR_KEYS_ISSUED; keys++) {
		struct mr_reader reader = { .slab_cnt = 0 };
		struct mr_view view, later;
		struct mr_table t;
		uint32_t index;
		uint64_t key;

		mr_init(&t, (enum mr_keys)keys, &memory);
		assert_int_equal(add(&t, 64, 64, 0, 7, &index), 0);
		key = mr_at(&t, index)->key;
		attach_all(&reader);
		assert_int_equal(mr_reader_find(&reader, key, &view), 0);
		atomic_fetch_add(&t.slabs[0][index].seq, 1);
		assert_false(mr_reader_check(&reader, &view));
		assert_int_equal(mr_reader_find(&reader, key, &later), -FI_EAGAIN);
		atomic_fetch_add(&t.slabs[0][index].seq, 1);
		assert_int_equal(mr_reader_find(&reader, key, &later), 0);
		assert_false(mr_reader_check(&reader, &view));
		assert_true(mr_reader_check(&reader, &later));
		mr_invalidate(&t, index);
		assert_false(mr_reader_check(&reader, &later));
		mr_fini(&t);
	}
}

static void a_reader_asks_for_slabs_that_it_has_not(void **state)
{
	struct mr_reader reader;
	struct mr_view view;
	struct mr_table t;
	uint32_t index;

	mr_init(&t, MR_KEYS_ISSUED, &memory);
	for (int i = 0; i < 100; i++)
		assert_int_equal(add(&t, 64, 64, 0, 0, &index), 0);
	assert_int_equal(mr_reader_init(&reader, mapped[0]), 0);
	assert_int_equal(mr_reader_wanted(&reader), 2);
	assert_int_equal(mr_reader_find(&reader, mr_at(&t, index)->key, &view), -FI_EAGAIN);
	mr_reader_attach(&reader, mapped[1]);
	assert_int_equal(mr_reader_find(&reader, mr_at(&t, index)->key, &view), 0);
	assert_int_equal(mr_reader_find(&reader, 1 << 20, &view), -FI_EKEYREJECTED);
	mr_fini(&t);
	assert_int_equal(mr_slab_len(0), 4096);
	assert_int_equal(mr_slab_offset(0), 0);
	for (uint32_t i = 1; i < MR_SLAB_CNT; i++)
		assert_int_equal(mr_slab_offset(i), mr_slab_offset(i - 1) + mr_slab_len(i - 1));
	assert_int_equal(mr_slab_offset(18) + mr_slab_len(18), 64ull << 24);
}

/* Bytes that no owner writes: chains that loop, indexes and sizes from nowhere. */
static void spoil(struct mr_line *lines, uint32_t cnt, enum mr_keys keys, uint64_t *seed)
{
	static const uint32_t caps[] = { 0,   1,       63,	64,	  128,
					 256, 1 << 24, 1 << 25, 1u << 31, UINT32_MAX };
	struct mr_header *header = (struct mr_header *)lines;

	for (uint32_t i = 0; i < cnt; i++) {
		uint64_t r = seeded_random(seed);

		memset(&lines[i], r & 1 ? 0xff : (int)(r >> 8), sizeof(lines[i]));
		lines[i].seq = r >> 16 & 7 ? 2 : r;
		lines[i].key = r % 8;
		lines[i].flags = (uint32_t)(r >> 20);
		lines[i].next = r >> 32 & 3 ? (uint32_t)(r >> 34) % cnt
					    : (uint32_t)seeded_random(seed);
		lines[i].bucket = r >> 33 & 3 ? (uint32_t)(r >> 40) % cnt
					      : (uint32_t)seeded_random(seed);
	}
	header->seq = seeded_random(seed) % 4;
	header->magic = MR_MAGIC;
	header->version = MR_VERSION;
	header->keys = keys;
	header->cap = caps[seeded_random(seed) % 10];
}

static void hostile_bytes_do_no_harm(void **state)
{
	enum { LINES = 128 };
	struct mr_line *slabs[2];
	uint64_t seed = 0x5eed0008, at;
	uint32_t found = 0;

	slabs[0] = platform_alloc(mr_slab_len(0));
	slabs[1] = platform_alloc(mr_slab_len(1));
	assert_int_equal(mr_reader_init(&(struct mr_reader){ .slab_cnt = 0 }, slabs[0]),
			 -FI_EAGAIN);
	((struct mr_header *)slabs[0])->magic = MR_MAGIC;
	assert_int_equal(mr_reader_init(&(struct mr_reader){ .slab_cnt = 0 }, slabs[0]),
			 -FI_EINVAL);
	for (int round = 0; round < 400; round++) {
		enum mr_keys keys = round & 1 ? MR_KEYS_GIVEN : MR_KEYS_ISSUED;
		struct mr_reader reader;

		spoil(slabs[1], 64, keys, &seed);
		spoil(slabs[0], 64, keys, &seed);
		assert_int_equal(mr_reader_init(&reader, slabs[0]), 0);
		assert_in_range(mr_reader_wanted(&reader), 1, MR_SLAB_CNT);
		if (round & 2)
			mr_reader_attach(&reader, slabs[1]);
		for (int i = 0; i < 300; i++) {
			uint64_t key = i < 8 ? (uint64_t)i
					     : seeded_random(&seed) >>
						       (seeded_random(&seed) % 64);
			uint64_t len = seeded_random(&seed) >> (seeded_random(&seed) % 64);
			struct mr_view view;

			if (mr_reader_find(&reader, key, &view))
				continue;
			found++;
			assert_true(view.key == key && view.index < LINES);
			mr_reader_check(&reader, &view);
			if (!mr_view_range(&view, view.iova + seeded_random(&seed) % 3, len, 0,
					   &at))
				assert_true(at >= view.base && (!len || at + (len - 1) >= at));
		}
	}
	assert_true(found > 100);
	platform_free(slabs[0]);
	platform_free(slabs[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_region_resolves_to_the_byte),
		cmocka_unit_test(only_what_was_granted_is_allowed),
		cmocka_unit_test(what_was_checked_is_known_of_one_kind),
		cmocka_unit_test(the_whole_address_space_is_a_region),
		cmocka_unit_test(a_region_may_be_empty),
		cmocka_unit_test(a_key_of_the_application_is_free_once_removed),
		cmocka_unit_test(an_issued_key_is_never_issued_again),
		cmocka_unit_test(any_key_may_be_asked),
		cmocka_unit_test(a_scattered_region_is_one_range),
		cmocka_unit_test(random_use_of_given_keys_agrees_with_a_plain_array),
		cmocka_unit_test(random_use_of_issued_keys_agrees_with_a_plain_array),
		cmocka_unit_test(without_memory_the_table_stays_as_it_is),
		cmocka_unit_test(a_reader_accepts_nothing_torn_or_stale),
		cmocka_unit_test(a_reader_leaves_alone_what_the_owner_is_told_of),
		cmocka_unit_test(a_reader_gives_up_on_an_owner_that_ended_amid_a_change),
		cmocka_unit_test(a_reader_asks_for_slabs_that_it_has_not),
		cmocka_unit_test(hostile_bytes_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
