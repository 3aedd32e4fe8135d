/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of the admin queue, over a controller that is a model, in time that passes when somebody waits. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "admin.h"
#include "descriptors.h"
#include "fake_device.h"
#include "fake_time.h"
#include "log.h"

static struct fake_device device;
static struct function *function;
static struct admin *admin;
static unsigned open_before, lines;

/* In the place of the lender's. */
void lender_log(const char *format, ...)
{
	lines++;
}

static void run(void *arg)
{
	fake_device_run(arg);
}

static int setup(void **state)
{
	open_before = descriptors_open();
	lines = 0;
	admin = NULL;
	function = NULL;
	fake_device_init(&device);
	fake_time_idle(run, &device);
	return 0;
}

static void leave(void)
{
	if (admin)
		admin_close(admin);
	if (function)
		function->ops->close(function);
	admin = NULL;
	function = NULL;
}

static int teardown(void **state)
{
	leave();
	fake_device_fini(&device);
	return descriptors_open() == open_before ? 0 : -1;
}

/* A new owner. */
static int begin(bool *adopted)
{
	assert_int_equal(fake_device_open(&device, &function), 0);
	return admin_open(function, &admin, adopted);
}

static void begin_well(bool expect_adopted)
{
	bool adopted = !expect_adopted;

	assert_int_equal(begin(&adopted), 0);
	assert_int_equal(adopted, expect_adopted);
}

/* A command that says which one it is. */
static void identify_well(void)
{
	struct nvme_sqe sqe = { .opcode = NVME_ADMIN_IDENTIFY, .cdw10 = NVME_CNS_CONTROLLER };
	static struct nvme_id_ctrl page;

	memset(&page, 0xff, sizeof(page));
	assert_int_equal(admin_do(admin, "Identify", &sqe, &page, NULL), 0);
	assert_int_equal(page.vid, 0x1234);
	assert_memory_equal(page.sn, "FAKE1 ", 6);
}

static void controller_is_brought_up(void **state)
{
	begin_well(false);
	assert_int_equal(device.csts, NVME_CSTS_RDY);
	identify_well();
	assert_int_equal(lines, 0);
}

static void queues_wrap(void **state)
{
	int i;

	begin_well(false);
	for (i = 0; i < 200; i++)
		identify_well();
}

static void ids_wrap_beside_those_of_events(void **state)
{
	struct nvme_sqe sqe = { .opcode = NVME_ADMIN_GET_FEATURES, .cdw10 = 7 };
	struct nvme_cqe cqe;
	int i;

	begin_well(false);
	for (i = 0; i < 70000; i++) {
		assert_int_equal(admin_command(admin, &sqe, NULL, &cqe), 0);
		assert_int_equal(cqe.cid, sqe.cid);
		assert_true(sqe.cid < 0xff00);
	}
}

static void next_owner_goes_on_where_the_last_one_was(void **state)
{
	int owner, i;

	begin_well(false);
	for (owner = 0; owner < 70; owner++) {
		for (i = 0; i < owner; i++)
			identify_well();
		leave();
		begin_well(true);
		identify_well();
	}
	assert_int_equal(fake_device_mappings(&device, 0), 1);
}

static void controller_that_does_not_get_ready_is_given_up(void **state)
{
	uint64_t start = fake_time_ms();
	bool adopted;

	device.never_ready = true;
	assert_int_equal(begin(&adopted), -ETIMEDOUT);
	/* CAP.TO, and half a second. */
	assert_in_range(fake_time_ms() - start, 1000, 1100);
	admin = NULL;
}

static void failed_controller_is_reset_with_the_memory_that_an_owner_left(void **state)
{
	begin_well(false);
	leave();
	device.csts |= NVME_CSTS_CFS;
	begin_well(false);
	identify_well();
	assert_int_equal(fake_device_mappings(&device, 0), 1);
}

static void what_an_operation_fails_with_is_returned(void **state)
{
	bool adopted;
	int op, skip;

	for (op = 0; op < FAKE_OPS; op++)
		for (skip = 0; skip < 8; skip++) {
			int err;

			memset(device.err, 0, sizeof(device.err));
			device.err[op] = -ENOMEM;
			device.skip[op] = (uint32_t)skip;
			err = begin(&adopted);
			if (err)
				admin = NULL;
			assert_true(!err || err == -ENOMEM);
			leave();
		}
	memset(device.err, 0, sizeof(device.err));
	assert_int_equal(begin(&adopted), 0);
	identify_well();
}

static void command_that_is_not_completed_is_not_waited_for_without_end(void **state)
{
	struct nvme_sqe sqe = { .opcode = NVME_ADMIN_GET_FEATURES, .cdw10 = 7 };
	struct nvme_cqe cqe;
	uint32_t events;
	uint64_t start;

	begin_well(false);
	device.mute = true;
	start = fake_time_ms();
	assert_int_equal(admin_command(admin, &sqe, NULL, &cqe), -ETIMEDOUT);
	assert_in_range(fake_time_ms() - start, 5000, 5100);
	/* From then on nothing waits. */
	start = fake_time_ms();
	device.mute = false;
	assert_int_equal(admin_command(admin, &sqe, NULL, &cqe), -ETIMEDOUT);
	assert_int_equal(admin_do(admin, "one", &sqe, NULL, NULL), -ETIMEDOUT);
	assert_int_equal(admin_events(admin, &events), -ETIMEDOUT);
	assert_int_equal(admin_alive(admin), -ETIMEDOUT);
	assert_int_equal(fake_time_ms(), start);
	assert_int_equal(lines, 1);
}

/* The controller ends, fails or is reset while a command is waited for: that is seen long before it would be late. */
static void end_of_the_controller_ends_the_wait_for_a_command(void **state)
{
	struct nvme_sqe sqe = { .opcode = NVME_ADMIN_GET_FEATURES, .cdw10 = 7 };
	struct nvme_cqe cqe;
	uint64_t start;

	begin_well(false);
	device.mute = true;
	device.err[FAKE_READ] = -ENODEV;
	start = fake_time_ms();
	assert_int_equal(admin_command(admin, &sqe, NULL, &cqe), -ENODEV);
	assert_in_range(fake_time_ms() - start, 0, 50);
	leave();

	device.err[FAKE_READ] = 0;
	device.mute = false;
	begin_well(true);
	device.mute = true;
	device.csts |= NVME_CSTS_CFS;
	start = fake_time_ms();
	assert_int_equal(admin_command(admin, &sqe, NULL, &cqe), -ENOTRECOVERABLE);
	assert_in_range(fake_time_ms() - start, 0, 50);
	leave();

	device.mute = false;
	begin_well(false);
	assert_int_equal(admin_alive(admin), 0);
	device.csts = 0;
	assert_int_equal(admin_alive(admin), -ENOTRECOVERABLE);
}

static void status_is_the_callers_or_a_log_line(void **state)
{
	struct nvme_sqe sqe = { .opcode = NVME_ADMIN_GET_FEATURES, .cdw10 = 7 };
	struct nvme_cqe cqe;

	begin_well(false);
	device.status[NVME_ADMIN_GET_FEATURES] = NVME_SC_INVALID_FIELD;
	assert_int_equal(admin_command(admin, &sqe, NULL, &cqe), 0);
	assert_int_equal(NVME_CQE_STATUS(cqe.status), NVME_SC_INVALID_FIELD);
	assert_int_equal(lines, 0);
	assert_int_equal(admin_do(admin, "one", &sqe, NULL, NULL), -EIO);
	assert_int_equal(lines, 1);
}

static void expect_events(uint32_t expect)
{
	uint32_t types = ~expect;

	assert_int_equal(admin_events(admin, &types), 0);
	assert_int_equal(types, expect);
}

static void events_are_told_once_each(void **state)
{
	const uint32_t ended = NVME_EVENT(NVME_EVENT_TYPE_VENDOR, 1, NVME_LOG_LEASES);
	const uint32_t bad = NVME_EVENT(NVME_EVENT_TYPE_ERROR, 1, NVME_LOG_ERROR);

	begin_well(false);
	fake_device_run(&device);
	expect_events(0);
	fake_device_event(&device, ended);
	expect_events(1u << NVME_EVENT_TYPE_VENDOR);
	fake_device_run(&device);
	expect_events(0);
	fake_device_event(&device, bad);
	/* It is there when a command was waited for meanwhile, too. */
	identify_well();
	expect_events(1u << NVME_EVENT_TYPE_ERROR);
	expect_events(0);
}

/* Every owner asks, and the controller keeps what those before have asked for, up to a limit. */
static void owners_in_plenty_hear_events(void **state)
{
	const uint32_t ended = NVME_EVENT(NVME_EVENT_TYPE_VENDOR, 1, NVME_LOG_LEASES);
	int i;

	begin_well(false);
	for (i = 0; i < 10; i++) {
		fake_device_run(&device);
		leave();
		begin_well(true);
	}
	for (i = 0; i < 20; i++) {
		device.masked = 0;
		fake_device_event(&device, ended);
		fake_device_run(&device);
		expect_events(1u << NVME_EVENT_TYPE_VENDOR);
		fake_device_run(&device);
		expect_events(0);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(controller_is_brought_up),
		TEST(queues_wrap),
		TEST(ids_wrap_beside_those_of_events),
		TEST(next_owner_goes_on_where_the_last_one_was),
		TEST(controller_that_does_not_get_ready_is_given_up),
		TEST(failed_controller_is_reset_with_the_memory_that_an_owner_left),
		TEST(what_an_operation_fails_with_is_returned),
		TEST(command_that_is_not_completed_is_not_waited_for_without_end),
		TEST(end_of_the_controller_ends_the_wait_for_a_command),
		TEST(status_is_the_callers_or_a_log_line),
		TEST(events_are_told_once_each),
		TEST(owners_in_plenty_hear_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
