/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The names of a provider: which one hints mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "info.h"

static const char *const spellings[] = { "ofi_rxm", "ofi_rxm;tcp", NULL };
static const struct info_identity table[] = {
	{ .name = "tcp" },
	{ .name = "tcp;ofi_rxm", .spellings = spellings },
	{ .name = "sockets" },
	{ 0 },
};

static const char *meant(char *name)
{
	struct fi_fabric_attr fabric = { .prov_name = name };
	struct fi_info hints = { .fabric_attr = &fabric };

	return info_identity_of(table, &hints)->name;
}

static void each_spelling_means_its_name(void **state)
{
	assert_string_equal(meant((char *)"tcp"), "tcp");
	assert_string_equal(meant((char *)"Sockets"), "sockets");
	assert_string_equal(meant((char *)"tcp;ofi_rxm"), "tcp;ofi_rxm");
	assert_string_equal(meant((char *)"OFI_RXM"), "tcp;ofi_rxm");
	assert_string_equal(meant((char *)"ofi_rxm;tcp"), "tcp;ofi_rxm");
}

static void whatever_else_is_asked_means_the_provider_itself(void **state)
{
	struct fi_info empty = { 0 };

	assert_string_equal(meant((char *)"shm"), "tcp");
	assert_string_equal(meant(NULL), "tcp");
	assert_string_equal(info_identity_of(table, &empty)->name, "tcp");
	assert_string_equal(info_identity_of(table, NULL)->name, "tcp");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_spelling_means_its_name),
		cmocka_unit_test(whatever_else_is_asked_means_the_provider_itself),
	};

	return cmocka_run_group_tests_name("identity", tests, NULL, NULL);
}
