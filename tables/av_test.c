/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of the address table. */
#include <setjmp.h>
#include <stdarg.h>
#include "av.h"
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

static struct weft_addr numbered(uint32_t n)
{
	struct weft_addr a = {
		.version = ADDR_VERSION,
		.kind = ADDR_NONCE,
		.nonce = { [7] = 1 },
	};

	memcpy(a.nonce, &n, sizeof(n));
	return a;
}

static fi_addr_t insert(struct av_table *av, uint32_t n, int expected)
{
	struct weft_addr a = numbered(n);
	fi_addr_t index = FI_ADDR_NOTAVAIL;

	assert_int_equal(av_insert(av, &a, &index), expected);
	return index;
}

static void indexes_are_dense_and_in_order(void **state)
{
	struct av_table av;

	assert_int_equal(av_init(&av, 0), 0);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(insert(&av, i, 1), i);
	for (uint32_t i = 0; i < 1000; i++) {
		struct weft_addr a = numbered(i);

		assert_int_equal(av_find(&av, &a), i);
		assert_memory_equal(av_get(&av, i), &a, sizeof(a));
	}
	av_fini(&av);
}

static void lowest_free_index_is_used_first(void **state)
{
	struct av_table av;

	assert_int_equal(av_init(&av, 1), 0);
	for (uint32_t i = 0; i < 300; i++)
		insert(&av, i, 1);
	assert_int_equal(av_remove(&av, 250), 1);
	assert_int_equal(av_remove(&av, 3), 1);
	assert_int_equal(av_remove(&av, 100), 1);
	assert_int_equal(insert(&av, 1000, 1), 3);
	assert_int_equal(insert(&av, 1001, 1), 100);
	assert_int_equal(insert(&av, 1002, 1), 250);
	assert_int_equal(insert(&av, 1003, 1), 300);
	av_fini(&av);
}

static void equal_address_is_one_entry_with_references(void **state)
{
	struct weft_addr a = numbered(7);
	struct av_table av;

	assert_int_equal(av_init(&av, 4), 0);
	assert_int_equal(insert(&av, 7, 1), 0);
	assert_int_equal(insert(&av, 7, 0), 0);
	assert_int_equal(insert(&av, 8, 1), 1);
	assert_int_equal(av_remove(&av, 0), 0);
	assert_int_equal(av_find(&av, &a), 0);
	assert_int_equal(av_remove(&av, 0), 1);
	assert_true(av_find(&av, &a) == FI_ADDR_NOTAVAIL);
	assert_null(av_get(&av, 0));
	assert_int_equal(av_remove(&av, 0), -FI_EINVAL);
	av_fini(&av);
}

static void any_index_may_be_asked(void **state)
{
	static const fi_addr_t odd[] = {
		1, 63, 64, 65, UINT32_MAX, 1ull << 32, FI_ADDR_NOTAVAIL
	};
	struct av_table av;

	assert_int_equal(av_init(&av, SIZE_MAX), 0); /* a hint from anywhere */
	insert(&av, 1, 1);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		assert_null(av_get(&av, odd[i]));
		assert_int_equal(av_remove(&av, odd[i]), -FI_EINVAL);
	}
	assert_non_null(av_get(&av, 0));
	av_fini(&av);
	assert_null(av_get(&av, 0));
}

static void a_service_and_a_nonce_are_two_entries(void **state)
{
	struct weft_addr n = numbered(1), s = { .version = ADDR_VERSION, .kind = ADDR_SERVICE };
	struct av_table av;
	fi_addr_t index;

	n.family = s.family = ADDR_FAMILY_INET;
	n.port = s.port = 80;
	n.ip[0] = s.ip[0] = 10;
	assert_int_equal(av_init(&av, 0), 0);
	assert_int_equal(av_insert(&av, &n, &index), 1);
	assert_int_equal(av_insert(&av, &s, &index), 1);
	assert_int_equal(index, 1);
	assert_int_equal(av_find(&av, &s), 1);
	assert_int_equal(av_find(&av, &n), 0);
	av_fini(&av);
}

static void chosen_index_is_taken_if_it_is_free(void **state)
{
	struct weft_addr a = numbered(1), b = numbered(2);
	struct av_table av;

	assert_int_equal(av_init(&av, 0), 0);
	assert_int_equal(av_lowest(&av), 0);
	assert_int_equal(av_put(&av, 1000, &a), 0);
	assert_int_equal(av_put(&av, 1000, &b), -FI_EINVAL);
	assert_int_equal(av_put(&av, 1ull << 31, &b), -FI_EINVAL);
	assert_int_equal(av_put(&av, FI_ADDR_NOTAVAIL, &b), -FI_EINVAL);
	assert_int_equal(av_find(&av, &a), 1000);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(insert(&av, 10 + i, 1), i);
	assert_int_equal(av_lowest(&av), 1001);
	assert_int_equal(insert(&av, 1, 0), 1000);
	assert_int_equal(av_drop(&av, 1000), 0); /* both references */
	assert_int_equal(av_drop(&av, 1000), -FI_EINVAL);
	assert_true(av_find(&av, &a) == FI_ADDR_NOTAVAIL);
	assert_int_equal(av_lowest(&av), 1000);
	no_memory = true;
	assert_int_equal(av_put(&av, 5000, &a), -FI_ENOMEM);
	no_memory = false;
	av_fini(&av);
}

static void lowest_of_a_full_table_is_the_next(void **state)
{
	struct av_table av;

	assert_int_equal(av_init(&av, 64), 0);
	for (uint32_t i = 0; i < 64; i++) {
		assert_int_equal(av_lowest(&av), i);
		insert(&av, i, 1);
	}
	assert_int_equal(av_lowest(&av), 64);
	av_fini(&av);
}

static void completions_are_told_the_index_or_what_was_set(void **state)
{
	struct av_table av;

	assert_int_equal(av_init(&av, 0), 0);
	insert(&av, 1, 1);
	insert(&av, 2, 1);
	assert_int_equal(av_cq_addr(&av, 1), 1);
	assert_int_equal(av_set_cq_addr(&av, 1, 4711), 0);
	assert_int_equal(av_cq_addr(&av, 0), 0);
	assert_int_equal(av_cq_addr(&av, 1), 4711);
	assert_int_equal(av_set_cq_addr(&av, 2, 1), -FI_EINVAL);
	assert_true(av_cq_addr(&av, 2) == FI_ADDR_NOTAVAIL);
	for (uint32_t i = 10; i < 200; i++)
		insert(&av, i, 1);
	assert_int_equal(av_cq_addr(&av, 1), 4711); /* the table has grown */
	assert_int_equal(av_remove(&av, 1), 1);
	assert_int_equal(insert(&av, 3, 1), 1);
	assert_int_equal(av_cq_addr(&av, 1), 1);
	av_fini(&av);
}

static void random_use_agrees_with_a_plain_array(void **state)
{
	enum { NUMBERS = 400 };
	static uint32_t refs[NUMBERS];	/* model: of the address with this number */
	static uint32_t at[NUMBERS];	/* where it is */
	static bool taken[NUMBERS + 1]; /* indexes */
	uint64_t seed = 0x5eed0002;
	struct av_table av;

	printf("seed %#llx\n", (unsigned long long)seed);
	assert_int_equal(av_init(&av, 0), 0);
	for (int i = 0; i < 100000; i++) {
		uint32_t n, lowest = 0;

		n = (uint32_t)seeded_below(&seed, NUMBERS);
		if (seeded_below(&seed, 2)) {
			while (taken[lowest])
				lowest++;
			if (!refs[n]) {
				at[n] = lowest;
				taken[lowest] = true;
			}
			assert_int_equal(insert(&av, n, !refs[n]), at[n]);
			refs[n]++;
		} else if (refs[n]) {
			refs[n]--;
			assert_int_equal(av_remove(&av, at[n]), !refs[n]);
			if (!refs[n])
				taken[at[n]] = false;
		} else {
			struct weft_addr a = numbered(n);

			assert_true(av_find(&av, &a) == FI_ADDR_NOTAVAIL);
		}
	}
	av_fini(&av);
}

static void without_memory_the_table_stays_as_it_is(void **state)
{
	struct weft_addr a = numbered(64);
	struct av_table av;
	fi_addr_t index = 4711;

	no_memory = true;
	assert_int_equal(av_init(&av, 0), -FI_ENOMEM);
	no_memory = false;
	av_fini(&av);
	assert_int_equal(av_init(&av, 0), 0);
	for (uint32_t i = 0; i < 64; i++)
		insert(&av, i, 1);
	no_memory = true;
	assert_int_equal(av_insert(&av, &a, &index), -FI_ENOMEM);
	assert_int_equal(index, 4711);
	assert_int_equal(insert(&av, 63, 0), 63); /* needs none */
	no_memory = false;
	assert_int_equal(av_insert(&av, &a, &index), 1);
	assert_int_equal(index, 64);
	for (uint32_t i = 0; i < 65; i++) {
		a = numbered(i);
		assert_int_equal(av_find(&av, &a), i);
	}
	av_fini(&av);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(indexes_are_dense_and_in_order),
		cmocka_unit_test(lowest_free_index_is_used_first),
		cmocka_unit_test(equal_address_is_one_entry_with_references),
		cmocka_unit_test(any_index_may_be_asked),
		cmocka_unit_test(a_service_and_a_nonce_are_two_entries),
		cmocka_unit_test(chosen_index_is_taken_if_it_is_free),
		cmocka_unit_test(lowest_of_a_full_table_is_the_next),
		cmocka_unit_test(completions_are_told_the_index_or_what_was_set),
		cmocka_unit_test(random_use_agrees_with_a_plain_array),
		cmocka_unit_test(without_memory_the_table_stays_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
