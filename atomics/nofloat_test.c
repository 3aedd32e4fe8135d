/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The part that the kernel module has: integers, linked without float.c. */
#include <setjmp.h>
#include <stdarg.h>
#include "atomics.h"
#include <cmocka.h>

static void without_floats_their_types_are_unknown(void **state)
{
	static const enum fi_datatype floats[] = {
		FI_FLOAT,	  FI_DOUBLE,	     FI_LONG_DOUBLE,
		FI_FLOAT_COMPLEX, FI_DOUBLE_COMPLEX, FI_LONG_DOUBLE_COMPLEX,
	};
	_Alignas(16) uint8_t target[32] = { 1 }, operand[32] = { 2 };
	size_t i;

	for (i = 0; i < sizeof(floats) / sizeof(*floats); i++) {
		struct atomics_update u = { ATOMICS_BASE, floats[i], FI_SUM, target,
					    operand,	  NULL,	     NULL,   1 };

		assert_int_equal(atomics_size(floats[i]), 0);
		assert_false(atomics_valid(ATOMICS_BASE, floats[i], FI_SUM));
		assert_false(atomics_aligned(target, floats[i]));
		assert_false(atomics_lock_free(target, floats[i]));
		assert_int_equal(atomics_apply(&u), -FI_EOPNOTSUPP);
		assert_int_equal(target[0], 1);
	}
}

static void without_floats_integers_work(void **state)
{
	_Alignas(16) uint8_t target[16] = { 0xff, 1 };
	const uint8_t operand[16] = { 2 };
	struct atomics_update u = { ATOMICS_BASE, FI_UINT128, FI_SUM, target,
				    operand,	  NULL,	      NULL,   1 };

	assert_int_equal(atomics_apply(&u), 0);
	assert_int_equal(target[0], 1);
	assert_int_equal(target[1], 2);
	u.datatype = FI_UINT16;
	u.op = FI_MAX;
	assert_int_equal(atomics_apply(&u), 0);
	assert_int_equal(target[0], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_floats_their_types_are_unknown),
		cmocka_unit_test(without_floats_integers_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
