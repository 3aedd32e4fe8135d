/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A round of progress: which wires it polls, and that other work stays pending until none is left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "ack.h"
#include "arm.h"
#include "peer.h"
#include "round.h"
#include "tasks.h"
#include "waiting.h"
#include "yield.h"

/* The clock of the test: the linker replaces clock_gettime() by this function. */
int __wrap_clock_gettime(clockid_t id, struct timespec *at);
static uint64_t now_ns = 1000000000;

int __wrap_clock_gettime(clockid_t id, struct timespec *at)
{
	now_ns += 100;
	*at = (struct timespec){ .tv_sec = (time_t)(now_ns / 1000000000),
				 .tv_nsec = (long)(now_ns % 1000000000) };
	return 0;
}

/* So is sched_yield(), which takes @yield_ns. */
int __wrap_sched_yield(void);
static uint64_t yield_ns;
static uint32_t yields;

/* Looks of the wires that will find that a peer has stored, and how many more after each yield */
static uint32_t stores, stores_in_yield;

int __wrap_sched_yield(void)
{
	yields++;
	now_ns += yield_ns;
	stores += stores_in_yield;
	return 0;
}

/* A wire that only counts its polls; the endpoint has two. */
struct fake_wire {
	struct wire base;
	uint32_t polls;
	bool moves;
};

static int fake_poll(struct wire *wire)
{
	struct fake_wire *fake = (struct fake_wire *)wire;

	fake->polls++;
	return fake->moves;
}

static uint64_t fake_arm(struct wire *wire)
{
	return UINT64_MAX;
}

static bool fake_stored(struct wire *wire)
{
	if (!stores)
		return false;
	stores--;
	return true;
}

static const struct wire_ops fake_ops = { .poll = fake_poll,
					  .arm = fake_arm,
					  .stored = fake_stored };

static struct world {
	struct engine_domain domain;
	struct engine_ep ep;
	struct engine_peer peer;
	struct fake_wire first, other;
} w;

static int open_world(void **state)
{
	memset(&w, 0, sizeof(w));
	stores = stores_in_yield = 0;
	list_init(&w.domain.eps);
	list_init(&w.domain.due);
	list_init(&w.domain.tasks);
	list_init(&w.domain.armed);
	engine_channel_init(&w.domain.channel, ENGINE_CHANNEL_DOMAIN);
	w.ep.domain = w.ep.ctx.domain = &w.domain;
	w.ep.look_wait = w.ep.look_full = 1;
	w.ep.wire_cnt = 2;
	w.ep.wires[0] = (struct engine_wire){ .wire = &w.first.base, .ops = &fake_ops };
	w.ep.wires[1] = (struct engine_wire){ .wire = &w.other.base, .ops = &fake_ops };
	list_init(&w.ep.all);
	list_init(&w.ep.acks);
	list_init(&w.ep.acks_later);
	list_init(&w.ep.blocked);
	engine_domain_link(&w.ep);
	w.peer.ep = &w.ep;
	list_init(&w.peer.ack_link);
	list_init(&w.peer.conns);
	list_init(&w.peer.blocked);
	list_init(&w.peer.queued);
	list_init(&w.peer.started);
	list_init(&w.peer.pushing);
	list_init(&w.peer.receiving);
	list_init(&w.peer.arriving);
	list_init(&w.peer.filling);
	list_init(&w.peer.ctl);
	list_init(&w.peer.unacked);
	list_init(&w.peer.replies);
	list_init(&w.peer.replying);
	return 0;
}

static int close_world(void **state)
{
	engine_channel_close(&w.domain.channel);
	return 0;
}

static void rounds(uint32_t cnt)
{
	while (cnt--)
		engine_domain_round(&w.domain);
}

/* Rounds that calls of the program make. Returns how often they yielded the core. */
static uint32_t yields_of(uint32_t cnt, uint64_t ns)
{
	yields = 0;
	yield_ns = ns;
	while (cnt--)
		engine_domain_progress(&w.domain);
	return yields;
}

/* A target of loads and stores polls its memory: no packet ever tells that its peer is active. */
static void a_program_alone_on_its_core_yields_rarely_though_nothing_arrives(void **state)
{
	w.domain.yield_after = ENGINE_YIELD_MAX;
	assert_in_range(yields_of(100 * ENGINE_YIELD_MAX, 0), 99, 100);
	/* a sleeper takes 0 for a round that has moved something */
	assert_true(w.domain.idle);
}

static void a_program_that_shares_its_core_yields_often_while_nothing_arrives(void **state)
{
	w.domain.yield_after = ENGINE_YIELD_MAX;
	assert_int_equal(yields_of(ENGINE_YIELD_MAX, 5000), 0);
	assert_in_range(yields_of(100 * ENGINE_YIELD_EVERY, 5000), 99, 101);
	/* the other thread has ended */
	yields_of(ENGINE_YIELD_EVERY, 0);
	assert_int_equal(yields_of(ENGINE_YIELD_MAX / 2, 0), 0);
}

/* Else it would give other threads the core in every few rounds, though what it waits for arrives. */
static void a_program_whose_peers_store_to_its_memory_keeps_its_core(void **state)
{
	w.domain.yield_after = ENGINE_YIELD_MAX;
	stores = 100;
	assert_int_equal(yields_of(50 * ENGINE_YIELD_MAX, 5000), 0);
	/* a sleeper takes 0 for a round that has moved something */
	assert_true(w.domain.idle);
	assert_in_range(yields_of(3 * ENGINE_YIELD_MAX, 5000), 1, 200);
}

static void a_yield_in_which_a_peer_stored_comes_again_soon(void **state)
{
	w.domain.yield_after = ENGINE_YIELD_MAX;
	stores_in_yield = 2;
	assert_int_equal(yields_of(ENGINE_YIELD_MAX + 2, 5000), 1);
	assert_int_equal(w.domain.yield_after, ENGINE_YIELD_MIN);
}

/* The peer may as well be on another core, and have sent while the yield took its time. */
static void a_program_that_yields_often_waits_longer_now_and_then(void **state)
{
	uint32_t waits = 0;

	w.domain.yield_after = ENGINE_YIELD_MIN;
	stores_in_yield = 2;
	for (uint32_t i = 0; i < 4 * ENGINE_YIELD_DOUBT; i++) {
		/* up to a yield, which was worth it */
		while (!yields_of(1, 5000))
			;
		if (w.domain.yield_after != ENGINE_YIELD_MIN)
			waits++;
	}
	assert_in_range(waits, 3, 4);
	w.domain.yield_after = ENGINE_YIELD_WAIT;
	w.domain.idle = 0;
	w.first.moves = true;
	assert_int_equal(yields_of(1000, 5000), 0);
	assert_int_equal(w.domain.yield_after, ENGINE_YIELD_WAIT);
}

/* Yields in which other threads ran say nothing of the peer, and a wait that begins in one would be short. */
static void yields_that_brought_nothing_are_not_doubted(void **state)
{
	uint32_t waits = 0;

	w.domain.yield_after = ENGINE_YIELD_MIN;
	for (uint32_t i = 0; i < 2 * ENGINE_YIELD_DOUBT; i++) {
		while (!yields_of(1, 5000))
			;
		assert_int_equal(w.domain.yield_after, ENGINE_YIELD_MIN);
	}
	/* and between those that did: the longer wait has as many rounds as it is said to have */
	for (uint32_t i = 0; i < 4 * ENGINE_YIELD_DOUBT; i++) {
		stores_in_yield = i % 2 ? 2 : 0;
		while (!yields_of(1, 5000))
			;
		if (w.domain.yield_after == ENGINE_YIELD_MIN)
			continue;
		waits++;
		stores_in_yield = 0;
		assert_int_equal(yields_of(ENGINE_YIELD_WAIT, 5000), 0);
		assert_int_equal(yields_of(1, 5000), 1);
		w.domain.yield_after = ENGINE_YIELD_MIN;
	}
	assert_int_equal(waits, 2);
}

static void the_first_wire_is_polled_in_each_round_and_an_idle_other_one_ever_more_rarely(
	void **state)
{
	uint32_t before;

	rounds(50000);
	assert_int_equal(w.first.polls, 50000);
	assert_in_range(w.other.polls, 256, 512);
	before = w.other.polls;
	rounds(256 * 4);
	assert_in_range(w.other.polls - before, 3, 4);
}

static void a_wire_that_moves_something_is_polled_in_each_round(void **state)
{
	uint32_t before;

	rounds(10000);
	w.other.moves = true;
	rounds(300); /* the wire is due in one of them */
	before = w.other.polls;
	rounds(100);
	assert_int_equal(w.other.polls - before, 100);
}

static void a_wire_of_which_something_is_expected_is_polled_in_the_next_round(void **state)
{
	uint32_t before;

	for (uint32_t i = 0; i < 40; i++) {
		rounds(5000 + i);
		before = w.other.polls;
		engine_expect(&w.ep, 1);
		rounds(1);
		assert_int_equal(w.other.polls - before, 1);
		rounds(20);
		assert_int_equal(w.other.polls - before, 21);
	}
}

static void the_others_wait_longer_while_the_first_wire_is_busy(void **state)
{
	uint32_t before;

	rounds(5000);
	w.first.moves = true;
	rounds(300);
	before = w.other.polls;
	rounds(20000);
	assert_in_range(w.other.polls - before, 3, 6);
}

static void a_program_that_seldom_comes_by_waits_for_no_wire(void **state)
{
	uint32_t before;

	rounds(5000);
	for (int i = 0; i < 40; i++) {
		now_ns += 100000;
		rounds(1);
	}
	before = w.other.polls;
	for (int i = 0; i < 100; i++) {
		now_ns += 100000;
		rounds(1);
	}
	assert_int_equal(w.other.polls - before, 100);
}

/* The other work of a round: each kind sets domain->pending, which is cleared when none is left. */

static uint32_t runs, no_room;

static bool run_task(struct engine_task *task)
{
	runs++;
	return !no_room || !no_room--;
}

static bool run_work(struct cntr_work *work)
{
	runs++;
	return !no_room || !no_room--;
}

static void a_task_is_pending_until_it_has_room(void **state)
{
	struct engine_task task = { .run = run_task };

	runs = 0;
	no_room = 2;
	list_init(&task.link);
	engine_task_due(&w.domain, &task);
	assert_true(w.domain.pending);
	rounds(2);
	assert_int_equal(runs, 2);
	assert_true(w.domain.pending);
	rounds(3);
	assert_int_equal(runs, 3);
	assert_false(w.domain.pending);
}

static void work_of_a_counter_is_pending_until_it_has_room(void **state)
{
	struct cntr_work work = { .threshold = 2, .run = run_work };
	struct engine_cntr cntr = { .domain = &w.domain };

	runs = 0;
	no_room = 1;
	list_init(&cntr.waiting);
	list_init(&cntr.due);
	list_init(&cntr.watch.link);
	engine_cntr_await(&cntr, &work);
	engine_cntr_add(&cntr, 1);
	assert_false(w.domain.pending);
	engine_cntr_add(&cntr, 1);
	assert_true(w.domain.pending);
	rounds(1);
	assert_int_equal(runs, 1);
	assert_true(w.domain.pending);
	rounds(3);
	assert_int_equal(runs, 2);
	assert_false(w.domain.pending);
}

static void who_sleeps_is_pending_until_it_was_woken(void **state)
{
	struct engine_wait wait;

	engine_wait_init(&wait, &w.domain, NULL, NULL);
	engine_wait_add(&wait, true);
	rounds(2);
	assert_true(w.domain.pending);
	assert_false(list_empty(&w.domain.armed));
	engine_wait_wake(&wait);
	rounds(1);
	assert_true(list_empty(&w.domain.armed));
	assert_false(w.domain.pending);
}

static void an_ack_is_pending_until_nothing_is_queued_before_it(void **state)
{
	struct engine_ctl ctl;

	list_add_tail(&w.peer.ctl, &ctl.link);
	engine_ack_due(&w.peer, PACKET_ACKED);
	assert_true(w.domain.pending);
	rounds(2);
	assert_true(w.domain.pending);
	list_remove(&ctl.link);
	rounds(1);
	assert_int_equal(w.peer.ack_due, ACK_NONE);
	assert_false(w.domain.pending);
	/* The peer does not wait for this ACK. */
	engine_ack_due(&w.peer, 0);
	assert_false(w.domain.pending);
}

static void a_peer_that_is_blocked_is_pending_until_it_rests(void **state)
{
	w.peer.up_cnt = 1;
	engine_peer_block(&w.peer);
	assert_true(w.domain.pending);
	rounds(2);
	assert_true(w.domain.pending);
	w.peer.up_cnt = 0;
	rounds(1);
	assert_true(list_empty(&w.ep.blocked));
	assert_false(w.domain.pending);
}

static void what_is_left_of_one_list_is_pending_when_another_one_is_done_with(void **state)
{
	struct engine_task task = { .run = run_task };

	list_init(&task.link);
	no_room = 0;
	w.peer.up_cnt = 1;
	engine_peer_block(&w.peer);
	engine_task_due(&w.domain, &task);
	rounds(1);
	assert_true(list_empty(&w.domain.tasks));
	assert_true(w.domain.pending);
	w.peer.up_cnt = 0;
	rounds(1);
	assert_false(w.domain.pending);
}

/* Receives of a group are directed: the death of a member ends them, and rings no bell. */
static void a_receive_of_a_group_bounds_the_sleep(void **state)
{
	struct engine_rx_ctx group = { .q = &group.own };
	struct engine_rx rx = { .match.source = 1 };

	group.own.msg = match_create();
	group.own.tagged = match_create();
	assert_true(group.own.msg && group.own.tagged);
	list_add_tail(&w.ep.all, &w.peer.all);
	w.ep.group_rx = &group;
	assert_int_equal(engine_wires_arm(&w.domain), 1000000000);
	match_post(group.own.tagged, &rx.match);
	assert_int_equal(engine_wires_arm(&w.domain), 50000000);
	match_destroy(group.own.msg);
	match_destroy(group.own.tagged);
}

#define test(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(the_first_wire_is_polled_in_each_round_and_an_idle_other_one_ever_more_rarely),
		test(a_wire_that_moves_something_is_polled_in_each_round),
		test(a_wire_of_which_something_is_expected_is_polled_in_the_next_round),
		test(the_others_wait_longer_while_the_first_wire_is_busy),
		test(a_program_that_seldom_comes_by_waits_for_no_wire),
		test(a_task_is_pending_until_it_has_room),
		test(work_of_a_counter_is_pending_until_it_has_room),
		test(who_sleeps_is_pending_until_it_was_woken),
		test(an_ack_is_pending_until_nothing_is_queued_before_it),
		test(a_peer_that_is_blocked_is_pending_until_it_rests),
		test(what_is_left_of_one_list_is_pending_when_another_one_is_done_with),
		test(a_receive_of_a_group_bounds_the_sleep),
		test(a_program_alone_on_its_core_yields_rarely_though_nothing_arrives),
		test(a_program_that_shares_its_core_yields_often_while_nothing_arrives),
		test(a_program_whose_peers_store_to_its_memory_keeps_its_core),
		test(a_yield_in_which_a_peer_stored_comes_again_soon),
		test(a_program_that_yields_often_waits_longer_now_and_then),
		test(yields_that_brought_nothing_are_not_doubted),
	};

	return cmocka_run_group_tests_name("round", tests, NULL, NULL);
}
