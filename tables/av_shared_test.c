/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of shared address tables: processes are views of the same memory. */
#include <setjmp.h>
#include <stdarg.h>
#include "av_shared.h"
#include <cmocka.h>

#define VIEWS 3

/* Memory runs out when a test says so: the linker leads platform_alloc() here. */
void *__real_platform_alloc(size_t len);
void *__wrap_platform_alloc(size_t len);
static bool no_memory;

void *__wrap_platform_alloc(size_t len)
{
	return no_memory ? NULL : __real_platform_alloc(len);
}

struct process {
	struct av_table table;
	struct av_view view;
	/* changes that were reported to it */
	uint32_t added;
	uint32_t removed;
};

static struct process processes[VIEWS];
static void *map;
static size_t map_len;

static struct weft_addr numbered(uint32_t n)
{
	struct weft_addr a = {
		.version = ADDR_VERSION,
		.kind = ADDR_NONCE,
		.nonce = { [7] = 1 },
		.pid = 1,
		.ns_hash = 1,
		.fd = 3,
	};

	memcpy(a.nonce, &n, sizeof(n));
	return a;
}

static int setup(void **state)
{
	map_len = av_shared_len(0);
	map = platform_alloc(map_len);
	av_shared_format(map, map_len, "name");
	memset(processes, 0, sizeof(processes));
	for (int i = 0; i < VIEWS; i++) {
		assert_int_equal(av_init(&processes[i].table, 0), 0);
		assert_int_equal(av_view_init(&processes[i].view, map, map_len, "name",
					      &processes[i].table),
				 0);
	}
	return 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < VIEWS; i++) {
		av_view_fini(&processes[i].view);
		av_fini(&processes[i].table);
	}
	platform_free(map);
	return 0;
}

static void count(void *arg, fi_addr_t index, const struct weft_addr *addr)
{
	struct process *p = arg;

	if (addr)
		p->added++;
	else
		p->removed++;
	assert_int_equal(addr != NULL, av_get(&p->table, index) != NULL);
}

static void pull(struct process *p)
{
	assert_int_equal(av_view_pull(&p->view, count, p), 0);
	assert_false(av_view_stale(&p->view));
}

static int insert(struct process *p, uint32_t n, fi_addr_t *index)
{
	struct weft_addr a = numbered(n);

	pull(p);
	return av_view_insert(&p->view, &a, index);
}

static int drop(struct process *p, fi_addr_t index)
{
	pull(p);
	return av_view_remove(&p->view, index);
}

static void all_see_the_same_addresses_at_the_same_indexes(void **state)
{
	fi_addr_t index;

	for (uint32_t i = 0; i < 300; i++) {
		assert_int_equal(insert(&processes[i % VIEWS], i, &index), 1);
		assert_int_equal(index, i);
	}
	assert_int_equal(insert(&processes[2], 17, &index), 0);
	assert_int_equal(index, 17);
	for (int p = 0; p < VIEWS; p++) {
		pull(&processes[p]);
		for (uint32_t i = 0; i < 300; i++) {
			struct weft_addr a = numbered(i);

			assert_memory_equal(av_get(&processes[p].table, i), &a, sizeof(a));
			assert_int_equal(processes[p].view.addrs[i], i);
		}
		assert_int_equal(processes[p].added, 200); /* those of the others */
	}
}

static void removed_index_is_used_again_by_all(void **state)
{
	struct weft_addr c = numbered(3);
	fi_addr_t index;

	insert(&processes[0], 1, &index);
	insert(&processes[0], 2, &index);
	insert(&processes[1], 1, &index); /* a second reference */
	pull(&processes[2]);
	assert_int_equal(drop(&processes[1], 0), 0);
	assert_non_null(av_get(&processes[1].table, 0));
	assert_int_equal(drop(&processes[1], 0), 1);
	assert_int_equal(drop(&processes[0], 0), -FI_EINVAL);
	assert_int_equal(insert(&processes[0], 3, &index), 1);
	assert_int_equal(index, 0);
	/* A process that slept meanwhile sees that it is another. */
	assert_true(av_view_stale(&processes[2].view));
	pull(&processes[2]);
	assert_memory_equal(av_get(&processes[2].table, 0), &c, sizeof(c));
	assert_int_equal(processes[2].removed, 1);
	assert_int_equal(processes[2].added, 3);
}

static void what_a_dead_writer_left_is_found(void **state)
{
	struct av_shared *shared = map;
	struct weft_addr a = numbered(7);
	fi_addr_t index;

	insert(&processes[0], 1, &index);
	pull(&processes[1]);
	/* Killed before the stamp: nothing happened. */
	atomic_fetch_add(&shared->change, 1);
	shared->entries[1].addr = a;
	assert_int_equal(av_view_pull(&processes[1].view, count, &processes[1]), 0);
	assert_null(av_get(&processes[1].table, 1));
	assert_true(av_view_stale(&processes[1].view));
	/* Killed after it: it counts, also for processes that read before. */
	atomic_store(&shared->used, 2);
	atomic_fetch_add(&shared->entries[1].stamp, 1);
	assert_int_equal(av_view_pull(&processes[1].view, count, &processes[1]), 0);
	assert_non_null(av_get(&processes[1].table, 1));
	/* The next writer continues after it and ends the change. */
	assert_int_equal(av_view_pull(&processes[2].view, count, &processes[2]), 0);
	a = numbered(8);
	assert_int_equal(av_view_insert(&processes[2].view, &a, &index), 1);
	assert_int_equal(index, 2);
	for (int p = 0; p < VIEWS; p++) {
		pull(&processes[p]);
		assert_int_equal(processes[p].table.cnt, 3);
	}
}

static void memory_of_another_kind_is_refused(void **state)
{
	struct av_shared *shared = map;
	struct av_table table;
	struct av_view view;

	assert_int_equal(av_init(&table, 0), 0);
	assert_int_equal(av_view_init(&view, map, map_len, "other", &table), -FI_EINVAL);
	assert_int_equal(av_view_init(&view, map, map_len, "nam", &table), -FI_EINVAL);
	assert_int_equal(av_view_init(&view, map, 255, "name", &table), -FI_EINVAL);
	assert_int_equal(av_view_init(&view, map, map_len - 1, "name", &table), -FI_EINVAL);
	no_memory = true;
	assert_int_equal(av_view_init(&view, map, map_len, "name", &table), -FI_ENOMEM);
	no_memory = false;
	shared->cap = 0;
	assert_int_equal(av_view_init(&view, map, map_len, "name", &table), -FI_EINVAL);
	shared->cap = UINT32_MAX;
	assert_int_equal(av_view_init(&view, map, map_len, "name", &table), -FI_EINVAL);
	shared->version++;
	assert_int_equal(av_view_init(&view, map, map_len, "name", &table), -FI_EINVAL);
	av_fini(&table);
}

static void what_is_no_address_is_left_out(void **state)
{
	struct av_shared *shared = map;
	fi_addr_t index;

	insert(&processes[0], 1, &index);
	insert(&processes[0], 2, &index);
	shared->entries[0].addr.version = 77;
	atomic_store(&shared->used, UINT32_MAX);
	pull(&processes[1]);
	assert_null(av_get(&processes[1].table, 0));
	assert_non_null(av_get(&processes[1].table, 1));
}

static void full_table_says_so(void **state)
{
	struct av_shared *shared = map;
	struct weft_addr a = numbered(5);
	fi_addr_t index = 99;

	processes[0].view.cap = 2;
	insert(&processes[0], 1, &index);
	insert(&processes[0], 2, &index);
	assert_int_equal(insert(&processes[0], 3, &index), -FI_ENOMEM);
	assert_int_equal(index, 1);
	shared->entries[0].refs = UINT32_MAX;
	assert_int_equal(insert(&processes[0], 1, &index), -FI_ENOMEM);
	/* A view without memory stays stale, and catches up. */
	processes[1].view.cap = 65;
	for (uint32_t i = 0; i < 65; i++) {
		fi_addr_t at;

		insert(&processes[1], 100 + i, &at);
	}
	no_memory = true;
	assert_int_equal(av_view_pull(&processes[2].view, count, &processes[2]), -FI_ENOMEM);
	assert_true(av_view_stale(&processes[2].view));
	no_memory = false;
	pull(&processes[2]);
	assert_int_equal(processes[2].table.cnt, 65);
	assert_true(av_find(&processes[2].table, &a) == FI_ADDR_NOTAVAIL);
}

static void room_is_as_asked_within_bounds(void **state)
{
	size_t each = sizeof(struct av_shared_entry) + sizeof(fi_addr_t);
	size_t least = av_shared_len(0);

	assert_int_equal(least, sizeof(struct av_shared) + AV_SHARED_MIN * each);
	assert_int_equal(av_shared_len(AV_SHARED_MIN + 1), least + each);
	assert_int_equal(av_shared_len(SIZE_MAX),
			 sizeof(struct av_shared) + AV_SHARED_MAX * each);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_see_the_same_addresses_at_the_same_indexes,
						setup, teardown),
		cmocka_unit_test_setup_teardown(removed_index_is_used_again_by_all, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_a_dead_writer_left_is_found, setup,
						teardown),
		cmocka_unit_test_setup_teardown(memory_of_another_kind_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_no_address_is_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(full_table_says_so, setup, teardown),
		cmocka_unit_test(room_is_as_asked_within_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
