/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo: which providers are queried, under which names, what is passed on, and the reasons.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "fake_provider.h"
#include "registry.h"

/* The provider names of a list of answers, in order. */
static const char *names_of(const struct fi_info *info)
{
	static char names[256];
	size_t used = 0;

	names[0] = '\0';
	for (; info; info = info->next)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
					 used ? " " : "", info->fabric_attr->prov_name);
	return names;
}

/* Asks for a provider (NULL: any) and compares the names in the answer ("": none). */
static void assert_answers(const char *prov_name, const char *expected)
{
	struct fi_info *hints = fi_allocinfo(), *info = hints;
	int err;

	if (prov_name)
		hints->fabric_attr->prov_name = strdup(prov_name);
	err = fi_getinfo(fi_version(), NULL, NULL, 0, hints, &info);
	assert_int_equal(err, *expected ? 0 : -FI_ENODATA);
	assert_string_equal(names_of(info), expected);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void all_providers_answer_in_order(void **state)
{
	fake_register(0, "tcp", 1);
	fake_register(1, "link", 1);
	fake_register(2, "zzz", 1);
	fake_register(3, "shm", 1);
	assert_answers(NULL, "link shm tcp zzz");
}

static void without_hints_and_with_version_0_everything_answers(void **state)
{
	struct fi_info *info;

	fake_register(0, "tcp", 1);
	fake_register(1, "shm", 1);
	assert_int_equal(fi_getinfo(0, NULL, NULL, 0, NULL, &info), 0);
	assert_string_equal(names_of(info), "shm tcp");
	assert_int_equal(info->fabric_attr->api_version, 0);
	assert_int_equal(fakes[0].version, 0);
	fi_freeinfo(info);
}

static void the_answer_tells_version_and_api(void **state)
{
	struct fi_info *info;

	fake_register(0, "tcp", 7);
	assert_int_equal(fi_getinfo(FI_VERSION(1, 5), NULL, NULL, 0, NULL, &info), 0);
	assert_int_equal(info->fabric_attr->prov_version, FI_VERSION(7, 0));
	assert_int_equal(info->fabric_attr->api_version, FI_VERSION(1, 5));
	fi_freeinfo(info);
}

static void a_newer_api_than_ours_is_refused(void **state)
{
	struct fi_info *info = (struct fi_info *)state;

	fake_log_lines();
	fake_register(0, "tcp", 1);
	assert_int_equal(fi_getinfo(fi_version() + 1, NULL, NULL, 0, NULL, &info), -FI_ENOSYS);
	assert_null(info);
	assert_int_equal(fakes[0].asked, 0);
	assert_int_equal(fake_log_cnt("is requested, and this library has"), 1);
}

static void nowhere_to_put_the_answer_is_an_error(void **state)
{
	assert_int_equal(fi_getinfo(fi_version(), NULL, NULL, 0, NULL, NULL), -FI_EINVAL);
	assert_int_equal(fi_getinfo(fi_version(), NULL, NULL, FI_PROV_ATTR_ONLY, NULL, NULL),
			 -FI_EINVAL);
}

static void without_providers_there_is_no_data(void **state)
{
	struct fi_info *info = (struct fi_info *)state;

	assert_int_equal(fi_getinfo(fi_version(), NULL, NULL, 0, NULL, &info), -FI_ENODATA);
	assert_null(info);
	assert_int_equal(fi_getinfo(fi_version(), NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &info),
			 -FI_ENODATA);
}

static void the_list_of_providers_asks_none_of_them(void **state)
{
	struct fi_info *info;

	fake_register(0, "tcp", 2);
	fake_register(1, "shm", 3)->refuses = -FI_ENODATA;
	assert_int_equal(fi_getinfo(fi_version(), NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &info),
			 0);
	assert_string_equal(names_of(info), "shm tcp");
	assert_int_equal(info->fabric_attr->prov_version, FI_VERSION(3, 0));
	assert_int_equal(fakes[0].asked + fakes[1].asked, 0);
	fi_freeinfo(info);
}

static void only_the_named_provider_is_asked(void **state)
{
	fake_register(0, "tcp", 1);
	fake_register(1, "shm", 1);
	assert_answers("TCP", "tcp");
	assert_int_equal(fakes[1].asked, 0);
}

/* The thread's own time, whatever else the machine does. */
static void an_absent_provider_costs_nothing(void **state)
{
	struct timespec begin, end;
	int64_t ns, best = INT64_MAX;
	int i;

	fake_register(0, "tcp", 1);
	fake_register(1, "shm", 1);
	for (i = 0; i < 20; i++) {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
		assert_answers("efa", "");
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
		ns = (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec;
		best = ns < best ? ns : best;
	}
	assert_int_equal(fakes[0].asked + fakes[1].asked, 0);
	assert_in_range(best, 0, 1000000);
}

static void register_ours(void)
{
	fake_register_named(0, fake_tcp, 1);
	fake_register_named(1, fake_shm, 1);
	fake_register_named(2, fake_link, 1);
}

static void further_names_are_answered_as_they_are_spelled_there(void **state)
{
	static const struct {
		const char *asked;
		const char *answered;
		int slot;
	} known[] = {
		{ "tcp;ofi_rxm", "tcp;ofi_rxm", 0 },
		{ "ofi_rxm;tcp", "tcp;ofi_rxm", 0 },
		{ "ofi_rxm", "tcp;ofi_rxm", 0 },
		{ "sockets", "sockets", 0 },
		{ "Sockets", "sockets", 0 },
		{ "sm2", "sm2", 1 },
		{ "lnx", "lnx", 2 },
	};
	size_t i;

	register_ours();
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		int before = fakes[known[i].slot].asked;

		assert_answers(known[i].asked, known[i].answered);
		assert_int_equal(fakes[known[i].slot].asked, before + 1);
		/* Name by which the provider selects its answer. */
		assert_string_equal(fakes[known[i].slot].hinted_name, known[i].answered);
	}
	assert_answers("verbs;ofi_rxm", "");
	assert_answers("tcp;ofi_rxd", "");
}

static void a_list_without_a_name_ends_with_the_further_names(void **state)
{
	struct fi_info *info;

	register_ours();
	assert_answers(NULL, "link shm tcp lnx sm2 tcp;ofi_rxm sockets");
	assert_int_equal(fi_getinfo(fi_version(), NULL, NULL, 0, NULL, &info), 0);
	assert_string_equal(names_of(info), "link shm tcp lnx sm2 tcp;ofi_rxm sockets");
	fi_freeinfo(info);
	assert_int_equal(fi_getinfo(fi_version(), NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &info),
			 0);
	assert_string_equal(names_of(info), "link shm tcp lnx sm2 tcp;ofi_rxm sockets");
	fi_freeinfo(info);
}

static void a_name_of_layers_is_also_meant_by_what_is_beneath(void **state)
{
	register_ours();
	assert_answers("tcp", "tcp tcp;ofi_rxm");
	assert_answers("tcp;^ofi_rxm", "tcp");
	assert_answers("^ofi_rxm", "link shm tcp lnx sm2 sockets");
	assert_answers("^tcp", "link shm lnx sm2 sockets");
}

/* What layers of a stock libfabric work over are the providers themselves. */
static void a_layer_that_asks_beneath_it_gets_no_further_names(void **state)
{
	struct fi_info *info;

	register_ours();
	assert_int_equal(fi_getinfo(fi_version(), NULL, NULL, 1ULL << 59, NULL, &info), 0);
	assert_string_equal(names_of(info), "link shm tcp");
	fi_freeinfo(info);
}

static void a_provider_of_that_very_name_answers_itself(void **state)
{
	fake_register_named(0, fake_tcp, 1);
	fake_register(1, "sockets", 1);
	assert_answers("sockets", "sockets");
	assert_int_equal(fakes[0].asked, 0);
	assert_string_equal(fakes[1].hinted_name, "sockets");
	assert_answers(NULL, "tcp sockets tcp;ofi_rxm");
	fake_register(2, "ofi_rxm", 1)->over = "tcp";
	assert_answers("tcp;ofi_rxm", "tcp;ofi_rxm");
	assert_int_equal(fakes[2].asked, 1);
}

static void what_is_refused_under_every_name_is_told_once(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	fake_log_lines();
	fake_register_named(0, fake_tcp, 1);
	hints->caps = FI_RMA;
	assert_int_equal(fi_getinfo(fi_version(), NULL, NULL, 0, hints, &info), -FI_ENODATA);
	assert_int_equal(fake_log_cnt("getinfo: "), 1);
	hints->fabric_attr->prov_name = strdup("ofi_rxm");
	assert_int_equal(fi_getinfo(fi_version(), NULL, NULL, 0, hints, &info), -FI_ENODATA);
	assert_true(fake_log_has("getinfo: tcp;ofi_rxm: the hints ask for FI_RMA"));
	fi_freeinfo(hints);
}

static void a_layer_answers_with_the_name_of_what_is_beneath(void **state)
{
	fake_register(0, "tcp", 1);
	fake_register(1, "ofi_rxm", 1)->over = "tcp";
	assert_answers(NULL, "tcp tcp;ofi_rxm");
	assert_answers("tcp", "tcp tcp;ofi_rxm");
	assert_answers("tcp;ofi_rxm", "tcp;ofi_rxm");
	assert_answers("ofi_rxm;tcp", "tcp;ofi_rxm");
	assert_answers("ofi_rxm", "tcp;ofi_rxm");
	assert_answers("tcp;^ofi_rxm", "tcp");
	assert_answers("^ofi_rxm", "tcp");
	assert_answers("^tcp;^ofi_rxm", "");
}

static void layers_and_offloads_are_asked_only_when_the_flags_want_them(void **state)
{
	struct fi_info *info;

	fake_register(0, "tcp", 1);
	fake_register(1, "ofi_rxm", 1);
	fake_register(2, "off_coll", 1);
	assert_answers(NULL, "tcp ofi_rxm");
	assert_int_equal(fi_getinfo(fi_version(), NULL, NULL, 1ULL << 59, NULL, &info), 0);
	assert_string_equal(names_of(info), "tcp");
	fi_freeinfo(info);
	assert_int_equal(fi_getinfo(fi_version(), NULL, NULL, 1ULL << 61, NULL, &info), 0);
	assert_string_equal(names_of(info), "tcp ofi_rxm off_coll");
	fi_freeinfo(info);
}

static void endless_names_are_no_data(void **state)
{
	fake_register(0, "tcp", 1);
	assert_answers(";;;", "tcp");
	assert_answers("a;b;c;d;e;f;g;h;i;j;k", "");
	assert_answers("^a;^b;^c;^d;^e;^f;^g;^h;^i", "");
}

static void fi_provider_chooses_who_is_asked(void **state)
{
	setenv("FI_PROVIDER", "shm,TCP", 1);
	fake_register(0, "tcp", 1);
	fake_register(1, "shm", 1);
	fake_register(2, "link", 1);
	assert_answers(NULL, "shm tcp");
	assert_answers("link", "");
	assert_int_equal(fakes[2].asked, 0);
}

static void fi_provider_with_a_caret_excludes(void **state)
{
	setenv("FI_PROVIDER", "^link,shm", 1);
	fake_register(0, "tcp", 1);
	fake_register(1, "shm", 1);
	fake_register(2, "link", 1);
	assert_answers(NULL, "tcp");
	assert_int_equal(fakes[1].asked + fakes[2].asked, 0);
}

static void fi_provider_may_use_the_names_that_programs_know(void **state)
{
	setenv("FI_PROVIDER", "ofi_rxm;tcp,sm2", 1);
	register_ours();
	assert_answers(NULL, "sm2 tcp;ofi_rxm");
	assert_answers("tcp;ofi_rxm", "tcp;ofi_rxm");
	/* As with a stock libfabric, where the layer over tcp would answer. */
	assert_answers("tcp", "tcp;ofi_rxm");
	assert_answers("link", "");
}

static void fi_provider_with_a_name_lets_through_what_works_over_it(void **state)
{
	setenv("FI_PROVIDER", "tcp", 1);
	register_ours();
	assert_answers(NULL, "tcp tcp;ofi_rxm");
	assert_answers("sockets", "");
}

static const struct info_identity shy[] = { { .name = "shy", .by_name_alone = true }, { 0 } };

/* Asking it may take what a program that does not want it should not take. */
static void a_provider_by_name_alone_is_not_asked_by_others(void **state)
{
	fake_register(0, "shm", 1);
	fake_register_named(1, shy, 1);
	assert_answers(NULL, "shm");
	assert_answers("shm", "shm");
	assert_int_equal(fakes[1].asked, 0);
	assert_answers("shy", "shy");
	assert_int_equal(fakes[1].asked, 1);
}

static void fi_provider_names_a_provider_by_name_alone(void **state)
{
	setenv("FI_PROVIDER", "shm,shy", 1);
	fake_register(0, "shm", 1);
	fake_register_named(1, shy, 1);
	assert_answers(NULL, "shm shy");
}

static void excluding_others_names_no_provider_by_name_alone(void **state)
{
	setenv("FI_PROVIDER", "^tcp", 1);
	fake_register(0, "shm", 1);
	fake_register_named(1, shy, 1);
	assert_answers(NULL, "shm");
	assert_int_equal(fakes[1].asked, 0);
}

static void excluding_a_name_that_ours_would_answer_excludes_only_that_name(void **state)
{
	setenv("FI_PROVIDER", "^sockets", 1);
	fake_register_named(0, fake_tcp, 1);
	assert_answers(NULL, "tcp tcp;ofi_rxm");
	assert_answers("sockets", "");
}

static void excluding_a_layer_excludes_the_names_it_is_in(void **state)
{
	setenv("FI_PROVIDER", "^ofi_rxm", 1);
	fake_register_named(0, fake_tcp, 1);
	assert_answers(NULL, "tcp sockets");
	assert_answers("tcp;ofi_rxm", "");
	assert_answers("ofi_rxm", "");
	assert_answers("sockets", "sockets");
}

static void excluding_one_provider_leaves_the_layers_over_others(void **state)
{
	setenv("FI_PROVIDER", "^tcp", 1);
	fake_register(0, "tcp", 1);
	fake_register(1, "udp", 1);
	fake_register(2, "ofi_rxd", 1)->over = "udp";
	assert_answers(NULL, "udp udp;ofi_rxd");
}

static void a_layer_over_what_is_excluded_is_not_passed_on(void **state)
{
	setenv("FI_PROVIDER", "^udp", 1);
	fake_register(0, "tcp", 1);
	fake_register(1, "udp", 1);
	fake_register(2, "ofi_rxd", 1)->over = "udp";
	assert_answers(NULL, "tcp");
}

static void fi_provider_for_a_layer_leaves_what_is_beneath_to_it(void **state)
{
	struct fi_info *info;

	setenv("FI_PROVIDER", "tcp;ofi_rxm", 1);
	fake_register(0, "tcp", 1);
	fake_register(1, "ofi_rxm", 1)->over = "tcp";
	assert_answers(NULL, "tcp;ofi_rxm");
	/* As the layer itself asks. */
	assert_int_equal(fi_getinfo(fi_version(), NULL, NULL, 1ULL << 59, NULL, &info), 0);
	assert_string_equal(names_of(info), "tcp");
	fi_freeinfo(info);
}

static void names_of_domain_and_fabric_filter_the_answers(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	fake_register(0, "tcp", 1);
	hints->domain_attr->name = strdup("DOM");
	hints->fabric_attr->name = strdup("Fab");
	assert_int_equal(fi_getinfo(fi_version(), NULL, NULL, 0, hints, &info), 0);
	fi_freeinfo(info);
	hints->domain_attr->name[0] = 'x';
	assert_int_equal(fi_getinfo(fi_version(), NULL, NULL, 0, hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
}

static void fi_addr_format_filters_the_answers(void **state)
{
	setenv("FI_ADDR_FORMAT", "fi_sockaddr_in6", 1);
	fake_register(0, "tcp", 1)->addr_format = FI_SOCKADDR_IN6;
	fake_register(1, "shm", 1)->addr_format = FI_ADDR_STR;
	assert_answers(NULL, "tcp");
}

static void an_unknown_fi_addr_format_is_ignored_with_a_line(void **state)
{
	setenv("FI_ADDR_FORMAT", "carrier_pigeon", 1);
	fake_log_lines();
	fake_register(0, "tcp", 1);
	assert_answers(NULL, "tcp");
	assert_int_equal(fake_log_cnt("FI_ADDR_FORMAT=carrier_pigeon is ignored"), 1);
}

static void an_older_provider_is_not_asked_for_a_newer_api(void **state)
{
	struct fi_info *info;

	fake_log_lines();
	fake_register(0, "old", 1)->prov.fi_version = FI_VERSION(1, 17);
	assert_answers(NULL, "");
	assert_int_equal(fakes[0].asked, 0);
	assert_true(fake_log_has("getinfo: old: built for libfabric 1.17, and API"));
	assert_int_equal(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info), 0);
	fi_freeinfo(info);
}

static void one_line_tells_why_a_provider_refuses(void **state)
{
	fake_log_lines();
	fake_register(0, "tcp", 1)->refuses = -FI_ENODATA;
	fakes[0].reason = "has no interface that is up";
	fake_register(1, "shm", 1);
	assert_answers(NULL, "shm");
	assert_int_equal(fake_log_cnt("getinfo: tcp: has no interface that is up\n"), 1);
	assert_int_equal(fake_log_cnt("getinfo: shm"), 0);
	assert_int_equal(fake_log_cnt("fi_getinfo found nothing"), 0);
}

static void the_reason_of_unmet_hints_is_kept(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	fake_log_lines();
	fake_register(0, "shm", 1);
	fake_register(1, "tcp", 1);
	hints->caps = FI_RMA;
	assert_int_equal(fi_getinfo(fi_version(), NULL, NULL, 0, hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
	assert_true(fake_log_has(
		"core<2> getinfo: shm: the hints ask for FI_RMA, which shm does not offer\n"));
	assert_true(fake_log_has(
		"core<0> fi_getinfo found nothing: shm: the hints ask for FI_RMA, which shm "
		"does not offer; tcp: the hints ask for FI_RMA, which tcp does not offer\n"));
}

static void a_refusal_without_words_is_reported_as_that(void **state)
{
	fake_log_lines();
	fake_register(0, "shm", 1)->refuses = -FI_EBUSY;
	fake_register(1, "tcp", 1)->empty = true;
	fake_register(2, "link", 1)->incomplete = true;
	assert_answers(NULL, "");
	assert_true(fake_log_has("getinfo: shm: Device or resource busy, without a reason"));
	assert_true(fake_log_has("getinfo: tcp: gave an empty list"));
	assert_true(fake_log_has("getinfo: link: gave an incomplete fi_info"));
}

static void an_absent_name_is_reported_with_those_there_are(void **state)
{
	fake_log_lines();
	fake_register(0, "shm", 1);
	fake_register(1, "tcp", 1);
	assert_answers("efa", "");
	assert_int_equal(
		fake_log_cnt("getinfo: efa: no provider has this name, there are shm, tcp\n"),
		1);
}

static void what_fi_provider_leaves_out_has_that_reason(void **state)
{
	setenv("FI_PROVIDER", "tcp", 1);
	fake_log_lines();
	fake_register(0, "shm", 1);
	assert_answers(NULL, "");
	assert_true(fake_log_has("getinfo: shm: left out by FI_PROVIDER=tcp\n"));
}

static void *ask_many_times(void *arg)
{
	struct fi_info *info;
	int i;

	for (i = 0; i < 200; i++)
		if (!fi_getinfo(fi_version(), NULL, NULL, 0, NULL, &info))
			fi_freeinfo(info);
	return NULL;
}

static void providers_come_and_go_while_threads_ask(void **state)
{
	pthread_t threads[3];
	int i;

	fake_register(0, "shm", 1);
	fake_register(1, "tcp", 1);
	for (i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_many_times, NULL), 0);
	for (i = 0; i < 200; i++) {
		assert_int_equal(registry_remove(&fakes[1].prov), 0);
		assert_int_equal(registry_add(&fakes[1].prov, NULL, false), 0);
	}
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(fakes[0].asked, 600);
	assert_answers(NULL, "shm tcp");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_providers_answer_in_order),
		TEST(without_hints_and_with_version_0_everything_answers),
		TEST(the_answer_tells_version_and_api),
		TEST(a_newer_api_than_ours_is_refused),
		TEST(nowhere_to_put_the_answer_is_an_error),
		TEST(without_providers_there_is_no_data),
		TEST(the_list_of_providers_asks_none_of_them),
		TEST(only_the_named_provider_is_asked),
		TEST(an_absent_provider_costs_nothing),
		TEST(further_names_are_answered_as_they_are_spelled_there),
		TEST(a_list_without_a_name_ends_with_the_further_names),
		TEST(a_name_of_layers_is_also_meant_by_what_is_beneath),
		TEST(a_layer_that_asks_beneath_it_gets_no_further_names),
		TEST(a_provider_of_that_very_name_answers_itself),
		TEST(what_is_refused_under_every_name_is_told_once),
		TEST(a_layer_answers_with_the_name_of_what_is_beneath),
		TEST(layers_and_offloads_are_asked_only_when_the_flags_want_them),
		TEST(endless_names_are_no_data),
		TEST(fi_provider_chooses_who_is_asked),
		TEST(fi_provider_with_a_caret_excludes),
		TEST(fi_provider_may_use_the_names_that_programs_know),
		TEST(fi_provider_with_a_name_lets_through_what_works_over_it),
		TEST(a_provider_by_name_alone_is_not_asked_by_others),
		TEST(fi_provider_names_a_provider_by_name_alone),
		TEST(excluding_others_names_no_provider_by_name_alone),
		TEST(excluding_a_name_that_ours_would_answer_excludes_only_that_name),
		TEST(excluding_a_layer_excludes_the_names_it_is_in),
		TEST(excluding_one_provider_leaves_the_layers_over_others),
		TEST(a_layer_over_what_is_excluded_is_not_passed_on),
		TEST(fi_provider_for_a_layer_leaves_what_is_beneath_to_it),
		TEST(names_of_domain_and_fabric_filter_the_answers),
		TEST(fi_addr_format_filters_the_answers),
		TEST(an_unknown_fi_addr_format_is_ignored_with_a_line),
		TEST(an_older_provider_is_not_asked_for_a_newer_api),
		TEST(one_line_tells_why_a_provider_refuses),
		TEST(the_reason_of_unmet_hints_is_kept),
		TEST(a_refusal_without_words_is_reported_as_that),
		TEST(an_absent_name_is_reported_with_those_there_are),
		TEST(what_fi_provider_leaves_out_has_that_reason),
		TEST(providers_come_and_go_while_threads_ask),
	};

	return cmocka_run_group_tests_name("getinfo", tests, NULL, NULL);
}
