/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Eight processes and one-sided operations on the memory of all of them at once: every atomic
 * operation on every type that fi_query_atomic has, on the same words, with a result that is
 * exact in whatever order they come; writes and reads from each to each; and one process that
 * is killed meanwhile.
 *
 * usage: storm_test PROVIDER [hosts]; hosts: half of the processes on another host, as far as
 * processes can tell, so that both routes of the link lead to the same words. STORM_SEED
 * chooses what is random, STORM_ROUNDS how often, STORM_CASE one of the tests. Ends with 77 where such a host can't be made.
 */
#include <setjmp.h>
#include <stdarg.h>
#include "storm.h"
#include <cmocka.h>

static const char *provider;
static bool hosts;
static uint64_t seed = 1;
static int rounds = 4; /* of all operations, with other targets in each */

static const struct weft_route *route_of(const struct storm_shared *shared, int rank,
					 const char *wire)
{
	for (size_t i = 0; i < shared->route_cnt[rank]; i++)
		if (!strcmp(shared->routes[rank][i].wire, wire))
			return &shared->routes[rank][i];
	return NULL;
}

/* Those of my half over shared memory, the others over the network. */
static void both_routes(const struct storm_attr *attr, const struct storm_shared *shared)
{
	static const char *const wires[] = { "shm", "tcp" };

	for (int rank = 0; rank < STORM_MEMBERS && attr->hosts; rank++)
		for (int i = 0; i < 2 && rank != attr->victim; i++) {
			const struct weft_route *r = route_of(shared, rank, wires[i]);
			uint64_t peers = i ? STORM_MEMBERS / 2 : STORM_MEMBERS / 2 - 1;

			assert_non_null(r);
			assert_string_equal(r->state, "up");
			if (attr->victim < 0)
				assert_int_equal(r->peers, peers);
			/* Each peer was sent some, and sent some. */
			assert_true(r->tx_msgs >= peers - (attr->victim >= 0) && r->tx_bytes);
			assert_true(r->rx_msgs >= peers - (attr->victim >= 0) && r->rx_bytes);
		}
}

static void run(storm_role role, size_t region, size_t shared, enum fi_progress progress,
		int victim)
{
	struct storm_attr attr = { .provider = provider,
				   .hosts = hosts,
				   .progress = progress,
				   .region = region,
				   .shared = shared,
				   .victim = victim,
				   .seed = seed,
				   .rounds = rounds };

	assert_int_equal(storm_run(&attr, role, both_routes), 0);
}

static void every_type_and_operation_is_exact(void **state)
{
	run(storm_all_words, 4096, storm_words_shared, FI_PROGRESS_MANUAL, -1);
}

static void operations_reach_who_calls_nothing(void **state)
{
	run(storm_some_words, 4096, storm_words_shared, FI_PROGRESS_AUTO, -1);
}

static void swaps_in_turn_succeed_once_each(void **state)
{
	run(storm_swaps_in_turn, 4096, 0, FI_PROGRESS_MANUAL, -1);
}

static void each_writes_to_and_reads_from_each(void **state)
{
	run(storm_each_to_each, STORM_MEMBERS * STORM_STRIPE, 0, FI_PROGRESS_MANUAL, -1);
}

static void all_sizes_go_at_once(void **state)
{
	run(storm_all_sizes, STORM_MEMBERS * STORM_STRIPE, 0, FI_PROGRESS_MANUAL, -1);
}

static void who_dies_takes_nothing_along(void **state)
{
	for (int victim = 2; victim < STORM_MEMBERS; victim += 3)
		run(storm_one_dies, storm_death_region, storm_death_shared, FI_PROGRESS_MANUAL,
		    victim);
}

static void who_was_never_met_is_known_to_be_dead(void **state)
{
	/* At an address of the network alone another endpoint may listen later. */
	if (!strcmp(provider, "tcp"))
		skip();
	for (int victim = 1; victim < STORM_MEMBERS; victim += 5)
		run(storm_one_was_dead, storm_death_region, storm_death_shared,
		    FI_PROGRESS_MANUAL, victim);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_and_operation_is_exact),
		cmocka_unit_test(operations_reach_who_calls_nothing),
		cmocka_unit_test(swaps_in_turn_succeed_once_each),
		cmocka_unit_test(each_writes_to_and_reads_from_each),
		cmocka_unit_test(all_sizes_go_at_once),
		cmocka_unit_test(who_dies_takes_nothing_along),
		cmocka_unit_test(who_was_never_met_is_known_to_be_dead),
	};
	char why[128];

	if (argc < 2)
		return 2;
	provider = argv[1];
	hosts = argc > 2 && !strcmp(argv[2], "hosts");
	if (hosts && storm_hosts_refused(why, sizeof(why))) {
		printf("skip: %s\n", why);
		return 77;
	}
	if (getenv("STORM_SEED"))
		seed = strtoull(getenv("STORM_SEED"), NULL, 0);
	if (getenv("STORM_ROUNDS"))
		rounds = atoi(getenv("STORM_ROUNDS"));
	if (getenv("STORM_CASE"))
		cmocka_set_test_filter(getenv("STORM_CASE"));
	printf("STORM_SEED=%llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
