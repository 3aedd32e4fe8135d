/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory-region key table, compiled with generations of three bits: they end within a few regions of
 * a slot. A key whose region was removed leads nowhere ever after, at the owner and at a peer that reads
 * the table, also where the peer has looked it up before; and no key is issued twice.
 */
#include <setjmp.h>
#include <stdarg.h>
#include "mr.h"
#include "seeded.h"
#include <cmocka.h>

#define ROUNDS	  40000u
#define LIVE_MAX  48u
#define SLOT_KEYS ((1u << MR_GENERATION_BITS) - 2) /* that one slot issues */

_Static_assert(MR_GENERATION_BITS == 3, "the build of this test sets it");

struct issued {
	uint64_t key;
	uint32_t index;
	/* as the peer has looked it up while it was live */
	struct mr_view view;
};

static struct mr_table table;
static struct mr_reader reader;
static const void *slabs[MR_SLAB_CNT];
/* all that were issued: those that are live first */
static struct issued all[ROUNDS];
static uint32_t cnt, live;

static void *slab_alloc(void *arg, uint32_t slab)
{
	slabs[slab] = platform_alloc(mr_slab_len(slab));
	return (void *)(uintptr_t)slabs[slab];
}

static void slab_free(void *arg, uint32_t slab, void *memory)
{
	platform_free(memory);
}

static uint32_t below(uint64_t *seed, uint32_t n)
{
	return (uint32_t)seeded_below(seed, n);
}

/* Each region has its key as its address. */
static bool leads_home(const struct issued *i)
{
	const struct mr_region *r = mr_find(&table, i->key);
	struct mr_view view;

	return r && r->object == &table && r->base == i->view.base &&
	       !mr_reader_find(&reader, i->key, &view) && view.base == i->view.base &&
	       mr_reader_check(&reader, &i->view);
}

static bool leads_nowhere(const struct issued *i)
{
	struct mr_view view;

	return !mr_find(&table, i->key) && mr_reader_find(&reader, i->key, &view) &&
	       !mr_reader_check(&reader, &i->view);
}

static void insert(uint32_t round)
{
	struct iovec iov = { (void *)(((uintptr_t)round + 1) << 12), 4096 };
	struct mr_spec spec = { .iov = &iov,
				.iov_cnt = 1,
				.access = FI_REMOTE_WRITE,
				.object = &table,
				.live = true };
	struct issued new;

	assert_int_equal(mr_insert(&table, &spec, &new.index), 0);
	if (!reader.slab_cnt)
		assert_int_equal(mr_reader_init(&reader, slabs[0]), 0);
	while (reader.slab_cnt < mr_reader_wanted(&reader))
		mr_reader_attach(&reader, slabs[reader.slab_cnt]);
	new.key = mr_at(&table, new.index)->key;
	assert_int_equal(mr_reader_find(&reader, new.key, &new.view), 0);
	for (uint32_t i = 0; i < cnt; i++)
		assert_true(all[i].key != new.key);
	all[cnt++] = all[live];
	all[live++] = new;
}

static void take_out(uint32_t which)
{
	struct issued gone = all[which];

	mr_remove(&table, gone.index);
	all[which] = all[--live];
	all[live] = gone;
}

static void a_key_that_was_closed_leads_nowhere_when_generations_end(void **state)
{
	const struct mr_memory memory = { .alloc = slab_alloc, .free = slab_free };
	uint64_t seed = platform_now_ns();

	print_message("seed %llu\n", (unsigned long long)seed);
	mr_init(&table, MR_KEYS_ISSUED, &memory);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		if (!live || (live < LIVE_MAX && below(&seed, 2)))
			insert(round);
		else
			take_out(below(&seed, live));
		for (uint32_t i = 0; i < 8 && cnt > live; i++)
			assert_true(leads_nowhere(&all[live + below(&seed, cnt - live)]));
		for (uint32_t i = 0; i < 8 && live; i++)
			assert_true(leads_home(&all[below(&seed, live)]));
	}
	for (uint32_t i = live; i < cnt; i++)
		assert_true(leads_nowhere(&all[i]));
	/* Slots have ended all the time, and each has issued all that it could. */
	assert_true(cnt > 10000 && table.fresh > cnt / SLOT_KEYS &&
		    table.fresh <= cnt / SLOT_KEYS + LIVE_MAX + 1);
	mr_fini(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_that_was_closed_leads_nowhere_when_generations_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
