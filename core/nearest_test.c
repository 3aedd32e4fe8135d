/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The nearest question that is answered, by a judge in place of providers; and what fi_getinfo says of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "fake_provider.h"
#include "nearest.h"

/* Offers RDM endpoints, neither FI_HMEM nor a protocol, and requires FI_CONTEXT. */
static bool judge(const struct question *q, void *arg)
{
	(*(int *)arg)++;
	return !q->node &&
	       (!q->hints || (!(q->hints->caps & FI_HMEM) && !q->hints->ep_attr->protocol &&
			      q->hints->mode & FI_CONTEXT && !q->hints->src_addrlen));
}

static struct fi_info *hints_that_fit(void)
{
	struct fi_info *hints = fi_allocinfo();

	hints->caps = FI_MSG | FI_RMA;
	hints->mode = FI_CONTEXT;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->size = 7;
	return hints;
}

static const char *nearest(const char *node, const struct fi_info *hints)
{
	const struct question q = { .node = node, .hints = hints };
	static char text[256];
	int asked = 0;

	return nearest_find(&q, judge, &asked, text, sizeof(text)) ? text : NULL;
}

static void a_single_hint_is_named(void **state)
{
	struct fi_info *hints = hints_that_fit();

	hints->ep_attr->protocol = FI_PROTO_PSMX3;
	assert_string_equal(nearest(NULL, hints), "without ep_attr->protocol");
	assert_int_equal(hints->ep_attr->protocol, FI_PROTO_PSMX3);
	hints->ep_attr->protocol = 0;
	assert_string_equal(nearest("here", hints), "without node");
	hints->src_addr = strdup("somewhere");
	hints->src_addrlen = 10;
	assert_string_equal(nearest(NULL, hints), "without src_addr");
	fi_freeinfo(hints);
	assert_string_equal(nearest("here", NULL), "without node");
}

static void a_capability_is_named_by_itself(void **state)
{
	struct fi_info *hints = hints_that_fit();

	hints->caps |= FI_HMEM;
	assert_string_equal(nearest(NULL, hints), "without FI_HMEM");
	fi_freeinfo(hints);
}

static void a_mode_is_to_be_granted(void **state)
{
	struct fi_info *hints = hints_that_fit();

	hints->mode = 0;
	assert_string_equal(nearest(NULL, hints), "with every bit of mode granted");
	fi_freeinfo(hints);
}

static void of_several_none_is_named_that_can_stay(void **state)
{
	struct fi_info *hints = hints_that_fit();

	hints->caps |= FI_HMEM;
	hints->mode = 0;
	hints->ep_attr->protocol = FI_PROTO_PSMX3;
	assert_string_equal(nearest(NULL, hints),
			    "without FI_HMEM and without ep_attr->protocol and with every bit of "
			    "mode granted");
	fi_freeinfo(hints);
}

static bool never(const struct question *q, void *arg)
{
	return false;
}

static void what_nobody_would_answer_has_no_nearest(void **state)
{
	struct fi_info *hints = hints_that_fit();
	const struct question q = { .hints = hints };
	char text[64];

	assert_false(nearest_find(&q, never, NULL, text, sizeof(text)));
	fi_freeinfo(hints);
}

static void who_reads_reasons_is_told_what_to_leave_out(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	fake_log_lines();
	fake_register(0, "tcp", 1);
	hints->fabric_attr->name = strdup("elsewhere");
	assert_int_equal(fi_getinfo(fi_version(), NULL, NULL, 0, hints, &info), -FI_ENODATA);
	assert_int_equal(fake_log_cnt("getinfo would be answered without fabric_attr->name"), 1);
	assert_int_equal(fake_log_cnt("getinfo: tcp:"), 1);
	fi_freeinfo(hints);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_single_hint_is_named),
		TEST(a_capability_is_named_by_itself),
		TEST(a_mode_is_to_be_granted),
		TEST(of_several_none_is_named_that_can_stay),
		TEST(what_nobody_would_answer_has_no_nearest),
		TEST(who_reads_reasons_is_told_what_to_leave_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
