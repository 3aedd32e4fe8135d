/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of the registered wires. What they register is there until the program ends, or unregistered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <rdma/fi_errno.h>
#include "wire.h"
#include <cmocka.h>

/* More than there may be */
#define MANY   17u
#define ROUNDS 100u

static struct wire_ops ops_named(const char *name)
{
	return (struct wire_ops){ .size = sizeof(struct wire_ops), .name = name };
}

static struct wire_provider wire_with(const struct wire_ops *ops)
{
	return (struct wire_provider){ .size = sizeof(struct wire_provider),
				       .version = WIRE_LAYOUT,
				       .layout = WIRE_LAYOUT,
				       .ops = ops };
}

static void a_wire_is_found_while_it_is_registered(void **state)
{
	struct wire_ops ops = ops_named("one"), other_ops = ops_named("other");
	struct wire_provider wire = wire_with(&ops), other = wire_with(&other_ops);

	assert_int_equal(wire_register(&wire), 0);
	assert_int_equal(wire_register(&wire), 0);
	assert_int_equal(wire_register(&other), 0);
	assert_ptr_equal(wire_find("one"), &wire);
	assert_ptr_equal(wire_find("other"), &other);
	wire_unregister(&wire);
	assert_null(wire_find("one"));
	assert_ptr_equal(wire_find("other"), &other);
	wire_unregister(&wire);
	wire_unregister(&other);
	assert_null(wire_find("other"));
}

/* As when its module is unloaded: what was there is not there any more, and must not be looked at. */
static void no_search_touches_another_wire(void **state)
{
	struct wire_ops ops = ops_named("mine"), gone_ops = ops_named("gone");
	struct wire_provider wire = wire_with(&ops), gone = wire_with(&gone_ops);

	assert_int_equal(wire_register(&gone), 0);
	assert_int_equal(wire_register(&wire), 0);
	gone.ops = NULL;
	assert_ptr_equal(wire_find("mine"), &wire);
	wire_unregister(&gone);
	wire_unregister(&wire);
}

static void a_module_may_come_and_go_any_number_of_times(void **state)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct wire_ops ops = ops_named("again");
		struct wire_provider wire = wire_with(&ops);

		assert_int_equal(wire_register(&wire), 0);
		assert_ptr_equal(wire_find("again"), &wire);
		wire_unregister(&wire);
	}
}

static void what_does_not_fit_is_refused(void **state)
{
	struct wire_ops ops = ops_named("sixteen_letters_"), small = ops_named("small");
	struct wire_ops nameless = ops_named("");
	struct wire_provider wires[] = { wire_with(&ops), wire_with(&small),
					 wire_with(&nameless) };

	small.size--;
	for (size_t i = 0; i < sizeof(wires) / sizeof(wires[0]); i++)
		assert_int_equal(wire_register(&wires[i]), -FI_EINVAL);
	small.size++;
	wires[1].layout++;
	assert_int_equal(wire_register(&wires[1]), -FI_EINVAL);
	wires[1] = wire_with(&small);
	wires[1].size--;
	assert_int_equal(wire_register(&wires[1]), -FI_EINVAL);
}

/* The last test: names keep their places. */
static void there_may_be_sixteen(void **state)
{
	static char names[MANY][WIRE_NAME_MAX];
	static struct wire_ops ops[MANY];
	static struct wire_provider wires[MANY];
	uint32_t cnt = 0;
	int ret = 0;

	while (!ret && cnt < MANY) {
		snprintf(names[cnt], sizeof(names[cnt]), "n%u", cnt);
		ops[cnt] = ops_named(names[cnt]);
		wires[cnt] = wire_with(&ops[cnt]);
		ret = wire_register(&wires[cnt++]);
	}
	assert_int_equal(ret, -FI_ENOMEM);
	while (cnt)
		wire_unregister(&wires[--cnt]);
	assert_int_equal(wire_register(&wires[0]), 0);
	assert_ptr_equal(wire_find("n0"), &wires[0]);
	wire_unregister(&wires[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wire_is_found_while_it_is_registered),
		cmocka_unit_test(no_search_touches_another_wire),
		cmocka_unit_test(a_module_may_come_and_go_any_number_of_times),
		cmocka_unit_test(what_does_not_fit_is_refused),
		cmocka_unit_test(there_may_be_sixteen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
