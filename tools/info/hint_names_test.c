/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names of constants in hints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include <rdma/fabric.h>

#include "hint_names.h"

static void names_are_read_in_any_spelling(void **state)
{
	uint64_t value;

	assert_int_equal(hint_parse(HINT_CAPS, "FI_MSG|fi_rma|Tagged,SEND", &value), 0);
	assert_true(value == (FI_MSG | FI_RMA | FI_TAGGED | FI_SEND));
	assert_int_equal(hint_parse(HINT_MODE, "FI_CONTEXT2", &value), 0);
	assert_true(value == FI_CONTEXT2);
	assert_int_equal(hint_parse(HINT_EP_TYPE, "FI_EP_RDM", &value), 0);
	assert_true(value == FI_EP_RDM);
	assert_int_equal(hint_parse(HINT_EP_TYPE, "dgram", &value), 0);
	assert_true(value == FI_EP_DGRAM);
	assert_int_equal(hint_parse(HINT_ADDR_FORMAT, "FI_SOCKADDR_IN6", &value), 0);
	assert_true(value == FI_SOCKADDR_IN6);
}

static void unknown_names_are_refused(void **state)
{
	uint64_t value = 42;

	assert_int_equal(hint_parse(HINT_CAPS, "", &value), -EINVAL);
	assert_int_equal(hint_parse(HINT_CAPS, "FI_MSG|", &value), -EINVAL);
	assert_int_equal(hint_parse(HINT_CAPS, "FI_", &value), -EINVAL);
	assert_int_equal(hint_parse(HINT_CAPS, "FI_EP_RDM", &value), -EINVAL);
	assert_int_equal(hint_parse(HINT_CAPS, "FI_MSGS", &value), -EINVAL);
	assert_int_equal(hint_parse(HINT_EP_TYPE, "FI_EP_RDM|FI_EP_MSG", &value), -EINVAL);
	assert_int_equal(value, 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_read_in_any_spelling),
		cmocka_unit_test(unknown_names_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
