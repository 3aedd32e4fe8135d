/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sets of addresses of a real provider through the public interface, and their members as the
 * engine's own files see them: the test links the engine. One thread.
 *
 * usage: av_set_test
 */
#include "fake_ends.h"
#include "av_set.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define ADDRS 20

static struct fake_end end;

/* A vector with ADDRS entries, of which number 3 was removed. */
static int setup(void **state)
{
	struct fake_end_attr attr = { .family = FAKE_FAMILY_A };

	fake_ends_begin(1);
	fake_end_open(&end, &attr, NULL);
	for (uint32_t i = 0; i < ADDRS; i++) {
		struct weft_addr a = end.name;

		memcpy(a.nonce, &i, sizeof(i));
		a.nonce[7] ^= 0x55;
		assert_int_equal(fake_end_insert(&end, &a), i);
	}
	assert_int_equal(fi_av_remove(end.av, &(fi_addr_t){ 3 }, 1, 0), 0);
	return 0;
}

static int teardown(void **state)
{
	fake_end_close(&end);
	return 0;
}

static int opened(struct fi_av_set_attr attr, struct fid_av_set **set)
{
	*set = NULL;
	return fi_av_set(end.av, &attr, set, &end);
}

/* A set of addresses with one digit each; NOTAVAIL ones are none. */
static struct fid_av_set *made(const char *members)
{
	struct fid_av_set *set;

	assert_int_equal(opened((struct fi_av_set_attr){ .start_addr = FI_ADDR_NOTAVAIL,
							 .end_addr = FI_ADDR_NOTAVAIL },
				&set),
			 0);
	for (; *members; members++)
		assert_int_equal(fi_av_set_insert(set, (fi_addr_t)(*members - '0')), 0);
	return set;
}

static void has(struct fid_av_set *fid, const char *members)
{
	struct engine_av *av = container_of(end.av, struct engine_av, fid);
	struct engine_av_set *set = engine_av_set_of(av, fid);
	char got[ADDRS + 1] = "";

	assert_non_null(set);
	assert_true(set->cnt <= ADDRS);
	for (size_t i = 0; i < set->cnt; i++) {
		got[i] = (char)('0' + set->addrs[i]);
		assert_int_equal(engine_av_set_rank(set, set->addrs[i]), i);
	}
	assert_string_equal(got, members);
}

static void closed(struct fid_av_set *set)
{
	assert_int_equal(fi_close(&set->fid), 0);
}

static void ranges_make_sets(void **state)
{
	struct fid_av_set *set;

	assert_int_equal(
		opened((struct fi_av_set_attr){ .start_addr = 1, .end_addr = 6, .stride = 1 },
		       &set),
		0);
	assert_int_equal(set->fid.fclass, FI_CLASS_AV_SET);
	assert_ptr_equal(set->fid.context, &end);
	has(set, "12456");
	closed(set);
	assert_int_equal(opened((struct fi_av_set_attr){ .start_addr = 1,
							 .end_addr = 8,
							 .stride = 3,
							 .count = 3 },
				&set),
			 0);
	has(set, "147");
	closed(set);
	assert_int_equal(opened((struct fi_av_set_attr){ .start_addr = 18,
							 .end_addr = UINT64_MAX - 1,
							 .stride = 1 },
				&set),
			 0);
	has(set, "BC");
	closed(set);
	assert_int_equal(opened((struct fi_av_set_attr){ .start_addr = 5,
							 .end_addr = UINT64_MAX - 1,
							 .stride = UINT64_MAX },
				&set),
			 0);
	has(set, "5");
	closed(set);
	assert_int_equal(opened((struct fi_av_set_attr){ .start_addr = FI_ADDR_NOTAVAIL,
							 .end_addr = FI_ADDR_NOTAVAIL,
							 .flags = FI_UNIVERSE | FI_BARRIER_SET },
				&set),
			 0);
	has(set, "012456789:;<=>?@ABC");
	assert_int_equal(container_of(set, struct engine_av_set, fid)->collectives,
			 FI_BARRIER_SET);
	closed(set);
	set = made("");
	has(set, "");
	assert_int_equal(container_of(set, struct engine_av_set, fid)->collectives,
			 ENGINE_SET_COLLECTIVES);
	closed(set);
}

static void wrong_attributes_are_refused(void **state)
{
	uint8_t key[8] = { 0 };
	struct fid_av_set *set;

	assert_int_equal(opened((struct fi_av_set_attr){ .start_addr = 1,
							 .end_addr = FI_ADDR_NOTAVAIL,
							 .stride = 1 },
				&set),
			 -FI_EINVAL);
	assert_int_equal(opened((struct fi_av_set_attr){ .start_addr = FI_ADDR_NOTAVAIL,
							 .end_addr = 1,
							 .stride = 1 },
				&set),
			 -FI_EINVAL);
	assert_int_equal(
		opened((struct fi_av_set_attr){ .start_addr = 2, .end_addr = 1, .stride = 1 },
		       &set),
		-FI_EINVAL);
	assert_int_equal(opened((struct fi_av_set_attr){ .start_addr = 1, .end_addr = 2 }, &set),
			 -FI_EINVAL);
	assert_int_equal(opened((struct fi_av_set_attr){ .start_addr = 0,
							 .end_addr = 4,
							 .stride = 1,
							 .count = 4 },
				&set),
			 -FI_EINVAL);
	assert_int_equal(opened((struct fi_av_set_attr){ .flags = 1ull << 60 }, &set),
			 -FI_EBADFLAGS);
	assert_int_equal(
		opened((struct fi_av_set_attr){ .comm_key = key, .comm_key_size = 8 }, &set),
		-FI_ENOSYS);
	assert_int_equal(fi_av_set(end.av, NULL, &set, NULL), -FI_EINVAL);
	assert_null(set);
}

static void members_come_and_go_in_order(void **state)
{
	struct fid_av_set *set = made("9180");

	assert_int_equal(fi_av_set_insert(set, 1), -FI_EINVAL); /* it is one already */
	assert_int_equal(fi_av_set_insert(set, 3), -FI_EINVAL); /* not in the vector */
	assert_int_equal(fi_av_set_insert(set, FI_ADDR_NOTAVAIL), -FI_EINVAL);
	has(set, "9180");
	assert_int_equal(fi_av_set_remove(set, 1), 0);
	assert_int_equal(fi_av_set_remove(set, 1), -FI_EINVAL);
	has(set, "980");
	assert_int_equal(fi_av_set_insert(set, 1), 0);
	has(set, "9801");
	closed(set);
}

static void sets_are_joined_and_cut(void **state)
{
	struct fid_av_set *a = made("5124"), *b = made("2697"), *none = made("");

	assert_int_equal(fi_av_set_union(a, b), 0);
	has(a, "5124697");
	has(b, "2697");
	assert_int_equal(fi_av_set_diff(a, b), 0);
	has(a, "514");
	assert_int_equal(fi_av_set_intersect(a, b), 0);
	has(a, "");
	assert_int_equal(fi_av_set_union(a, b), 0);
	assert_int_equal(fi_av_set_remove(a, 6), 0);
	assert_int_equal(fi_av_set_intersect(b, a), 0);
	has(b, "297");
	assert_int_equal(fi_av_set_union(b, none), 0);
	assert_int_equal(fi_av_set_diff(b, none), 0);
	has(b, "297");
	/* With itself. */
	assert_int_equal(fi_av_set_union(b, b), 0);
	assert_int_equal(fi_av_set_intersect(b, b), 0);
	has(b, "297");
	assert_int_equal(fi_av_set_diff(b, b), 0);
	has(b, "");
	closed(a);
	closed(b);
	closed(none);
}

static void sets_of_other_vectors_do_not_mix(void **state)
{
	struct fi_av_set_attr empty = { .start_addr = FI_ADDR_NOTAVAIL,
					.end_addr = FI_ADDR_NOTAVAIL };
	struct fi_av_attr attr = { .type = FI_AV_MAP };
	struct engine_av *engine_av = container_of(end.av, struct engine_av, fid);
	struct fid_av_set *set = made("12"), *foreign;
	struct fid_av *av;

	assert_int_equal(fi_av_open(end.domain, &attr, &av, NULL), 0);
	assert_int_equal(fi_av_set(av, &empty, &foreign, NULL), 0);
	assert_int_equal(fi_av_set_union(set, foreign), -FI_EINVAL);
	assert_int_equal(fi_av_set_intersect(foreign, set), -FI_EINVAL);
	assert_int_equal(fi_av_set_diff(foreign, set), -FI_EINVAL);
	assert_null(engine_av_set_of(engine_av, foreign));
	assert_null(engine_av_set_of(engine_av, NULL));
	assert_int_equal(fi_close(&av->fid), -FI_EBUSY);
	closed(foreign);
	assert_int_equal(fi_close(&av->fid), 0);
	closed(set);
}

static void each_set_has_an_address(void **state)
{
	struct engine_av *av = container_of(end.av, struct engine_av, fid);
	struct fid_av_set *a = made("1"), *b = made("1");
	fi_addr_t at_a, at_b, again;

	assert_int_equal(fi_av_set_addr(a, &at_a), 0);
	assert_int_equal(fi_av_set_addr(b, &at_b), 0);
	assert_int_equal(fi_av_set_addr(a, &again), 0);
	assert_true(at_a == again && at_a != at_b && at_a != FI_ADDR_NOTAVAIL);
	assert_int_equal(fi_av_set_addr(a, NULL), -FI_EINVAL);
	assert_ptr_equal(engine_av_set_at(av, at_a), container_of(a, struct engine_av_set, fid));
	assert_ptr_equal(engine_av_set_at(av, at_b), container_of(b, struct engine_av_set, fid));
	closed(a);
	assert_null(engine_av_set_at(av, at_a));
	a = made("1");
	assert_int_equal(fi_av_set_addr(a, &again), 0);
	assert_true(again != at_a); /* an address is never given twice */
	closed(a);
	closed(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ranges_make_sets, setup, teardown),
		cmocka_unit_test_setup_teardown(wrong_attributes_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(members_come_and_go_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(sets_are_joined_and_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(sets_of_other_vectors_do_not_mix, setup,
						teardown),
		cmocka_unit_test_setup_teardown(each_set_has_an_address, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
