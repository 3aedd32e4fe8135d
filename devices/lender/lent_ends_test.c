/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of leases whose lender ends and begins again, or whose controller, which is a model, ends or does not answer.
 */
#define _GNU_SOURCE
#include "lent_rig.h"
#include "packet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void next_lender_has_the_leases_of_the_one_before(void **state)
{
	struct lent_lease a = borrow_well(LEASE_SHARED), b = borrow_well(LEASE_SHARED);
	struct lent_lease c = borrow_well(LEASE_SHARED);
	struct lent_state is = { .lease = a };
	uint64_t addr;
	uint16_t qid;

	assert_int_equal(window(&a, 2 * NVME_PAGE, &addr), 0);
	assert_int_equal(pair(&a, addr, &qid), 0);
	lent_close(lent);
	device.leases[a.lease].remaining_ms = 3000;
	/* One ends while nobody is there to hear of it. */
	device.masked = ~0u;
	fake_device_expire(&device, b.lease);
	assert_int_equal(open_again(), 0);
	assert_int_equal(info_now().leases, 2);
	assert_int_equal(info_now().queue_pairs_free, FAKE_PAIRS - 1);
	assert_int_equal(lent_state(lent, &is), 0);
	assert_in_range(is.ms, 2900, 3000);
	assert_int_equal(is.borrower.pid, 4711);
	assert_int_equal(is.queue_pairs, 1);
	assert_int_equal(lent_renew(lent, &b, 1000), -ESTALE);
	assert_int_equal(lent_renew(lent, &c, 1000), 0);
	assert_int_equal(lent_unqueue_pair(lent, &a, qid, LENT_WAIT_MS), 0);
	assert_int_equal(lent_unwindow(lent, &a, addr, 2 * NVME_PAGE, LENT_WAIT_MS), 0);
	assert_int_equal(lines, 0);
}

static void lender_without_a_journal_ends_what_runs(void **state)
{
	struct lent_lease a = borrow_well(LEASE_SHARED), b = borrow_well(LEASE_SHARED);
	struct lent_lease next;
	uint64_t addr;

	assert_int_equal(window(&a, 2 * NVME_PAGE, &addr), 0);
	lent_close(lent);
	remove_state();
	assert_int_equal(open_again(), 0);
	assert_int_equal(lines, 2);
	assert_int_equal(info_now().leases, 0);
	assert_int_equal(fake_device_mappings(&device, a.lease), 0);
	assert_false(device.leases[b.lease].runs);
	assert_int_equal(lent_renew(lent, &a, 1000), -ESTALE);
	next = borrow_well(0);
	assert_true(next.lease != a.lease || next.generation > a.generation);
}

/* The controller knows generations that the lender has lost; the clock has not moved on, or was set back. */
static void lease_begins_though_its_earlier_generations_are_not_known(void **state)
{
	struct lent_lease lease = borrow_well(0);

	assert_int_equal(lent_end(lent, &lease, LENT_WAIT_MS), 0);
	device.leases[lease.lease].generation += 1u << 30; /* 34 years */
	lent_close(lent);
	remove_state();
	assert_int_equal(open_again(), 0);
	lease = borrow_well(0);
	assert_int_equal(lease.generation, device.leases[lease.lease].generation);
	assert_int_equal(lent_renew(lent, &lease, 1000), 0);
	restart();
	assert_int_equal(lent_renew(lent, &lease, 1000), 0);
}

/* Commands are under way in it: nobody waits for them but who ends it, and what it had is its own until they have ended. */
static void lease_that_ends_late_is_told(void **state)
{
	struct lent_lease lease = borrow_well(0);
	uint64_t begin = fake_time_ms(), addr;

	assert_int_equal(window(&lease, NVME_PAGE, &addr), 0);
	device.slow = true;
	assert_int_equal(lent_end(lent, &lease, 100), -EINPROGRESS);
	assert_in_range(fake_time_ms() - begin, 100, 200);
	assert_int_equal(lent_renew(lent, &lease, 1000), -ESTALE);
	assert_int_equal(window(&lease, NVME_PAGE, &addr), -ESTALE);
	assert_int_equal(borrow(0), -EBUSY);
	assert_int_equal(lent_end(lent, &lease, 0), -EINPROGRESS);
	assert_int_equal(events_so_far(), 0);
	device.slow = false;
	fake_device_finish(&device);
	wait_for_events(1);
	expect_event(0, WEFT_EVENT_LEASE_ENDED, lease.lease);
	assert_int_equal(lent_end(lent, &lease, 0), -ESTALE);
	assert_int_equal(borrow(0), 0);
	assert_int_equal(lines, 0);
}

static void *end_for_long(void *arg)
{
	return (void *)(intptr_t)lent_end(lent, arg, 3600000);
}

static void lease_that_ends_late_holds_up_no_other(void **state)
{
	struct lent_lease a = borrow_well(LEASE_SHARED), b = borrow_well(LEASE_SHARED);
	pthread_t threads[2];
	void *ret;
	int i;

	device.slow = true;
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, end_for_long, &a), 0);
	while (fake_device_commands(&device, NVME_ADMIN_LEASE_END) < 20)
		poll(NULL, 0, 1);
	assert_int_equal(lent_renew(lent, &b, 10000), 0);
	assert_int_equal(borrow(LEASE_SHARED), 0);
	device.slow = false;
	fake_device_finish(&device);
	/* Both have ended it, or have heard that it has. */
	for (i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(threads[i], &ret), 0);
		assert_int_equal((intptr_t)ret == -ESTALE ? 0 : (intptr_t)ret, 0);
	}
	assert_int_equal(lent_renew(lent, &a, 10000), -ESTALE);
	assert_int_equal(info_now().leases, 2);
}

/* The next lender takes over what is being ended, whether it knows of it or not. */
static void next_lender_has_what_is_being_ended(void **state)
{
	struct lent_lease lease = borrow_well(0);
	int i;

	device.slow = true;
	assert_int_equal(lent_end(lent, &lease, 0), -EINPROGRESS);
	for (i = 0; i < 2; i++) {
		restart();
		assert_int_equal(lent_renew(lent, &lease, 1000), -ESTALE);
		assert_int_equal(borrow(0), -EBUSY);
		lent_close(lent);
		remove_state();
		assert_int_equal(open_again(), 0);
	}
	device.slow = false;
	fake_device_finish(&device);
	wait_for_events(1);
	expect_event(0, WEFT_EVENT_LEASE_ENDED, lease.lease);
	assert_int_equal(borrow(0), 0);
}

static void lease_that_can_not_be_kept_in_mind_does_not_begin(void **state)
{
	char path[600];
	struct lent_lease lease = borrow_well(LEASE_SHARED);

	/* The new file can't be made: something else has its name. */
	snprintf(path, sizeof(path), "%s/leases-%016llx.json.new", state_folder,
		 (unsigned long long)lent_id(lent));
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(borrow(LEASE_SHARED), -EISDIR);
	assert_int_equal(fake_device_commands(&device, NVME_ADMIN_LEASE_ARM), 1);
	assert_int_equal(info_now().leases, 1);
	assert_true(lines >= 1);
	/* Ending needs no journal. */
	assert_int_equal(lent_end(lent, &lease, LENT_WAIT_MS), 0);
	assert_int_equal(rmdir(path), 0);
	lease = borrow_well(0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(lent_share(lent, &lease), -EISDIR);
	assert_int_equal(info_now().state, WEFT_DEVICE_EXCLUSIVE);
	assert_int_equal(rmdir(path), 0);
}

static void lease_that_did_not_begin_is_not_adopted(void **state)
{
	struct lent_lease lease;

	/* The command is not completed, and yet carried out. */
	device.mute = true;
	assert_int_equal(borrow(0), -ETIMEDOUT);
	device.mute = false;
	wait_for_events(2);
	expect_event(0, WEFT_EVENT_DEVICE_REMOVED, 0);
	expect_event(1, WEFT_EVENT_DEVICE_ADDED, 0);
	assert_int_equal(info_now().leases, 0);
	lease = borrow_well(0);
	assert_true(lease.lease);
}

static void end_of_the_controller_is_the_end_of_its_leases(void **state)
{
	struct lent_lease a = borrow_well(LEASE_SHARED), b = borrow_well(LEASE_SHARED);
	uint64_t addr;

	fake_device_die(&device);
	wait_for_events(3);
	expect_event(0, WEFT_EVENT_LEASE_ENDED, a.lease);
	expect_event(1, WEFT_EVENT_LEASE_ENDED, b.lease);
	expect_event(2, WEFT_EVENT_DEVICE_REMOVED, 0);
	assert_int_equal(info_now().state, WEFT_DEVICE_FAILED);
	assert_int_equal(info_now().leases, 0);
	assert_int_equal(borrow(0), -ENODEV);
	assert_int_equal(window(&a, NVME_PAGE, &addr), -ESTALE);
	fake_device_renew(&device);
	wait_for_events(4);
	expect_event(3, WEFT_EVENT_DEVICE_ADDED, 0);
	assert_int_equal(info_now().state, WEFT_DEVICE_FREE);
	assert_int_equal(lent_renew(lent, &a, 1000), -ESTALE);
	assert_int_equal(borrow(0), 0);
}

static void another_device_at_the_slot_is_another_one(void **state)
{
	uint64_t id = lent_id(lent);

	fake_device_die(&device);
	wait_for_events(1);
	memcpy(device.sn, "FAKE2", 6);
	fake_device_renew(&device);
	wait_for_events(2);
	assert_true(lent_id(lent) != id);
	assert_string_equal(info_now().serial, "FAKE2");
}

static void controller_that_answers_again_goes_on_with_its_leases(void **state)
{
	struct lent_lease a = borrow_well(LEASE_SHARED), b = borrow_well(LEASE_SHARED);
	struct lent_lease c = borrow_well(LEASE_SHARED);
	int fds[PACKET_FDS_MAX];
	uint64_t addr, granule;
	uint32_t first, cnt;
	uint16_t qid;

	assert_int_equal(window(&a, 2 * NVME_PAGE, &addr), 0);
	assert_int_equal(pair(&a, addr, &qid), 0);
	assert_int_equal(lent_memory(lent, &a, 16 * 4096, &first, &cnt, &granule, fds), 0);
	packet_close_fds(fds, cnt);
	device.mute = true;
	assert_int_equal(lent_renew(lent, &a, 20000), -ETIMEDOUT);
	assert_int_equal(info_now().state, WEFT_DEVICE_FAILED);
	/* From now on nothing is done. */
	assert_int_equal(lent_renew(lent, &a, 20000), -ENODEV);
	assert_int_equal(borrow(LEASE_SHARED), -ENODEV);
	assert_int_equal(info_now().leases, 3);
	/* A borrower ends meanwhile; another one's time runs out. */
	assert_int_equal(lent_end(lent, &b, LENT_WAIT_MS), -ENODEV);
	pthread_mutex_lock(&device.lock);
	fake_device_end(&device, c.lease);
	device.mute = false;
	pthread_mutex_unlock(&device.lock);
	wait_for_events(3);
	expect_event(0, WEFT_EVENT_DEVICE_REMOVED, 0);
	expect_event(1, WEFT_EVENT_LEASE_ENDED, c.lease);
	expect_event(2, WEFT_EVENT_DEVICE_ADDED, 0);
	assert_int_equal(info_now().leases, 1);
	assert_false(device.leases[b.lease].runs);
	assert_int_equal(lent_renew(lent, &a, 1000), 0);
	assert_int_equal(lent_unqueue_pair(lent, &a, qid, LENT_WAIT_MS), 0);
	/* It still has the device's memory. */
	assert_int_equal(lent_unmemory(lent, &a, first, cnt), 0);
}

static void leases_run_out_while_the_controller_does_not_answer(void **state)
{
	struct lent_lease lease = borrow_well(0);

	device.mute = true;
	device.err[FAKE_READ] = -ETIMEDOUT;
	/* Nobody asks for anything: the lender looks by itself. */
	wait_for_events(2);
	expect_event(0, WEFT_EVENT_DEVICE_REMOVED, 0);
	expect_event(1, WEFT_EVENT_LEASE_ENDED, lease.lease);
	assert_int_equal(info_now().state, WEFT_DEVICE_FAILED);
	assert_int_equal(info_now().leases, 0);
	assert_int_equal(lines, 1);
	device.err[FAKE_READ] = 0;
	device.mute = false;
	wait_for_events(3);
	expect_event(2, WEFT_EVENT_DEVICE_ADDED, 0);
	assert_false(device.leases[lease.lease].runs);
}

static void failed_controller_is_reset_and_its_leases_have_ended(void **state)
{
	struct lent_lease lease = borrow_well(0);

	device.csts |= NVME_CSTS_CFS;
	wait_for_events(3);
	expect_event(0, WEFT_EVENT_DEVICE_REMOVED, 0);
	expect_event(1, WEFT_EVENT_LEASE_ENDED, lease.lease);
	expect_event(2, WEFT_EVENT_DEVICE_ADDED, 0);
	assert_int_equal(info_now().state, WEFT_DEVICE_FREE);
	assert_int_equal(borrow(0), 0);
}

/* While the second part of the log is read, a lease of the first one ends: all behind it move up. */
static void end_a_lease(struct fake_device *dev, uint32_t at)
{
	static uint32_t next = 2;

	if (!at && next < 6)
		fake_device_end(dev, next++);
}

static void no_lease_is_missed_in_a_log_of_several_parts(void **state)
{
	struct lent_lease leases[300];
	uint32_t i;

	for (i = 0; i < 300; i++)
		leases[i] = borrow_well(LEASE_SHARED);
	fake_device_run(&device);
	device.reading = end_a_lease;
	fake_device_expire(&device, leases[299].lease);
	wait_for_events(5);
	device.reading = NULL;
	assert_int_equal(info_now().leases, 295);
	for (i = 0; i < 300; i++)
		assert_int_equal(lent_renew(lent, &leases[i], 1000),
				 device.leases[leases[i].lease].runs ? 0 : -ESTALE);
}

static void owner_that_was_killed_just_now_is_waited_for(void **state)
{
	lent_close(lent);
	device.busy = 5;
	assert_int_equal(open_again(), 0);
	assert_int_equal(device.busy, 0);
	/* And another lender that runs is not. */
	lent_close(lent);
	device.busy = UINT32_MAX;
	assert_int_equal(open_again(), -EBUSY);
	device.busy = 0;
	assert_int_equal(open_again(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(next_lender_has_the_leases_of_the_one_before),
		TEST(lender_without_a_journal_ends_what_runs),
		TEST(lease_begins_though_its_earlier_generations_are_not_known),
		TEST(lease_that_ends_late_is_told),
		TEST(lease_that_ends_late_holds_up_no_other),
		TEST(next_lender_has_what_is_being_ended),
		TEST(lease_that_can_not_be_kept_in_mind_does_not_begin),
		TEST(lease_that_did_not_begin_is_not_adopted),
		TEST(end_of_the_controller_is_the_end_of_its_leases),
		TEST(another_device_at_the_slot_is_another_one),
		TEST(controller_that_answers_again_goes_on_with_its_leases),
		TEST(leases_run_out_while_the_controller_does_not_answer),
		TEST(failed_controller_is_reset_and_its_leases_have_ended),
		TEST(no_lease_is_missed_in_a_log_of_several_parts),
		TEST(owner_that_was_killed_just_now_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
