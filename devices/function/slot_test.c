/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of the owner's side of a slot: what it does with answers that it must not get, and with none. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "descriptors.h"
#include "function.h"
#include "packet.h"

/*
 * struct reply - how the controller answers a request
 * @msg:    in place of the answer that is right, where @change says so
 * @fd_cnt: descriptors beside it
 * @len:    bytes of it; 0: all
 */
struct reply {
	void (*change)(struct slot_message *msg);
	int status;
	uint32_t fd_cnt;
	size_t len;
	bool none;
	bool hang_up;
};

static char folder[64], path[96];
static int listener;
static unsigned open_before;
static pthread_t thread;
static struct reply attach, reply;
static struct slot_message asked;
static uint32_t asked_fds;

static int setup(void **state)
{
	open_before = descriptors_open();
	attach = reply = (struct reply){ 0 };
	strcpy(folder, "/tmp/weft-slot.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/slot", folder);
	listener = packet_listen(path, 0600);
	return listener >= 0 ? 0 : -1;
}

static int teardown(void **state)
{
	close(listener);
	unlink(path);
	rmdir(folder);
	return descriptors_open() == open_before ? 0 : -1;
}

static void answer(int fd, const struct slot_message *request, const struct reply *how)
{
	struct slot_message msg = { .version = SLOT_VERSION,
				    .kind = request->kind,
				    .seq = request->seq,
				    .status = how->status,
				    .fd_cnt = how->fd_cnt };
	struct iovec iov = { &msg, how->len ? how->len : sizeof(msg) };
	int fds[PACKET_FDS_MAX];
	uint32_t i;

	if (msg.kind == SLOT_ATTACH && !how->status) {
		msg.addr = 65536;
		msg.len = 4096;
		msg.offset = 8;
		msg.value = 77;
	}
	if (how->change)
		how->change(&msg);
	for (i = 0; i < how->fd_cnt; i++)
		fds[i] = fd;
	packet_send(fd, &iov, 1, fds, how->fd_cnt);
}

/* One connection, until it ends. */
static void *control(void *arg)
{
	int fd = accept(listener, NULL, NULL), fds[PACKET_FDS_MAX];
	struct slot_message msg;
	struct iovec iov = { &msg, sizeof(msg) };
	uint32_t cnt;

	while (packet_recv(fd, &iov, 1, fds, &cnt, -1) == sizeof(msg)) {
		const struct reply *how = msg.kind == SLOT_ATTACH ? &attach : &reply;

		packet_close_fds(fds, cnt);
		asked = msg;
		asked_fds = cnt;
		if (how->hang_up)
			break;
		if (!how->none)
			answer(fd, &msg, how);
	}
	close(fd);
	return NULL;
}

static int open_slot(struct function **f)
{
	int err;

	assert_int_equal(pthread_create(&thread, NULL, control, NULL), 0);
	err = function_open_slot(path, f);
	if (err)
		pthread_join(thread, NULL);
	return err;
}

static void close_slot(struct function *f)
{
	f->ops->close(f);
	pthread_join(thread, NULL);
}

static struct function *open_well(void)
{
	struct function *f;

	assert_int_equal(open_slot(&f), 0);
	return f;
}

static void owner_learns_what_the_controller_is(void **state)
{
	struct function *f = open_well();

	assert_int_equal(f->info.queue_pairs, 8);
	assert_int_equal(f->info.memory, 65536);
	assert_int_equal(f->info.granule, 4096);
	assert_int_equal(f->info.serial, 77);
	close_slot(f);
}

static void refusal_to_have_an_owner_is_returned(void **state)
{
	struct function *f;

	attach.status = -EBUSY;
	assert_int_equal(open_slot(&f), -EBUSY);
	attach.status = -EPERM;
	assert_int_equal(open_slot(&f), -EPERM);
	attach = (struct reply){ .hang_up = true };
	assert_int_equal(open_slot(&f), -ENODEV);
	assert_int_equal(function_open_slot("/nonexistent/slot", &f), -ENOENT);
}

static void status_is_the_operations(void **state)
{
	struct function *f = open_well();
	uint64_t value = 7;

	reply.status = -ENOENT;
	assert_int_equal(f->ops->read(f, 0x1c, 4, &value), -ENOENT);
	assert_int_equal(value, 7);
	assert_int_equal(f->ops->unmap(f, 3, 4096, 8192), -ENOENT);
	assert_int_equal(asked.kind, SLOT_UNMAP);
	assert_int_equal(asked.domain, 3);
	assert_int_equal(asked.addr, 4096);
	assert_int_equal(asked.len, 8192);
	/* It goes on. */
	reply.status = 0;
	assert_int_equal(f->ops->read(f, 0x1c, 4, &value), 0);
	close_slot(f);
}

static void descriptors_go_and_come_beside_operations(void **state)
{
	struct function *f = open_well();
	int fds[SLOT_FDS_MAX], in[2];
	struct function_mapping mapping = { .domain = 1, .len = 4096, .fds = in, .fd_cnt = 2 };
	uint32_t cnt = 0;

	assert_int_equal(pipe(in), 0);
	assert_int_equal(f->ops->map(f, &mapping), 0);
	assert_int_equal(asked_fds, 2);
	assert_int_equal(f->ops->vector(f, 3, in[0]), 0);
	assert_int_equal(asked_fds, 1);
	assert_int_equal(f->ops->vector(f, 3, -1), 0);
	assert_int_equal(asked_fds, 0);
	reply.fd_cnt = SLOT_FDS_MAX;
	assert_int_equal(f->ops->region(f, 2, 0, 4096, true, fds, &cnt), 0);
	assert_int_equal(asked.value, 1);
	assert_int_equal(cnt, SLOT_FDS_MAX);
	packet_close_fds(fds, cnt);
	packet_close_fds(in, 2);
	close_slot(f);
}

static void change_version(struct slot_message *msg)
{
	msg->version++;
}

static void change_kind(struct slot_message *msg)
{
	msg->kind++;
}

static void change_seq(struct slot_message *msg)
{
	msg->seq--;
}

static void change_status(struct slot_message *msg)
{
	msg->status = 1;
}

static void change_count(struct slot_message *msg)
{
	msg->fd_cnt++;
}

/* From then on nothing is asked of it, nor kept of what came. */
static void expect_lost(struct reply how)
{
	struct function *f = open_well();
	uint64_t value;

	reply = how;
	assert_int_equal(f->ops->read(f, 0x1c, 4, &value), -EPROTO);
	reply = (struct reply){ 0 };
	asked.kind = 0;
	assert_int_equal(f->ops->read(f, 0x1c, 4, &value), -EPROTO);
	assert_int_equal(asked.kind, 0);
	close_slot(f);
}

static void answer_that_is_none_loses_the_controller(void **state)
{
	expect_lost((struct reply){ .change = change_version });
	expect_lost((struct reply){ .change = change_kind });
	expect_lost((struct reply){ .change = change_seq });
	expect_lost((struct reply){ .change = change_status });
	expect_lost((struct reply){ .change = change_count });
	expect_lost((struct reply){ .len = sizeof(struct slot_message) - 1 });
	expect_lost((struct reply){ .fd_cnt = 1 });
	expect_lost((struct reply){ .fd_cnt = PACKET_FDS_MAX });
	expect_lost((struct reply){ .status = -ENOENT, .fd_cnt = 1 });
}

static void controller_goes_on_where_descriptors_have_no_room(void **state)
{
	struct function *f = open_well();
	struct rlimit limit, none;
	int fds[SLOT_FDS_MAX], next = dup(listener);
	uint64_t value;
	uint32_t cnt;

	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){ .rlim_cur = (rlim_t)next, .rlim_max = limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	reply = (struct reply){ .fd_cnt = 2 };
	assert_int_equal(f->ops->region(f, 0, 0x2000, 4096, false, fds, &cnt), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(f->ops->region(f, 0, 0x2000, 4096, false, fds, &cnt), 0);
	packet_close_fds(fds, cnt);
	reply = (struct reply){ 0 };
	assert_int_equal(f->ops->read(f, 0x1c, 4, &value), 0);
	close_slot(f);
}

static void end_of_the_controller_is_seen(void **state)
{
	struct function *f = open_well();
	uint64_t value;

	reply.hang_up = true;
	assert_int_equal(f->ops->read(f, 0x1c, 4, &value), -ENODEV);
	assert_int_equal(f->ops->write(f, 0x14, 4, 1), -ENODEV);
	close_slot(f);
}

static void controller_that_does_not_answer_is_waited_for_once(void **state)
{
	struct function *f = open_well();
	uint64_t value;

	reply.none = true;
	assert_int_equal(f->ops->read(f, 0x1c, 4, &value), -ETIMEDOUT);
	/* At once. */
	assert_int_equal(f->ops->write(f, 0x14, 4, 1), -ETIMEDOUT);
	close_slot(f);
}

static void queue_stands_where_the_controller_says(void **state)
{
	struct function *f = open_well();
	struct function_queue queue;

	assert_int_equal(f->ops->queue(f, 5, &queue), 0);
	assert_int_equal(asked.index, 5);
	assert_int_equal(queue.sq_tail, 0);
	assert_false(queue.cq_phase);
	close_slot(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(owner_learns_what_the_controller_is),
		TEST(refusal_to_have_an_owner_is_returned),
		TEST(status_is_the_operations),
		TEST(descriptors_go_and_come_beside_operations),
		TEST(answer_that_is_none_loses_the_controller),
		TEST(controller_goes_on_where_descriptors_have_no_room),
		TEST(end_of_the_controller_is_seen),
		TEST(controller_that_does_not_answer_is_waited_for_once),
		TEST(queue_stands_where_the_controller_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
