/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of the way of a command: what is in its entry, when its completion is taken, and what becomes of it when the
 * lease ends or the controller is gone. The lender is a model, and the controller is the test.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <unistd.h>

#include "fake_use.h"
#include "nvme.h"

#define DEPTH 4u
#define LEN   (1u << 20)

/* MDTS of the model is 5: 32 pages. */
#define TRANSFER_MAX (32u * NVME_PAGE)

/*
 * struct rig - a queue pair, memory that its device reaches, and the controller
 * @sq, @cq: where the controller has the queues; @head, @tail, @phase: of what it has read and written
 */
struct rig {
	struct fake_use *use;
	struct weft_segment *seg;
	struct weft_window *window;
	uint8_t *mem;
	struct weft_nvme *qp;
	struct nvme_sqe *sq;
	struct nvme_cqe *cq;
	uint32_t head, tail;
	uint16_t phase;
};

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	void *use;

	if (!r || fake_use_setup(&use))
		return -1;
	r->use = use;
	*state = r;
	return 0;
}

static void begin(struct rig *r, uint32_t flags)
{
	struct weft_nvme_attr attr = { .size = sizeof(attr), .depth = DEPTH, .flags = flags };
	struct fake_lender *f = &r->use->fake;

	fake_use_borrow(r->use, 60000);
	assert_int_equal(weft_segment_alloc(NULL, LEN, 0, &r->seg), 0);
	assert_int_equal(weft_window_open(r->use->dev, r->seg, WEFT_WINDOW_RW, &r->window), 0);
	assert_int_equal(weft_nvme_open(r->use->dev, &attr, &r->qp), 0);
	r->mem = weft_segment_mem(r->seg);
	r->sq = fake_lender_mem(f, f->pair.sq);
	r->cq = fake_lender_mem(f, f->pair.cq);
	r->phase = 1;
	assert_non_null(r->sq);
	assert_non_null(r->cq);
}

static int teardown(void **state)
{
	struct rig *r = *state;
	void *use = r->use;

	if (r->qp)
		assert_int_equal(weft_nvme_close(r->qp), 0);
	if (r->window)
		assert_int_equal(weft_window_close(r->window), 0);
	if (r->seg)
		assert_int_equal(weft_segment_free(r->seg), 0);
	free(r);
	return fake_use_teardown(&use);
}

/* The next entry that the doorbell says is there; NULL: none */
static const struct nvme_sqe *next_entry(struct rig *r)
{
	uint32_t tail = __atomic_load_n(&r->use->fake.pair.doorbells->sq_tail, __ATOMIC_ACQUIRE);
	const struct nvme_sqe *sqe = &r->sq[r->head];

	if (r->head == tail)
		return NULL;
	r->head = r->head + 1 == r->qp->entries ? 0 : r->head + 1;
	return sqe;
}

static void complete(struct rig *r, uint16_t cid, uint16_t status)
{
	struct nvme_cqe *cqe = &r->cq[r->tail];

	__atomic_store_n(&cqe->cid, cid, __ATOMIC_RELAXED);
	__atomic_store_n(&cqe->status, (uint16_t)(status << 1 | r->phase), __ATOMIC_RELEASE);
	if (++r->tail == r->qp->entries) {
		r->tail = 0;
		r->phase ^= 1;
	}
}

static struct weft_nvme_command transfer(struct rig *r, size_t at, uint32_t blocks)
{
	return (struct weft_nvme_command){ .opcode = WEFT_NVME_READ,
					   .nsid = 1,
					   .lba = 0x123456789,
					   .blocks = blocks,
					   .buf = r->mem + at,
					   .arg = r->mem + at };
}

static ssize_t submit(struct rig *r, struct weft_nvme_command command)
{
	return weft_nvme_submit(r->qp, &command, 1);
}

/* The place in the segment at which the device reaches an address */
static size_t place_of(struct rig *r, uint64_t addr)
{
	return addr - r->window->spans[0].addr;
}

static void entry_says_what_the_command_does(void **state)
{
	struct rig *r = *state;
	struct weft_nvme_command command;
	const struct nvme_sqe *sqe;

	begin(r, 0);
	command = transfer(r, 0, 8);
	command.opcode = WEFT_NVME_WRITE;
	command.flags = WEFT_NVME_FUA;
	assert_null(next_entry(r));
	assert_int_equal(submit(r, command), 1);
	sqe = next_entry(r);
	assert_non_null(sqe);
	assert_int_equal(sqe->opcode, NVME_IO_WRITE);
	assert_int_equal(sqe->nsid, 1);
	assert_int_equal(sqe->cdw10, 0x23456789);
	assert_int_equal(sqe->cdw11, 1);
	assert_int_equal(sqe->cdw12, 7 | NVME_RW_FUA);
	assert_int_equal(place_of(r, sqe->prp1), 0);
	assert_int_equal(sqe->prp2, 0);
	assert_null(next_entry(r));
}

/* One page and a part of one, two pages, and a list of what follows the first. */
static void data_is_named_page_by_page(void **state)
{
	struct rig *r = *state;
	const struct nvme_sqe *sqe;
	uint64_t *list;
	uint32_t i;

	begin(r, 0);
	assert_int_equal(submit(r, transfer(r, 1024, 6)), 1);
	sqe = next_entry(r);
	assert_int_equal(place_of(r, sqe->prp1), 1024);
	assert_int_equal(sqe->prp2, 0);
	assert_int_equal(submit(r, transfer(r, 1024, 8)), 1);
	sqe = next_entry(r);
	assert_int_equal(place_of(r, sqe->prp1), 1024);
	assert_int_equal(place_of(r, sqe->prp2), NVME_PAGE);
	assert_int_equal(submit(r, transfer(r, 2 * NVME_PAGE + 512, 4 * 8)), 1);
	sqe = next_entry(r);
	assert_int_equal(place_of(r, sqe->prp1), 2 * NVME_PAGE + 512);
	list = fake_lender_mem(&r->use->fake, sqe->prp2);
	assert_non_null(list);
	for (i = 0; i < 4; i++)
		assert_int_equal(place_of(r, list[i]), (3 + i) * NVME_PAGE);
}

static uint64_t prp1_of(struct rig *r, uint32_t opcode)
{
	struct weft_nvme_command command = transfer(r, 0, 8);
	const struct nvme_sqe *sqe;

	command.opcode = opcode;
	assert_int_equal(submit(r, command), 1);
	sqe = next_entry(r);
	assert_non_null(sqe);
	return sqe->prp1;
}

/* What a read stores goes to all segments of the multicast, which was opened last; a write comes from where it may be read. */
static void newest_window_that_allows_an_access_has_it(void **state)
{
	struct rig *r = *state;
	struct weft_segment *segs[2];
	struct weft_window *both;

	begin(r, 0);
	segs[0] = r->seg;
	assert_int_equal(weft_segment_alloc(NULL, LEN, 0, &segs[1]), 0);
	assert_int_equal(weft_multicast_open(r->use->dev, segs, 2, &both), 0);
	assert_int_equal(prp1_of(r, WEFT_NVME_WRITE), r->window->spans[0].addr);
	assert_int_equal(prp1_of(r, WEFT_NVME_READ), both->spans[0].addr);
	assert_int_equal(prp1_of(r, WEFT_NVME_WRITE), r->window->spans[0].addr);
	assert_int_equal(weft_window_close(both), 0);
	assert_int_equal(prp1_of(r, WEFT_NVME_READ), r->window->spans[0].addr);
	assert_int_equal(weft_segment_free(segs[1]), 0);
}

static void range_to_deallocate_is_in_memory_of_the_pair(void **state)
{
	struct rig *r = *state;
	struct weft_nvme_command command = {
		.opcode = WEFT_NVME_DEALLOCATE, .nsid = 1, .lba = 77, .blocks = 5
	};
	const struct nvme_dsm_range *range;
	const struct nvme_sqe *sqe;

	begin(r, 0);
	assert_int_equal(submit(r, command), 1);
	sqe = next_entry(r);
	assert_int_equal(sqe->opcode, NVME_IO_DSM);
	assert_int_equal(sqe->cdw11, NVME_DSM_DEALLOCATE);
	range = fake_lender_mem(&r->use->fake, sqe->prp1);
	assert_non_null(range);
	assert_int_equal(range->lba, 77);
	assert_int_equal(range->blocks, 5);
}

static void commands_that_can_not_be_are_refused(void **state)
{
	struct rig *r = *state;
	struct weft_nvme_command command;
	uint8_t own[512] __attribute__((aligned(4)));

	begin(r, 0);
	assert_int_equal(submit(r, transfer(r, 0, 0)), -EINVAL);
	assert_int_equal(submit(r, transfer(r, 0, 65537)), -EINVAL);
	assert_int_equal(submit(r, transfer(r, 2, 1)), -EINVAL);
	assert_int_equal(submit(r, transfer(r, 0, TRANSFER_MAX / 512 + 1)), -EMSGSIZE);
	assert_int_equal(submit(r, transfer(r, LEN - 512, 2)), -EFAULT);
	command = transfer(r, 0, 1);
	command.buf = own;
	assert_int_equal(submit(r, command), -EFAULT);
	command = transfer(r, 0, 1);
	command.opcode = 0x7f;
	assert_int_equal(submit(r, command), -EINVAL);
	command = transfer(r, 0, 1);
	command.flags = 0x80;
	assert_int_equal(submit(r, command), -EINVAL);
	command = transfer(r, 0, 1);
	command.nsid = 3;
	assert_int_equal(submit(r, command), -EINVAL);
	assert_null(next_entry(r));
	assert_int_equal(submit(r, transfer(r, 0, TRANSFER_MAX / 512)), 1);
}

/* Those before the first that can't be begin. */
static void commands_begin_until_one_can_not(void **state)
{
	struct rig *r = *state;
	struct weft_nvme_command commands[3];

	begin(r, 0);
	commands[0] = commands[2] = transfer(r, 0, 1);
	commands[1] = transfer(r, 0, 0);
	assert_int_equal(weft_nvme_submit(r->qp, commands, 3), 1);
	assert_non_null(next_entry(r));
	assert_null(next_entry(r));
}

static void memory_is_reached_while_it_has_a_window(void **state)
{
	struct rig *r = *state;

	begin(r, 0);
	assert_int_equal(submit(r, transfer(r, 0, 1)), 1);
	assert_int_equal(weft_window_close(r->window), 0);
	assert_int_equal(submit(r, transfer(r, 0, 1)), -EFAULT);
	assert_int_equal(weft_window_open(r->use->dev, r->seg, WEFT_WINDOW_READ, &r->window), 0);
	/* A read writes to memory. */
	assert_int_equal(submit(r, transfer(r, 0, 1)), -EFAULT);
}

/* More than once around both queues, and the other way round than they were begun. */
static void commands_end_in_any_order_around_the_queues(void **state)
{
	struct weft_nvme_completion done[DEPTH];
	struct rig *r = *state;
	uint32_t turn, i;

	begin(r, 0);
	for (turn = 0; turn < 3 * r->qp->entries; turn++) {
		uint16_t cids[DEPTH];

		for (i = 0; i < DEPTH; i++) {
			assert_int_equal(submit(r, transfer(r, i * 512, 1)), 1);
			cids[i] = next_entry(r)->cid;
		}
		assert_int_equal(submit(r, transfer(r, 0, 1)), -EAGAIN);
		assert_int_equal(weft_nvme_poll(r->qp, done, DEPTH), 0);
		for (i = DEPTH; i; i--)
			complete(r, cids[i - 1], 0);
		assert_int_equal(weft_nvme_poll(r->qp, done, 1), 1);
		assert_int_equal(weft_nvme_poll(r->qp, done + 1, DEPTH), DEPTH - 1);
		for (i = 0; i < DEPTH; i++) {
			assert_ptr_equal(done[i].arg, r->mem + (DEPTH - 1 - i) * 512);
			assert_int_equal(done[i].status, 0);
		}
		assert_int_equal(r->use->fake.pair.doorbells->cq_head, r->tail);
	}
}

static void completion_of_nothing_is_nobodys(void **state)
{
	struct weft_nvme_completion done[DEPTH];
	struct rig *r = *state;
	uint16_t cid;

	begin(r, 0);
	assert_int_equal(submit(r, transfer(r, 0, 1)), 1);
	cid = next_entry(r)->cid;
	complete(r, DEPTH, 0);
	complete(r, UINT16_MAX, 0);
	complete(r, (uint16_t)(cid ^ 1), 0);
	assert_int_equal(weft_nvme_poll(r->qp, done, DEPTH), 0);
	complete(r, cid, 0);
	complete(r, cid, 0);
	assert_int_equal(weft_nvme_poll(r->qp, done, DEPTH), 1);
	assert_int_equal(weft_nvme_poll(r->qp, done, DEPTH), 0);
}

static void status_of_the_device_is_an_errno(void **state)
{
	static const struct {
		uint16_t nvme;
		int status;
	} ends[] = { { 0, 0 }, { 0x281, -EIO }, { NVME_SC_ABORT_SQ_DELETED, -ECANCELED } };
	struct weft_nvme_completion done;
	struct rig *r = *state;
	size_t i;

	begin(r, 0);
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		assert_int_equal(submit(r, transfer(r, 0, 1)), 1);
		complete(r, next_entry(r)->cid, ends[i].nvme);
		assert_int_equal(weft_nvme_poll(r->qp, &done, 1), 1);
		assert_int_equal(done.status, ends[i].status);
		assert_int_equal(done.nvme, ends[i].nvme);
	}
}

static void end_of_the_lease_cancels_what_is_under_way(void **state)
{
	struct weft_nvme_completion done[DEPTH];
	struct rig *r = *state;

	begin(r, 0);
	assert_int_equal(submit(r, transfer(r, 0, 1)), 1);
	assert_int_equal(submit(r, transfer(r, 512, 1)), 1);
	/* What had ended before is no loss. */
	complete(r, next_entry(r)->cid, 0);
	fake_lender_end(&r->use->fake);
	assert_int_equal(weft_nvme_wait(r->qp, done, DEPTH, -1), 1);
	assert_int_equal(done[0].status, 0);
	assert_int_equal(weft_nvme_wait(r->qp, done, DEPTH, -1), 1);
	assert_int_equal(done[0].status, -ECANCELED);
	assert_ptr_equal(done[0].arg, r->mem + 512);
	assert_int_equal(weft_nvme_wait(r->qp, done, DEPTH, -1), -ESTALE);
	assert_int_equal(submit(r, transfer(r, 0, 1)), -ESTALE);
}

/* The time of the lease has passed here, and the controller is at a command still: its memory is not the program's yet. */
static void commands_are_the_controllers_until_it_has_ended_the_pair(void **state)
{
	struct weft_nvme_completion done[DEPTH];
	struct rig *r = *state;
	struct pollfd p;

	begin(r, WEFT_NVME_BLOCKING);
	assert_int_equal(submit(r, transfer(r, 0, 1)), 1);
	assert_int_equal(submit(r, transfer(r, 512, 1)), 1);
	device_end(r->use->dev, -ESTALE);
	assert_int_equal(submit(r, transfer(r, 1024, 1)), -ESTALE);
	assert_int_equal(weft_nvme_wait(r->qp, done, DEPTH, 20), 0);
	complete(r, next_entry(r)->cid, 0);
	assert_int_equal(weft_nvme_wait(r->qp, done, DEPTH, -1), 1);
	assert_int_equal(done[0].status, 0);
	assert_int_equal(weft_nvme_poll(r->qp, done, DEPTH), 0);
	/* Who sleeps looks again, also where the controller never says anything. */
	p = (struct pollfd){ .fd = weft_nvme_fd(r->qp), .events = POLLIN };
	assert_int_equal(poll(&p, 1, 0), 1);
	fake_lender_end(&r->use->fake);
	assert_int_equal(weft_nvme_poll(r->qp, done, DEPTH), 1);
	assert_int_equal(done[0].status, -ECANCELED);
	assert_ptr_equal(done[0].arg, r->mem + 512);
	assert_int_equal(weft_nvme_poll(r->qp, done, DEPTH), -ESTALE);
}

static void controller_that_is_gone_is_found_out(void **state)
{
	struct weft_nvme_completion done;
	struct rig *r = *state;

	begin(r, 0);
	assert_int_equal(submit(r, transfer(r, 0, 1)), 1);
	fake_lender_die(&r->use->fake);
	assert_int_equal(weft_nvme_wait(r->qp, &done, 1, -1), 1);
	assert_int_equal(done.status, -ECANCELED);
	assert_int_equal(submit(r, transfer(r, 0, 1)), -ESTALE);
}

static void controller_that_sleeps_is_woken(void **state)
{
	struct rig *r = *state;
	struct fake_pair *pair = &r->use->fake.pair;
	uint64_t cnt;

	begin(r, 0);
	assert_int_equal(submit(r, transfer(r, 0, 1)), 1);
	assert_int_equal(read(pair->kick, &cnt, sizeof(cnt)), -1);
	__atomic_store_n(&pair->doorbells->asleep, 1, __ATOMIC_RELAXED);
	assert_int_equal(submit(r, transfer(r, 0, 1)), 1);
	assert_int_equal(read(pair->kick, &cnt, sizeof(cnt)), sizeof(cnt));
}

static void interrupts_are_wanted_by_who_sleeps(void **state)
{
	struct weft_nvme_completion done;
	struct rig *r = *state;
	struct fake_pair *pair = &r->use->fake.pair;
	uint64_t one = 1;

	begin(r, WEFT_NVME_BLOCKING);
	assert_int_equal(submit(r, transfer(r, 0, 1)), 1);
	assert_int_equal(weft_nvme_poll(r->qp, &done, 1), 0);
	assert_int_equal(pair->doorbells->polling, 0);
	assert_int_equal(weft_nvme_wait(r->qp, &done, 1, 20), 0);
	complete(r, next_entry(r)->cid, 0);
	assert_int_equal(write(pair->vector, &one, sizeof(one)), sizeof(one));
	assert_int_equal(weft_nvme_wait(r->qp, &done, 1, -1), 1);
	assert_ptr_equal(done.arg, r->mem);
}

/* Serves commands until it has had one that flushes. */
static void *serve(void *arg)
{
	struct rig *r = arg;
	const struct nvme_sqe *sqe;
	uint8_t opcode = NVME_IO_READ;

	while (opcode != NVME_IO_FLUSH) {
		sqe = next_entry(r);
		if (!sqe)
			continue;
		opcode = sqe->opcode;
		if (opcode == NVME_IO_READ)
			memset(fake_lender_mem(&r->use->fake, sqe->prp1), 42, 512);
		complete(r, sqe->cid, opcode == NVME_IO_WRITE ? 0x281 : 0);
	}
	return NULL;
}

static void calls_that_wait_end_with_their_command(void **state)
{
	struct rig *r = *state;
	pthread_t controller;

	begin(r, 0);
	assert_int_equal(pthread_create(&controller, NULL, serve, r), 0);
	assert_int_equal(weft_nvme_read(r->qp, 1, 0, 1, r->mem), 0);
	assert_int_equal(r->mem[511], 42);
	assert_int_equal(weft_nvme_write(r->qp, 1, 0, 1, r->mem), -EIO);
	assert_int_equal(weft_nvme_write(r->qp, 1, 0, 0, r->mem), -EINVAL);
	assert_int_equal(weft_nvme_flush(r->qp, 1), 0);
	pthread_join(controller, NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(entry_says_what_the_command_does),
		TEST(data_is_named_page_by_page),
		TEST(newest_window_that_allows_an_access_has_it),
		TEST(range_to_deallocate_is_in_memory_of_the_pair),
		TEST(commands_that_can_not_be_are_refused),
		TEST(commands_begin_until_one_can_not),
		TEST(memory_is_reached_while_it_has_a_window),
		TEST(commands_end_in_any_order_around_the_queues),
		TEST(completion_of_nothing_is_nobodys),
		TEST(status_of_the_device_is_an_errno),
		TEST(end_of_the_lease_cancels_what_is_under_way),
		TEST(commands_are_the_controllers_until_it_has_ended_the_pair),
		TEST(controller_that_is_gone_is_found_out),
		TEST(controller_that_sleeps_is_woken),
		TEST(interrupts_are_wanted_by_who_sleeps),
		TEST(calls_that_wait_end_with_their_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
