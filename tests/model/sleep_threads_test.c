/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Several threads that sleep in one domain of the fake wires, and what wakes them beside the wires:
 * calls of other threads, signals, endpoints that come and go, the end of a peer.
 */
#include "arm.h"
#include "guard.h"
#include "sleep.h"
#include "sleepers.h"
#include "waiting.h"

/* Sends of one end to the other, without ever looking for completions. */
static void send_many(struct fake_end *from, fi_addr_t addr, uint32_t cnt, uint64_t *sequence)
{
	static char bytes[64];
	static struct fi_context2 context;

	while (cnt) {
		ssize_t ret = fi_tsend(from->ep, bytes, 8, NULL, addr, TAG, &context);

		assert_true(!ret || ret == -FI_EAGAIN);
		cnt -= !ret;
		busy(sequence);
	}
}

#define EACH 1000

static void two_threads_sleep_on_two_queues_of_one_domain(void **state)
{
	static char in[64];
	static struct fi_context2 context;
	struct reader r[4];
	uint64_t sequence = seed * 2 + 1;
	struct fake_knobs knobs;

	for (int i = 0; i < WHIMS; i += i == 2 ? BARE - 2 : 1) {
		knobs_of(&knobs, &whims[i]);
		open_ends(&safe, &knobs);
		for (int n = 0; n < EACH; n++)
			for (int side = 0; side < 2; side++)
				assert_int_equal(fi_trecv(ends[side].ep, in, 8, NULL,
							  FI_ADDR_UNSPEC, TAG, 0, &context),
						 0);
		for (int side = 0; side < 2; side++) {
			reader_start(&r[2 * side], ends[side].tx_cq, EACH);
			reader_start(&r[2 * side + 1], ends[side].rx_cq, EACH);
		}
		for (int n = 0; n < EACH; n++)
			for (int side = 0; side < 2; side++)
				send_many(&ends[side], to[side], 1, &sequence);
		for (int n = 0; n < 4; n++)
			reader_end(&r[n]);
		assert_int_equal(fake_armed_cnt(), 0);
		close_ends();
	}
}

static void several_threads_sleep_on_one_queue(void **state)
{
	static char in[64];
	static struct fi_context2 context;
	struct reader r[4];
	uint64_t sequence = seed * 2 + 1;

	open_ends(&safe, NULL);
	for (int n = 0; n < EACH; n++)
		assert_int_equal(
			fi_trecv(ends[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, TAG, 0, &context), 0);
	for (int n = 0; n < 3; n++)
		reader_start(&r[n], ends[1].rx_cq, EACH / 4);
	reader_start(&r[3], ends[0].tx_cq, EACH);
	for (int n = 0; n < EACH; n++)
		send_many(&ends[0], to[0], 1, &sequence);
	for (int n = 0; n < 4; n++)
		reader_end(&r[n]);
	reader_start(&r[0], ends[1].rx_cq, EACH / 4);
	reader_end(&r[0]);
	close_ends();
}

static void *read_for_a_while(void *arg)
{
	struct fi_cq_tagged_entry entry;

	return (void *)(intptr_t)fi_cq_sread(arg, &entry, 1, NULL, 30);
}

static void one_whose_time_is_over_leaves_the_other_armed(void **state)
{
	static char bytes[2][64];
	static struct fi_context2 context;
	struct fi_cq_tagged_entry entry;
	pthread_t thread;
	struct reader r;
	void *ret;

	for (int i = 0; i < 10; i++) {
		open_ends(&safe, NULL);
		assert_int_equal(fi_trecv(ends[1].ep, bytes[0], 8, NULL, FI_ADDR_UNSPEC, TAG, 0,
					  &context),
				 0);
		reader_start(&r, ends[1].rx_cq, 1);
		wait_asleep(&ends[1], 1);
		assert_int_equal(pthread_create(&thread, NULL, read_for_a_while, ends[1].rx_cq),
				 0);
		assert_int_equal(pthread_join(thread, &ret), 0);
		assert_int_equal((intptr_t)ret, -FI_EAGAIN);
		assert_int_equal(fake_armed_cnt(), 1);
		assert_int_equal(fi_tsend(ends[0].ep, bytes[1], 8, NULL, to[0], TAG, &context),
				 0);
		while (fi_cq_read(ends[0].tx_cq, &entry, 1) != 1)
			platform_yield();
		reader_end(&r);
		close_ends();
	}
}

static void a_completion_of_a_call_wakes_another_thread(void **state)
{
	static char bytes[64];
	static struct fi_context2 context;
	struct fi_cq_tagged_entry entry;
	struct reader r;

	open_ends(&safe, NULL);
	/* So that there is a connection. */
	assert_int_equal(fi_trecv(ends[1].ep, bytes, 8, NULL, FI_ADDR_UNSPEC, TAG, 0, &context),
			 0);
	assert_int_equal(fi_tsend(ends[0].ep, bytes, 8, NULL, to[0], TAG, &context), 0);
	while (fi_cq_read(ends[0].tx_cq, &entry, 1) != 1)
		fi_cq_read(ends[1].rx_cq, NULL, 0);
	for (int i = 0; i < 200; i++) {
		reader_start(&r, ends[0].tx_cq, 1);
		wait_asleep(&ends[0], 1);
		/* It is complete on return, and no thread makes a round. */
		assert_int_equal(fi_tsend(ends[0].ep, bytes, 8, NULL, to[0], TAG, &context), 0);
		reader_end(&r);
	}
	close_ends();
}

static void a_message_to_oneself_wakes_another_thread(void **state)
{
	static char bytes[2][64];
	static struct fi_context2 context;
	fi_addr_t self;
	struct reader r;

	open_ends(&safe, NULL);
	self = fake_end_insert(&ends[0], &ends[0].name);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(fi_trecv(ends[0].ep, bytes[0], 8, NULL, FI_ADDR_UNSPEC, TAG, 0,
					  &context),
				 0);
		reader_start(&r, ends[0].rx_cq, 1);
		wait_asleep(&ends[0], 1);
		assert_int_equal(fi_tsend(ends[0].ep, bytes[1], 8, NULL, self, TAG, &context),
				 0);
		reader_end(&r);
	}
	close_ends();
}

/* What the wires are from now on, whoever is at them. */
static void become(uint16_t fickle, uint16_t refuse)
{
	struct fake_knobs knobs;

	fake_knobs_default(&knobs);
	knobs.fickle = fickle;
	knobs.refuse = refuse;
	fake_enter();
	fake_knobs_set(FAKE_A, &knobs);
	fake_leave();
}

static void a_send_that_waits_for_its_connection_goes_on(void **state)
{
	static char bytes[2][64];
	static struct fi_context2 context;
	struct fi_cq_tagged_entry entry;
	struct reader r;

	for (int i = 0; i < 20; i++) {
		open_ends(&safe, NULL);
		assert_int_equal(fi_trecv(ends[1].ep, bytes[0], 8, NULL, FI_ADDR_UNSPEC, TAG, 0,
					  &context),
				 0);
		reader_start(&r, ends[0].tx_cq, 1);
		wait_asleep(&ends[0], 1);
		/* It can't begin now, and only the reader makes rounds on that side. */
		become(0, 256);
		assert_int_equal(fi_tsend(ends[0].ep, bytes[1], 8, NULL, to[0], TAG, &context),
				 0);
		become(0, 0);
		while (fi_cq_read(ends[1].rx_cq, &entry, 1) != 1)
			platform_yield();
		reader_end(&r);
		close_ends();
	}
}

/* A thread that is about to sleep finds an entry, and returns with it. */
static void wires_that_are_not_armed_again_let_nobody_sleep(void **state)
{
	static char bytes[2][64];
	static struct fi_context2 context;
	struct fi_cq_tagged_entry entry;
	struct engine_domain *domain;
	struct reader r;

	for (int i = 0; i < 20; i++) {
		open_ends(&safe, NULL);
		domain = container_of(ends[1].domain, struct engine_domain, fid);
		assert_int_equal(fi_trecv(ends[1].ep, bytes[0], 8, NULL, FI_ADDR_UNSPEC, TAG, 0,
					  &context),
				 0);
		reader_start(&r, ends[1].rx_cq, 1);
		wait_asleep(&ends[1], 1);
		become(256, 0);
		engine_use(domain);
		assert_int_equal(engine_wires_arm(domain), 0);
		engine_unuse(domain);
		become(0, 0);
		assert_int_equal(fi_tsend(ends[0].ep, bytes[1], 8, NULL, to[0], TAG, &context),
				 0);
		while (fi_cq_read(ends[0].tx_cq, &entry, 1) != 1)
			platform_yield();
		reader_end(&r);
		close_ends();
	}
}

static bool is_there(void *arg)
{
	return true;
}

/* It has arrived since the caller's last check, when no thread was asleep. */
static void who_finds_it_there_at_the_last_look_does_not_sleep(void **state)
{
	struct engine_domain *domain;
	struct engine_cq *cq;
	struct engine_sleeper s;

	open_ends(&safe, NULL);
	domain = container_of(ends[0].domain, struct engine_domain, fid);
	cq = container_of(ends[0].rx_cq, struct engine_cq, fid);
	s = (struct engine_sleeper){ .channel = &domain->channel,
				     .wait = &cq->wait.base,
				     .there = is_there,
				     .end_ns = UINT64_MAX,
				     .begin_ns = 1,
				     .crowded = true };
	engine_sleeper_wait(&s);
	assert_int_equal(atomic_load(&sleeps), 0);
	assert_int_equal(domain->channel.asleep, 0);
	assert_true(list_empty(&domain->armed));
	assert_int_equal(fake_armed_cnt(), 0);
	close_ends();
}

static void *read_signaled(void *arg)
{
	struct fi_cq_tagged_entry entry;

	return (void *)(intptr_t)fi_cq_sread(arg, &entry, 1, NULL, TIMEOUT);
}

static void a_signal_wakes_whoever_sleeps(void **state)
{
	uint64_t sequence = seed * 2 + 1, begin;
	pthread_t threads[2];
	void *ret;

	for (int cnt = 1; cnt <= 2; cnt++) {
		open_ends(cnt == 2 ? &safe : &alone, NULL);
		for (int i = 0; i < 500; i++) {
			for (int n = 0; n < cnt; n++)
				assert_int_equal(pthread_create(&threads[n], NULL,
								read_signaled, ends[0].rx_cq),
						 0);
			/*
			 * A thread that begins to sleep when all is over would not be woken by it.
			 */
			if (i % 2 || cnt == 2)
				wait_asleep(&ends[0], (uint32_t)cnt);
			else
				busy(&sequence);
			begin = platform_now_ns();
			assert_int_equal(fi_cq_signal(ends[0].rx_cq), 0);
			for (int n = 0; n < cnt; n++) {
				assert_int_equal(pthread_join(threads[n], &ret), 0);
				assert_int_equal((intptr_t)ret, -FI_EAGAIN);
			}
			assert_true(platform_now_ns() - begin < LONG_NS / 4);
		}
		close_ends();
	}
}

/* Endpoints come and go while a thread sleeps */

/* The other one sends 8 bytes to that address of its own, and has sent them. */
static void send_from_other(fi_addr_t addr)
{
	static char out[64];
	static struct fi_context2 context;

	assert_int_equal(fi_tsend(ends[1].ep, out, 8, NULL, addr, TAG, &context), 0);
	while (fi_cq_read(ends[1].tx_cq, &(struct fi_cq_tagged_entry){ 0 }, 1) != 1)
		platform_yield();
}

static void an_endpoint_that_is_enabled_wakes_by_what_comes_to_it(void **state)
{
	static char in[64];
	static struct fi_context2 context;
	struct fake_end more;
	struct reader r;
	fi_addr_t addr;

	for (int i = 0; i < 50; i++) {
		open_ends(&safe, NULL);
		reader_start(&r, ends[0].rx_cq, 1);
		wait_asleep(&ends[0], 1);
		fake_end_open(&more, &safe, &ends[0]);
		addr = fake_end_insert(&ends[1], &more.name);
		assert_int_equal(
			fi_trecv(more.ep, in, 8, NULL, FI_ADDR_UNSPEC, TAG, 0, &context), 0);
		wait_asleep(&ends[0], 1);
		send_from_other(addr);
		reader_end(&r);
		fake_end_close(&more);
		close_ends();
	}
}

static void an_endpoint_that_is_closed_leaves_the_others_awake(void **state)
{
	static char in[64];
	static struct fi_context2 context;
	struct fake_end more;
	struct reader r;

	for (int i = 0; i < 50; i++) {
		open_ends(&safe, NULL);
		fake_end_open(&more, &safe, &ends[0]);
		assert_int_equal(
			fi_trecv(ends[0].ep, in, 8, NULL, FI_ADDR_UNSPEC, TAG, 0, &context), 0);
		reader_start(&r, ends[0].rx_cq, 1);
		wait_asleep(&ends[0], 1);
		fake_end_close(&more);
		send_from_other(to[1]);
		reader_end(&r);
		close_ends();
	}
}

static void *read_error(void *arg)
{
	struct fi_cq_tagged_entry entry;

	return (void *)(intptr_t)fi_cq_sread(arg, &entry, 1, NULL, TIMEOUT);
}

static void the_death_of_a_peer_wakes_with_an_error(void **state)
{
	static char in[64], out[64];
	static struct fi_context2 contexts[2];
	struct fi_cq_err_entry error;
	struct fi_cq_tagged_entry entry;
	pthread_t thread;
	void *ret;

	for (int i = 0; i < 50; i++) {
		open_ends(&safe, NULL);
		assert_int_equal(fi_tsend(ends[0].ep, out, 8, NULL, to[0], TAG, &contexts[0]),
				 0);
		while (fi_cq_read(ends[0].tx_cq, &entry, 1) != 1)
			fi_cq_read(ends[1].tx_cq, NULL, 0);
		assert_int_equal(fi_trecv(ends[0].ep, in, 8, NULL, to[0], TAG, 0, &contexts[1]),
				 0);
		assert_int_equal(pthread_create(&thread, NULL, read_error, ends[0].rx_cq), 0);
		wait_asleep(&ends[0], 1);
		assert_int_equal(fake_break(fake_end_engine(&ends[0]),
					    fake_end_engine(&ends[1]), -FI_ECONNRESET),
				 1);
		assert_int_equal(pthread_join(thread, &ret), 0);
		assert_int_equal((intptr_t)ret, -FI_EAVAIL);
		error = (struct fi_cq_err_entry){ 0 };
		assert_int_equal(fi_cq_readerr(ends[0].rx_cq, &error, 0), 1);
		assert_int_equal(error.err, FI_ECONNRESET);
		close_ends();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_threads_sleep_on_two_queues_of_one_domain),
		cmocka_unit_test(several_threads_sleep_on_one_queue),
		cmocka_unit_test(one_whose_time_is_over_leaves_the_other_armed),
		cmocka_unit_test(a_completion_of_a_call_wakes_another_thread),
		cmocka_unit_test(a_message_to_oneself_wakes_another_thread),
		cmocka_unit_test(a_send_that_waits_for_its_connection_goes_on),
		cmocka_unit_test(wires_that_are_not_armed_again_let_nobody_sleep),
		cmocka_unit_test(who_finds_it_there_at_the_last_look_does_not_sleep),
		cmocka_unit_test(a_signal_wakes_whoever_sleeps),
		cmocka_unit_test(an_endpoint_that_is_enabled_wakes_by_what_comes_to_it),
		cmocka_unit_test(an_endpoint_that_is_closed_leaves_the_others_awake),
		cmocka_unit_test(the_death_of_a_peer_wakes_with_an_error),
	};

	seed_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
