/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* I/O commands over each backend, through the slot: their data, and what is wrong with them */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "rig_io.h"

#define BLOCKS (RIG_LEN / 512)

static bool zeros(const uint8_t *at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (at[i])
			return false;
	return true;
}

static void what_was_written_is_read(void **state)
{
	/* Lengths in blocks, and where in its page the data begins: one page, two, lists, chained lists are below. */
	static const struct {
		uint32_t blocks;
		uint32_t at;
	} cases[] = { { 1, 0 },	  { 8, 0 },	{ 8, 512 },	{ 8, 4 },
		      { 16, 0 },  { 16, 2048 }, { 17, 4092 },	{ 64, 0 },
		      { 256, 8 }, { 2048, 0 },	{ 2048, 1024 }, { 300, 3072 } };
	struct rig_io *io = *state;
	struct host *h = &io->rig.h;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t len = cases[i].blocks * 512ull, lba = 100 + 3000 * i;
		uint64_t from, to;

		h->used = 1 << 20;
		from = host_take(h, len + NVME_PAGE) + cases[i].at;
		to = host_take(h, len + NVME_PAGE) + cases[i].at;

		if (lba + cases[i].blocks > BLOCKS)
			lba = 7;
		rig_fill(host_at(h, from), len, (unsigned)i);
		assert_int_equal(rig_rw(io, NVME_IO_WRITE, lba, cases[i].blocks, from), 0);
		assert_int_equal(rig_rw(io, NVME_IO_READ, lba, cases[i].blocks, to), 0);
		assert_memory_equal(host_at(h, from), host_at(h, to), len);
		assert_int_equal(rig_rw(io, NVME_IO_COMPARE, lba, cases[i].blocks, from), 0);
		((uint8_t *)host_at(h, from))[len - 1] ^= 1;
		assert_int_equal(rig_rw(io, NVME_IO_COMPARE, lba, cases[i].blocks, from),
				 NVME_SC_COMPARE_FAILURE);
		assert_int_equal(rig_rw(io, NVME_IO_FLUSH, 0, 1, 0), 0);
	}
}

static void a_list_may_be_chained_and_begin_anywhere(void **state)
{
	struct rig_io *io = *state;
	struct host *h = &io->rig.h;
	uint64_t len = 64 * NVME_PAGE, data = host_take(h, len),
		 lists = host_take(h, 2 * NVME_PAGE);
	uint64_t first = lists + NVME_PAGE - 16, *list = host_at(h, first);
	struct nvme_sqe sqe = { .opcode = NVME_IO_WRITE,
				.nsid = 1,
				.prp1 = data,
				.prp2 = first,
				.cdw12 = (uint32_t)(len / 512) - 1 };
	uint64_t to = host_take(h, len);

	rig_fill(host_at(h, data), len, 9);
	list[0] = data + NVME_PAGE;
	list[1] = lists + NVME_PAGE;
	for (int i = 0; i < 62; i++)
		list[2 + i] = data + (uint64_t)(2 + i) * NVME_PAGE;
	assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, (uint32_t)(len / 512), to), 0);
	assert_memory_equal(host_at(h, data), host_at(h, to), len);
}

static void a_list_that_loops_ends_with_the_data(void **state)
{
	struct rig_io *io = *state;
	struct host *h = &io->rig.h;
	uint64_t data = host_take(h, NVME_PAGE), loop = host_take(h, NVME_PAGE),
		 *list = host_at(h, loop);
	struct nvme_sqe sqe = { .opcode = NVME_IO_READ,
				.nsid = 1,
				.prp1 = data,
				.prp2 = loop,
				.cdw12 = (1 << 20) / 512 - 1 };

	for (int i = 0; i < 512; i++)
		list[i] = i % 2 ? loop
				: data; /* also over the list itself, while it is walked */
	assert_true(host_run(&io->q, &sqe, NULL) != 0xffff);
	for (int i = 0; i < 512; i++)
		list[i] = loop;
	sqe.prp2 = loop + NVME_PAGE - 8;
	assert_true(host_run(&io->q, &sqe, NULL) != 0xffff);
	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, 8, data), 0);
}

static void what_is_wrong_with_a_prp_is_said(void **state)
{
	struct rig_io *io = *state;
	struct host *h = &io->rig.h;
	uint64_t data = host_take(h, 4 * NVME_PAGE), list = host_take(h, NVME_PAGE);
	struct nvme_sqe sqe = { .opcode = NVME_IO_READ, .nsid = 1, .prp1 = data + 2, .cdw12 = 7 };

	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_INVALID_PRP_OFFSET);
	sqe.prp1 = 0x1000;
	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_DATA_TRANSFER);
	sqe.prp1 = UINT64_MAX - 4095;
	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_DATA_TRANSFER);
	sqe.prp1 = data;
	sqe.cdw12 = 15;
	sqe.prp2 = data + NVME_PAGE + 512;
	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_INVALID_PRP_OFFSET);
	sqe.prp2 = 0;
	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_DATA_TRANSFER);
	sqe.cdw12 = 31;
	sqe.prp2 = list + 4;
	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_INVALID_PRP_OFFSET);
	sqe.prp2 = 0x5000;
	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_DATA_TRANSFER);
	sqe.prp2 = list;
	((uint64_t *)host_at(h, list))[0] = data + 8;
	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_INVALID_PRP_OFFSET);
	((uint64_t *)host_at(h, list))[0] = HOST_BASE + HOST_MEMORY_LEN;
	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_DATA_TRANSFER);
	sqe.prp1 = HOST_BASE + HOST_MEMORY_LEN - NVME_PAGE; /* over the end of the window */
	sqe.prp2 = HOST_BASE + HOST_MEMORY_LEN;
	sqe.cdw12 = 15;
	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_DATA_TRANSFER);
}

static void what_is_wrong_with_a_command_is_said(void **state)
{
	struct rig_io *io = *state;
	uint64_t data = host_take(&io->rig.h, 8 * NVME_PAGE);
	struct nvme_sqe good = host_rw(&io->rig.h, NVME_IO_READ, 0, 8, data, 4096), sqe;

	sqe = good;
	sqe.nsid = 2;
	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_INVALID_NAMESPACE);
	sqe.nsid = 0;
	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_INVALID_NAMESPACE);
	sqe.nsid = UINT32_MAX;
	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_INVALID_NAMESPACE);
	sqe.opcode = NVME_IO_FLUSH;
	assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
	sqe = good;
	for (int flag = 0; flag < 8; flag++) {
		sqe.flags = (uint8_t)(1 << flag);
		assert_int_equal(host_run(&io->q, &sqe, NULL),
				 flag < 2 || flag > 5 ? NVME_SC_INVALID_FIELD : 0);
	}
	sqe = good;
	sqe.opcode = 0x7f;
	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_INVALID_OPCODE);
	sqe = good;
	sqe.cdw10 = BLOCKS - 7;
	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_LBA_RANGE);
	sqe.cdw10 = BLOCKS - 8;
	assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
	sqe.cdw10 = sqe.cdw11 = UINT32_MAX;
	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_LBA_RANGE);
	sqe = good;
	sqe.cdw12 = 2048;
	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_INVALID_FIELD);
}

static void write_zeroes_and_deallocate_leave_zeros(void **state)
{
	struct rig_io *io = *state;
	struct host *h = &io->rig.h;
	uint64_t len = 1 << 20, data = host_take(h, len), ranges = host_take(h, NVME_PAGE);
	struct nvme_dsm_range *r = host_at(h, ranges);
	struct nvme_sqe sqe = {
		.opcode = NVME_IO_WRITE_ZEROES, .nsid = 1, .cdw10 = 3, .cdw12 = 99
	};
	uint8_t *at = host_at(h, data);

	rig_fill(at, len, 5);
	assert_int_equal(rig_rw(io, NVME_IO_WRITE, 0, 2048, data), 0);
	assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, 2048, data), 0);
	assert_false(zeros(at, 3 * 512));
	assert_true(zeros(at + 3 * 512, 100 * 512));
	assert_false(zeros(at + 103 * 512, 512));
	sqe.cdw10 = 200;
	sqe.cdw12 = 99 | NVME_RW_DEAC;
	assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
	r[0] = (struct nvme_dsm_range){ .blocks = 10, .lba = 1000 };
	r[1] = (struct nvme_dsm_range){ .blocks = 0, .lba = 5 };
	r[2] = (struct nvme_dsm_range){ .blocks = 500, .lba = 1100 };
	sqe = (struct nvme_sqe){ .opcode = NVME_IO_DSM, .nsid = 1, .prp1 = ranges, .cdw10 = 2 };
	assert_int_equal(host_run(&io->q, &sqe, NULL), 0); /* no deallocation */
	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, 2048, data), 0);
	assert_true(zeros(at + 200 * 512, 100 * 512));
	assert_false(zeros(at + 1000 * 512, 512));
	sqe.cdw11 = NVME_DSM_DEALLOCATE;
	assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, 2048, data), 0);
	assert_false(zeros(at + 999 * 512, 512));
	assert_true(zeros(at + 1000 * 512, 10 * 512));
	assert_false(zeros(at + 1010 * 512, 512));
	assert_true(zeros(at + 1100 * 512, 500 * 512));
	assert_false(zeros(at + 1600 * 512, 512));
	r[1] = (struct nvme_dsm_range){ .blocks = 2, .lba = BLOCKS - 1 };
	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_LBA_RANGE);
	sqe.prp1 = 0x1000;
	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_DATA_TRANSFER);
	sqe = (struct nvme_sqe){
		.opcode = NVME_IO_WRITE_ZEROES, .nsid = 1, .cdw10 = BLOCKS, .cdw12 = 0
	};
	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_LBA_RANGE);
}

/* A range of Dataset Management that lies in two pages, and as many ranges as there may be */
static void ranges_may_be_in_two_pages(void **state)
{
	struct rig_io *io = *state;
	struct host *h = &io->rig.h;
	uint64_t pages = host_take(h, 3 * NVME_PAGE), data = host_take(h, 1 << 20);
	struct nvme_sqe sqe = { .opcode = NVME_IO_DSM,
				.nsid = 1,
				.prp1 = pages + 2056,
				.prp2 = pages + NVME_PAGE,
				.cdw10 = 255,
				.cdw11 = NVME_DSM_DEALLOCATE };
	struct nvme_dsm_range r;

	rig_fill(host_at(h, data), 1 << 20, 1);
	assert_int_equal(rig_rw(io, NVME_IO_WRITE, 0, 2048, data), 0);
	for (uint32_t i = 0; i < 256; i++) {
		r = (struct nvme_dsm_range){ .blocks = 1, .lba = 8ull * i };
		memcpy((uint8_t *)host_at(h, pages) + 2056 + i * sizeof(r), &r, sizeof(r));
	}
	assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, 2048, data), 0);
	for (uint32_t i = 0; i < 256; i++) {
		assert_true(zeros((uint8_t *)host_at(h, data) + 4096 * i, 512));
		assert_false(zeros((uint8_t *)host_at(h, data) + 4096 * i + 512, 512));
	}
}

static void what_is_read_goes_to_all_files_of_a_multicast(void **state)
{
	struct rig_io *io = *state;
	struct host *h = &io->rig.h;
	uint8_t *copies[3];
	int fds[3];
	struct slot_message m = { .kind = SLOT_MAP,
				  .access = SLOT_DMA_READ | SLOT_DMA_WRITE,
				  .addr = 0x10000,
				  .len = 64 << 10 };
	uint64_t data = host_take(h, 64 << 10);
	struct nvme_sqe sqe;

	for (int i = 0; i < 3; i++)
		copies[i] = host_memory(64 << 10, &fds[i]);
	assert_int_equal(host_ask(h, &m, fds, 3, NULL), 0);
	rig_fill(host_at(h, data), 64 << 10, 3);
	assert_int_equal(rig_rw(io, NVME_IO_WRITE, 0, 128, data), 0);
	sqe = host_rw(h, NVME_IO_READ, 0, 128, 0x10000, 64 << 10);
	assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
	for (int i = 0; i < 3; i++)
		assert_memory_equal(copies[i], host_at(h, data), 64 << 10);
	/* What is written comes from the first. */
	memset(copies[1], 1, 512);
	sqe = host_rw(h, NVME_IO_COMPARE, 0, 128, 0x10000, 64 << 10);
	assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

static void access_is_what_the_window_allows(void **state)
{
	struct rig_io *io = *state;
	struct host *h = &io->rig.h;
	struct nvme_sqe sqe;
	int fd;

	assert_non_null(host_memory(NVME_PAGE, &fd));
	assert_int_equal(host_map(h, 0, 0x20000, NVME_PAGE, SLOT_DMA_READ, fd), 0);
	assert_int_equal(host_map(h, 0, 0x30000, NVME_PAGE, SLOT_DMA_WRITE, fd), 0);
	sqe = host_rw(h, NVME_IO_READ, 0, 8, 0x20000, 4096);
	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_DATA_TRANSFER);
	sqe.opcode = NVME_IO_WRITE;
	assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
	sqe = host_rw(h, NVME_IO_WRITE, 0, 8, 0x30000, 4096);
	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_DATA_TRANSFER);
	sqe.opcode = NVME_IO_READ;
	assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
	assert_int_equal(host_unmap(h, 0, 0x30000, NVME_PAGE), 0);
	assert_int_equal(host_run(&io->q, &sqe, NULL), NVME_SC_DATA_TRANSFER);
	close(fd);
}

/* The answer to UNMAP comes when no piece is under way, whatever was submitted. */
static void nothing_is_accessed_after_unmap(void **state)
{
	struct rig_io *io = *state;
	struct host *h = &io->rig.h;
	uint8_t *at;
	int fd;
	struct nvme_cqe cqe;

	at = host_memory(1 << 20, &fd);
	assert_non_null(at);
	assert_int_equal(host_map(h, 0, 0x1000000, 1 << 20, SLOT_DMA_READ | SLOT_DMA_WRITE, fd),
			 0);
	for (int i = 0; i < 20; i++) {
		struct nvme_sqe sqe = host_rw(h, NVME_IO_READ, 0, 2048, 0x1000000, 1 << 20);

		host_submit(&io->q, &sqe);
	}
	host_ring(&io->q);
	assert_int_equal(host_unmap(h, 0, 0x1000000, 1 << 20), 0);
	memset(at, 0xaa, 1 << 20);
	for (int i = 0; i < 20; i++) {
		assert_true(host_wait(&io->q, &cqe));
		assert_true((NVME_CQE_STATUS(cqe.status) & ~NVME_SC_DNR) ==
				    NVME_SC_DATA_TRANSFER ||
			    !NVME_CQE_STATUS(cqe.status));
	}
	for (int i = 0; i < 1 << 20; i++)
		assert_int_equal(at[i], 0xaa);
	close(fd);
}

static void what_is_written_can_be_made_durable(void **state)
{
	struct rig_io *io = *state;
	struct host *h = &io->rig.h;
	uint64_t data = host_take(h, 2 * NVME_PAGE), ranges = host_take(h, NVME_PAGE);
	struct nvme_sqe sqe = host_rw(h, NVME_IO_WRITE, 0, 8, data, 4096), set;

	sqe.cdw12 |= NVME_RW_FUA;
	rig_fill(host_at(h, data), 4096, 6);
	assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
	set = (struct nvme_sqe){ .opcode = NVME_ADMIN_SET_FEATURES,
				 .cdw10 = NVME_FEATURE_WRITE_CACHE };
	assert_int_equal(rig_admin(&io->rig, set, NULL),
			 rig_io_backend == RIG_MEMORY ? NVME_SC_INVALID_FIELD : 0);
	sqe.cdw10 = 8;
	assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
	sqe.prp1 += 512; /* through a buffer, if that is needed */
	sqe.prp2 = data + NVME_PAGE;
	assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
	sqe.opcode = NVME_IO_WRITE_ZEROES;
	assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
	*(struct nvme_dsm_range *)host_at(h, ranges) = (struct nvme_dsm_range){ .blocks = 8 };
	sqe = (struct nvme_sqe){
		.opcode = NVME_IO_DSM, .nsid = 1, .prp1 = ranges, .cdw11 = NVME_DSM_DEALLOCATE
	};
	assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, 16, data), 0);
	assert_true(zeros(host_at(h, data), 2 * NVME_PAGE));
}

static const struct backend_ops *watched_ops;
static bool durable[PIECE_FLUSH + 1];

static bool watched_start(struct backend *b, struct piece *p)
{
	durable[p->op] = p->durable;
	return watched_ops->start(b, p);
}

/* Force Unit Access is of all commands that store; of others, and without it, a write may wait in the cache. */
static void what_is_forced_is_durable(void **state)
{
	struct rig_io *io = *state;
	struct host *h = &io->rig.h;
	struct backend *b = io->rig.c->backend;
	struct nvme_sqe sqe = host_rw(h, NVME_IO_WRITE, 0, 8, host_take(h, NVME_PAGE), 4096);
	struct backend_ops ops = *b->ops;

	watched_ops = b->ops;
	ops.start = watched_start;
	b->ops = &ops;
	for (int forced = 0; forced < 2; forced++) {
		sqe.cdw12 = 7 | (forced ? NVME_RW_FUA : 0);
		sqe.opcode = NVME_IO_WRITE;
		assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
		assert_int_equal(durable[PIECE_WRITE], forced && b->write_cache);
		sqe.opcode = NVME_IO_WRITE_ZEROES;
		assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
		assert_int_equal(durable[PIECE_ZERO], forced && b->write_cache);
		sqe.cdw12 |= NVME_RW_DEAC;
		assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
		assert_int_equal(durable[PIECE_DEALLOCATE], forced && b->write_cache);
	}
	b->ops = watched_ops;
}

static void a_file_that_got_shorter_is_a_read_error(void **state)
{
	struct rig_io *io = *state;
	uint64_t data = host_take(&io->rig.h, 4 * NVME_PAGE);

	if (rig_io_backend == RIG_MEMORY)
		return;
	assert_int_equal(truncate(io->rig.file, 1 << 20), 0);
	assert_int_equal(rig_rw(io, NVME_IO_READ, 4096, 8, data), NVME_SC_READ_ERROR);
	assert_int_equal(rig_rw(io, NVME_IO_COMPARE, 2047, 8, data), NVME_SC_READ_ERROR);
	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, 8, data), 0);
	assert_int_equal(io->rig.c->stats.media_errors, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_io_setup, rig_io_teardown)
		TEST(what_was_written_is_read),
		TEST(a_list_may_be_chained_and_begin_anywhere),
		TEST(a_list_that_loops_ends_with_the_data),
		TEST(what_is_wrong_with_a_prp_is_said),
		TEST(what_is_wrong_with_a_command_is_said),
		TEST(write_zeroes_and_deallocate_leave_zeros),
		TEST(ranges_may_be_in_two_pages),
		TEST(what_is_read_goes_to_all_files_of_a_multicast),
		TEST(access_is_what_the_window_allows),
		TEST(nothing_is_accessed_after_unmap),
		TEST(what_is_written_can_be_made_durable),
		TEST(what_is_forced_is_durable),
		TEST(a_file_that_got_shorter_is_a_read_error),
	};
	int failed = 0;

	while (rig_io_next())
		failed += cmocka_run_group_tests(tests, NULL, NULL);
	return failed;
}
