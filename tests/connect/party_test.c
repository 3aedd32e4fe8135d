/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a test that fails has opened is closed behind it, and the next one finds nothing of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include "party.h"
#include <cmocka.h>

static struct party listener, caller, callee;

static int teardown(void **state)
{
	party_close_all();
	return 0;
}

static void fails_on_purpose(void **state)
{
	static struct party second;

	party_listen(&listener);
	party_pair(&listener, &caller, &callee);
	party_open(&second, NULL);
	fail();
}

static void finds_nothing(void **state)
{
	assert_null(caller.ep);
	assert_null(listener.eq);
	party_listen(&listener);
	party_pair(&listener, &caller, &callee);
	assert_true(party_quiet(&callee));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(fails_on_purpose, teardown),
		cmocka_unit_test_teardown(fails_on_purpose, teardown),
		cmocka_unit_test_teardown(finds_nothing, teardown),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	printf("%d tests failed; 2 do so on purpose\n", failed);
	return failed != 2;
}
