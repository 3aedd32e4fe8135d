/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * remote LENDER [SEED [far | long]] - a device that is used over a network, against a model of what is on it
 *
 * With 'long' it says 'busy', and uses the device until its standard input ends. With 'far' queues near the borrower have to be refused: the provider has not what they need. The lender has a device of at least 16 MiB, which is this program's alone.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <weft/nvme.h>
#include "seeded.h"

#define BLOCK	  512u
#define DISK	  (16u << 20)
#define MOST	  (1u << 20) /* bytes of a command */
#define DEPTH_MAX 32u
#define COMMANDS  600
#define WAIT_MS	  30000 /* until a command that is slow has failed */

static const char *lender_name;
static bool far_only;
static uint64_t seed;

static uint32_t any(uint32_t below)
{
	return (uint32_t)seeded_below(&seed, below);
}

/* struct use - a device that is used */
struct use {
	struct weft_lender *lender;
	struct weft_device *dev;
	struct weft_nvme *qp;
	struct weft_segment *seg;
	struct weft_window *window;
	uint8_t *mem;
};

static void use_begin(struct use *u, uint32_t depth, uint32_t flags, size_t len)
{
	struct weft_nvme_attr attr = { .size = sizeof(attr), .depth = depth, .flags = flags };

	assert_int_equal(weft_lender_open(lender_name, NULL, &u->lender), 0);
	assert_int_equal(weft_device_borrow(u->lender, NULL, &u->dev), 0);
	assert_int_equal(weft_nvme_open(u->dev, &attr, &u->qp), 0);
	assert_int_equal(weft_segment_alloc(NULL, len, 0, &u->seg), 0);
	assert_int_equal(weft_window_open(u->dev, u->seg, WEFT_WINDOW_RW, &u->window), 0);
	u->mem = weft_segment_mem(u->seg);
}

/* Where the provider can't do it that is said when it is opened. */
static void near_is_refused(void)
{
	struct weft_nvme_attr attr = { .size = sizeof(attr),
				       .depth = 1,
				       .flags = WEFT_NVME_NEAR_BORROWER };
	struct weft_lender *lender;
	struct weft_device *dev;
	struct weft_nvme *qp;

	assert_int_equal(weft_lender_open(lender_name, NULL, &lender), 0);
	assert_int_equal(weft_device_borrow(lender, NULL, &dev), 0);
	assert_int_equal(weft_nvme_open(dev, &attr, &qp), -EOPNOTSUPP);
	assert_int_equal(weft_device_return(dev), 0);
	assert_int_equal(weft_lender_close(lender), 0);
}

static void use_end(struct use *u)
{
	assert_int_equal(weft_window_close(u->window), 0);
	assert_int_equal(weft_segment_free(u->seg), 0);
	assert_int_equal(weft_nvme_close(u->qp), 0);
	assert_int_equal(weft_device_return(u->dev), 0);
	assert_int_equal(weft_lender_close(u->lender), 0);
}

static void a_page_is_read_as_it_was_written(void **state)
{
	struct use u;

	use_begin(&u, 1, 0, 8192);
	memset(u.mem, 0x5a, 4096);
	assert_int_equal(weft_nvme_write(u.qp, 1, 8, 8, u.mem), 0);
	assert_int_equal(weft_nvme_read(u.qp, 1, 8, 8, u.mem + 4096), 0);
	assert_memory_equal(u.mem, u.mem + 4096, 4096);
	use_end(&u);
}

/* struct place - a part of the segment, and the command that has it */
struct place {
	struct weft_nvme_command command;
	bool busy;
};

static bool overlaps(const struct place *places, uint32_t cnt, uint64_t lba, uint32_t blocks)
{
	uint32_t i;

	for (i = 0; i < cnt; i++)
		if (places[i].busy && lba < places[i].command.lba + places[i].command.blocks &&
		    places[i].command.lba < lba + blocks)
			return true;
	return false;
}

/* Most commands are small, and some as long as they may be. */
static uint32_t any_blocks(void)
{
	switch (any(8)) {
	case 0:
		return 1 + any(MOST / BLOCK);
	case 1:
		return 1 + any(64);
	case 2:
		return 8192 / BLOCK + any(3) - 1;
	default:
		return 1 + any(16);
	}
}

/* A command that touches what no other one does; what it changes is in the model at once. */
static void make(struct place *place, const struct place *all, uint32_t cnt, uint8_t *mem,
		 uint8_t *model)
{
	static const uint8_t opcodes[] = { WEFT_NVME_READ,	WEFT_NVME_READ,
					   WEFT_NVME_READ,	WEFT_NVME_WRITE,
					   WEFT_NVME_WRITE,	WEFT_NVME_COMPARE,
					   WEFT_NVME_FLUSH,	WEFT_NVME_WRITE_ZEROES,
					   WEFT_NVME_DEALLOCATE };
	struct weft_nvme_command *c = &place->command;
	size_t len, i;

	do {
		*c = (struct weft_nvme_command){ .opcode = opcodes[any(sizeof(opcodes))],
						 .nsid = 1,
						 .blocks = any_blocks() };
		c->lba = any(DISK / BLOCK - c->blocks + 1);
	} while (overlaps(all, cnt, c->lba, c->blocks));
	len = (size_t)c->blocks * BLOCK;
	c->arg = place;
	place->busy = true;
	c->buf = mem + 4 * any(256);
	switch (c->opcode) {
	case WEFT_NVME_READ:
		memset(c->buf, 0xee, len);
		break;
	case WEFT_NVME_WRITE:
		for (i = 0; i < len; i += 4)
			memcpy((uint8_t *)c->buf + i, &(uint32_t){ any(1u << 31) }, 4);
		memcpy(model + c->lba * BLOCK, c->buf, len);
		break;
	case WEFT_NVME_COMPARE:
		memcpy(c->buf, model + c->lba * BLOCK, len);
		break;
	case WEFT_NVME_WRITE_ZEROES:
	case WEFT_NVME_DEALLOCATE:
		c->buf = NULL;
		memset(model + c->lba * BLOCK, 0, len);
		break;
	default:
		c->buf = NULL;
		c->lba = c->blocks = 0;
	}
}

static void check(const struct weft_nvme_completion *done, const uint8_t *model)
{
	struct place *place = done->arg;
	struct weft_nvme_command *c = &place->command;

	if (done->status)
		fail_msg("opcode %u of %u blocks at %lu: %d, %x", c->opcode, c->blocks,
			 (unsigned long)c->lba, done->status, done->nvme);
	if (c->opcode == WEFT_NVME_READ)
		assert_memory_equal(c->buf, model + c->lba * BLOCK, c->blocks * BLOCK);
	place->busy = false;
}

static void run(uint32_t depth, uint32_t flags, uint32_t count)
{
	const size_t part = MOST + 4096;
	struct weft_nvme_completion done[DEPTH_MAX];
	struct place *places = calloc(depth, sizeof(*places));
	uint8_t *model = calloc(1, DISK);
	uint32_t begun = 0, ended = 0, i;
	struct use u;
	ssize_t n;

	use_begin(&u, depth, flags, depth * part);
	for (i = 0; i < DISK / MOST; i++) {
		struct weft_nvme_command zero = { .opcode = WEFT_NVME_WRITE_ZEROES,
						  .nsid = 1,
						  .lba = (uint64_t)i * MOST / BLOCK,
						  .blocks = MOST / BLOCK };

		assert_int_equal(weft_nvme_submit(u.qp, &zero, 1), 1);
		assert_int_equal(weft_nvme_wait(u.qp, done, 1, WAIT_MS), 1);
	}
	while (ended < count) {
		struct weft_nvme_command batch[DEPTH_MAX];
		uint32_t cnt = 0;

		for (i = 0; i < depth && begun + cnt < count; i++) {
			if (places[i].busy)
				continue;
			make(&places[i], places, depth, u.mem + i * part, model);
			batch[cnt++] = places[i].command;
			if (!any(4))
				break;
		}
		for (i = 0; i < cnt; i += (uint32_t)n) {
			n = weft_nvme_submit(u.qp, batch + i, cnt - i);
			if (n == -EAGAIN) {
				n = weft_nvme_poll(u.qp, done, DEPTH_MAX);
				for (ssize_t k = 0; k < n; k++, ended++)
					check(&done[k], model);
				n = 0;
			}
			assert_true(n >= 0);
		}
		begun += cnt;
		n = weft_nvme_wait(u.qp, done, 1 + any(DEPTH_MAX), WAIT_MS);
		if (n <= 0)
			fail_msg("%zd after %u of %u", n, ended, begun);
		for (i = 0; i < (uint32_t)n; i++, ended++)
			check(&done[i], model);
	}
	use_end(&u);
	free(places);
	free(model);
}

static void commands_of_all_sizes_do_what_they_say(void **state)
{
	run(1, 0, COMMANDS / 3);
	run(DEPTH_MAX, 0, COMMANDS);
}

static void commands_of_queues_near_the_borrower_do_too(void **state)
{
	if (far_only) {
		near_is_refused();
		return;
	}
	run(1, WEFT_NVME_NEAR_BORROWER, COMMANDS / 3);
	run(DEPTH_MAX, WEFT_NVME_NEAR_BORROWER, COMMANDS);
}

/* Over a bridge nobody can be woken. */
static void blocking_is_refused(void)
{
	struct weft_nvme_attr attr = { .size = sizeof(attr),
				       .depth = 3,
				       .flags = WEFT_NVME_BLOCKING };
	struct weft_nvme *qp;
	struct use u;

	use_begin(&u, 3, 0, 8192);
	assert_int_equal(weft_nvme_open(u.dev, &attr, &qp), -EOPNOTSUPP);
	use_end(&u);
}

static void who_blocks_is_woken(void **state)
{
	if (getenv("WEFT_BRIDGE")) {
		blocking_is_refused();
		return;
	}
	run(3, WEFT_NVME_BLOCKING, COMMANDS / 2);
	if (!far_only)
		run(3, WEFT_NVME_BLOCKING | WEFT_NVME_NEAR_BORROWER, COMMANDS / 2);
}

static void mistakes_have_their_errors(void **state)
{
	struct weft_address addr = { 0 };
	struct weft_segment *seg;
	struct weft_window *window;
	struct use u;

	use_begin(&u, 4, 0, 8192);
	assert_int_equal(weft_nvme_read(u.qp, 1, 1ULL << 40, 8, u.mem), -EIO);
	assert_int_equal(weft_nvme_read(u.qp, 1, 0, 8, u.mem + 8192 - 512), -EFAULT);
	assert_int_equal(weft_nvme_read(u.qp, 1, 0, 8, u.mem + 1), -EINVAL);
	assert_int_equal(weft_nvme_read(u.qp, 2, 0, 8, u.mem), -EINVAL);
	assert_int_equal(weft_nvme_read(u.qp, 1, 0, 4096, u.mem), -EMSGSIZE);
	assert_int_equal(weft_segment_alloc(u.dev, 4096, 0, &seg), -EOPNOTSUPP);
	assert_int_equal(weft_segment_import(u.lender, &addr, &seg), -EOPNOTSUPP);
	assert_int_equal(weft_segment_export(u.lender, u.seg, 0, &addr), -EOPNOTSUPP);
	/* a window that only lets it be read */
	assert_int_equal(weft_segment_alloc(NULL, 4096, 0, &seg), 0);
	assert_int_equal(weft_window_open(u.dev, seg, WEFT_WINDOW_READ, &window), 0);
	assert_int_equal(weft_nvme_read(u.qp, 1, 0, 8, weft_segment_mem(seg)), -EFAULT);
	assert_int_equal(weft_nvme_write(u.qp, 1, 0, 8, weft_segment_mem(seg)), 0);
	assert_int_equal(weft_window_close(window), 0);
	assert_int_equal(weft_nvme_write(u.qp, 1, 0, 8, weft_segment_mem(seg)), -EFAULT);
	assert_int_equal(weft_segment_free(seg), 0);
	assert_int_equal(weft_nvme_read(u.qp, 1, 0, 8, u.mem), 0);
	use_end(&u);
}

/* What is asked of the lender alone: nobody connects to it. Behind a bridge there are no sessions. */
static void a_session_is_someone_elses(void **state)
{
	struct weft_nvme_session session = { .size = sizeof(session) }, old = { .size = 8 };
	struct use u;
	int err;

	use_begin(&u, 4, 0, 8192);
	assert_int_equal(weft_nvme_session_open(u.dev, 8, &old), -EINVAL);
	assert_int_equal(weft_nvme_session_open(u.dev, 0, &session), -EINVAL);
	assert_int_equal(weft_nvme_session_open(u.dev, 1024, &session), -EINVAL);
	err = weft_nvme_session_open(u.dev, 8, &session);
	if (err != -EOPNOTSUPP) {
		assert_int_equal(err, 0);
		assert_int_not_equal(session.place_len, 0);
		assert_true(*session.host && memchr(session.host, 0, sizeof(session.host)));
		assert_int_equal(weft_nvme_session_close(u.dev, session.id), 0);
		assert_int_equal(weft_nvme_session_close(u.dev, session.id), -ENOENT);
	}
	assert_int_equal(weft_nvme_read(u.qp, 1, 0, 8, u.mem), 0);
	use_end(&u);
}

static void many_commands_do_what_they_say(void **state)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };

	printf("busy\n");
	fflush(stdout);
	while (!poll(&p, 1, 0)) {
		run(8, 0, 5 * COMMANDS);
		run(8, WEFT_NVME_NEAR_BORROWER, 5 * COMMANDS);
	}
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_is_read_as_it_was_written),
		cmocka_unit_test(commands_of_all_sizes_do_what_they_say),
		cmocka_unit_test(commands_of_queues_near_the_borrower_do_too),
		cmocka_unit_test(who_blocks_is_woken),
		cmocka_unit_test(mistakes_have_their_errors),
		cmocka_unit_test(a_session_is_someone_elses),
	};

	static const struct CMUnitTest lasting[] = {
		cmocka_unit_test(many_commands_do_what_they_say),
	};

	if (argc < 2)
		return 2;
	lender_name = argv[1];
	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);
	far_only = argc > 3 && !strcmp(argv[3], "far");
	printf("seed %lu\n", (unsigned long)seed);
	if (argc > 3 && !strcmp(argv[3], "long"))
		return cmocka_run_group_tests(lasting, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
