/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of connections.h and watch.h: how many connections a user has.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <unistd.h>

#include "connections.h"
#include "watch.h"

#define MOST  3u
#define USERS 20u

static void each_user_has_as_many_as_one_may(void **state)
{
	struct connections *c = connections_create(MOST);
	uint32_t i;
	uid_t uid;

	for (uid = 1000; uid < 1000 + USERS; uid++) {
		for (i = 0; i < MOST; i++)
			assert_true(connections_begin(c, uid));
		assert_false(connections_begin(c, uid));
	}
	for (uid = 1000; uid < 1000 + USERS; uid += 3) {
		connections_end(c, uid);
		assert_true(connections_begin(c, uid));
		assert_false(connections_begin(c, uid));
	}
	connections_destroy(c);
}

/* Whether a watcher was taken; @mine: its other end */
static bool add(struct watchers *watchers, int *mine)
{
	struct lease_message answer = { .kind = LEASE_WATCH };
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	watchers_add(watchers, ends[0], &answer);
	*mine = ends[1];
	return recv(*mine, &answer, sizeof(answer), 0) == sizeof(answer);
}

static void watchers_are_counted_as_long_as_they_are_there(void **state)
{
	struct connections *c = connections_create(MOST);
	struct watchers *watchers = watchers_create(c);
	int mine[MOST], other;

	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < MOST; i++)
			assert_true(add(watchers, &mine[i]));
		assert_false(add(watchers, &other));
		close(other);
		assert_false(connections_begin(c, geteuid()));
		for (uint32_t i = 0; i < MOST; i++)
			close(mine[i]);
		watchers_tell(watchers, 0, 0, 0);
	}
	watchers_destroy(watchers);
	for (uint32_t i = 0; i < MOST; i++)
		assert_true(connections_begin(c, geteuid()));
	connections_destroy(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_user_has_as_many_as_one_may),
		cmocka_unit_test(watchers_are_counted_as_long_as_they_are_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
