/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which providers are visible, in which order, and how long they live. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <rdma/fi_errno.h>

#include "fake_provider.h"
#include "registry.h"

/* The names of all visible providers, in order, with their major versions. */
static void assert_visible(const char *expected)
{
	struct registry_entry **list;
	char names[128] = "";
	size_t i, cnt, used = 0;

	list = registry_list(&cnt);
	assert_non_null(list);
	for (i = 0; i < cnt; i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s%u",
					 i ? " " : "", list[i]->prov->name,
					 FI_MAJOR(list[i]->prov->version));
	registry_list_free(list, cnt);
	assert_string_equal(names, expected);
}

static void link_shm_and_tcp_come_first_in_this_order(void **state)
{
	fake_register(0, "other", 1);
	fake_register(1, "tcp", 1);
	fake_register(2, "shm", 1);
	fake_register(3, "link", 1);
	assert_visible("link1 shm1 tcp1 other1");
}

static void others_keep_the_order_in_which_they_came(void **state)
{
	fake_register(0, "zeta", 1);
	fake_register(1, "alpha", 1);
	fake_register(2, "tcp", 1);
	assert_visible("tcp1 zeta1 alpha1");
}

static void the_newest_of_a_name_is_visible_in_the_same_place(void **state)
{
	fake_register(0, "one", 1);
	fake_register(1, "two", 1);
	fake_register(2, "ONE", 2);
	assert_visible("ONE2 two1");
	fake_register(3, "one", 1);
	assert_visible("ONE2 two1");
}

static void of_equal_versions_the_first_stays_visible(void **state)
{
	fake_register(0, "one", 3);
	fake_register(1, "One", 3);
	assert_visible("one3");
}

static void in_kept_order_versions_do_not_count(void **state)
{
	fake_register(0, "one", 1);
	registry_keep_order(true);
	fake_register(1, "one", 9);
	assert_visible("one1");
}

static void a_preferred_provider_goes_before_newer_ones(void **state)
{
	fake_register(0, "one", 5);
	fake_register(1, "two", 1);
	registry_remove(&fakes[1].prov);
	fakes[1].prov.name = "one";
	assert_int_equal(registry_add(&fakes[1].prov, NULL, true), 0);
	assert_visible("one1");
	fake_register(2, "one", 9);
	assert_visible("one1");
}

static void removing_one_uncovers_the_next_of_its_name(void **state)
{
	fake_register(0, "one", 1);
	fake_register(1, "one", 2);
	assert_visible("one2");
	assert_int_equal(registry_remove(&fakes[1].prov), 0);
	assert_int_equal(fakes[1].cleaned, 1);
	assert_visible("one1");
	assert_int_equal(registry_remove(&fakes[1].prov), -FI_ENOENT);
	assert_int_equal(registry_remove(&fakes[0].prov), 0);
	assert_visible("");
}

static void a_provider_in_use_is_cleaned_up_when_the_last_user_lets_go(void **state)
{
	struct registry_entry *entry, **list;
	size_t cnt;

	fake_register(0, "one", 1);
	entry = registry_find("ONE", 3);
	assert_non_null(entry);
	list = registry_list(&cnt);
	registry_remove(&fakes[0].prov);
	assert_false(registry_has("one", 3));
	assert_int_equal(fakes[0].cleaned, 0);
	registry_put(entry);
	assert_int_equal(fakes[0].cleaned, 0);
	registry_list_free(list, cnt);
	assert_int_equal(fakes[0].cleaned, 1);
}

static void clearing_cleans_up_all_even_hidden_ones(void **state)
{
	fake_register(0, "one", 1);
	fake_register(1, "one", 2);
	fake_register(2, "two", 1);
	registry_clear();
	assert_int_equal(fakes[0].cleaned + fakes[1].cleaned + fakes[2].cleaned, 3);
	assert_visible("");
}

static void a_name_is_found_whole_or_not_at_all(void **state)
{
	fake_register(0, "tcp", 1);
	assert_true(registry_has("TCP", 3));
	assert_true(registry_has("tcp;ofi_rxm", 3));
	assert_false(registry_has("tc", 2));
	assert_false(registry_has("tcpx", 4));
	assert_false(registry_has("", 0));
}

static void unusable_providers_are_refused_and_cleaned_up(void **state)
{
	struct fake *fake = fake_register(0, "one", 1);
	struct fi_provider prov = fake->prov;

	fake_log_lines();
	assert_int_equal(registry_add(NULL, NULL, false), -FI_EINVAL);
	prov.name = NULL;
	assert_int_equal(registry_add(&prov, NULL, false), -FI_EINVAL);
	prov.name = "";
	assert_int_equal(registry_add(&prov, NULL, false), -FI_EINVAL);
	prov.name = "mute";
	prov.fabric = NULL;
	assert_int_equal(registry_add(&prov, NULL, false), -FI_EINVAL);
	assert_true(fake_log_has("the provider mute can open no fabric"));
	prov.fabric = fake->prov.fabric;
	prov.fi_version = FI_VERSION(1, 2);
	prov.name = "old";
	assert_int_equal(registry_add(&prov, NULL, false), -FI_ENOSYS);
	assert_true(fake_log_has("the provider old was built for libfabric 1.2"));
	assert_int_equal(fake->cleaned, 4);
	assert_visible("one1");
}

static void kinds_follow_from_names(void **state)
{
	struct fi_provider prov = fake_register(0, "tcp", 1)->prov;

	assert_int_equal(registry_kind_of(&prov), REGISTRY_CORE);
	prov.name = "ofi_rxm";
	assert_int_equal(registry_kind_of(&prov), REGISTRY_LAYER);
	prov.name = "off_coll";
	assert_int_equal(registry_kind_of(&prov), REGISTRY_OFFLOAD);
	prov.getinfo = NULL;
	assert_int_equal(registry_kind_of(&prov), REGISTRY_HOOK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(link_shm_and_tcp_come_first_in_this_order),
		TEST(others_keep_the_order_in_which_they_came),
		TEST(the_newest_of_a_name_is_visible_in_the_same_place),
		TEST(of_equal_versions_the_first_stays_visible),
		TEST(in_kept_order_versions_do_not_count),
		TEST(a_preferred_provider_goes_before_newer_ones),
		TEST(removing_one_uncovers_the_next_of_its_name),
		TEST(a_provider_in_use_is_cleaned_up_when_the_last_user_lets_go),
		TEST(clearing_cleans_up_all_even_hidden_ones),
		TEST(a_name_is_found_whole_or_not_at_all),
		TEST(unusable_providers_are_refused_and_cleaned_up),
		TEST(kinds_follow_from_names),
	};

	return cmocka_run_group_tests_name("registry", tests, NULL, NULL);
}
