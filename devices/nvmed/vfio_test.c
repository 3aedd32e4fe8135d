/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The namespace of a real controller, whose place a model has: the way of data, and what does not go on */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "fake/card_model.h"
#include "nvme/lease.h"
#include "rig_io.h"

/* Of a command that never ends, and of one that is to end on a machine that does much else */
#define SHORT_MS   300
#define LONG_MS	   20000
#define LEASE	   7u
#define LEASE_ADDR 0x500000000ull

static int open_card(void **state, uint32_t deadline_ms, bool has_cmb)
{
	const struct backend_vfio from = { "0000:01:00.0", deadline_ms, false };
	static const struct nvmed_config config = { .queue_cnt = 8,
						    .block = 512,
						    .granule = 64 << 10,
						    .spin_ns = 100000,
						    .serial = "RIG1" };
	struct rig_io *io = calloc(1, sizeof(*io));
	char why[BACKEND_WHY_MAX];
	struct backend *b;

	assert_non_null(io);
	memset(&model, 0, sizeof(model));
	model.oncs = NVME_ONCS_WRITE_ZEROES;
	model.has_cmb = has_cmb;
	assert_int_equal(backend_vfio_open(&from, &b, why), 0);
	rig_open_with(&io->rig, b, &config);
	assert_int_equal(host_enable(&io->rig.h, &io->rig.admin, 64), 0);
	rig_pair(&io->rig, &io->q, 1, 64, 0);
	*state = io;
	return 0;
}

static int setup(void **state)
{
	return open_card(state, LONG_MS, false);
}

static int setup_stalls(void **state)
{
	return open_card(state, SHORT_MS, false);
}

static int setup_cmb(void **state)
{
	return open_card(state, LONG_MS, true);
}

static int setup_cmb_stalls(void **state)
{
	return open_card(state, SHORT_MS, true);
}

static int teardown(void **state)
{
	rig_io_teardown(state);
	/* Whatever happened: nothing was led astray, and nothing is left. */
	assert_int_equal(model.wild, 0);
	assert_int_equal(model.under_way, 0);
	assert_int_equal(model.mapped, 0);
	return 0;
}

/* While the controller begins anew commands end with Namespace Not Ready. */
static uint16_t rw_until_ready(struct rig_io *io)
{
	uint64_t buf = host_take(&io->rig.h, 4096);
	time_t end = time(NULL) + 20;
	uint16_t status;

	do
		status = rig_rw(io, NVME_IO_READ, 0, 8, buf);
	while (status == NVME_SC_NOT_READY && time(NULL) < end);
	return status;
}

static void data_is_what_was_written(void **state)
{
	static const uint32_t sizes[] = { 1, 7, 8, 9, 16, 17, 127, 128, 129, 256, 300, 2048 };
	struct rig_io *io = *state;
	struct host *h = &io->rig.h;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (uint64_t offset = 0; offset < 4096; offset += 1532) {
			size_t len = sizes[i] * 512ull;
			uint64_t from = host_take(h, len + 4096) + offset;
			uint64_t to = host_take(h, len + 4096) + offset;

			rig_fill(host_at(h, from), len, (unsigned)(i + offset));
			assert_int_equal(rig_rw(io, NVME_IO_WRITE, 0, sizes[i], from), 0);
			assert_memory_equal(model.medium, host_at(h, from), len);
			assert_int_equal(rig_rw(io, NVME_IO_READ, 0, sizes[i], to), 0);
			assert_memory_equal(host_at(h, to), host_at(h, from), len);
		}
}

static void what_the_device_lacks_is_refused(void **state)
{
	struct rig_io *io = *state;
	uint64_t buf = host_take(&io->rig.h, 4096);

	memset(model.medium, 0xaa, MODEL_LEN);
	assert_int_equal(rig_rw(io, NVME_IO_COMPARE, 0, 1, buf), NVME_SC_INVALID_OPCODE);
	assert_int_equal(rig_rw(io, NVME_IO_DSM, 0, 1, buf), NVME_SC_INVALID_OPCODE);
	assert_int_equal(rig_rw(io, NVME_IO_WRITE_ZEROES, 4, 8, buf), 0);
	assert_int_equal(model.medium[4 * 512 - 1], 0xaa);
	assert_int_equal(model.medium[4 * 512], 0);
	assert_int_equal(model.medium[12 * 512 - 1], 0);
	assert_int_equal(model.medium[12 * 512], 0xaa);
}

static void identify_says_what_the_device_is(void **state)
{
	struct rig_io *io = *state;
	uint64_t buf = host_take(&io->rig.h, 4096);
	struct nvme_id_ctrl *ctrl = host_at(&io->rig.h, buf);
	struct nvme_sqe sqe = { .opcode = NVME_ADMIN_IDENTIFY,
				.prp1 = buf,
				.cdw10 = NVME_CNS_CONTROLLER };

	assert_int_equal(rig_admin(&io->rig, sqe, NULL), 0);
	assert_memory_equal(ctrl->mn, "A model ", 8);
	assert_memory_equal(ctrl->fr, "F1      ", 8);
	assert_int_equal(ctrl->vid, 0x1234);
	assert_int_equal(ctrl->oncs & NVME_ONCS_COMPARE, 0);
	assert_int_equal(ctrl->oncs & NVME_ONCS_WRITE_ZEROES, NVME_ONCS_WRITE_ZEROES);
}

static const void *get_log(struct rig_io *io, uint8_t id, uint32_t len)
{
	uint64_t buf = host_take(&io->rig.h, 4096);
	struct nvme_sqe sqe = { .opcode = NVME_ADMIN_GET_LOG_PAGE,
				.nsid = UINT32_MAX,
				.prp1 = buf,
				.cdw10 = id | (len / 4 - 1) << 16 };

	assert_int_equal(rig_admin(&io->rig, sqe, NULL), 0);
	return host_at(&io->rig.h, buf);
}

static void logs_are_those_of_the_device(void **state)
{
	struct rig_io *io = *state;
	const struct nvme_smart_log *smart;
	const struct nvme_error_log *errors;
	const struct nvme_firmware_log *firmware;
	struct nvme_sqe wrong = { .opcode = NVME_ADMIN_CREATE_SQ, .cdw10 = 0 };

	smart = get_log(io, NVME_LOG_SMART, sizeof(*smart));
	assert_int_equal(smart->temperature[0] | smart->temperature[1] << 8, 333);
	assert_int_equal(smart->host_reads[0], 1234);
	errors = get_log(io, NVME_LOG_ERROR, 2 * sizeof(*errors));
	assert_int_equal(errors[0].count, 0);

	/* What the device has logged, and what the controller itself has refused, is one log. */
	model.errors = 9000;
	smart = get_log(io, NVME_LOG_SMART, sizeof(*smart));
	assert_int_equal(smart->error_log_entries[0], 1);
	assert_int_not_equal(rig_admin(&io->rig, wrong, NULL), 0);
	errors = get_log(io, NVME_LOG_ERROR, 4 * sizeof(*errors));
	assert_int_equal(errors[0].count, 2);
	assert_int_equal(errors[0].status >> 1 & 0x7ff, NVME_SC_INVALID_QID);
	assert_int_equal(errors[1].count, 1);
	assert_int_equal(errors[1].status, NVME_SC_INTERNAL << 1);
	assert_int_equal(errors[2].count, 0);
	firmware = get_log(io, NVME_LOG_FIRMWARE, sizeof(*firmware));
	assert_memory_equal(firmware->frs[0], "F1      ", 8);
}

#define GRANULE	   (64u << 10)
#define CMB_WINDOW 0x700000000ull

static int granule_name(struct rig_io *io, uint32_t index, bool fresh)
{
	struct slot_message m = { .kind = SLOT_REGION,
				  .index = 2,
				  .addr = (uint64_t)index * GRANULE,
				  .len = GRANULE,
				  .value = fresh };
	int fds[SLOT_FDS_MAX];

	assert_int_equal(host_ask(&io->rig.h, &m, NULL, 0, fds), 0);
	return fds[0];
}

/* From blocks to blocks, and no byte of it is in memory of the host. */
static void device_has_its_own_memory_in_windows(void **state)
{
	struct rig_io *io = *state;
	struct host *h = &io->rig.h;
	uint32_t rw_access = SLOT_DMA_READ | SLOT_DMA_WRITE, mapped = model.mapped;
	int fd = granule_name(io, 1, true), again;

	assert_int_equal(io->rig.h.attached.addr, MODEL_CMB);
	assert_int_equal(io->rig.h.attached.len, GRANULE);
	rig_fill(model.medium, GRANULE, 9);
	assert_ptr_equal(mmap(NULL, GRANULE, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	assert_int_equal(host_map(h, 0, CMB_WINDOW, GRANULE / 2, rw_access, fd), -EINVAL);
	assert_int_equal(host_map(h, 0, CMB_WINDOW, GRANULE, rw_access, fd), 0);
	assert_int_equal(model.mapped, mapped);
	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, GRANULE / 512, CMB_WINDOW), 0);
	assert_memory_equal(model.cmb + GRANULE, model.medium, GRANULE);
	assert_int_equal(rig_rw(io, NVME_IO_WRITE, 1024, GRANULE / 512, CMB_WINDOW), 0);
	assert_memory_equal(model.medium + 1024 * 512, model.medium, GRANULE);
	assert_int_equal(host_unmap(h, 0, CMB_WINDOW, GRANULE), 0);
	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, 8, CMB_WINDOW), NVME_SC_DATA_TRANSFER);

	/* For the next one it is zeros, and has another name. */
	again = granule_name(io, 1, true);
	for (uint32_t i = 0; i < GRANULE; i++)
		assert_int_equal(model.cmb[GRANULE + i], 0);
	assert_int_equal(host_map(h, 0, CMB_WINDOW, GRANULE, rw_access, fd), -EBADF);
	assert_int_equal(host_map(h, 0, CMB_WINDOW, GRANULE, SLOT_DMA_READ, again), 0);
	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, 8, CMB_WINDOW), NVME_SC_DATA_TRANSFER);
	close(fd);
	close(again);
}

/* As who has had a granule, and given it back without closing what leads there. */
static void granule_is_out_of_reach_by_its_old_windows(void **state)
{
	struct slot_message renew = {
		.kind = SLOT_REGION, .index = 2, .addr = GRANULE, .len = GRANULE, .value = 1
	};
	struct slot_message again = renew;
	struct rig_io *io = *state;
	struct host *h = &io->rig.h;
	int fd = granule_name(io, 1, true);
	struct nvme_sqe sqe;
	struct nvme_cqe cqe;

	assert_int_equal(host_map(h, 0, CMB_WINDOW, GRANULE, SLOT_DMA_WRITE, fd), 0);
	assert_int_equal(host_map(h, 0, CMB_WINDOW + GRANULE, GRANULE, SLOT_DMA_READ, fd), 0);
	rig_fill(model.medium, 4096, 11);
	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, 8, CMB_WINDOW), 0);
	assert_int_equal(rig_rw(io, NVME_IO_WRITE, 8, 8, CMB_WINDOW + GRANULE), 0);
	/* Not while the device may still be at it. */
	model.stalls = true;
	sqe = host_rw(h, NVME_IO_READ, 0, 8, CMB_WINDOW, 4096);
	host_submit(&io->q, &sqe);
	host_ring(&io->q);
	rig_rounds(&io->rig, 100);
	assert_int_equal(host_ask(h, &renew, NULL, 0, NULL), -EBUSY);
	assert_true(host_wait(&io->q, &cqe));
	model.stalls = false;
	assert_int_equal(rw_until_ready(io), 0);
	assert_int_equal(host_ask(h, &again, NULL, 0, NULL), 0);
	/* What the next one has there is not this one's to read, or to overwrite. */
	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, 8, CMB_WINDOW), NVME_SC_DATA_TRANSFER);
	assert_int_equal(rig_rw(io, NVME_IO_WRITE, 8, 8, CMB_WINDOW + GRANULE),
			 NVME_SC_DATA_TRANSFER);
	for (uint32_t i = 0; i < GRANULE; i++)
		assert_int_equal(model.cmb[GRANULE + i], 0);
	assert_int_equal(host_unmap(h, 0, CMB_WINDOW, GRANULE), -ENOENT);
	close(fd);
}

static void memory_of_a_device_is_there_after_a_reset(void **state)
{
	struct rig_io *io = *state;
	int fd = granule_name(io, 0, true);

	assert_int_equal(host_map(&io->rig.h, 0, CMB_WINDOW, GRANULE, SLOT_DMA_WRITE, fd), 0);
	model.stalls = true;
	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, 128, CMB_WINDOW), NVME_SC_INTERNAL);
	model.stalls = false;
	assert_int_equal(rw_until_ready(io), 0);
	rig_fill(model.medium, GRANULE, 10);
	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, 128, CMB_WINDOW), 0);
	assert_memory_equal(model.cmb, model.medium, GRANULE);
	close(fd);
}

static void wild_pages_do_not_reach_the_device(void **state)
{
	struct rig_io *io = *state;

	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, 8, 1 << 20), NVME_SC_DATA_TRANSFER);
	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, 8, HOST_BASE - 4096),
			 NVME_SC_DATA_TRANSFER);
}

static void forged_completions_end_nothing(void **state)
{
	struct rig_io *io = *state;
	uint64_t buf = host_take(&io->rig.h, 65536);

	model.forges = true;
	for (int i = 0; i < 100; i++) {
		rig_fill(host_at(&io->rig.h, buf), 65536, (unsigned)i);
		assert_int_equal(rig_rw(io, NVME_IO_WRITE, 8, 128, buf), 0);
		assert_memory_equal(model.medium + 4096, host_at(&io->rig.h, buf), 65536);
	}
}

static void command_that_does_not_end_resets_the_controller(void **state)
{
	struct rig_io *io = *state;
	uint64_t buf = host_take(&io->rig.h, 65536);

	model.stalls = true;
	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, 128, buf), NVME_SC_INTERNAL);
	model.stalls = false;
	assert_int_equal(rw_until_ready(io), 0);
	assert_true(model.stops >= 1);
	assert_int_equal(model.resets, 1); /* the one at the beginning */
}

static void controller_that_does_not_stop_is_reset_as_a_function(void **state)
{
	struct rig_io *io = *state;
	uint64_t buf = host_take(&io->rig.h, 65536);

	model.stalls = model.stuck = true;
	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, 128, buf), NVME_SC_INTERNAL);
	model.stalls = model.stuck = false;
	assert_int_equal(rw_until_ready(io), 0);
	assert_int_equal(model.resets, 2);
}

static void controller_that_does_not_begin_accesses_nothing(void **state)
{
	struct rig_io *io = *state;
	uint64_t buf = host_take(&io->rig.h, 4096);
	time_t end = time(NULL) + 20;

	model.stalls = model.never_ready = true;
	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, 8, buf), NVME_SC_INTERNAL);
	while (model.may_access && time(NULL) < end)
		rig_rounds(&io->rig, 1);
	assert_false(model.may_access);
	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, 8, buf), NVME_SC_NOT_READY);
}

/* A lease whose memory the device would write to, some day: it gets it back only after that day can't come. */
static void lease_ends_once_its_memory_is_out_of_reach(void **state)
{
	struct rig_io *io = *state;
	struct rig *r = &io->rig;
	uint32_t before = model.mapped;
	uint32_t result = 1;
	uint8_t *memory;
	int fd;

	assert_int_equal(rig_admin(r,
				   (struct nvme_sqe){ .opcode = NVME_ADMIN_LEASE_ARM,
						      .cdw10 = LEASE,
						      .cdw11 = 1,
						      .cdw12 = 60000 },
				   NULL),
			 0);
	memory = host_memory(1 << 20, &fd);
	assert_non_null(memory);
	assert_int_equal(
		host_map(&r->h, LEASE, LEASE_ADDR, 1 << 20, SLOT_DMA_READ | SLOT_DMA_WRITE, fd),
		0);
	assert_int_equal(model.mapped, before + 1);
	{
		struct nvme_sqe cq = { .opcode = NVME_ADMIN_CREATE_CQ,
				       .prp1 = LEASE_ADDR,
				       .cdw10 = 2 | 15 << 16,
				       .cdw11 = 1,
				       .cdw14 = LEASE };
		struct nvme_sqe sq = { .opcode = NVME_ADMIN_CREATE_SQ,
				       .prp1 = LEASE_ADDR + 4096,
				       .cdw10 = 2 | 15 << 16,
				       .cdw11 = 1 | 2 << 16,
				       .cdw14 = LEASE };
		struct nvme_sqe *entry = (struct nvme_sqe *)(memory + 4096);

		assert_int_equal(rig_admin(r, cq, NULL), 0);
		assert_int_equal(rig_admin(r, sq, NULL), 0);
		model.stalls = model.stuck = true;
		*entry = (struct nvme_sqe){ .opcode = NVME_IO_READ,
					    .nsid = 1,
					    .prp1 = LEASE_ADDR + 65536,
					    .cdw12 = 7 };
		host_write(&r->h, NVME_REG_DOORBELLS + 2 * 4096, 1);
	}
	rig_rounds(r, 100);
	while (result)
		assert_int_equal(rig_admin(r,
					   (struct nvme_sqe){ .opcode = NVME_ADMIN_LEASE_END,
							      .cdw10 = LEASE,
							      .cdw11 = 1 },
					   &result),
				 0);
	assert_int_equal(model.mapped, before);
	assert_int_equal(model.resets, 2);
	model.stalls = model.stuck = false;
	munmap(memory, 1 << 20);
	close(fd);
}

static void device_that_is_asked_back_ends_the_controller(void **state)
{
	struct rig_io *io = *state;
	time_t end = time(NULL) + 20;

	model_ask_back();
	while (!io->rig.loop.stop && time(NULL) < end)
		rig_rounds(&io->rig, 1);
	assert_true(io->rig.loop.stop);
	assert_false(model.may_access);
}

static void device_that_vanishes_ends_the_controller(void **state)
{
	struct rig_io *io = *state;
	time_t end = time(NULL) + 20;

	model_vanish();
	while (!io->rig.loop.stop && time(NULL) < end)
		rig_rounds(&io->rig, 1);
	assert_true(io->rig.loop.stop);
}

int main(void)
{
#define TEST_WITH(name, setup) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST(name)	       TEST_WITH(name, setup)
	const struct CMUnitTest tests[] = {
		TEST(data_is_what_was_written),
		TEST(what_the_device_lacks_is_refused),
		TEST(identify_says_what_the_device_is),
		TEST(logs_are_those_of_the_device),
		TEST_WITH(device_has_its_own_memory_in_windows, setup_cmb),
		TEST_WITH(granule_is_out_of_reach_by_its_old_windows, setup_cmb_stalls),
		TEST_WITH(memory_of_a_device_is_there_after_a_reset, setup_cmb_stalls),
		TEST(wild_pages_do_not_reach_the_device),
		TEST(forged_completions_end_nothing),
		TEST_WITH(command_that_does_not_end_resets_the_controller, setup_stalls),
		TEST_WITH(controller_that_does_not_stop_is_reset_as_a_function, setup_stalls),
		TEST_WITH(controller_that_does_not_begin_accesses_nothing, setup_stalls),
		TEST_WITH(lease_ends_once_its_memory_is_out_of_reach, setup_stalls),
		TEST(device_that_is_asked_back_ends_the_controller),
		TEST(device_that_vanishes_ends_the_controller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
