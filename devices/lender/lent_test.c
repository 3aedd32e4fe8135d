/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of leases on a device, over a controller that is a model. Time passes when somebody waits for the controller,
 * or when a test says so.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "descriptors.h"
#include "fake_device.h"
#include "fake_time.h"
#include "lent_types.h"
#include "log.h"
#include "message.h"
#include "packet.h"

#define TOLD_MAX 2048

/* struct told - an event */
struct told {
	uint32_t kind;
	uint32_t lease;
};

static struct fake_device device;
static struct lent *lent;
static char folder[64];
static unsigned open_before;
static pthread_mutex_t told_lock = PTHREAD_MUTEX_INITIALIZER;
static struct told told[TOLD_MAX];
static unsigned told_cnt;
static _Atomic unsigned lines;

/* In the places of others'. */
void lender_log(const char *format, ...)
{
	lines++;
}

int function_open_slot(const char *path, struct function **function)
{
	return fake_device_open(&device, function);
}

int function_slot_fd(const struct function *function)
{
	return fake_function_fd(function);
}

static void tell(void *arg, struct lent *of, uint32_t kind, uint32_t lease)
{
	pthread_mutex_lock(&told_lock);
	if (told_cnt < TOLD_MAX)
		told[told_cnt++] = (struct told){ kind, lease };
	pthread_mutex_unlock(&told_lock);
}

static void run(void *arg)
{
	fake_device_run(&device);
}

static int open_again(void)
{
	return lent_open("slot", 0x1122334455667788, folder, tell, NULL, &lent);
}

static int setup(void **state)
{
	open_before = descriptors_open();
	told_cnt = 0;
	lines = 0;
	fake_device_init(&device);
	fake_time_idle(run, NULL);
	strcpy(folder, "/dev/shm/weft-lent.XXXXXX");
	if (!mkdtemp(folder)) {
		strcpy(folder, "/tmp/weft-lent.XXXXXX");
		if (!mkdtemp(folder))
			return -1;
	}
	return open_again();
}

static void remove_state(void)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[512];

	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (*entry->d_name != '.')
			unlink(path);
	}
	closedir(dir);
}

static int teardown(void **state)
{
	lent_close(lent);
	fake_device_fini(&device);
	remove_state();
	rmdir(folder);
	return descriptors_open() == open_before ? 0 : -1;
}

/* The lender ends, and another one begins. */
static void restart(void)
{
	lent_close(lent);
	assert_int_equal(open_again(), 0);
}

static void nudge(void)
{
	uint64_t one = 1;

	assert_int_equal(write(lent->wake, &one, sizeof(one)), sizeof(one));
}

static unsigned events_so_far(void)
{
	unsigned cnt;

	pthread_mutex_lock(&told_lock);
	cnt = told_cnt;
	pthread_mutex_unlock(&told_lock);
	return cnt;
}

/* Wait for as many events, while time passes at the device's keeper. */
static void wait_for_events(unsigned cnt)
{
	int tries;

	for (tries = 0; tries < 5000 && events_so_far() < cnt; tries++) {
		fake_device_run(&device);
		fake_time_pass(10);
		nudge();
		poll(NULL, 0, 1);
	}
	assert_int_equal(events_so_far(), cnt);
}

static void expect_event(unsigned n, uint32_t kind, uint32_t lease)
{
	assert_int_equal(told[n].kind, kind);
	assert_int_equal(told[n].lease, lease);
}

static struct lent_lease borrow_well(uint32_t flags)
{
	const struct lent_borrower by = { 4711, 1000 };
	struct lent_lease lease;

	assert_int_equal(lent_borrow(lent, &by, flags, 10000, &lease), 0);
	return lease;
}

static int borrow(uint32_t flags)
{
	const struct lent_borrower by = { 4712, 1001 };
	struct lent_lease lease;

	return lent_borrow(lent, &by, flags, 10000, &lease);
}

static int memory(size_t len)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return fd;
}

static int window(const struct lent_lease *lease, size_t len, uint64_t *addr)
{
	int fd = memory(len);
	int err = lent_window(lent, lease, WEFT_WINDOW_RW, 0, len, &fd, 1, addr);

	close(fd);
	return err;
}

static void bells_close(const struct lent_bells *bells)
{
	close(bells->fd);
	close(bells->kick);
}

static int pair(const struct lent_lease *lease, uint64_t addr, uint16_t *qid)
{
	struct lent_queues queues = {
		.sq = addr, .cq = addr + NVME_PAGE, .entries = 64, .vector = -1
	};
	struct lent_bells bells;
	int err = lent_queue_pair(lent, lease, &queues, qid, &bells);

	if (!err)
		bells_close(&bells);
	return err;
}

static struct weft_device_info info_now(void)
{
	struct weft_device_info info;

	lent_info(lent, &info);
	return info;
}

static void exclusive_lease_is_the_only_one(void **state)
{
	struct lent_lease lease;

	assert_int_equal(info_now().state, WEFT_DEVICE_FREE);
	lease = borrow_well(0);
	assert_int_equal(info_now().state, WEFT_DEVICE_EXCLUSIVE);
	assert_int_equal(info_now().leases, 1);
	assert_int_equal(borrow(0), -EBUSY);
	assert_int_equal(borrow(LEASE_SHARED), -EBUSY);
	assert_int_equal(lent_end(lent, &lease), 0);
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
	struct lent_lease first = borrow_well(0), next;
	uint32_t i;

	assert_int_equal(lent_end(lent, &first), 0);
	for (i = 1; i < NVME_LEASES; i++) {
		next = borrow_well(0);
		assert_int_equal(next.lease, first.lease + i);
		assert_int_equal(lent_end(lent, &next), 0);
	}
	next = borrow_well(0);
	assert_int_equal(next.lease, first.lease);
	assert_true(next.generation > first.generation);
	assert_false(lease_token_same(&next.token, &first.token));
	/* Who knows the earlier one does nothing to this one. */
	assert_int_equal(lent_renew(lent, &first, 1000), -ESTALE);
	assert_int_equal(lent_end(lent, &first), -ESTALE);
	assert_int_equal(lent_renew(lent, &next, 1000), 0);
}

static void as_many_leases_run_as_there_are_numbers(void **state)
{
	uint32_t i;

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
	assert_int_equal(lent_end(lent, &wrong), -EACCES);
	assert_int_equal(lent_state(lent, &is), 0);
	assert_int_equal(is.borrower.pid, 4711);
	assert_int_equal(is.borrower.uid, 1000);
	/* What is none. */
	wrong = lease;
	wrong.lease = 0;
	assert_int_equal(lent_end(lent, &wrong), -ESTALE);
	wrong.lease = UINT32_MAX;
	assert_int_equal(lent_end(lent, &wrong), -ESTALE);
	wrong.lease = lease.lease + 1;
	assert_int_equal(lent_end(lent, &wrong), -ESTALE);
	/* The lender's own user needs none. */
	wrong = lease;
	wrong.token = (struct lease_token){ 0 };
	assert_int_equal(lent_end(lent, &wrong), 0);
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
	int fds[LEASE_FDS_MAX];
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
	assert_int_equal(lent_end(lent, &lease), 0);
	assert_int_equal(info_now().queue_pairs_free, FAKE_PAIRS - 1);
	assert_int_equal(fake_device_mappings(&device, lease.lease), 0);
	assert_int_equal(fake_device_mappings(&device, other.lease), 1);
	assert_int_equal(lent_memory(lent, &other, 16 * 4096, &first, &cnt, &granule, fds), 0);
	assert_int_equal(cnt, 16);
	packet_close_fds(fds, cnt);
	assert_int_equal(lent_unqueue_pair(lent, &other, qid), 0);
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
	before = device.commands[NVME_ADMIN_GET_LOG_PAGE];
	for (i = 0; i < 50; i++) {
		fake_device_run(&device);
		nudge();
		poll(NULL, 0, 1);
	}
	assert_int_equal(device.commands[NVME_ADMIN_GET_LOG_PAGE], before);
}

static void windows_have_addresses_that_do_not_come_twice(void **state)
{
	struct lent_lease lease = borrow_well(0);
	uint64_t addr, last = 0;
	int i;

	for (i = 0; i < 200; i++) {
		assert_int_equal(window(&lease, 3 * NVME_PAGE, &addr), 0);
		assert_true(addr >= last);
		last = addr + 3 * NVME_PAGE;
		assert_int_equal(lent_unwindow(lent, &lease, addr, NVME_PAGE), -ENOENT);
		assert_int_equal(lent_unwindow(lent, &lease, addr + NVME_PAGE, 3 * NVME_PAGE),
				 -ENOENT);
		assert_int_equal(lent_unwindow(lent, &lease, addr, 3 * NVME_PAGE), 0);
		assert_int_equal(lent_unwindow(lent, &lease, addr, 3 * NVME_PAGE), -ENOENT);
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
	int fds[LEASE_FDS_MAX], err;
	uint64_t addr, granule;
	uint32_t first, cnt;
	uint16_t qid;

	assert_int_equal(window(&lease, 2 * NVME_PAGE, &addr), 0);
	assert_int_equal(pair(&lease, addr, &qid), 0);
	pthread_mutex_lock(&device.lock);
	fake_device_end(&device, lease.lease);
	pthread_mutex_unlock(&device.lock);
	assert_int_equal(window(&lease, NVME_PAGE, &addr), -ESTALE);
	assert_int_equal(lent_unwindow(lent, &lease, addr, 2 * NVME_PAGE), -ESTALE);
	assert_int_equal(lent_unqueue_pair(lent, &lease, qid), -ESTALE);
	assert_int_equal(pair(&lease, addr, &qid), -ESTALE);
	assert_int_equal(lent_renew(lent, &lease, 1000), -ESTALE);
	/* Memory is the lender's to give, and is taken back with the lease. */
	err = lent_memory(lent, &lease, 4096, &first, &cnt, &granule, fds);
	assert_int_equal(err, 0);
	packet_close_fds(fds, cnt);
	assert_int_equal(lent_end(lent, &lease), 0);
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
	assert_int_equal(lent_unqueue_pair(lent, &other, qid), -ENOENT);
	assert_int_equal(lent_unqueue_pair(lent, &lease, 0), -ENOENT);
	assert_int_equal(lent_unqueue_pair(lent, &lease, UINT16_MAX), -ENOENT);
	assert_int_equal(lent_unqueue_pair(lent, &lease, (uint16_t)(qid + 1)), -ENOENT);
	assert_int_equal(lent_unqueue_pair(lent, &lease, qid), 0);
	assert_int_equal(lent_unqueue_pair(lent, &lease, qid), -ENOENT);
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

static void memory_of_the_device_is_lent_in_rows(void **state)
{
	struct lent_lease lease = borrow_well(LEASE_SHARED);
	struct lent_lease other = borrow_well(LEASE_SHARED);
	int fds[LEASE_FDS_MAX];
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
		uint32_t before = device.commands[opcode];

		assert_int_equal(lent_admin(lent, &sqe, data, &cqe), reads ? 0 : -EPERM);
		assert_int_equal(device.commands[opcode], before + reads);
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
	assert_int_equal(lent_unqueue_pair(lent, &a, qid), 0);
	assert_int_equal(lent_unwindow(lent, &a, addr, 2 * NVME_PAGE), 0);
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

	assert_int_equal(lent_end(lent, &lease), 0);
	device.leases[lease.lease].generation += 1000;
	lent_close(lent);
	remove_state();
	assert_int_equal(open_again(), 0);
	lease = borrow_well(0);
	assert_int_equal(lease.generation, device.leases[lease.lease].generation);
	assert_int_equal(lent_renew(lent, &lease, 1000), 0);
	restart();
	assert_int_equal(lent_renew(lent, &lease, 1000), 0);
}

/* An END of the owner before is under way when the next one takes over. */
static void lease_that_is_being_ended_is_waited_for(void **state)
{
	struct lent_lease lease = borrow_well(0);
	uint64_t addr;

	assert_int_equal(window(&lease, NVME_PAGE, &addr), 0);
	device.slow = true;
	assert_int_equal(lent_end(lent, &lease), -ETIMEDOUT);
	assert_true(device.leases[lease.lease].ends);
	wait_for_events(1);
	expect_event(0, WEFT_EVENT_DEVICE_REMOVED, 0);
	/* The keeper waits for it now, and has nothing to lend until then. */
	fake_device_run(&device);
	assert_int_equal(borrow(0), -ENODEV);
	fake_device_finish(&device);
	device.slow = false;
	wait_for_events(2);
	expect_event(1, WEFT_EVENT_DEVICE_ADDED, 0);
	assert_int_equal(borrow(0), 0);
}

static void lease_that_can_not_be_kept_in_mind_does_not_begin(void **state)
{
	char path[600];
	struct lent_lease lease = borrow_well(LEASE_SHARED);

	/* The new file can't be made: something else has its name. */
	snprintf(path, sizeof(path), "%s/leases-%016llx.json.new", folder,
		 (unsigned long long)lent_id(lent));
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(borrow(LEASE_SHARED), -EISDIR);
	assert_int_equal(device.commands[NVME_ADMIN_LEASE_ARM], 1);
	assert_int_equal(info_now().leases, 1);
	assert_true(lines >= 1);
	/* Ending needs no journal. */
	assert_int_equal(lent_end(lent, &lease), 0);
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
	int fds[LEASE_FDS_MAX];
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
	assert_int_equal(lent_end(lent, &b), -ENODEV);
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
	assert_int_equal(lent_unqueue_pair(lent, &a, qid), 0);
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
	for (i = 0; i < 5000 && !lines; i++) {
		fake_device_run(&device);
		nudge();
		poll(NULL, 0, 1);
	}
	assert_int_equal(lines, 1);
	fake_device_error(&device, of_b);
	fake_device_error(&device, of_a);
	reads = __atomic_load_n(&device.commands[NVME_ADMIN_GET_LOG_PAGE], __ATOMIC_RELAXED);
	for (i = 0; i < 20; i++) {
		fake_device_event(&device, bad);
		fake_device_run(&device);
		nudge();
		poll(NULL, 0, 1);
	}
	/* Not before a second has passed. */
	assert_int_equal(device.commands[NVME_ADMIN_GET_LOG_PAGE], reads);
	for (i = 0; i < 5000 && lines < 2; i++) {
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
	assert_int_equal(lent_end(lent, &a), 0);
	b = borrow_well(LEASE_SHARED);
	assert_int_equal(window(&b, 2 * NVME_PAGE, &addr), 0);
	assert_int_equal(pair(&b, addr, &of_b), 0);
	assert_int_equal(of_a, of_b);
	reads = __atomic_load_n(&device.commands[NVME_ADMIN_GET_LOG_PAGE], __ATOMIC_RELAXED);
	fake_device_run(&device);
	fake_device_event(&device, bad);
	for (i = 0; i < 5000 && __atomic_load_n(&device.commands[NVME_ADMIN_GET_LOG_PAGE],
						__ATOMIC_RELAXED) == reads;
	     i++) {
		fake_device_run(&device);
		nudge();
		poll(NULL, 0, 1);
	}
	assert_int_not_equal(device.commands[NVME_ADMIN_GET_LOG_PAGE], reads);
	/* Under the lock of what was read. */
	assert_int_equal(lent_renew(lent, &b, 1000), 0);
	assert_int_equal(lines, 0);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
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
		TEST(windows_have_addresses_that_do_not_come_twice),
		TEST(files_and_ranges_that_no_window_has_are_refused),
		TEST(what_a_controller_has_no_room_for_is_refused),
		TEST(lease_that_has_just_ended_is_stale_whatever_is_asked),
		TEST(queue_pair_is_its_leases),
		TEST(queue_pair_that_is_not_made_leaves_nothing),
		TEST(memory_of_the_device_is_lent_in_rows),
		TEST(admin_commands_of_borrowers_read_and_nothing_else),
		TEST(next_lender_has_the_leases_of_the_one_before),
		TEST(lender_without_a_journal_ends_what_runs),
		TEST(lease_begins_though_its_earlier_generations_are_not_known),
		TEST(lease_that_is_being_ended_is_waited_for),
		TEST(lease_that_can_not_be_kept_in_mind_does_not_begin),
		TEST(lease_that_did_not_begin_is_not_adopted),
		TEST(end_of_the_controller_is_the_end_of_its_leases),
		TEST(another_device_at_the_slot_is_another_one),
		TEST(controller_that_answers_again_goes_on_with_its_leases),
		TEST(leases_run_out_while_the_controller_does_not_answer),
		TEST(failed_controller_is_reset_and_its_leases_have_ended),
		TEST(no_lease_is_missed_in_a_log_of_several_parts),
		TEST(bad_doorbells_are_one_line_for_each_lease),
		TEST(bad_doorbell_of_a_lease_that_has_ended_is_not_the_next_ones),
		TEST(owner_that_was_killed_just_now_is_waited_for),
		TEST(lease_ends_with_the_last_connection_that_holds_it),
		TEST(leases_are_listed_by_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
