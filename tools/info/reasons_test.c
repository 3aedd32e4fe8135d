/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What is kept of a library's log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "reasons.h"

static char *printed(const char *provider, int *lines)
{
	static char text[4096];
	FILE *to = fmemopen(text, sizeof(text), "w");

	memset(text, 0, sizeof(text));
	*lines = reasons_print(to, provider);
	fclose(to);
	return text;
}

static void the_cores_summary_is_the_last_word(void **state)
{
	int lines;

	reasons_heard("shm", "check", "first this\n");
	reasons_heard("core", "refused", "getinfo: shm: no FI_HMEM\n");
	reasons_heard("shm", "check", "then that\n");
	assert_string_equal(printed("shm", &lines), "    no FI_HMEM\n");
	assert_int_equal(lines, 1);
	assert_string_equal(reasons_name(0), "shm");
	assert_null(reasons_name(1));
	reasons_forget();
	assert_null(reasons_name(0));
}

static void each_of_several_reasons_has_a_line(void **state)
{
	int lines;

	reasons_heard("core", "refused", "getinfo: tcp: this one is eth0; this one is lo\n");
	assert_string_equal(printed("tcp", &lines),
			    "    this one is eth0\n    this one is lo\n");
	assert_int_equal(lines, 2);
	reasons_forget();
}

static void a_provider_name_with_a_semicolon_is_kept_whole(void **state)
{
	int lines;

	reasons_heard("core", "refused", "getinfo: tcp;ofi_rxm: left out: by FI_PROVIDER");
	assert_string_equal(printed("tcp;ofi_rxm", &lines), "    left out: by FI_PROVIDER\n");
	reasons_forget();
}

static void of_a_stock_library_each_line_counts_once(void **state)
{
	int lines;

	reasons_heard("udp", "fi_param_get_", "variable iface=<not set>\n");
	reasons_heard("udp", "ofi_check_ep_type", "unsupported endpoint type\n");
	reasons_heard("udp", "ofi_check_ep_type", "unsupported endpoint type\n");
	reasons_heard("udp", "ofi_check_ep_type", "Supported: FI_EP_DGRAM\n");
	reasons_heard("udp", "enter", "\n");
	assert_string_equal(printed("udp", &lines),
			    "    unsupported endpoint type\n    Supported: FI_EP_DGRAM\n");
	assert_int_equal(lines, 2);
	reasons_forget();
}

static void what_the_core_says_of_itself_is_no_reason(void **state)
{
	int lines;

	reasons_heard("core", "fi_getinfo_", "fi_getinfo: provider udp returned -61\n");
	reasons_heard("core", "x", "getinfo: \n");
	reasons_heard("core", "x", "getinfo: : y\n");
	assert_null(reasons_name(0));
	printed("udp", &lines);
	assert_int_equal(lines, 0);
}

static void a_flood_is_bounded(void **state)
{
	char msg[32];
	int lines, i;

	for (i = 0; i < 1000; i++) {
		snprintf(msg, sizeof(msg), "line %d\n", i);
		reasons_heard("noisy", "f", msg);
	}
	printed("noisy", &lines);
	assert_true(lines > 0 && lines < 10);
	reasons_forget();
}

static void what_to_leave_out_is_kept_until_all_is_forgotten(void **state)
{
	reasons_heard("core", "tell", "getinfo would be answered without FI_HMEM\n");
	assert_string_equal(reasons_nearest(), "would be answered without FI_HMEM");
	assert_null(reasons_name(0));
	reasons_forget();
	assert_null(reasons_nearest());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_cores_summary_is_the_last_word),
		cmocka_unit_test(each_of_several_reasons_has_a_line),
		cmocka_unit_test(a_provider_name_with_a_semicolon_is_kept_whole),
		cmocka_unit_test(of_a_stock_library_each_line_counts_once),
		cmocka_unit_test(what_the_core_says_of_itself_is_no_reason),
		cmocka_unit_test(a_flood_is_bounded),
		cmocka_unit_test(what_to_leave_out_is_kept_until_all_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
