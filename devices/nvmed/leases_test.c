/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Leases: begun, prolonged and ended, by command and by the clock alone */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "nvme/lease.h"
#include "rig.h"

#define AREA_LEN (4ull << 20)

static enum rig_backend backend;

/* A borrower: memory of its own, mapped for its lease at HOST_BASE as the host's is for the owner */
struct borrower {
	struct host h;
	struct host_pair q;
	uint32_t lease;
};

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	rig_open_enabled(r, backend, NULL);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	rig_close(*state);
	free(*state);
	return 0;
}

static uint16_t arm(struct rig *r, uint32_t lease, uint32_t generation, uint32_t ms)
{
	return rig_admin(r,
			 (struct nvme_sqe){ .opcode = NVME_ADMIN_LEASE_ARM,
					    .cdw10 = lease,
					    .cdw11 = generation,
					    .cdw12 = ms },
			 NULL);
}

static uint16_t ask_to_end(struct rig *r, uint32_t lease, uint32_t generation, uint32_t *result)
{
	return rig_admin(r,
			 (struct nvme_sqe){ .opcode = NVME_ADMIN_LEASE_END,
					    .cdw10 = lease,
					    .cdw11 = generation },
			 result);
}

static uint16_t end(struct rig *r, uint32_t lease, uint32_t generation)
{
	uint32_t result;
	uint16_t status;

	do
		status = ask_to_end(r, lease, generation, &result);
	while (!status && result == NVME_UNDER_WAY);
	return status;
}

/* The pair is made by the owner; its memory and page are the borrower's. */
static void borrow(struct rig *r, struct borrower *b, uint32_t lease, uint16_t qid)
{
	uint8_t *own = r->h.memory;

	*b = (struct borrower){ .h = r->h, .lease = lease };
	b->h.memory = host_memory(HOST_MEMORY_LEN, &b->h.memory_fd);
	b->h.used = 0;
	assert_non_null(b->h.memory);
	assert_int_equal(host_map(&r->h, lease, HOST_BASE, AREA_LEN,
				  SLOT_DMA_READ | SLOT_DMA_WRITE, b->h.memory_fd),
			 0);
	r->h.memory = b->h.memory;
	assert_int_equal(host_pair_create(&r->h, &r->admin, &b->q, qid, 64, lease, (int)qid), 0);
	b->h.used = r->h.used;
	r->h.memory = own;
}

static void borrower_go(struct borrower *b)
{
	host_pair_forget(&b->q);
	munmap(b->h.memory, HOST_MEMORY_LEN);
	close(b->h.memory_fd);
}

static struct nvme_lease_log log_entry(struct rig *r, uint32_t lease)
{
	uint64_t at = host_take(&r->h, 33 * 1024);
	struct nvme_sqe sqe = host_rw(&r->h, NVME_ADMIN_GET_LOG_PAGE, 0, 1, at, 33 * 1024);
	const struct nvme_lease_log *log = host_at(&r->h, at);

	sqe.nsid = 0;
	sqe.cdw10 = NVME_LOG_LEASES | (33 * 256 - 1u) << 16;
	sqe.cdw12 = 0;
	assert_int_equal(rig_admin(r, sqe, NULL), 0);
	while (log->lease && log->lease != lease)
		log++;
	return *log;
}

static void what_is_wrong_with_arming_is_said(void **state)
{
	struct rig *r = *state;

	assert_int_equal(arm(r, 0, 1, 1000), NVME_SC_INVALID_FIELD);
	assert_int_equal(arm(r, NVME_LEASES + 1, 1, 1000), NVME_SC_INVALID_FIELD);
	assert_int_equal(arm(r, 1, 1, 0), NVME_SC_INVALID_FIELD);
	assert_int_equal(arm(r, 1, 1, NVME_LEASE_MS_MAX + 1), NVME_SC_INVALID_FIELD);
	assert_int_equal(arm(r, 1, 0, 1000), NVME_SC_INVALID_FIELD);
	assert_int_equal(end(r, 1, 1), NVME_SC_INVALID_FIELD); /* it never ran */
	assert_int_equal(arm(r, NVME_LEASES, 5, NVME_LEASE_MS_MAX), 0);
	assert_int_equal(arm(r, NVME_LEASES, 5, 60000), 0);
	assert_int_equal(arm(r, NVME_LEASES, 4, 60000), NVME_SC_INVALID_FIELD);
	assert_int_equal(arm(r, NVME_LEASES, 6, 60000), NVME_SC_SEQUENCE);
	assert_int_equal(end(r, NVME_LEASES, 6), NVME_SC_INVALID_FIELD);
	assert_int_equal(end(r, NVME_LEASES, 5), 0);
	assert_int_equal(end(r, NVME_LEASES, 5), 0); /* it has ended */
	assert_int_equal(arm(r, NVME_LEASES, 5, 60000), NVME_SC_INVALID_FIELD);
	assert_int_equal(arm(r, NVME_LEASES, 6, 60000), 0);
	assert_int_equal(end(r, NVME_LEASES, 5), 0); /* the earlier one */
	assert_int_equal(log_entry(r, NVME_LEASES).generation, 6);
}

static void a_borrower_reaches_its_own_memory_alone(void **state)
{
	struct rig *r = *state;
	struct borrower one, two;
	struct nvme_sqe sqe;
	uint64_t data;

	assert_int_equal(host_map(&r->h, 3, HOST_BASE, NVME_PAGE, 3, r->h.memory_fd), -ENXIO);
	assert_int_equal(arm(r, 3, 1, 60000), 0);
	assert_int_equal(arm(r, 4, 1, 60000), 0);
	borrow(r, &one, 3, 1);
	borrow(r, &two, 4, 2);
	data = HOST_BASE + (1 << 20);
	memset(host_at(&one.h, data), 0x11, 4096);
	memset(host_at(&two.h, data), 0x22, 4096);
	memset(host_at(&r->h, data), 0x33, 4096);
	sqe = host_rw(&one.h, NVME_IO_WRITE, 0, 8, data, 4096);
	assert_int_equal(host_run(&one.q, &sqe, NULL), 0);
	sqe.opcode = NVME_IO_READ;
	assert_int_equal(host_run(&two.q, &sqe, NULL), 0);
	assert_int_equal(*(uint8_t *)host_at(&two.h, data), 0x11);
	assert_int_equal(*(uint8_t *)host_at(&r->h, data), 0x33);
	/* The owner has this address, the borrower has not. */
	sqe = host_rw(&one.h, NVME_IO_READ, 0, 8, HOST_BASE + AREA_LEN, 4096);
	assert_int_equal(host_run(&one.q, &sqe, NULL), NVME_SC_DATA_TRANSFER);
	assert_int_equal(log_entry(r, 3).queue_pairs, 1);
	assert_int_equal(log_entry(r, 3).commands, 2);
	assert_int_equal(log_entry(r, 3).bytes, 4096);
	assert_true(log_entry(r, 3).remaining_ms > 30000);
	borrower_go(&one);
	borrower_go(&two);
}

static void a_pair_is_of_one_lease(void **state)
{
	struct rig *r = *state;
	struct borrower one;
	struct nvme_sqe sqe = { .opcode = NVME_ADMIN_CREATE_SQ, .cdw11 = 1 | 1u << 16 };

	assert_int_equal(arm(r, 3, 1, 60000), 0);
	borrow(r, &one, 3, 1);
	sqe.prp1 = host_take(&r->h, NVME_PAGE);
	sqe.cdw10 = 5 | 15u << 16;
	assert_int_equal(rig_admin(r, sqe, NULL),
			 NVME_SC_INVALID_FIELD); /* the owner's, on a borrower's queue */
	sqe.cdw14 = 3;
	sqe.prp1 = HOST_BASE;
	assert_int_equal(rig_admin(r, sqe, NULL), 0);
	sqe = (struct nvme_sqe){ .opcode = NVME_ADMIN_CREATE_CQ,
				 .cdw10 = 5 | 15u << 16,
				 .cdw11 = 1 };
	sqe.prp1 = host_take(&r->h, NVME_PAGE);
	assert_int_equal(rig_admin(r, sqe, NULL),
			 NVME_SC_INVALID_FIELD); /* the other half of a lent page */
	borrower_go(&one);
}

/* Fill the queue, and let the controller begin with what is in it. */
static void load(struct rig *r, struct borrower *b, int rounds)
{
	for (int i = 0; i < 40; i++) {
		struct nvme_sqe sqe = host_rw(&b->h, NVME_IO_READ, 0, 2048,
					      HOST_BASE + (1 << 20), 1 << 20);

		b->h.used -= NVME_PAGE;
		host_submit(&b->q, &sqe);
	}
	host_ring(&b->q);
	rig_rounds(r, rounds);
}

static void check_ended(struct rig *r, struct borrower *b)
{
	uint8_t *area = host_at(&b->h, HOST_BASE);

	struct nvme_cqe cqe;
	int aborted = 0;

	assert_int_equal(b->q.page->ended, 1);

	while (host_poll(&b->q, &cqe)) {
		uint16_t status = NVME_CQE_STATUS(cqe.status) & (uint16_t)~NVME_SC_DNR;

		assert_true(!status || status == NVME_SC_ABORT_SQ_DELETED);
		aborted += status != 0;
	}
	assert_true(aborted <= 40);
	assert_int_equal(log_entry(r, b->lease).lease, 0);
	/* From here on nothing is accessed, and no doorbell is taken. */
	memset(area, 0xcc, AREA_LEN);
	b->q.page->sq_tail = 1;
	rig_rounds(r, 200);
	for (size_t i = 0; i < AREA_LEN; i++)
		if (area[i] != 0xcc)
			fail_msg("byte %zu was written", i);
	/* Nor does the controller keep the memory. */
	assert_int_equal(r->c->leases.each[b->lease].domain.cnt, 0);
	assert_null(r->c->bells[b->q.qid].page);
	assert_int_equal(r->c->vectors.each[b->q.qid].fd, -1);
}

static void an_end_waits_for_what_is_under_way(void **state)
{
	struct rig *r = *state;

	for (int rounds = 0; rounds < 5; rounds++) {
		struct slot_message m = { .kind = SLOT_VECTOR, .index = 1 };
		struct borrower b;
		int fd = eventfd(0, EFD_NONBLOCK);
		uint64_t count;

		assert_int_equal(host_ask(&r->h, &m, &fd, 1, NULL), 0);
		assert_int_equal(arm(r, 7, 1 + (uint32_t)rounds, 60000), 0);
		borrow(r, &b, 7, 1);
		load(r, &b, rounds);
		assert_int_equal(b.q.page->ended, 0);
		assert_int_equal(end(r, 7, 1 + (uint32_t)rounds), 0);
		check_ended(r, &b);
		assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
		close(fd);
		borrower_go(&b);
	}
}

static void a_deadline_ends_a_lease_without_its_owner(void **state)
{
	struct rig *r = *state;
	struct nvme_sqe aer = { .opcode = NVME_ADMIN_ASYNC_EVENT };
	struct borrower b;
	struct nvme_cqe cqe;
	uint16_t cid;

	assert_int_equal(arm(r, 9, 1, 60000), 0);
	borrow(r, &b, 9, 1);
	cid = host_submit(&r->admin, &aer);
	host_ring(&r->admin);
	load(r, &b, 1);
	host_submit(&r->admin, &(struct nvme_sqe){ .opcode = NVME_ADMIN_LEASE_ARM,
						   .cdw10 = 9,
						   .cdw11 = 1,
						   .cdw12 = 1 });
	host_ring(&r->admin);
	assert_true(host_wait(&r->admin, &cqe));
	assert_int_equal(NVME_CQE_STATUS(cqe.status), 0);
	assert_true(host_wait(&r->admin, &cqe));
	assert_int_equal(cqe.cid, cid);
	assert_int_equal(cqe.result, NVME_EVENT(NVME_EVENT_TYPE_VENDOR, NVME_EVENT_LEASE_ENDED,
						NVME_LOG_LEASES));
	check_ended(r, &b);
	assert_int_equal(arm(r, 9, 1, 1000), NVME_SC_INVALID_FIELD);
	assert_int_equal(host_map(&r->h, 9, HOST_BASE, NVME_PAGE, 3, r->h.memory_fd), -ENXIO);
	assert_int_equal(arm(r, 9, 2, 1000), 0);
	borrower_go(&b);
}

static void a_reset_ends_leases_and_generations_count_on(void **state)
{
	struct rig *r = *state;
	struct borrower b;

	assert_int_equal(arm(r, 2, 10, 60000), 0);
	borrow(r, &b, 2, 1);
	load(r, &b, 1);
	host_write(&r->h, NVME_REG_CC, 0);
	RIG_UNTIL(r, !host_read(&r->h, NVME_REG_CSTS));
	assert_int_equal(r->c->leases.each[2].state, LEASE_NONE);
	assert_int_equal(r->c->leases.each[2].domain.cnt, 0);
	host_pair_forget(&r->admin);
	assert_int_equal(host_enable(&r->h, &r->admin, 64), 0);
	check_ended(r, &b);
	assert_int_equal(arm(r, 2, 10, 1000), NVME_SC_INVALID_FIELD);
	assert_int_equal(arm(r, 2, 11, 1000), 0);
	borrower_go(&b);
}

static void nothing_is_accessed(struct rig *r, struct borrower *b)
{
	memset(b->h.memory, 0xcc, AREA_LEN);
	rig_rounds(r, 100);
	for (size_t i = 0; i < AREA_LEN; i++)
		assert_int_equal(b->h.memory[i], 0xcc);
}

static void deleting_a_queue_waits_and_aborts(void **state)
{
	struct rig *r = *state;
	struct borrower b;
	struct nvme_cqe cqe;
	int cnt = 0;

	assert_int_equal(arm(r, 2, 1, 60000), 0);
	borrow(r, &b, 2, 1);
	load(r, &b, 2);
	assert_int_equal(
		rig_admin(r, (struct nvme_sqe){ .opcode = NVME_ADMIN_DELETE_SQ, .cdw10 = 1 },
			  NULL),
		0);
	while (host_poll(&b.q, &cqe))
		cnt++;
	assert_in_range(cnt, 1, 40);
	nothing_is_accessed(r, &b);
	borrower_go(&b);
}

/* Its owner has other things to do: it is asked again until the queue is gone. */
static void deleting_a_queue_need_not_wait(void **state)
{
	struct nvme_sqe sqe = { .opcode = NVME_ADMIN_DELETE_SQ,
				.cdw10 = 1,
				.cdw14 = NVME_DELETE_ASK };
	struct rig *r = *state;
	struct borrower b;
	uint32_t result;

	assert_int_equal(rig_admin(r, sqe, &result), 0);
	assert_int_equal(result, 0);
	assert_int_equal(arm(r, 2, 1, 60000), 0);
	borrow(r, &b, 2, 1);
	load(r, &b, 2);
	assert_int_equal(rig_admin(r, sqe, &result), 0);
	assert_int_equal(result, NVME_UNDER_WAY);
	while (result)
		assert_int_equal(rig_admin(r, sqe, &result), 0);
	assert_null(r->c->sqs[1]);
	nothing_is_accessed(r, &b);
	borrower_go(&b);
}

/* Who does not ask again hears of it. */
static void an_end_with_commands_under_way_is_an_event(void **state)
{
	struct nvme_sqe aer = { .opcode = NVME_ADMIN_ASYNC_EVENT };
	struct rig *r = *state;
	struct borrower b;
	struct nvme_cqe cqe;
	uint32_t result;
	uint16_t cid;

	assert_int_equal(arm(r, 9, 1, 60000), 0);
	borrow(r, &b, 9, 1);
	cid = host_submit(&r->admin, &aer);
	host_ring(&r->admin);
	load(r, &b, 1);
	assert_int_equal(ask_to_end(r, 9, 1, &result), 0);
	if (result == NVME_UNDER_WAY) {
		assert_true(host_wait(&r->admin, &cqe));
		assert_int_equal(cqe.cid, cid);
		assert_int_equal(cqe.result,
				 NVME_EVENT(NVME_EVENT_TYPE_VENDOR, NVME_EVENT_LEASE_ENDED,
					    NVME_LOG_LEASES));
	}
	check_ended(r, &b);
	assert_int_equal(ask_to_end(r, 9, 1, &result), 0);
	assert_int_equal(result, 0);
	borrower_go(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(what_is_wrong_with_arming_is_said),
		TEST(a_borrower_reaches_its_own_memory_alone),
		TEST(a_pair_is_of_one_lease),
		TEST(an_end_waits_for_what_is_under_way),
		TEST(a_deadline_ends_a_lease_without_its_owner),
		TEST(a_reset_ends_leases_and_generations_count_on),
		TEST(deleting_a_queue_waits_and_aborts),
		TEST(deleting_a_queue_need_not_wait),
		TEST(an_end_with_commands_under_way_is_an_event),
	};
	int failed = 0;

	for (backend = RIG_MEMORY; backend <= RIG_FILE; backend++)
		failed += cmocka_run_group_tests(tests, NULL, NULL);
	return failed;
}
