/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* I/O commands over each backend, through the slot and queues in shared memory */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "rig.h"

#define BLOCKS (RIG_LEN / 512)

struct io {
	struct rig rig;
	struct host_pair q;
};

static enum rig_backend backend;

static int setup(void **state)
{
	struct io *io = calloc(1, sizeof(*io));

	assert_non_null(io);
	rig_open_enabled(&io->rig, backend, NULL);
	rig_pair(&io->rig, &io->q, 1, 64, 0);
	*state = io;
	return 0;
}

static int teardown(void **state)
{
	struct io *io = *state;

	host_pair_forget(&io->q);
	rig_close(&io->rig);
	free(io);
	return 0;
}

static void fill(uint8_t *at, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1103515245 + 12345;
		at[i] = (uint8_t)(seed >> 16);
	}
}

static uint16_t rw(struct io *io, uint8_t opcode, uint64_t lba, uint32_t blocks, uint64_t addr)
{
	struct nvme_sqe sqe = host_rw(&io->rig.h, opcode, lba, blocks, addr, blocks * 512ull);

	return host_run(&io->q, &sqe, NULL);
}

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
	struct io *io = *state;
	struct host *h = &io->rig.h;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t len = cases[i].blocks * 512ull, lba = 100 + 3000 * i;
		uint64_t from, to;

		h->used = 1 << 20;
		from = host_take(h, len + NVME_PAGE) + cases[i].at;
		to = host_take(h, len + NVME_PAGE) + cases[i].at;

		if (lba + cases[i].blocks > BLOCKS)
			lba = 7;
		fill(host_at(h, from), len, (unsigned)i);
		assert_int_equal(rw(io, NVME_IO_WRITE, lba, cases[i].blocks, from), 0);
		assert_int_equal(rw(io, NVME_IO_READ, lba, cases[i].blocks, to), 0);
		assert_memory_equal(host_at(h, from), host_at(h, to), len);
		assert_int_equal(rw(io, NVME_IO_COMPARE, lba, cases[i].blocks, from), 0);
		((uint8_t *)host_at(h, from))[len - 1] ^= 1;
		assert_int_equal(rw(io, NVME_IO_COMPARE, lba, cases[i].blocks, from),
				 NVME_SC_COMPARE_FAILURE);
		assert_int_equal(rw(io, NVME_IO_FLUSH, 0, 1, 0), 0);
	}
}

static void a_list_may_be_chained_and_begin_anywhere(void **state)
{
	struct io *io = *state;
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

	fill(host_at(h, data), len, 9);
	list[0] = data + NVME_PAGE;
	list[1] = lists + NVME_PAGE;
	for (int i = 0; i < 62; i++)
		list[2 + i] = data + (uint64_t)(2 + i) * NVME_PAGE;
	assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
	assert_int_equal(rw(io, NVME_IO_READ, 0, (uint32_t)(len / 512), to), 0);
	assert_memory_equal(host_at(h, data), host_at(h, to), len);
}

static void a_list_that_loops_ends_with_the_data(void **state)
{
	struct io *io = *state;
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
	assert_int_equal(rw(io, NVME_IO_READ, 0, 8, data), 0);
}

static void what_is_wrong_with_a_prp_is_said(void **state)
{
	struct io *io = *state;
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
	struct io *io = *state;
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
	struct io *io = *state;
	struct host *h = &io->rig.h;
	uint64_t len = 1 << 20, data = host_take(h, len), ranges = host_take(h, NVME_PAGE);
	struct nvme_dsm_range *r = host_at(h, ranges);
	struct nvme_sqe sqe = {
		.opcode = NVME_IO_WRITE_ZEROES, .nsid = 1, .cdw10 = 3, .cdw12 = 99
	};
	uint8_t *at = host_at(h, data);

	fill(at, len, 5);
	assert_int_equal(rw(io, NVME_IO_WRITE, 0, 2048, data), 0);
	assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
	assert_int_equal(rw(io, NVME_IO_READ, 0, 2048, data), 0);
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
	assert_int_equal(rw(io, NVME_IO_READ, 0, 2048, data), 0);
	assert_true(zeros(at + 200 * 512, 100 * 512));
	assert_false(zeros(at + 1000 * 512, 512));
	sqe.cdw11 = NVME_DSM_DEALLOCATE;
	assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
	assert_int_equal(rw(io, NVME_IO_READ, 0, 2048, data), 0);
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
	struct io *io = *state;
	struct host *h = &io->rig.h;
	uint64_t pages = host_take(h, 3 * NVME_PAGE), data = host_take(h, 1 << 20);
	struct nvme_sqe sqe = { .opcode = NVME_IO_DSM,
				.nsid = 1,
				.prp1 = pages + 2056,
				.prp2 = pages + NVME_PAGE,
				.cdw10 = 255,
				.cdw11 = NVME_DSM_DEALLOCATE };
	struct nvme_dsm_range r;

	fill(host_at(h, data), 1 << 20, 1);
	assert_int_equal(rw(io, NVME_IO_WRITE, 0, 2048, data), 0);
	for (uint32_t i = 0; i < 256; i++) {
		r = (struct nvme_dsm_range){ .blocks = 1, .lba = 8ull * i };
		memcpy((uint8_t *)host_at(h, pages) + 2056 + i * sizeof(r), &r, sizeof(r));
	}
	assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
	assert_int_equal(rw(io, NVME_IO_READ, 0, 2048, data), 0);
	for (uint32_t i = 0; i < 256; i++) {
		assert_true(zeros((uint8_t *)host_at(h, data) + 4096 * i, 512));
		assert_false(zeros((uint8_t *)host_at(h, data) + 4096 * i + 512, 512));
	}
}

static void many_commands_complete_once_each(void **state)
{
	struct io *io = *state;
	struct host *h = &io->rig.h;
	uint64_t data = host_take(h, 64 * NVME_PAGE);
	bool seen[2000] = { false };
	uint32_t sent = 0, done = 0;
	struct nvme_cqe cqe;

	fill(host_at(h, data), NVME_PAGE, 1);
	while (done < 1999) {
		while (sent < 1999 && sent - done < 63) {
			struct nvme_sqe sqe = host_rw(h, sent % 3 ? NVME_IO_READ : NVME_IO_WRITE,
						      sent % 32 * 8, 8,
						      data + sent % 64 * NVME_PAGE, 4096);

			host_submit(&io->q, &sqe);
			sent++;
		}
		host_ring(&io->q);
		assert_true(host_wait(&io->q, &cqe));
		assert_int_equal(NVME_CQE_STATUS(cqe.status), 0);
		assert_in_range(cqe.cid, 1, 1999);
		assert_false(seen[cqe.cid]);
		seen[cqe.cid] = true;
		assert_int_equal(cqe.sq_id, 1);
		done++;
	}
	rig_rounds(&io->rig, 100);
	assert_false(host_poll(&io->q, &cqe));
}

/* Without moving the completion queue's head, the controller stops when it is full, and goes on after */
static void a_full_completion_queue_holds_commands_back(void **state)
{
	struct io *io = *state;
	struct host *h = &io->rig.h;
	struct host_pair q;
	uint64_t data = host_take(h, NVME_PAGE);
	struct nvme_sqe sqe = host_rw(h, NVME_IO_READ, 0, 8, data, 4096);
	struct nvme_cqe cqe;
	int cnt = 0;

	rig_pair(&io->rig, &q, 2, 4, 0);
	for (int i = 0; i < 3; i++)
		host_submit(&q, &sqe);
	host_ring(&q);
	rig_rounds(&io->rig, 100);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(NVME_CQE_PHASE(q.cq[i].status), 1);
		host_submit(&q, &sqe);
	}
	assert_int_equal(NVME_CQE_PHASE(q.cq[3].status), 0);
	host_ring(&q);
	rig_rounds(&io->rig, 100);
	assert_int_equal(NVME_CQE_PHASE(q.cq[3].status), 0); /* nothing was overwritten */
	assert_int_equal(q.cq[0].cid, 1);
	while (host_wait(&q, &cqe) && ++cnt < 6)
		assert_int_equal(cqe.cid, cnt);
	assert_int_equal(cnt, 6);
	host_pair_forget(&q);
}

static void what_is_read_goes_to_all_files_of_a_multicast(void **state)
{
	struct io *io = *state;
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
	fill(host_at(h, data), 64 << 10, 3);
	assert_int_equal(rw(io, NVME_IO_WRITE, 0, 128, data), 0);
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
	struct io *io = *state;
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
	struct io *io = *state;
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

static void bad_doorbells_are_events_and_change_nothing(void **state)
{
	struct io *io = *state;
	struct rig *r = &io->rig;
	struct nvme_sqe aer = { .opcode = NVME_ADMIN_ASYNC_EVENT }, log;
	struct nvme_cqe cqe;
	uint64_t data = host_take(&r->h, NVME_PAGE);

	log = (struct nvme_sqe){ .opcode = NVME_ADMIN_GET_LOG_PAGE,
				 .nsid = UINT32_MAX,
				 .prp1 = data,
				 .cdw10 = NVME_LOG_ERROR | 15 << 16 };
	for (int i = 0; i < 3; i++) {
		uint16_t cid = host_submit(&r->admin, &aer);

		host_ring(&r->admin);
		rig_rounds(r, 50);
		assert_false(host_poll(&r->admin, &cqe));
		if (i == 0)
			io->q.page->sq_tail = 64;
		else if (i == 1)
			io->q.page->cq_head = 3; /* beyond what was posted */
		else
			host_write(&r->h, NVME_REG_DOORBELLS + 5 * (8u << SLOT_DSTRD), 1);
		assert_true(host_wait(&r->admin, &cqe));
		assert_int_equal(cqe.cid, cid);
		assert_int_equal(cqe.result, NVME_EVENT(NVME_EVENT_TYPE_ERROR,
							i == 2 ? NVME_EVENT_BAD_DOORBELL_REG
							       : NVME_EVENT_BAD_DOORBELL,
							NVME_LOG_ERROR));
		io->q.page->sq_tail = io->q.tail;
		io->q.page->cq_head = io->q.head;
		assert_int_equal(rig_admin(r, log, NULL), 0);
		assert_int_equal(((struct nvme_error_log *)host_at(&r->h, data))->sq_id,
				 i == 2 ? 5 : 1);
	}
	/* The tail that goes back over what was not fetched can't be told from one that goes too far. */
	assert_int_equal(rw(io, NVME_IO_READ, 0, 8, data), 0);
}

static void queues_and_data_may_be_in_controller_memory(void **state)
{
	struct io *io = *state;
	struct rig *r = &io->rig;
	struct slot_message m = { .kind = SLOT_REGION, .index = 2, .len = 128 << 10 };
	struct nvme_sqe sqe = { .opcode = NVME_ADMIN_CREATE_CQ,
				.cdw10 = 3 | 15u << 16,
				.cdw11 = 1 };
	struct host_pair q = { .host = &r->h, .qid = 3, .size = 16, .phase = 1 };
	uint64_t cba = 1ull << 40, data;
	struct nvme_cqe cqe;
	uint8_t *memory;
	int fds[SLOT_FDS_MAX];

	assert_int_equal(host_read(&r->h, NVME_REG_CMBSZ), 0);
	assert_int_equal(
		host_write(&r->h, NVME_REG_CMBMSC, cba | NVME_CMBMSC_CRE | NVME_CMBMSC_CMSE), 0);
	assert_int_equal(host_read(&r->h, NVME_REG_CMBSZ) >> NVME_CMBSZ_SZ_SHIFT,
			 (1 << 20) / 4096);
	assert_int_equal(NVME_CMBLOC_BIR(host_read(&r->h, NVME_REG_CMBLOC)), 2);
	assert_int_equal(host_ask(&r->h, &m, NULL, 0, fds), 0);
	assert_int_equal(m.fd_cnt, 2);
	memory = mmap(NULL, 64 << 10, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	assert_true(memory != MAP_FAILED);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(host_pair_page(&q), 0);
	q.sq = (void *)memory;
	q.cq = (void *)(memory + NVME_PAGE);
	sqe.prp1 = cba + NVME_PAGE;
	assert_int_equal(rig_admin(r, sqe, NULL), 0);
	sqe.opcode = NVME_ADMIN_CREATE_SQ;
	sqe.prp1 = cba;
	sqe.cdw11 = 1 | 3 << 16;
	assert_int_equal(rig_admin(r, sqe, NULL), 0);
	/* Data, and the list, are there too. */
	data = host_take(&r->h, 4 * NVME_PAGE);
	fill(host_at(&r->h, data), 4 * NVME_PAGE, 77);
	assert_int_equal(rw(io, NVME_IO_WRITE, 0, 32, data), 0);
	sqe = host_rw(&r->h, NVME_IO_READ, 0, 32, cba + 4 * NVME_PAGE, 4096);
	sqe.prp2 = cba + 2 * NVME_PAGE;
	for (uint64_t i = 0; i < 3; i++)
		((uint64_t *)(memory + 2 * NVME_PAGE))[i] = cba + (5 + i) * NVME_PAGE;
	host_submit(&q, &sqe);
	host_ring(&q);
	assert_true(host_wait(&q, &cqe));
	assert_int_equal(NVME_CQE_STATUS(cqe.status), 0);
	assert_memory_equal(memory + 4 * NVME_PAGE, host_at(&r->h, data), 4 * NVME_PAGE);
	/* A granule asked for anew is another file, of zeros. */
	m = (struct slot_message){
		.kind = SLOT_REGION, .index = 2, .addr = 64 << 10, .len = 64 << 10, .value = 1
	};
	assert_int_equal(host_ask(&r->h, &m, NULL, 0, NULL), 0);
	munmap(memory, 64 << 10);
	host_pair_forget(&q);
}

static void a_queue_without_memory_stops_alone(void **state)
{
	struct io *io = *state;
	struct rig *r = &io->rig;
	struct host_pair q;
	uint64_t len = 2 * NVME_PAGE, data = host_take(&r->h, NVME_PAGE);
	struct nvme_sqe sqe = { .opcode = NVME_ADMIN_CREATE_CQ,
				.cdw10 = 4 | 15u << 16,
				.cdw11 = 1 };
	struct nvme_cqe cqe;
	uint8_t *memory;
	int fd;

	memory = host_memory(len, &fd);
	assert_int_equal(host_map(&r->h, 0, 0x40000, len, 3, fd), 0);
	q = (struct host_pair){ .host = &r->h, .qid = 4, .size = 16, .phase = 1 };
	assert_int_equal(host_pair_page(&q), 0);
	q.sq = (void *)memory;
	q.cq = (void *)(memory + NVME_PAGE);
	sqe.prp1 = 0x41000;
	assert_int_equal(rig_admin(r, sqe, NULL), 0);
	sqe.opcode = NVME_ADMIN_CREATE_SQ;
	sqe.prp1 = 0x40000;
	sqe.cdw11 = 1 | 4 << 16;
	assert_int_equal(rig_admin(r, sqe, NULL), 0);
	sqe = host_rw(&r->h, NVME_IO_READ, 0, 8, data, 4096);
	host_submit(&q, &sqe);
	host_ring(&q);
	assert_true(host_wait(&q, &cqe));
	assert_int_equal(host_unmap(&r->h, 0, 0x40000, len), 0);
	memset(memory, 0x55, len);
	host_submit(&q, &sqe);
	q.sq[1] = (struct nvme_sqe){ 0 };
	host_ring(&q);
	rig_rounds(r, 50);
	for (size_t i = NVME_PAGE; i < len; i++)
		assert_int_equal(memory[i], 0x55);
	assert_int_equal(rw(io, NVME_IO_READ, 0, 8, data), 0);
	assert_int_equal(host_read(&r->h, NVME_REG_CSTS), NVME_CSTS_RDY);
	sqe = (struct nvme_sqe){ .opcode = NVME_ADMIN_DELETE_SQ, .cdw10 = 4 };
	assert_int_equal(rig_admin(r, sqe, NULL), 0);
	sqe.opcode = NVME_ADMIN_DELETE_CQ;
	assert_int_equal(rig_admin(r, sqe, NULL), 0);
	host_pair_forget(&q);
	close(fd);
}

/* Each entry is in one window, the queue is not. */
static void a_queue_may_lie_in_several_windows(void **state)
{
	struct io *io = *state;
	struct rig *r = &io->rig;
	struct host_pair q = { .host = &r->h, .qid = 4, .size = 512, .phase = 1 };
	struct nvme_sqe sqe = { .opcode = NVME_ADMIN_CREATE_CQ,
				.cdw10 = 4 | 511u << 16,
				.cdw11 = 1 };
	uint64_t len = 10 * NVME_PAGE, data = host_take(&r->h, NVME_PAGE);
	uint8_t *memory;
	int fd;

	memory = host_memory(len, &fd);
	for (uint64_t at = 0; at < len; at += NVME_PAGE) {
		struct slot_message m = { .kind = SLOT_MAP,
					  .access = 3,
					  .addr = 0x40000 + at,
					  .len = NVME_PAGE,
					  .offset = at };

		assert_int_equal(host_ask(&r->h, &m, &fd, 1, NULL), 0);
	}
	assert_int_equal(host_pair_page(&q), 0);
	q.sq = (void *)memory;
	q.cq = (void *)(memory + 8 * NVME_PAGE);
	sqe.prp1 = 0x48000;
	assert_int_equal(rig_admin(r, sqe, NULL), 0);
	sqe.opcode = NVME_ADMIN_CREATE_SQ;
	sqe.prp1 = 0x40000;
	sqe.cdw11 = 1 | 4 << 16;
	assert_int_equal(rig_admin(r, sqe, NULL), 0);
	sqe = host_rw(&r->h, NVME_IO_READ, 0, 8, data, 4096);
	for (int i = 0; i < 1200; i++)
		assert_int_equal(host_run(&q, &sqe, NULL), 0);
	host_pair_forget(&q);
	munmap(memory, len);
	close(fd);
}

static void what_is_written_can_be_made_durable(void **state)
{
	struct io *io = *state;
	struct host *h = &io->rig.h;
	uint64_t data = host_take(h, 2 * NVME_PAGE), ranges = host_take(h, NVME_PAGE);
	struct nvme_sqe sqe = host_rw(h, NVME_IO_WRITE, 0, 8, data, 4096), set;

	sqe.cdw12 |= NVME_RW_FUA;
	fill(host_at(h, data), 4096, 6);
	assert_int_equal(host_run(&io->q, &sqe, NULL), 0);
	set = (struct nvme_sqe){ .opcode = NVME_ADMIN_SET_FEATURES,
				 .cdw10 = NVME_FEATURE_WRITE_CACHE };
	assert_int_equal(rig_admin(&io->rig, set, NULL),
			 backend == RIG_MEMORY ? NVME_SC_INVALID_FIELD : 0);
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
	assert_int_equal(rw(io, NVME_IO_READ, 0, 16, data), 0);
	assert_true(zeros(host_at(h, data), 2 * NVME_PAGE));
}

static void a_file_that_got_shorter_is_a_read_error(void **state)
{
	struct io *io = *state;
	uint64_t data = host_take(&io->rig.h, 4 * NVME_PAGE);

	if (backend == RIG_MEMORY)
		return;
	assert_int_equal(truncate(io->rig.file, 1 << 20), 0);
	assert_int_equal(rw(io, NVME_IO_READ, 4096, 8, data), NVME_SC_READ_ERROR);
	assert_int_equal(rw(io, NVME_IO_COMPARE, 2047, 8, data), NVME_SC_READ_ERROR);
	assert_int_equal(rw(io, NVME_IO_READ, 0, 8, data), 0);
	assert_int_equal(io->rig.c->stats.media_errors, 2);
}

static void completions_tell_where_the_submission_queue_is(void **state)
{
	struct io *io = *state;
	uint64_t data = host_take(&io->rig.h, NVME_PAGE);

	for (int i = 1; i < 200; i++) {
		assert_int_equal(rw(io, NVME_IO_READ, 0, 8, data), 0);
		assert_int_equal(io->q.sq_head, i % 64);
	}
}

int main(void)
{
	static const char *const names[] = { "memory", "file", "file, each piece waited for" };
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(what_was_written_is_read),
		TEST(a_list_may_be_chained_and_begin_anywhere),
		TEST(a_list_that_loops_ends_with_the_data),
		TEST(what_is_wrong_with_a_prp_is_said),
		TEST(what_is_wrong_with_a_command_is_said),
		TEST(write_zeroes_and_deallocate_leave_zeros),
		TEST(ranges_may_be_in_two_pages),
		TEST(many_commands_complete_once_each),
		TEST(a_full_completion_queue_holds_commands_back),
		TEST(what_is_read_goes_to_all_files_of_a_multicast),
		TEST(access_is_what_the_window_allows),
		TEST(nothing_is_accessed_after_unmap),
		TEST(bad_doorbells_are_events_and_change_nothing),
		TEST(queues_and_data_may_be_in_controller_memory),
		TEST(a_queue_without_memory_stops_alone),
		TEST(a_queue_may_lie_in_several_windows),
		TEST(what_is_written_can_be_made_durable),
		TEST(a_file_that_got_shorter_is_a_read_error),
		TEST(completions_tell_where_the_submission_queue_is),
	};
	int failed = 0;

	for (backend = RIG_MEMORY; backend <= RIG_FILE_SYNC; backend++) {
		print_message("over %s\n", names[backend]);
		failed += cmocka_run_group_tests(tests, NULL, NULL);
	}
	return failed;
}
