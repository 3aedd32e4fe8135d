/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of members.h.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "members.h"

static void urls_have_a_port(void **state)
{
	struct members m;

	assert_int_equal(
		members_parse(&m, "http://a:1,https://b.site/,http://[::1],http://[fe80::2]:3/",
			      0),
		0);
	assert_int_equal(m.cnt, 4);
	assert_string_equal(m.url[0], "http://a:1");
	assert_string_equal(m.url[1], "https://b.site:2379");
	assert_string_equal(m.url[2], "http://[::1]:2379");
	assert_string_equal(m.url[3], "http://[fe80::2]:3");
}

static void what_are_no_urls_are_refused(void **state)
{
	static const char *const urls[] = {
		"",
		",",
		"a:1",
		"http://",
		"http://a:1,",
		",http://a:1",
		"ftp://a",
		"http://a:",
		"http://a:x",
		"http://a:123456",
		"http://a/path",
		"http://a:1/v3",
		"http://a b",
		"http://u@a",
		"http://[::1",
		"http://[]:1",
		"http://a:1//",
		"http:///",
		"http://a?b",
		"HTTP://a",
		"file:///etc",
		"http://a\n",
	};
	struct members m;
	size_t i;

	for (i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
		assert_int_equal(members_parse(&m, urls[i], 0), -EINVAL);
}

static void too_many_and_too_long_are_refused(void **state)
{
	char urls[MEMBERS_MAX * 16 + 64] = "", name[MEMBER_URL_MAX + 16];
	struct members m;
	uint32_t i;

	for (i = 0; i < MEMBERS_MAX; i++)
		sprintf(urls + strlen(urls), "%shttp://m%u:1", i ? "," : "", i);
	assert_int_equal(members_parse(&m, urls, 0), 0);
	assert_int_equal(m.cnt, MEMBERS_MAX);
	strcat(urls, ",http://more:1");
	assert_int_equal(members_parse(&m, urls, 0), -EINVAL);
	for (i = 0; i < sizeof(name) - 1; i++)
		name[i] = 'a';
	name[i] = 0;
	memcpy(name, "http://", 7);
	assert_int_equal(members_parse(&m, name, 0), -EINVAL);
}

static void assert_order(const struct members *m, uint64_t now, const char *expected)
{
	uint32_t order[MEMBERS_MAX], i;
	char text[MEMBERS_MAX + 1] = "";

	members_order(m, now, order);
	for (i = 0; i < m->cnt; i++)
		text[i] = (char)('0' + order[i]);
	assert_string_equal(text, expected);
}

static void one_that_failed_is_asked_last_for_a_while(void **state)
{
	struct members m;

	assert_int_equal(members_parse(&m, "http://a,http://b,http://c", 1), 0);
	assert_order(&m, 1000, "120");
	members_failed(&m, 1, 1000);
	assert_order(&m, 1000, "201");
	members_answered(&m, 2);
	assert_order(&m, 1000, "201");
	members_failed(&m, 2, 2000);
	assert_order(&m, 2000, "021");
	members_answered(&m, 0);
	assert_order(&m, 1000 + MEMBER_OUT_MS - 1, "012");
	assert_order(&m, 1000 + MEMBER_OUT_MS, "012");
	assert_order(&m, 2000 + MEMBER_OUT_MS, "012");
}

static void all_are_asked_when_all_have_failed(void **state)
{
	struct members m;
	uint32_t i;

	assert_int_equal(members_parse(&m, "http://a,http://b,http://c", 8), 0);
	for (i = 0; i < 3; i++)
		members_failed(&m, i, 10);
	assert_order(&m, 11, "201");
	members_answered(&m, 1);
	assert_order(&m, 11, "120");
}

static void members_that_elect_a_leader_are_asked_again_for_a_while(void **state)
{
	struct members m;

	assert_int_equal(members_parse(&m, "http://a,http://b,http://c", 0), 0);
	assert_false(members_elect(&m, 0, 100, 100));
	assert_true(members_elect(&m, -EAGAIN, 1000, 1100));
	assert_true(members_elect(&m, -ETIMEDOUT, 1200, 1000 + MEMBERS_ELECT_MS - 1));
	assert_false(members_elect(&m, -EAGAIN, 1300, 1000 + MEMBERS_ELECT_MS));
	assert_false(members_elect(&m, -EAGAIN, 9000, 9000 + MEMBERS_ELECT_MS));
	/* Success ends it, and so does an error that is none of an election. */
	assert_false(members_elect(&m, 0, 20000, 20100));
	assert_true(members_elect(&m, -EAGAIN, 20200, 20300));
	assert_false(members_elect(&m, -ECONNREFUSED, 20400, 20500));
	assert_true(members_elect(&m, -ETIMEDOUT, 30000, 30000 + MEMBERS_ELECT_MS - 1));
	/* An attempt that has taken as long as an election is the last one. */
	assert_false(members_elect(&m, 0, 40000, 40000));
	assert_false(members_elect(&m, -ETIMEDOUT, 40000, 40000 + MEMBERS_ELECT_MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(urls_have_a_port),
		cmocka_unit_test(what_are_no_urls_are_refused),
		cmocka_unit_test(too_many_and_too_long_are_refused),
		cmocka_unit_test(one_that_failed_is_asked_last_for_a_while),
		cmocka_unit_test(all_are_asked_when_all_have_failed),
		cmocka_unit_test(members_that_elect_a_leader_are_asked_again_for_a_while),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
