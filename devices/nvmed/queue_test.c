/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queues of I/O commands over each backend: where they are, when they are full, and their doorbells */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "rig_io.h"

static void many_commands_complete_once_each(void **state)
{
	struct rig_io *io = *state;
	struct host *h = &io->rig.h;
	uint64_t data = host_take(h, 64 * NVME_PAGE);
	bool seen[2000] = { false };
	uint32_t sent = 0, done = 0;
	struct nvme_cqe cqe;

	rig_fill(host_at(h, data), NVME_PAGE, 1);
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
	struct rig_io *io = *state;
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
	for (int i = 0; i < 3; i++) {
		RIG_UNTIL(&io->rig, NVME_CQE_PHASE(q.cq[i].status));
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

static void bad_doorbells_are_events_and_change_nothing(void **state)
{
	struct rig_io *io = *state;
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
	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, 8, data), 0);
}

static void queues_and_data_may_be_in_controller_memory(void **state)
{
	struct rig_io *io = *state;
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
	rig_fill(host_at(&r->h, data), 4 * NVME_PAGE, 77);
	assert_int_equal(rig_rw(io, NVME_IO_WRITE, 0, 32, data), 0);
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
	struct rig_io *io = *state;
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
	assert_int_equal(rig_rw(io, NVME_IO_READ, 0, 8, data), 0);
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
	struct rig_io *io = *state;
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

static void completions_tell_where_the_submission_queue_is(void **state)
{
	struct rig_io *io = *state;
	uint64_t data = host_take(&io->rig.h, NVME_PAGE);

	for (int i = 1; i < 200; i++) {
		assert_int_equal(rig_rw(io, NVME_IO_READ, 0, 8, data), 0);
		assert_int_equal(io->q.sq_head, i % 64);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_io_setup, rig_io_teardown)
		TEST(many_commands_complete_once_each),
		TEST(a_full_completion_queue_holds_commands_back),
		TEST(bad_doorbells_are_events_and_change_nothing),
		TEST(queues_and_data_may_be_in_controller_memory),
		TEST(a_queue_without_memory_stops_alone),
		TEST(a_queue_may_lie_in_several_windows),
		TEST(completions_tell_where_the_submission_queue_is),
	};
	int failed = 0;

	while (rig_io_next())
		failed += cmocka_run_group_tests(tests, NULL, NULL);
	return failed;
}
