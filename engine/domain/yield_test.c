/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of the number of idle rounds between yields.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "yield.h"

#define ALONE_NS 500u
#define PEER_NS	 3000u

/* Returns the number of idle rounds after @cnt equal yields. */
static uint32_t after(uint32_t now, uint64_t ns, bool moved, int cnt)
{
	while (cnt--)
		now = engine_yield_after(now, ns, moved);
	return now;
}

static void a_process_alone_on_its_core_yields_most_rarely(void **state)
{
	for (uint32_t n = 1; n <= ENGINE_YIELD_MAX; n++) {
		assert_int_equal(after(n, ALONE_NS, false, 12), ENGINE_YIELD_MAX);
		/* what arrived meanwhile was sent by another core */
		assert_int_equal(after(n, ALONE_NS, true, 12), ENGINE_YIELD_MAX);
	}
}

static void a_process_that_shares_its_core_with_its_peer_yields_at_once(void **state)
{
	assert_int_equal(after(ENGINE_YIELD_MAX, PEER_NS, true, 1), ENGINE_YIELD_MIN);
	/* other processes on the core that poll too change nothing */
	assert_int_equal(after(ENGINE_YIELD_MIN, PEER_NS, false, 1000), ENGINE_YIELD_MIN);
	assert_int_equal(after(ENGINE_YIELD_MAX, PEER_NS, false, 1000), ENGINE_YIELD_MAX);
}

static void yields_to_a_thread_that_computes_are_rare(void **state)
{
	assert_int_equal(after(ENGINE_YIELD_MIN, ENGINE_YIELD_LONG_NS, true, 12),
			 ENGINE_YIELD_MAX);
	assert_int_equal(after(ENGINE_YIELD_MAX, UINT64_MAX, true, 1), ENGINE_YIELD_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_alone_on_its_core_yields_most_rarely),
		cmocka_unit_test(a_process_that_shares_its_core_with_its_peer_yields_at_once),
		cmocka_unit_test(yields_to_a_thread_that_computes_are_rare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
