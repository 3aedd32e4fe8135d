/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What client and server agree on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "plan.h"

static struct plan example(void)
{
	struct plan plan = {
		.endpoint = PLAN_DGRAM,
		.wait = PLAN_WAIT_SREAD,
		.tagged = true,
		.verify = true,
		.tests = 5,
		.rounds = 21,
		.iterations = 1000,
		.provider = "tcp;ofi_rxm",
	};

	sizes_parse("0,8,64k,1g", &plan.sizes);
	plan.at[FIGURE_LATENCY] = 0xf;
	plan.at[FIGURE_ATOMIC] = 0x2;
	return plan;
}

static void a_plan_survives_the_way(void **state)
{
	struct plan plan = example(), got;
	char text[PLAN_TEXT_MAX];
	size_t len;

	memset(&got, 0, sizeof(got));
	len = plan_format(&plan, text);
	assert_int_equal(len, strlen(text));
	assert_int_equal(plan_parse(text, &got), 0);
	assert_string_equal(got.provider, "tcp;ofi_rxm");
	assert_true(got.tagged && got.verify);
	assert_int_equal(got.endpoint, PLAN_DGRAM);
	assert_int_equal(got.wait, PLAN_WAIT_SREAD);
	assert_int_equal(got.tests, 5);
	assert_int_equal(got.rounds, 21);
	assert_int_equal(got.iterations, 1000);
	assert_memory_equal(&got.sizes, &plan.sizes, sizeof(got.sizes));
	assert_memory_equal(got.at, plan.at, sizeof(got.at));
	plan.provider[0] = '\0';
	plan_format(&plan, text);
	assert_int_equal(plan_parse(text, &got), 0);
	assert_string_equal(got.provider, "");
}

static void the_largest_plan_fits(void **state)
{
	struct plan plan = { .rounds = ~0u, .tests = ~0u, .iterations = ~0u }, got;
	char text[PLAN_TEXT_MAX];
	size_t i;

	memset(plan.provider, 'p', sizeof(plan.provider) - 1);
	plan.sizes.cnt = SIZES_MAX;
	memset(plan.at, 0xff, sizeof(plan.at));
	for (i = 0; i < SIZES_MAX; i++)
		plan.sizes.len[i] = SIZE_MAX_BYTES;
	assert_true(plan_format(&plan, text) < PLAN_TEXT_MAX);
	assert_int_equal(plan_parse(text, &got), 0);
	assert_int_equal(got.sizes.cnt, SIZES_MAX);
	assert_int_equal(strlen(got.provider), PLAN_PROVIDER_MAX - 1);
}

#define HEAD "weft-plan 8 endpoint=0 wait=0 tagged=1 verify=1 tests=1 rounds=1 iterations=1 "
#define AT   "at=1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1"

static void a_forged_plan_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"weft-plan",
		"weft-plan 2 tagged=1 verify=1 tests=1 rounds=1 iterations=1 provider=- sizes=8",
		"weft-plan 8 endpoint=0 wait=0 tagged=2 verify=1 tests=1 rounds=1 iterations=1 provider=- " AT
		" sizes=8",
		"weft-plan 8 endpoint=0 wait=0 tagged=1 verify=1 tests=1 rounds=0 iterations=1 provider=- " AT
		" sizes=8",
		"weft-plan 8 endpoint=3 wait=0 tagged=1 verify=1 tests=1 rounds=1 iterations=1 "
		"provider=- " AT " sizes=8",
		"weft-plan 8 endpoint=0 wait=3 tagged=1 verify=1 tests=1 rounds=1 iterations=1 "
		"provider=- " AT " sizes=8",
		HEAD "provider=- " AT " sizes=",
		HEAD "provider=- " AT " sizes=8g",
		HEAD "provider= " AT " sizes=8",
		HEAD "provider=- " AT,
		HEAD "provider=- sizes=8",
		HEAD "provider=- at=1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1 sizes=8",
		HEAD "provider=- at=1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1 sizes=8",
		HEAD "provider=- at=1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:2 sizes=8",
	};
	struct plan plan = example(), untouched = plan;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(plan_parse(bad[i], &plan), -EINVAL);
	assert_memory_equal(&plan, &untouched, sizeof(plan));
	/* What is wrong with them is what they differ in from this. */
	assert_int_equal(plan_parse(HEAD "provider=- " AT " sizes=8", &plan), 0);
}

static void a_test_may_have_sizes_of_its_own(void **state)
{
	struct plan plan = example(), untouched;

	assert_int_equal(plan_tests_parse("lat,rate@8,write@8+1M,lat@4k", &plan), 0);
	assert_int_equal(plan.tests, FIGURE_BIT(FIGURE_LATENCY) | FIGURE_BIT(FIGURE_RATE) |
					     FIGURE_BIT(FIGURE_WRITE));
	/* Those of the list, and behind them the new ones. */
	assert_int_equal(plan.sizes.cnt, 6);
	assert_int_equal(plan.sizes.len[4], 1 << 20);
	assert_int_equal(plan_tests_at(&plan, 0), FIGURE_BIT(FIGURE_LATENCY));
	assert_int_equal(plan_tests_at(&plan, 1), plan.tests);
	assert_int_equal(plan_tests_at(&plan, 4), FIGURE_BIT(FIGURE_WRITE));
	assert_int_equal(plan_tests_at(&plan, 5), FIGURE_BIT(FIGURE_LATENCY));
	untouched = plan;
	assert_int_equal(plan_tests_parse("lat,frob@8", &plan), -EINVAL);
	assert_int_equal(plan_tests_parse("lat@", &plan), -EINVAL);
	assert_int_equal(plan_tests_parse("lat@8+", &plan), -EINVAL);
	assert_int_equal(plan_tests_parse("", &plan), -EINVAL);
	assert_int_equal(plan_tests_parse("lat@8,", &plan), -EINVAL);
	assert_int_equal(plan_tests_parse("@8", &plan), -EINVAL);
	assert_memory_equal(&plan, &untouched, sizeof(plan));
}

struct server {
	struct side side;
	struct plan plan;
	int rc;
};

static void *serve(void *arg)
{
	struct server *server = arg;

	server->rc = plan_agree(&server->side, &server->plan);
	return NULL;
}

static void meet(struct server *server, struct plan *client_plan, int expected)
{
	struct side client = { .rank = 0 };
	pthread_t thread;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	oob_adopt(&client.oob, fds[0]);
	server->side.rank = 1;
	oob_adopt(&server->side.oob, fds[1]);
	assert_int_equal(pthread_create(&thread, NULL, serve, server), 0);
	assert_int_equal(plan_agree(&client, client_plan), 0);
	pthread_join(thread, NULL);
	assert_int_equal(server->rc, expected);
	oob_close(&client.oob);
	oob_close(&server->side.oob);
}

static void the_clients_plan_rules(void **state)
{
	struct server server = { .plan = { .rounds = 3, .provider = "shm" } };
	struct plan plan = example();

	meet(&server, &plan, 0);
	assert_int_equal(server.plan.rounds, 21);
	assert_int_equal(plan.rounds, 21);
	/* But a server that was given a provider keeps it. */
	assert_string_equal(server.plan.provider, "shm");
	memset(&server, 0, sizeof(server));
	meet(&server, &plan, 0);
	assert_string_equal(server.plan.provider, "tcp;ofi_rxm");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plan_survives_the_way),
		cmocka_unit_test(the_largest_plan_fits),
		cmocka_unit_test(a_forged_plan_is_refused),
		cmocka_unit_test(a_test_may_have_sizes_of_its_own),
		cmocka_unit_test(the_clients_plan_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
