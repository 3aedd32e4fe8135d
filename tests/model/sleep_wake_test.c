/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wires that have no descriptor and ring from any context, and platforms that have none, over the fake
 * wires.
 */
#include <errno.h>
#include "arm.h"
#include "fault.h"
#include "guard.h"
#include "sleepers.h"
#include "waiting.h"

/* Until a thread has gone to sleep so many times. */
static void wait_sleeps(uint32_t cnt)
{
	uint64_t deadline = platform_now_ns() + 20000000000u;

	while (atomic_load(&sleeps) < cnt) {
		assert_true(platform_now_ns() < deadline);
		platform_yield();
	}
}

static void *sleep_on(void *arg)
{
	platform_sleep(arg, LONG_NS);
	return NULL;
}

/*
 * As in a kernel: threads sleep on a bell, which is rung without the domain, and no thread has
 * descriptors.
 */
static void a_bell_alone_wakes_threads_where_there_are_no_poll_sets(void **state)
{
	static struct fi_context2 context[2];
	static char bytes[2][64];
	struct fi_cq_attr attr = { .wait_obj = FI_WAIT_FD };
	struct fi_cq_tagged_entry entry;
	struct engine_domain *domain;
	struct platform_wakers on;
	struct fid_cq *cq;
	struct reader r;
	pthread_t thread;

	sys_fault_set(SYS_CALL_EPOLL, ENOSYS, 0, UINT32_MAX);
	open_ends(&safe, NULL);
	domain = container_of(ends[1].domain, struct engine_domain, fid);
	engine_use(domain);
	assert_int_equal(engine_domain_channel(domain), 0);
	assert_true(engine_channel_enter(&domain->channel, &on));
	engine_unuse(domain);
	assert_ptr_equal(on.bell, &domain->channel.bell);
	assert_int_equal(on.descriptor, -1);
	assert_int_equal(pthread_create(&thread, NULL, sleep_on, &on), 0);
	engine_channel_ring(&domain->channel);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(engine_channel_leave(&domain->channel));
	/* Wires that ring descriptors are looked at once a millisecond. */
	assert_int_equal(
		fi_trecv(ends[1].ep, bytes[0], 8, NULL, FI_ADDR_UNSPEC, TAG, 0, &context[0]), 0);
	reader_start(&r, ends[1].rx_cq, 1);
	wait_asleep(&ends[1], 1);
	assert_int_equal(fi_tsend(ends[0].ep, bytes[1], 8, NULL, to[0], TAG, &context[1]), 0);
	while (fi_cq_read(ends[0].tx_cq, &entry, 1) != 1)
		platform_yield();
	reader_end(&r);
	assert_int_equal(fi_cq_open(ends[1].domain, &attr, &cq, NULL), -FI_ENOSYS);
	close_ends();
	sys_fault_clear();
}

/* The sleeper is awake, and waits for the locks; after that it sleeps once more. */
static void a_wire_is_rung_whatever_locks_are_held(void **state)
{
	struct fake_knobs knobs;
	struct fi_cq_tagged_entry entry;
	static struct fi_context2 context[2];
	static char bytes[2][64];

	knobs_of(&knobs, &whims[BARE]);
	for (int i = 0; i < 400; i++) {
		struct engine_domain *domain;
		struct reader r;

		if (i % 2)
			sys_fault_set(SYS_CALL_EPOLL, ENOSYS, 0, UINT32_MAX);
		open_ends(&safe, &knobs);
		domain = container_of(ends[1].domain, struct engine_domain, fid);
		assert_int_equal(fi_trecv(ends[1].ep, bytes[0], 8, NULL, FI_ADDR_UNSPEC, TAG, 0,
					  &context[0]),
				 0);
		reader_start(&r, ends[1].rx_cq, 1);
		wait_asleep(&ends[1], 1);
		engine_use(domain);
		fake_enter();
		platform_lock(&domain->channel.lock);
		for (int n = 0; n < 1 + i % 3; n++)
			engine_wire_wake(fake_end_engine(&ends[1])->wires[0].wire);
		platform_unlock(&domain->channel.lock);
		fake_leave();
		engine_unuse(domain);
		wait_sleeps(2);
		assert_int_equal(
			fi_tsend(ends[0].ep, bytes[1], 8, NULL, to[0], TAG, &context[1]), 0);
		while (fi_cq_read(ends[0].tx_cq, &entry, 1) != 1)
			platform_yield();
		reader_end(&r);
		close_ends();
		sys_fault_clear();
	}
}

/* The ring of a wake that was interrupted comes after the wires were armed again. */
static void a_ring_that_comes_late_is_silenced(void **state)
{
	struct engine_domain *domain;
	struct platform_wakers on;
	struct fake_knobs knobs;
	uint64_t begin;

	knobs_of(&knobs, &whims[BARE]);
	for (int i = 0; i < 2; i++) {
		struct engine_channel *channel;

		if (i)
			sys_fault_set(SYS_CALL_EPOLL, ENOSYS, 0, UINT32_MAX);
		open_ends(&safe, &knobs);
		domain = container_of(ends[1].domain, struct engine_domain, fid);
		channel = &domain->channel;
		engine_use(domain);
		assert_true(engine_wires_arm(domain) > 0);
		/* It has said that it rings, and does so after the next step. */
		atomic_store(&channel->waking, 1);
		atomic_store(&channel->wake_pending, true);
		assert_true(engine_wires_arm(domain) > 0);
		atomic_store(&channel->waking, 0);
		engine_wire_wake(fake_end_engine(&ends[1])->wires[0].wire);
		atomic_store(&channel->wake_pending, false);
		assert_true(engine_wires_arm(domain) > 0);
		assert_true(engine_channel_enter(channel, &on));
		begin = platform_now_ns();
		platform_sleep(&on, 20000000);
		assert_true(platform_now_ns() - begin >= 20000000);
		engine_channel_leave(channel);
		engine_unuse(domain);
		close_ends();
		sys_fault_clear();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bell_alone_wakes_threads_where_there_are_no_poll_sets),
		cmocka_unit_test(a_wire_is_rung_whatever_locks_are_held),
		cmocka_unit_test(a_ring_that_comes_late_is_silenced),
	};

	seed_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
