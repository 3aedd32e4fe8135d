/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When a program that polls lets others have its core, by what its yields have shown.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "yield.h"

#define ALONE_NS 500u
#define PEER_NS	 3000u

/* After so many yields alike. */
static uint32_t after(uint32_t now, uint64_t ns, bool moved, int cnt)
{
	while (cnt--)
		now = engine_yield_after(now, ns, moved);
	return now;
}

static void who_runs_alone_yields_as_seldom_as_can_be(void **state)
{
	for (uint32_t n = 1; n <= ENGINE_YIELD_MAX; n++) {
		assert_int_equal(after(n, ALONE_NS, false, 12), ENGINE_YIELD_MAX);
		/* what came meanwhile came from another core */
		assert_int_equal(after(n, ALONE_NS, true, 12), ENGINE_YIELD_MAX);
	}
}

static void who_shares_a_core_with_his_peer_yields_at_once(void **state)
{
	assert_int_equal(after(ENGINE_YIELD_MAX, PEER_NS, true, 1), ENGINE_YIELD_MIN);
	/* and with others who wait as he does */
	assert_int_equal(after(ENGINE_YIELD_MIN, PEER_NS, false, 1000), ENGINE_YIELD_MIN);
	assert_int_equal(after(ENGINE_YIELD_MAX, PEER_NS, false, 1000), ENGINE_YIELD_MAX);
}

static void nobody_yields_often_to_who_computes(void **state)
{
	assert_int_equal(after(ENGINE_YIELD_MIN, ENGINE_YIELD_LONG_NS, true, 12),
			 ENGINE_YIELD_MAX);
	assert_int_equal(after(ENGINE_YIELD_MAX, UINT64_MAX, true, 1), ENGINE_YIELD_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_runs_alone_yields_as_seldom_as_can_be),
		cmocka_unit_test(who_shares_a_core_with_his_peer_yields_at_once),
		cmocka_unit_test(nobody_yields_often_to_who_computes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
