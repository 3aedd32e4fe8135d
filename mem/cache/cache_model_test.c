/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The cache under random requests and changes of memory: no reference is ever stale when it is given. What
 * is behind each page is a number that each change increments; what was told of it, and when, is random. A cache
 * whose watch can't see goes stale in the same run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include <cmocka.h>
#include "cache.h"
#include "fake_watch.h"
#include "seeded.h"

#define OPERATIONS 40000
#define REFS	   8
#define GOING_MAX  4 /* removals that were told and are still under way */

struct model {
	struct fake_device device;
	struct fake_watch watch;
	struct mem_cache *cache;
	struct mem_cache_ref refs[REFS];
	bool held[REFS];
	struct mem_change going[GOING_MAX];
	uint32_t going_cnt;
	uint64_t seed;
	uint32_t stale;
	/* calls of pin() by the request that is under way; during the first of them something changed */
	uint32_t pins;
	bool changed;
};

static uint32_t below(struct model *m, uint32_t n)
{
	return (uint32_t)seeded_below(&m->seed, n);
}

static void change_pages(struct model *m, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		m->watch.generation[i]++;
}

/* Returns true if any is watched, and has the kernel watch none of them any more. */
static bool forget_pages(struct model *m, uint32_t first, uint32_t end)
{
	bool any = false;

	for (uint32_t i = first; i < end; i++) {
		any |= m->watch.watched[i];
		m->watch.watched[i] = false;
	}
	return any;
}

static bool overlaps_removal(struct model *m, uint32_t first, uint32_t end)
{
	for (uint32_t i = 0; i < m->going_cnt; i++) {
		if (m->going[i].start < end && m->going[i].end > first)
			return true;
	}
	for (uint32_t i = 0; i < m->watch.untold_cnt; i++) {
		const struct mem_change *c = &m->watch.untold[i];

		if (c->kind == MEM_REMOVED && c->start < end && c->end > first)
			return true;
	}
	return false;
}

/* Memory is unmapped and mapped again: told afterwards, or, where it was not watched, not at all. */
static void unmap(struct model *m, uint32_t first, uint32_t end, enum mem_change_kind kind)
{
	if (m->watch.untold_cnt == UNTOLD_MAX || overlaps_removal(m, first, end))
		return;
	change_pages(m, first, end);
	if (forget_pages(m, first, end))
		fake_watch_queue(&m->watch, kind, first, end);
}

/* Pages that are watched are removed some time after it was told. */
static void remove_pages(struct model *m, uint32_t first, uint32_t end)
{
	bool any = false;

	for (uint32_t i = first; i < end; i++)
		any |= m->watch.watched[i];
	if (!any)
		change_pages(m, first, end);
	else if (m->watch.untold_cnt + m->going_cnt < GOING_MAX)
		fake_watch_queue(&m->watch, MEM_REMOVED, first, end);
}

static void tell(struct model *m)
{
	struct mem_change change;

	if (!m->watch.untold_cnt)
		return;
	change = fake_watch_tell(&m->watch);
	if (change.kind == MEM_REMOVED)
		m->going[m->going_cnt++] = change;
}

static void removal_happens(struct model *m)
{
	if (!m->going_cnt)
		return;
	m->going_cnt--;
	change_pages(m, (uint32_t)m->going[m->going_cnt].start,
		     (uint32_t)m->going[m->going_cnt].end);
}

static void get_or_put(struct model *m, uint32_t first, uint32_t end)
{
	uint32_t slot = below(m, REFS);
	size_t page = m->watch.page;
	uint8_t *addr = m->watch.area + first * page + below(m, (uint32_t)page / 2);
	size_t len = (end - first - 1) * page + 1;
	int ret;

	if (m->held[slot]) {
		mem_cache_put(m->cache, &m->refs[slot]);
		m->held[slot] = false;
		return;
	}
	m->pins = 0;
	m->changed = false;
	ret = mem_cache_get(m->cache, addr, len, 1u << below(m, 2), &m->refs[slot]);
	if (ret) {
		assert_int_equal(ret, -FI_ENOSPC);
		return;
	}
	m->held[slot] = true;
	/* A program that changes what it is just handing to the device has either. */
	if (m->changed && m->pins == 1 && !m->refs[slot].entry)
		return;
	m->stale += !fake_device_reaches(&m->device, m->refs[slot].handle, addr, len);
}

/* Other threads change memory while one registers some. */
static void meanwhile(void *arg)
{
	struct model *m = arg;
	uint32_t first = below(m, 8) * 8 + below(m, 2), end = first + 1 + below(m, 6);

	if (m->pins++ || below(m, 4))
		return;
	m->changed = true;
	if (below(m, 2))
		unmap(m, first, end, MEM_UNMAPPED);
	else
		removal_happens(m);
	if (below(m, 2))
		tell(m);
}

static void operate(struct model *m)
{
	/* Few places, so that what is asked for is often there. */
	uint32_t first = below(m, 8) * 8 + below(m, 2), end = first + 1 + below(m, 6);

	switch (below(m, 40)) {
	case 0:
		unmap(m, first, end, MEM_UNMAPPED);
		break;
	case 1:
		unmap(m, first, end, MEM_MOVED);
		break;
	case 2:
		if (!below(m, 8))
			remove_pages(m, first, end);
		break;
	case 3: /* told of nobody */
		if (!overlaps_removal(m, first, end)) {
			change_pages(m, first, end);
			forget_pages(m, first, end);
		}
		break;
	case 4: /* all addresses again, or they would all be registered for each operation in the end */
		if (!below(m, 16) && !m->going_cnt && !m->watch.untold_cnt) {
			change_pages(m, 0, AREA_PAGES);
			forget_pages(m, 0, AREA_PAGES);
			fake_watch_queue(&m->watch, MEM_UNMAPPED, 0, AREA_PAGES);
		}
		break;
	case 5:
	case 6:
	case 7:
		removal_happens(m);
		break;
	default:
		if (below(m, 4))
			get_or_put(m, first, end);
		else
			tell(m);
	}
}

static struct mem_cache_stats run(uint32_t seed, bool blind, uint32_t *stale)
{
	static const struct mem_cache_limits limits = { .entries = 6 };
	struct mem_cache_limits with_bytes = limits;
	struct model *m = calloc(1, sizeof(*m));
	struct mem_cache_stats stats;

	m->seed = seed;
	fake_device_init(&m->device);
	m->device.table = 12;
	m->device.meanwhile = meanwhile;
	m->device.arg = m;
	fake_watch_init(&m->watch, &m->device);
	m->watch.blind = blind;
	with_bytes.bytes = 40 * m->watch.page;
	assert_int_equal(mem_cache_create_watched(&fake_device_ops, &m->device, &with_bytes,
						  &m->watch.watch, &m->cache),
			 0);
	for (int i = 0; i < OPERATIONS; i++)
		operate(m);
	for (uint32_t i = 0; i < REFS; i++) {
		if (m->held[i])
			mem_cache_put(m->cache, &m->refs[i]);
	}
	mem_cache_stats(m->cache, &stats);
	mem_cache_destroy(m->cache);
	assert_true(m->watch.closed);
	fake_device_fini(&m->device);
	fake_watch_fini(&m->watch);
	*stale = m->stale;
	free(m);
	return stats;
}

static void no_reference_is_stale(void **state)
{
	const char *text = getenv("CACHE_SEED");
	uint32_t seed = text ? (uint32_t)strtoul(text, NULL, 0) : (uint32_t)platform_now_ns();
	struct mem_cache_stats s;
	uint32_t stale;

	print_message("seed %u\n", seed);
	s = run(seed, false, &stale);
	assert_int_equal(stale, 0);
	/* It was not for want of hits, or of changes that ended one. */
	assert_true(s.hits > 500 && s.misses > 500 && s.evictions > 100 && s.caught > 100);
	assert_true(s.unmapped > 100 && s.moved > 100 && s.removed > 5);
	assert_true(s.once[MEM_ONCE_CHANGING] && s.once[MEM_ONCE_REMOVED] &&
		    s.once[MEM_ONCE_FULL]);
}

static void a_fixed_seed_finds_none(void **state)
{
	uint32_t stale;

	for (uint32_t seed = 1; seed <= 3; seed++) {
		run(seed, false, &stale);
		assert_int_equal(stale, 0);
	}
}

static void without_the_check_some_are_stale(void **state)
{
	uint32_t stale;

	run(1, true, &stale);
	assert_true(stale > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_reference_is_stale),
		cmocka_unit_test(a_fixed_seed_finds_none),
		cmocka_unit_test(without_the_check_some_are_stale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
