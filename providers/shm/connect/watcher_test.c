/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests of which endpoint reads the sockets of a process while its endpoints sleep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "local_socket.h"
#include "mock_engine.h"
#include "seeded.h"
#include "shm_endpoint.h"
#include "socket.h"

enum { CNT = 6 };
#define NAP_NS 10000000u /* longest time that input of a socket may have to wait */

static struct mock ends[CNT];

static int setup(void **state)
{
	for (int i = 0; i < CNT; i++)
		mock_open(&ends[i]);
	return 0;
}

static int teardown(void **state)
{
	sys_fault_clear();
	for (int i = 0; i < CNT; i++)
		mock_close(&ends[i]);
	return 0;
}

/* It sleeps, after a nap or two, until it is woken. */
static void idle(struct mock *m)
{
	uint64_t end = platform_now_ns() + 10000000000;

	while (mock_arm_idle(m) != UINT64_MAX) {
		assert_true(platform_now_ns() < end);
		platform_yield();
	}
}

static void all_idle(void)
{
	for (int i = 0; i < CNT; i++)
		idle(&ends[i]);
}

static int ringing(void)
{
	int cnt = 0;

	for (int i = 0; i < CNT; i++)
		cnt += ends[i].wire && ends[i].poll_set && mock_rings(&ends[i]);
	return cnt;
}

/* Another process connects to the socket. */
static int stranger(void)
{
	int i = 0, sock;

	while (!ends[i].wire)
		i++;
	sock = sys_local_connect(pshm_sockets_number(ends[i].addr.nonce), NULL);
	assert_true(sock >= 0);
	return sock;
}

static void idle_endpoints_sleep_until_they_are_woken(void **state)
{
	all_idle();
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < CNT; i++) {
			/* as when the engine polls for events that ring no bell */
			assert_int_equal(mock_arm_idle(&ends[i]), UINT64_MAX);
			assert_false(mock_rings(&ends[i]));
		}
}

static void one_sleeper_is_woken_by_what_comes(void **state)
{
	int sock;

	all_idle();
	sock = stranger();
	assert_int_equal(ringing(), 1);
	pshm_sockets_look();
	assert_int_equal(ringing(), 0);
	sys_local_close(sock);
	assert_int_equal(ringing(), 1);
	pshm_sockets_look();
}

static void watcher_that_computes_leaves_it_to_another(void **state)
{
	all_idle();
	for (int awake = 0; awake < CNT - 1; awake++) {
		int sock;

		pshm_disarm(ends[awake].wire);
		sock = stranger();
		assert_int_equal(ringing(), 1);
		assert_false(mock_rings(&ends[awake]));
		pshm_sockets_look();
		sys_local_close(sock);
		pshm_sockets_look();
	}
}

static void watcher_that_closes_leaves_it_to_another(void **state)
{
	all_idle();
	for (int closed = 0; closed < CNT - 1; closed++) {
		int sock;

		mock_close(&ends[closed]);
		sock = stranger();
		assert_int_equal(ringing(), 1);
		pshm_sockets_look();
		sys_local_close(sock);
		pshm_sockets_look();
	}
}

static int who_rings(void)
{
	int i = 0;

	while (!mock_rings(&ends[i]))
		assert_true(++i < CNT);
	return i;
}

/*
 * A program that armed an endpoint and does something else: no thread waits where it would be
 * woken.
 */
static void watcher_that_nobody_waits_on_is_replaced(void **state)
{
	int first, second, left;

	all_idle();
	first = stranger();
	left = who_rings();
	pshm_sockets_look();
	assert_int_equal(ringing(), 0);
	second = stranger();
	assert_int_equal(ringing(), 1);
	assert_int_not_equal(who_rings(), left);
	sys_local_close(first);
	sys_local_close(second);
}

/* The sockets are handed to no endpoint while all are busy. */
static void busy_sleepers_nap(void **state)
{
	uint64_t begun[CNT], ns;

	idle(&ends[0]);
	for (int i = 1; i < CNT; i++) {
		begun[i] = platform_now_ns();
		assert_in_range(mock_arm_idle(&ends[i]), 1, NAP_NS);
	}
	pshm_disarm(ends[0].wire);
	for (int i = 1; i < CNT; i++) {
		ns = pshm_arm(ends[i].wire);
		/* on a slow machine it has slept through a nap by now */
		assert_true(ns <= NAP_NS || platform_now_ns() - begun[i] >= NAP_NS);
	}
}

/*
 * Without descriptors to accept with, the sockets can't be waited for: an endpoint reads them
 * later.
 */
static void sockets_that_are_paused_are_looked_at_by_who_slept(void **state)
{
	uint64_t paused, ns;
	int sock;

	all_idle();
	pshm_disarm(ends[0].wire);
	sys_fault_set(SYS_CALL_ACCEPT, EMFILE, 0, 1);
	sock = stranger();
	paused = platform_now_ns();
	pshm_sockets_look();
	sys_fault_clear();
	assert_int_equal(ringing(), 1);
	for (int i = 0; i < CNT; i++)
		if (mock_rings(&ends[i])) {
			pshm_disarm(ends[i].wire);
			ns = mock_arm_idle(&ends[i]);
			/* the pause may be over on a slow machine */
			assert_true(ns <= NAP_NS || platform_now_ns() - paused >= NAP_NS);
		}
	sys_local_close(sock);
}

static void nest_without_room_has_its_sleeper_look(void **state)
{
	sys_fault_set(SYS_CALL_EPOLL, ENOSPC, 0, 0);
	for (int i = 0; i < CNT; i++) {
		uint64_t begun = platform_now_ns();

		sys_fault_clear();
		mock_poll_set(&ends[i]);
		sys_fault_set(SYS_CALL_EPOLL, ENOSPC, 0, 0);
		do
			assert_in_range(mock_arm_idle(&ends[i]), 1, NAP_NS);
		while (platform_now_ns() - begun < 2 * NAP_NS);
	}
}

/* State of an endpoint in a random walk. */
static bool asleep[CNT], until_woken[CNT];

static void step(uint64_t *seed)
{
	uint32_t i = seeded_random(seed) % CNT;
	struct mock *m = &ends[i];

	switch (seeded_random(seed) % 8) {
	case 0: /* time passes */
		for (uint64_t end = platform_now_ns() + NAP_NS; platform_now_ns() < end;)
			platform_yield();
		break;
	case 1:
		mock_close(m);
		mock_open(m);
		asleep[i] = until_woken[i] = false;
		break;
	case 2:
	case 3:
		pshm_disarm(m->wire);
		asleep[i] = until_woken[i] = false;
		break;
	default:
		until_woken[i] = mock_arm_idle(m) == UINT64_MAX;
		asleep[i] = true;
	}
}

/* A sleeping endpoint is woken, or reads by itself soon; unless none sleeps for long. */
static bool one_polls(void)
{
	bool any = false;

	for (int i = 0; i < CNT; i++) {
		if (asleep[i] && (!until_woken[i] || mock_rings(&ends[i])))
			return true;
		any |= until_woken[i];
	}
	return !any;
}

static void somebody_always_looks(void **state)
{
	uint64_t seed = 0x5eed9072;
	int waited = 0;

	print_message("seed %#llx\n", (unsigned long long)seed);
	for (int round = 0; round < 1000; round++) {
		int sock;

		step(&seed);
		sock = stranger();
		assert_true(one_polls());
		pshm_sockets_look();
		sys_local_close(sock);
		pshm_sockets_look();
		assert_int_equal(ringing(), 0);
		for (int i = 0; i < CNT; i++)
			waited += until_woken[i];
	}
	print_message("%d times asleep until woken\n", waited);
	assert_true(waited > 1000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(idle_endpoints_sleep_until_they_are_woken),
		TEST(one_sleeper_is_woken_by_what_comes),
		TEST(watcher_that_computes_leaves_it_to_another),
		TEST(watcher_that_closes_leaves_it_to_another),
		TEST(watcher_that_nobody_waits_on_is_replaced),
		TEST(busy_sleepers_nap),
		TEST(sockets_that_are_paused_are_looked_at_by_who_slept),
		TEST(nest_without_room_has_its_sleeper_look),
		TEST(somebody_always_looks),
	};

	alarm(600);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
