/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of leases on a device, over a controller that is a model: who has one, how it is renewed, and how it ends.
 */
#define _GNU_SOURCE
#include "lent_rig.h"
#include "packet.h"

#include <poll.h>

/* ThreadSanitizer makes the journal of a thousand leases take most of a minute, and has nothing to find in it. */
#ifdef __SANITIZE_THREAD__
#define HAS_TIME false
#else
#define HAS_TIME true
#endif

static void exclusive_lease_is_the_only_one(void **state)
{
	struct lent_lease lease;

	assert_int_equal(info_now().state, WEFT_DEVICE_FREE);
	lease = borrow_well(0);
	assert_int_equal(info_now().state, WEFT_DEVICE_EXCLUSIVE);
	assert_int_equal(info_now().leases, 1);
	assert_int_equal(borrow(0), -EBUSY);
	assert_int_equal(borrow(LEASE_SHARED), -EBUSY);
	assert_int_equal(lent_end(lent, &lease, LENT_WAIT_MS), 0);
	assert_int_equal(info_now().state, WEFT_DEVICE_FREE);
	assert_int_equal(borrow(0), 0);
}

static void shared_leases_are_beside_each_other(void **state)
{
	borrow_well(LEASE_SHARED);
	assert_int_equal(borrow(0), -EBUSY);
	assert_int_equal(borrow(LEASE_SHARED), 0);
	assert_int_equal(info_now().state, WEFT_DEVICE_SHARED);
	assert_int_equal(info_now().leases, 2);
}

static void exclusive_lease_is_opened_for_others(void **state)
{
	struct lent_lease lease = borrow_well(0);

	assert_int_equal(lent_share(lent, &lease), 0);
	assert_int_equal(info_now().state, WEFT_DEVICE_SHARED);
	assert_int_equal(borrow(0), -EBUSY);
	assert_int_equal(borrow(LEASE_SHARED), 0);
	/* The next lender knows. */
	restart();
	assert_int_equal(borrow(LEASE_SHARED), 0);
}

static void number_comes_again_after_all_others_and_of_a_later_generation(void **state)
{
	struct lent_lease first, next;
	uint32_t i;

	if (!HAS_TIME)
		return;
	first = borrow_well(0);
	assert_int_equal(lent_end(lent, &first, LENT_WAIT_MS), 0);
	for (i = 1; i < NVME_LEASES; i++) {
		next = borrow_well(0);
		assert_int_equal(next.lease, first.lease + i);
		assert_int_equal(lent_end(lent, &next, LENT_WAIT_MS), 0);
	}
	next = borrow_well(0);
	assert_int_equal(next.lease, first.lease);
	assert_true(next.generation > first.generation);
	assert_false(lease_token_same(&next.token, &first.token));
	/* Who knows the earlier one does nothing to this one. */
	assert_int_equal(lent_renew(lent, &first, 1000), -ESTALE);
	assert_int_equal(lent_end(lent, &first, LENT_WAIT_MS), -ESTALE);
	assert_int_equal(lent_renew(lent, &next, 1000), 0);
}

static void as_many_leases_run_as_there_are_numbers(void **state)
{
	uint32_t i;

	if (!HAS_TIME)
		return;
	for (i = 0; i < NVME_LEASES; i++)
		borrow_well(LEASE_SHARED);
	assert_int_equal(borrow(LEASE_SHARED), -ENOSPC);
}

static void lease_is_its_tokens(void **state)
{
	struct lent_lease lease = borrow_well(0), wrong = lease;
	struct lent_state is = { .lease = lease };
	uint64_t addr;
	uint16_t qid;

	wrong.token.low ^= 1;
	assert_int_equal(lent_renew(lent, &wrong, 1000), -EACCES);
	assert_int_equal(lent_share(lent, &wrong), -EACCES);
	assert_int_equal(window(&wrong, NVME_PAGE, &addr), -EACCES);
	assert_int_equal(pair(&wrong, LENT_ADDR_BASE, &qid), -EACCES);
	assert_int_equal(lent_end(lent, &wrong, LENT_WAIT_MS), -EACCES);
	assert_int_equal(lent_state(lent, &is), 0);
	assert_int_equal(is.borrower.pid, 4711);
	assert_int_equal(is.borrower.uid, 1000);
	/* What is none. */
	wrong = lease;
	wrong.lease = 0;
	assert_int_equal(lent_end(lent, &wrong, LENT_WAIT_MS), -ESTALE);
	wrong.lease = UINT32_MAX;
	assert_int_equal(lent_end(lent, &wrong, LENT_WAIT_MS), -ESTALE);
	wrong.lease = lease.lease + 1;
	assert_int_equal(lent_end(lent, &wrong, LENT_WAIT_MS), -ESTALE);
	/* The lender's own user needs none. */
	wrong = lease;
	wrong.token = (struct lease_token){ 0 };
	assert_int_equal(lent_end(lent, &wrong, LENT_WAIT_MS), 0);
}

static void every_bit_of_a_token_is_looked_at(void **state)
{
	struct lent_lease lease = borrow_well(LEASE_SHARED), other = borrow_well(LEASE_SHARED),
			  wrong;
	int bit;

	for (bit = 0; bit < 64; bit++) {
		wrong = lease;
		wrong.token.low ^= 1ull << bit;
		assert_int_equal(lent_renew(lent, &wrong, 1000), -EACCES);
		wrong = lease;
		wrong.token.high ^= 1ull << bit;
		assert_int_equal(lent_renew(lent, &wrong, 1000), -EACCES);
		/* The same bit in both halves: they are not added up. */
		wrong.token.low ^= 1ull << bit;
		assert_int_equal(lent_renew(lent, &wrong, 1000), -EACCES);
	}
	wrong = lease;
	wrong.token = (struct lease_token){ lease.token.low, lease.token.high };
	assert_int_equal(lent_renew(lent, &wrong, 1000), -EACCES);
	wrong.token = other.token;
	assert_int_equal(lent_renew(lent, &wrong, 1000), -EACCES);
	/* A half alone is no secret that is missing. */
	wrong.token = (struct lease_token){ .high = lease.token.high };
	assert_int_equal(lent_renew(lent, &wrong, 1000), -EACCES);
	wrong.token = (struct lease_token){ .low = lease.token.low };
	assert_int_equal(lent_renew(lent, &wrong, 1000), -EACCES);
	assert_int_equal(lent_renew(lent, &lease, 1000), 0);
	assert_int_equal(lent_renew(lent, &other, 1000), 0);
}

static void renewal_moves_the_deadline_of_the_controller(void **state)
{
	struct lent_lease lease = borrow_well(0);
	struct lent_state is = { .lease = lease };

	assert_int_equal(device.armed, 10000);
	assert_int_equal(lent_renew(lent, &lease, 500), 0);
	assert_int_equal(device.armed, 500);
	assert_int_equal(lent_state(lent, &is), 0);
	assert_in_range(is.ms, 400, 500);
	assert_int_equal(lent_renew(lent, &lease, 0), -EINVAL);
	assert_int_equal(lent_renew(lent, &lease, NVME_LEASE_MS_MAX + 1), -EINVAL);
	assert_int_equal(lent_renew(lent, &lease, NVME_LEASE_MS_MAX), 0);
	/* The controller has ended it, and the lender does not know yet. */
	device.masked = ~0u;
	fake_device_expire(&device, lease.lease);
	assert_int_equal(lent_renew(lent, &lease, 500), -ESTALE);
}

static void lengths_and_flags_that_no_lease_has_are_refused(void **state)
{
	const struct lent_borrower by = { 1, 0 };
	struct lent_lease lease;

	assert_int_equal(lent_borrow(lent, &by, 0, 0, &lease), -EINVAL);
	assert_int_equal(lent_borrow(lent, &by, 0, NVME_LEASE_MS_MAX + 1, &lease), -EINVAL);
	assert_int_equal(lent_borrow(lent, &by, 4, 1000, &lease), -EINVAL);
	assert_int_equal(info_now().leases, 0);
}

static void end_of_a_lease_frees_what_it_had(void **state)
{
	struct lent_lease lease = borrow_well(LEASE_SHARED);
	struct lent_lease other = borrow_well(LEASE_SHARED);
	int fds[PACKET_FDS_MAX];
	uint64_t addr, granule;
	uint32_t first, cnt;
	uint16_t qid;

	assert_int_equal(window(&lease, 2 * NVME_PAGE, &addr), 0);
	assert_int_equal(window(&other, 2 * NVME_PAGE, &addr), 0);
	assert_int_equal(pair(&lease, addr, &qid), 0);
	assert_int_equal(pair(&other, addr, &qid), 0);
	assert_int_equal(lent_memory(lent, &lease, 10 * 4096, &first, &cnt, &granule, fds), 0);
	packet_close_fds(fds, cnt);
	assert_int_equal(info_now().queue_pairs_free, FAKE_PAIRS - 2);
	assert_int_equal(lent_end(lent, &lease, LENT_WAIT_MS), 0);
	assert_int_equal(info_now().queue_pairs_free, FAKE_PAIRS - 1);
	assert_int_equal(fake_device_mappings(&device, lease.lease), 0);
	assert_int_equal(fake_device_mappings(&device, other.lease), 1);
	assert_int_equal(lent_memory(lent, &other, 16 * 4096, &first, &cnt, &granule, fds), 0);
	assert_int_equal(cnt, 16);
	packet_close_fds(fds, cnt);
	assert_int_equal(lent_unqueue_pair(lent, &other, qid, LENT_WAIT_MS), 0);
}

static void lease_that_runs_out_is_told_and_free(void **state)
{
	struct lent_lease lease = borrow_well(LEASE_SHARED);
	struct lent_lease other = borrow_well(LEASE_SHARED);
	uint64_t addr;
	uint16_t qid;

	assert_int_equal(window(&lease, 2 * NVME_PAGE, &addr), 0);
	assert_int_equal(pair(&lease, addr, &qid), 0);
	fake_device_run(&device);
	fake_device_expire(&device, lease.lease);
	wait_for_events(1);
	expect_event(0, WEFT_EVENT_LEASE_ENDED, lease.lease);
	assert_int_equal(info_now().leases, 1);
	assert_int_equal(info_now().queue_pairs_free, FAKE_PAIRS);
	assert_int_equal(window(&lease, NVME_PAGE, &addr), -ESTALE);
	assert_int_equal(lent_renew(lent, &other, 1000), 0);
	/* A later one is told as well. */
	fake_device_run(&device);
	fake_device_expire(&device, other.lease);
	wait_for_events(2);
	expect_event(1, WEFT_EVENT_LEASE_ENDED, other.lease);
}

static void idle_lender_asks_nothing_of_the_controller(void **state)
{
	uint32_t before, i;

	for (i = 0; i < 20; i++) {
		fake_device_run(&device);
		nudge();
		poll(NULL, 0, 1);
	}
	before = fake_device_commands(&device, NVME_ADMIN_GET_LOG_PAGE);
	for (i = 0; i < 50; i++) {
		fake_device_run(&device);
		nudge();
		poll(NULL, 0, 1);
	}
	assert_int_equal(fake_device_commands(&device, NVME_ADMIN_GET_LOG_PAGE), before);
}

static void lease_ends_with_the_last_connection_that_holds_it(void **state)
{
	struct lent_lease lease = borrow_well(LEASE_SHARED);
	struct lent_lease kept = borrow_well(LEASE_SHARED | LEASE_KEPT);

	assert_int_equal(lent_hold(lent, &lease), 0);
	lent_let_go(lent, &lease);
	assert_int_equal(lent_renew(lent, &lease, 1000), 0);
	lent_let_go(lent, &lease);
	assert_int_equal(lent_renew(lent, &lease, 1000), -ESTALE);
	assert_int_equal(lent_hold(lent, &lease), -ESTALE);
	lent_let_go(lent, &lease);
	lent_let_go(lent, &kept);
	assert_int_equal(lent_renew(lent, &kept, 1000), 0);
	/* The next lender does not know of connections until they come. */
	lease = borrow_well(LEASE_SHARED);
	restart();
	assert_int_equal(lent_hold(lent, &lease), 0);
	lent_let_go(lent, &lease);
	assert_int_equal(lent_renew(lent, &lease, 1000), -ESTALE);
}

static void leases_are_listed_by_number(void **state)
{
	struct lent_lease a = borrow_well(LEASE_SHARED);
	struct lent_lease b = borrow_well(LEASE_SHARED);
	struct lent_state is;

	assert_int_equal(lent_next(lent, 0, &is), 0);
	assert_int_equal(is.lease.lease, a.lease);
	assert_int_equal(lent_next(lent, a.lease, &is), 0);
	assert_int_equal(is.lease.lease, b.lease);
	assert_int_equal(lent_next(lent, b.lease, &is), -ENOENT);
	assert_int_equal(lent_next(lent, NVME_LEASES, &is), -ENOENT);
	assert_int_equal(lent_next(lent, UINT32_MAX, &is), -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(exclusive_lease_is_the_only_one),
		TEST(shared_leases_are_beside_each_other),
		TEST(exclusive_lease_is_opened_for_others),
		TEST(number_comes_again_after_all_others_and_of_a_later_generation),
		TEST(as_many_leases_run_as_there_are_numbers),
		TEST(lease_is_its_tokens),
		TEST(every_bit_of_a_token_is_looked_at),
		TEST(renewal_moves_the_deadline_of_the_controller),
		TEST(lengths_and_flags_that_no_lease_has_are_refused),
		TEST(end_of_a_lease_frees_what_it_had),
		TEST(lease_that_runs_out_is_told_and_free),
		TEST(idle_lender_asks_nothing_of_the_controller),
		TEST(lease_ends_with_the_last_connection_that_holds_it),
		TEST(leases_are_listed_by_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
