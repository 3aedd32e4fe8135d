/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of what a lease has of its device: windows, queue pairs, memory, admin commands; and doorbells that are misused.
 * The controller is a model.
 */
#define _GNU_SOURCE
#include "lent_rig.h"
#include "packet.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

static void windows_have_addresses_that_do_not_come_twice(void **state)
{
	struct lent_lease lease = borrow_well(0);
	uint64_t addr, last = 0;
	int i;

	for (i = 0; i < 200; i++) {
		assert_int_equal(window(&lease, 3 * NVME_PAGE, &addr), 0);
		assert_true(addr >= last);
		last = addr + 3 * NVME_PAGE;
		assert_int_equal(lent_unwindow(lent, &lease, addr, NVME_PAGE, LENT_WAIT_MS),
				 -ENOENT);
		assert_int_equal(lent_unwindow(lent, &lease, addr + NVME_PAGE, 3 * NVME_PAGE,
					       LENT_WAIT_MS),
				 -ENOENT);
		assert_int_equal(lent_unwindow(lent, &lease, addr, 3 * NVME_PAGE, LENT_WAIT_MS),
				 0);
		assert_int_equal(lent_unwindow(lent, &lease, addr, 3 * NVME_PAGE, LENT_WAIT_MS),
				 -ENOENT);
	}
	/* Nor after another lender has taken over. */
	assert_int_equal(window(&lease, NVME_PAGE, &last), 0);
	restart();
	assert_int_equal(window(&lease, NVME_PAGE, &addr), 0);
	assert_true(addr > last);
}

static void files_and_ranges_that_no_window_has_are_refused(void **state)
{
	struct lent_lease lease = borrow_well(0);
	int good = memory(2 * NVME_PAGE), null = open("/dev/null", O_RDWR), many[33], i;
	int bare = memfd_create("bare", MFD_ALLOW_SEALING);
	uint64_t addr;

	for (i = 0; i < 33; i++)
		many[i] = good;
	assert_int_equal(ftruncate(bare, NVME_PAGE), 0);
#define WINDOW(access, offset, len, fds, cnt) \
	lent_window(lent, &lease, access, offset, len, fds, cnt, &addr)
	assert_int_equal(WINDOW(0, 0, NVME_PAGE, &good, 1), -EINVAL);
	assert_int_equal(WINDOW(4, 0, NVME_PAGE, &good, 1), -EINVAL);
	assert_int_equal(WINDOW(1, 1, NVME_PAGE, &good, 1), -EINVAL);
	assert_int_equal(WINDOW(1, 0, 100, &good, 1), -EINVAL);
	assert_int_equal(WINDOW(1, 0, 0, &good, 1), -EINVAL);
	assert_int_equal(WINDOW(1, 0, NVME_PAGE, &good, 0), -EINVAL);
	assert_int_equal(WINDOW(1, 0, NVME_PAGE, many, 33), -EINVAL);
	assert_int_equal(WINDOW(1, 0, 1ULL << 53, &good, 1), -EINVAL);
	assert_int_equal(WINDOW(1, ~0ULL - NVME_PAGE + 1, NVME_PAGE, &good, 1), -EINVAL);
	assert_int_equal(WINDOW(1, 0, 3 * NVME_PAGE, &good, 1), -EBADF);
	assert_int_equal(WINDOW(1, 2 * NVME_PAGE, NVME_PAGE, &good, 1), -EBADF);
	assert_int_equal(WINDOW(1, 0, NVME_PAGE, &null, 1), -EBADF);
	assert_int_equal(WINDOW(1, 0, NVME_PAGE, &bare, 1), -EBADF);
	assert_int_equal(WINDOW(2, NVME_PAGE, NVME_PAGE, many, 32), 0);
#undef WINDOW
	assert_int_equal(fake_device_mappings(&device, lease.lease), 1);
	close(good);
	close(null);
	close(bare);
}

static void what_a_controller_has_no_room_for_is_refused(void **state)
{
	struct lent_lease lease = borrow_well(0);
	uint64_t addr;
	int err, n = 0;

	while (!(err = window(&lease, NVME_PAGE, &addr)))
		n++;
	assert_int_equal(err, -ENOSPC);
	assert_int_equal(n, FAKE_MAPPINGS - 1);
	device.err[FAKE_MAP] = -EMFILE;
	assert_int_equal(window(&lease, NVME_PAGE, &addr), -ENOSPC);
}

/* The controller has ended it, and the lender has not heard of that yet. */
static void lease_that_has_just_ended_is_stale_whatever_is_asked(void **state)
{
	struct lent_lease lease = borrow_well(0);
	int fds[PACKET_FDS_MAX], err;
	uint64_t addr, granule;
	uint32_t first, cnt;
	uint16_t qid;

	assert_int_equal(window(&lease, 2 * NVME_PAGE, &addr), 0);
	assert_int_equal(pair(&lease, addr, &qid), 0);
	pthread_mutex_lock(&device.lock);
	fake_device_end(&device, lease.lease);
	pthread_mutex_unlock(&device.lock);
	assert_int_equal(window(&lease, NVME_PAGE, &addr), -ESTALE);
	assert_int_equal(lent_unwindow(lent, &lease, addr, 2 * NVME_PAGE, LENT_WAIT_MS),
			 -ESTALE);
	assert_int_equal(lent_unqueue_pair(lent, &lease, qid, LENT_WAIT_MS), -ESTALE);
	assert_int_equal(pair(&lease, addr, &qid), -ESTALE);
	assert_int_equal(lent_renew(lent, &lease, 1000), -ESTALE);
	/* Memory is the lender's to give, and is taken back with the lease. */
	err = lent_memory(lent, &lease, 4096, &first, &cnt, &granule, fds);
	assert_int_equal(err, 0);
	packet_close_fds(fds, cnt);
	assert_int_equal(lent_end(lent, &lease, LENT_WAIT_MS), 0);
	assert_int_equal(info_now().queue_pairs_free, FAKE_PAIRS);
}

static void queue_pair_is_its_leases(void **state)
{
	struct lent_lease lease = borrow_well(LEASE_SHARED);
	struct lent_lease other = borrow_well(LEASE_SHARED);
	uint64_t addr;
	uint16_t qid;

	assert_int_equal(window(&lease, 2 * NVME_PAGE, &addr), 0);
	assert_int_equal(pair(&lease, addr, &qid), 0);
	assert_int_equal(lent_unqueue_pair(lent, &other, qid, LENT_WAIT_MS), -ENOENT);
	assert_int_equal(lent_unqueue_pair(lent, &lease, 0, LENT_WAIT_MS), -ENOENT);
	assert_int_equal(lent_unqueue_pair(lent, &lease, UINT16_MAX, LENT_WAIT_MS), -ENOENT);
	assert_int_equal(lent_unqueue_pair(lent, &lease, (uint16_t)(qid + 1), LENT_WAIT_MS),
			 -ENOENT);
	assert_int_equal(lent_unqueue_pair(lent, &lease, qid, LENT_WAIT_MS), 0);
	assert_int_equal(lent_unqueue_pair(lent, &lease, qid, LENT_WAIT_MS), -ENOENT);
	/* An address of another's window is none of this one's. */
	assert_int_equal(pair(&other, addr, &qid), -EINVAL);
	assert_int_equal(info_now().queue_pairs_free, FAKE_PAIRS);
}

static void queue_pair_that_is_not_made_leaves_nothing(void **state)
{
	struct lent_lease lease = borrow_well(0);
	int vector = eventfd(0, EFD_CLOEXEC), i;
	struct lent_queues queues = { .entries = 64, .vector = vector };
	struct lent_bells bells;
	uint16_t qid;

	assert_int_equal(window(&lease, 2 * NVME_PAGE, &queues.sq), 0);
	queues.cq = queues.sq + NVME_PAGE;
	queues.entries = 1;
	assert_int_equal(lent_queue_pair(lent, &lease, &queues, &qid, &bells), -EINVAL);
	queues.entries = 65537;
	assert_int_equal(lent_queue_pair(lent, &lease, &queues, &qid, &bells), -EINVAL);
	queues.entries = 65536;
	assert_int_equal(lent_queue_pair(lent, &lease, &queues, &qid, &bells), -EINVAL);
	queues.entries = 64;
	device.status[NVME_ADMIN_CREATE_SQ] = NVME_SC_INTERNAL;
	assert_int_equal(lent_queue_pair(lent, &lease, &queues, &qid, &bells), -EINVAL);
	device.status[NVME_ADMIN_CREATE_SQ] = 0;
	device.err[FAKE_REGION] = -EMFILE;
	assert_int_equal(lent_queue_pair(lent, &lease, &queues, &qid, &bells), -EMFILE);
	device.err[FAKE_REGION] = 0;
	for (i = 1; i <= (int)FAKE_PAIRS; i++) {
		assert_int_equal(device.vectors[i], -1);
		assert_false(device.queues[i].cq || device.queues[i].sq);
	}
	for (i = 0; i < (int)FAKE_PAIRS; i++) {
		assert_int_equal(lent_queue_pair(lent, &lease, &queues, &qid, &bells), 0);
		bells_close(&bells);
	}
	assert_int_equal(lent_queue_pair(lent, &lease, &queues, &qid, &bells), -ENOSPC);
	close(vector);
}

/* Commands use what is to end. Others have the device meanwhile; who asks again later is told when it is gone. */
static void what_commands_use_ends_with_them(void **state)
{
	struct lent_lease lease = borrow_well(LEASE_SHARED), other = borrow_well(LEASE_SHARED);
	uint64_t queues, addr, begin = fake_time_ms();
	uint16_t qid;

	assert_int_equal(window(&lease, 2 * NVME_PAGE, &queues), 0);
	assert_int_equal(window(&lease, NVME_PAGE, &addr), 0);
	assert_int_equal(pair(&lease, queues, &qid), 0);
	device.slow = true;
	assert_int_equal(lent_unqueue_pair(lent, &lease, qid, 100), -EINPROGRESS);
	assert_int_equal(lent_unwindow(lent, &lease, addr, NVME_PAGE, 100), -EINPROGRESS);
	assert_in_range(fake_time_ms() - begin, 200, 400);
	assert_int_equal(lent_renew(lent, &other, 1000), 0);
	assert_int_equal(info_now().queue_pairs_free, FAKE_PAIRS - 1);
	device.slow = false;
	assert_int_equal(lent_unqueue_pair(lent, &lease, qid, 100), 0);
	assert_int_equal(lent_unqueue_pair(lent, &lease, qid, 100), -ENOENT);
	assert_int_equal(lent_unwindow(lent, &lease, addr, NVME_PAGE, 100), -ENOENT);
	assert_int_equal(info_now().queue_pairs_free, FAKE_PAIRS);
	/* Its lease ends meanwhile. */
	assert_int_equal(pair(&lease, queues, &qid), 0);
	device.slow = true;
	assert_int_equal(lent_end(lent, &lease, 0), -EINPROGRESS);
	assert_int_equal(lent_unqueue_pair(lent, &lease, qid, 100), -EINPROGRESS);
	assert_int_equal(lent_unwindow(lent, &lease, queues, 2 * NVME_PAGE, 100), -EINPROGRESS);
	assert_int_equal(window(&lease, NVME_PAGE, &addr), -ESTALE);
	device.slow = false;
	fake_device_finish(&device);
	assert_int_equal(lent_unqueue_pair(lent, &lease, qid, 100), -ESTALE);
	assert_int_equal(lines, 0);
}

/* The keeper alone takes events: who only looks whether a lease runs leaves them. */
static void looking_at_leases_takes_no_event(void **state)
{
	struct lent_lease lease = borrow_well(0);

	device.masked = 1u << NVME_EVENT_TYPE_VENDOR;
	assert_int_equal(lent_unwindow(lent, &lease, LENT_ADDR_BASE, NVME_PAGE, 0), -ENOENT);
	assert_true(fake_device_commands(&device, NVME_ADMIN_GET_LOG_PAGE));
	assert_int_equal(device.masked, 1u << NVME_EVENT_TYPE_VENDOR);
	fake_device_expire(&device, lease.lease);
	assert_int_equal(events_so_far(), 0);
	device.masked = 0;
}

static void memory_of_the_device_is_lent_in_rows(void **state)
{
	struct lent_lease lease = borrow_well(LEASE_SHARED);
	struct lent_lease other = borrow_well(LEASE_SHARED);
	int fds[PACKET_FDS_MAX];
	uint64_t granule;
	uint32_t a, b, c, cnt;

#define MEMORY(of, len, first) lent_memory(lent, of, len, first, &cnt, &granule, fds)
	assert_int_equal(MEMORY(&lease, 4 * 4096, &a), 0);
	packet_close_fds(fds, cnt);
	assert_int_equal(MEMORY(&other, 4 * 4096 - 1, &b), 0);
	assert_int_equal(cnt, 4);
	packet_close_fds(fds, cnt);
	assert_int_equal(MEMORY(&lease, 8 * 4096, &c), 0);
	packet_close_fds(fds, cnt);
	assert_int_equal(MEMORY(&lease, 1, &c), -ENOSPC);
	assert_int_equal(MEMORY(&lease, 0, &c), -EINVAL);
	assert_int_equal(MEMORY(&lease, 33 * 4096, &c), -EINVAL);
	assert_int_equal(MEMORY(&lease, UINT64_MAX, &c), -EINVAL);
	assert_int_equal(lent_unmemory(lent, &lease, b, 4), -ENOENT);
	assert_int_equal(lent_unmemory(lent, &lease, a, 5), -ENOENT);
	assert_int_equal(lent_unmemory(lent, &lease, a, 0), -EINVAL);
	assert_int_equal(lent_unmemory(lent, &lease, UINT32_MAX, 2), -EINVAL);
	assert_int_equal(lent_unmemory(lent, &lease, 2, UINT32_MAX), -EINVAL);
	assert_int_equal(lent_unmemory(lent, &lease, a, 4), 0);
	assert_int_equal(lent_unmemory(lent, &lease, a, 4), -ENOENT);
	assert_int_equal(MEMORY(&other, 4 * 4096, &c), 0);
	packet_close_fds(fds, cnt);
	assert_int_equal(c, a);
	assert_int_equal(lent_unmemory(lent, &other, a, 4), 0);
	/* Something is still under way there. */
	device.err[FAKE_REGION] = -EBUSY;
	assert_int_equal(MEMORY(&lease, 1, &c), -ENOSPC);
	device.err[FAKE_REGION] = 0;
	assert_int_equal(MEMORY(&lease, 1, &c), 0);
	packet_close_fds(fds, cnt);
#undef MEMORY
}

static void admin_commands_of_borrowers_read_and_nothing_else(void **state)
{
	uint8_t data[NVME_PAGE];
	struct nvme_cqe cqe;
	uint32_t opcode;

	for (opcode = 0; opcode < 256; opcode++) {
		struct nvme_sqe sqe = { .opcode = (uint8_t)opcode, .cdw10 = 1 };
		bool reads = opcode == NVME_ADMIN_IDENTIFY ||
			     opcode == NVME_ADMIN_GET_LOG_PAGE ||
			     opcode == NVME_ADMIN_GET_FEATURES;
		uint32_t before = fake_device_commands(&device, opcode);

		assert_int_equal(lent_admin(lent, &sqe, data, &cqe), reads ? 0 : -EPERM);
		assert_int_equal(fake_device_commands(&device, opcode), before + reads);
	}
	/* Logs: not that of leases, and no longer than a page. */
#define LOG(cdw10_, cdw11_)                                               \
	lent_admin(lent,                                                  \
		   &(struct nvme_sqe){ .opcode = NVME_ADMIN_GET_LOG_PAGE, \
				       .cdw10 = cdw10_,                   \
				       .cdw11 = cdw11_ },                 \
		   data, &cqe)
	assert_int_equal(LOG(NVME_LOG_SMART | 0x3ffu << 16, 0), 0);
	assert_int_equal(LOG(NVME_LOG_SMART | 0x400u << 16, 0), -EPERM);
	assert_int_equal(LOG(NVME_LOG_SMART, 1), -EPERM);
	assert_int_equal(LOG(NVME_LOG_LEASES, 0), -EPERM);
	assert_int_equal(LOG(0xff, 0), -EPERM);
#undef LOG
}

static void bad_doorbells_are_one_line_for_each_lease(void **state)
{
	const uint32_t bad = NVME_EVENT(NVME_EVENT_TYPE_ERROR, NVME_EVENT_BAD_DOORBELL,
					NVME_LOG_ERROR);
	struct lent_lease a = borrow_well(LEASE_SHARED), b = borrow_well(LEASE_SHARED);
	uint64_t addr;
	uint16_t of_a, of_b;
	uint32_t i, reads;

	assert_int_equal(window(&a, 2 * NVME_PAGE, &addr), 0);
	assert_int_equal(pair(&a, addr, &of_a), 0);
	assert_int_equal(window(&b, 2 * NVME_PAGE, &addr), 0);
	assert_int_equal(pair(&b, addr, &of_b), 0);
	fake_device_error(&device, of_a);
	fake_device_error(&device, of_a);
	fake_device_error(&device, FAKE_PAIRS);
	fake_device_run(&device);
	fake_device_event(&device, bad);
	for (i = 0; i < 20000 && !lines; i++) {
		fake_device_run(&device);
		nudge();
		poll(NULL, 0, 1);
	}
	assert_int_equal(lines, 1);
	fake_device_error(&device, of_b);
	fake_device_error(&device, of_a);
	reads = fake_device_commands(&device, NVME_ADMIN_GET_LOG_PAGE);
	for (i = 0; i < 20; i++) {
		fake_device_event(&device, bad);
		fake_device_run(&device);
		nudge();
		poll(NULL, 0, 1);
	}
	/* Not before a second has passed. */
	assert_int_equal(fake_device_commands(&device, NVME_ADMIN_GET_LOG_PAGE), reads);
	for (i = 0; i < 20000 && lines < 2; i++) {
		fake_time_pass(10);
		fake_device_run(&device);
		nudge();
		poll(NULL, 0, 1);
	}
	assert_int_equal(lines, 2);
}

static void bad_doorbell_of_a_lease_that_has_ended_is_not_the_next_ones(void **state)
{
	const uint32_t bad = NVME_EVENT(NVME_EVENT_TYPE_ERROR, NVME_EVENT_BAD_DOORBELL,
					NVME_LOG_ERROR);
	struct lent_lease a = borrow_well(LEASE_SHARED), b;
	uint16_t of_a, of_b;
	uint32_t i, reads;
	uint64_t addr;

	assert_int_equal(window(&a, 2 * NVME_PAGE, &addr), 0);
	assert_int_equal(pair(&a, addr, &of_a), 0);
	fake_device_error(&device, of_a);
	assert_int_equal(lent_end(lent, &a, LENT_WAIT_MS), 0);
	b = borrow_well(LEASE_SHARED);
	assert_int_equal(window(&b, 2 * NVME_PAGE, &addr), 0);
	assert_int_equal(pair(&b, addr, &of_b), 0);
	assert_int_equal(of_a, of_b);
	reads = fake_device_commands(&device, NVME_ADMIN_GET_LOG_PAGE);
	fake_device_run(&device);
	fake_device_event(&device, bad);
	for (i = 0;
	     i < 20000 && fake_device_commands(&device, NVME_ADMIN_GET_LOG_PAGE) == reads; i++) {
		fake_device_run(&device);
		nudge();
		poll(NULL, 0, 1);
	}
	assert_int_not_equal(fake_device_commands(&device, NVME_ADMIN_GET_LOG_PAGE), reads);
	/* Under the lock of what was read. */
	assert_int_equal(lent_renew(lent, &b, 1000), 0);
	assert_int_equal(lines, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(windows_have_addresses_that_do_not_come_twice),
		TEST(files_and_ranges_that_no_window_has_are_refused),
		TEST(what_a_controller_has_no_room_for_is_refused),
		TEST(lease_that_has_just_ended_is_stale_whatever_is_asked),
		TEST(queue_pair_is_its_leases),
		TEST(queue_pair_that_is_not_made_leaves_nothing),
		TEST(what_commands_use_ends_with_them),
		TEST(looking_at_leases_takes_no_event),
		TEST(memory_of_the_device_is_lent_in_rows),
		TEST(admin_commands_of_borrowers_read_and_nothing_else),
		TEST(bad_doorbells_are_one_line_for_each_lease),
		TEST(bad_doorbell_of_a_lease_that_has_ended_is_not_the_next_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
