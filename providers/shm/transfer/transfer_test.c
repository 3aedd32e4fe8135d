/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of transfers that two processes copy together, when one of them computes, is stopped, or is
 * killed in the middle. The parent is the survivor.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "mock_child.h"

#define LEN (40u * PSHM_CHUNK_LEN + 5u)
#define ID  3u

static struct mock us;
static unsigned char *from, *to;
static struct mock_op op;

static int setup(void **state)
{
	from = malloc(LEN);
	to = calloc(1, LEN);
	if (mock_board_open() || !from || !to)
		return -1;
	mock_pattern(from, LEN, ID);
	return 0;
}

static int teardown(void **state)
{
	mock_board_close();
	mock_close(&us);
	free(from);
	free(to);
	return 0;
}

static void come(struct mock *m, int step)
{
	atomic_store(&board->step, step);
	while (atomic_load(&board->go) < step)
		if (m)
			mock_poll(m, NULL);
		else
			platform_yield();
}

static void await(int step)
{
	uint64_t end = platform_now_ns() + 10000000000;

	while (atomic_load(&board->step) < step) {
		if (us.wire)
			mock_poll(&us, NULL);
		assert_true(platform_now_ns() < end);
	}
}

static void offer(struct mock *m)
{
	m->offer_id = ID;
	m->offer[0] = (struct iovec){ from, LEN };
	m->offer_cnt = 1;
}

static struct pshm_conn *at(const struct mock *m)
{
	return (struct pshm_conn *)m->conn;
}

/* A sender: computes while the step is 2, and polls from then on. */
static int sender_body(struct mock *m)
{
	offer(m);
	board->from = (uintptr_t)from;
	mock_until(m, NULL, m->conn);
	come(m, 1);
	come(NULL, 2);
	while (atomic_load(&board->go) < 3) {
		mock_poll(m, NULL);
		atomic_store(&board->written, at(m)->chunks_written);
	}
	mock_close(m);
	return 0;
}

/* One that the kernel lets be read, and not write. */
static int refused_body(struct mock *m)
{
	sys_fault_set(SYS_CALL_PROCESS_VM_WRITEV, EPERM, 0, 0);
	return sender_body(m);
}

/* A receiver: reads again and again. */
static int receiver_body(struct mock *m)
{
	struct iovec iov = { to, LEN };

	mock_until(m, NULL, m->conn);
	come(m, 1);
	while (!m->downs) {
		mock_get(m->conn, ID, (void *)board->from, &iov, 1, &op);
		/* as if the peer did not poll, for the first chunk */
		while (!op.done)
			m->wire->ops->poll(m->wire);
		atomic_fetch_add(&board->step, !op.status);
	}
	return 0;
}

static void meet(int (*body)(struct mock *m))
{
	memset(board, 0, sizeof(*board));
	memset(to, 0, LEN);
	mock_child_start(NULL, body);
	mock_open(&us);
	mock_connected(&us, NULL, &board->child);
	await(1);
	atomic_store(&board->go, 1);
}

/* It has ended: whole, or as far as it says. */
static void ended_well(void)
{
	assert_true(op.done);
	if (!op.status) {
		assert_memory_equal(to, from, LEN);
		return;
	}
	assert_int_equal(op.status, -FI_EBUSY);
	assert_true(op.op.moved < LEN);
	assert_memory_equal(to, from, op.op.moved);
}

/* Begins to read what the child has, which computes. */
static void begin(void)
{
	struct iovec iov = { to, LEN };

	await(2);
	assert_int_equal(mock_get(us.conn, ID, (void *)board->from, &iov, 1, &op), 0);
	mock_until(&us, NULL, at(&us)->coop_slots);
}

static void sender_that_comes_back_writes_chunks(void **state)
{
	meet(sender_body);
	begin();
	atomic_store(&board->go, 2);
	/* it polls, while this process computes */
	mock_until(NULL, NULL, atomic_load(&board->written));
	mock_until(&us, NULL, op.done);
	ended_well();
	atomic_store(&board->go, 3);
	mock_until(&us, NULL, us.downs);
	assert_int_equal(us.down_err, 0);
}

static void sender_that_may_not_write_leaves_it_to_the_receiver(void **state)
{
	meet(refused_body);
	begin();
	atomic_store(&board->go, 2);
	/* it says so once it has tried, while we compute, and is not asked again */
	mock_until(NULL, NULL, atomic_load(&at(&us)->pair->no_coop_write[!at(&us)->side].value));
	mock_until(&us, NULL, op.done);
	assert_int_equal(op.status, 0);
	assert_memory_equal(to, from, LEN);
	assert_int_equal(atomic_load(&board->written), 0);
}

/* A number of polls, from none to what the whole takes. */
static void poll_for(uint32_t cnt)
{
	while (cnt--)
		mock_poll(&us, NULL);
}

/* Another transfer, from the child that is stopped. */
static void read_another(void)
{
	unsigned char *other = malloc(LEN);
	struct mock_op op2;

	assert_non_null(other);
	assert_int_equal(mock_get(us.conn, ID, (void *)board->from,
				  &(struct iovec){ other, LEN }, 1, &op2),
			 0);
	mock_until(&us, NULL, op2.done);
	poll_for(100);
	assert_int_equal(op2.status, 0);
	assert_memory_equal(other, from, LEN);
	free(other);
}

static void sender_that_is_stopped_delays_no_more_than_its_transfer(void **state)
{
	int status;

	for (uint32_t round = 0; round < 60; round++) {
		meet(sender_body);
		begin();
		atomic_store(&board->go, 2);
		poll_for(round % 30);
		assert_int_equal(kill(child, SIGSTOP), 0);
		assert_int_equal(waitpid(child, &status, WUNTRACED), child);
		assert_true(WIFSTOPPED(status));
		read_another();
		assert_int_equal(kill(child, SIGCONT), 0);
		mock_until(&us, NULL, op.done);
		ended_well();
		mock_child_kill();
		mock_close(&us);
	}
}

static void peer_polls(void)
{
	atomic_store(&board->go, 2);
}

/* The child polls, and is stopped in a chunk that it has claimed: before it writes it, or after. */
static void stop_in_chunk(uint32_t round)
{
	meet(sender_body);
	begin();
	mock_child_stop_in(SYS_process_vm_writev, round / 2, round % 2, peer_polls);
}

static void sender_that_is_stopped_in_a_chunk_delays_its_transfer_alone(void **state)
{
	for (uint32_t round = 0; round < 60; round++) {
		stop_in_chunk(round);
		read_another();
		assert_false(op.done);
		mock_child_go();
		mock_until(&us, NULL, op.done);
		ended_well();
		mock_child_kill();
		mock_close(&us);
	}
}

/* A copy of the process that reads leaves the transfer alone. */
static void receiver_that_forks_goes_on(void **state)
{
	int status;
	pid_t copy;

	meet(sender_body);
	begin();
	copy = fork();
	assert_true(copy >= 0);
	if (!copy) {
		alarm(600);
		us.wire->ops->poll(us.wire);
		mock_close(&us);
		_exit(0);
	}
	assert_int_equal(waitpid(copy, &status, 0), copy);
	assert_int_equal(status, 0);
	mock_until(&us, NULL, op.done);
	assert_int_equal(op.status, 0);
	assert_memory_equal(to, from, LEN);
}

/* Nothing is written any more once the connection has ended. Ends the child */
static void kill_sender(void)
{
	uint64_t begun;
	bool done;

	assert_int_equal(kill(child, SIGKILL), 0);
	done = op.done;
	/* as the engine does */
	mock_until(&us, NULL, us.wire->ops->check(us.conn) || us.downs);
	begun = mock_worked_ns();
	if (us.conn) {
		us.wire->ops->disconnect(us.conn);
		us.conn = NULL;
	}
	assert_true(mock_worked_ns() - begun < 500000000u);
	if (done)
		ended_well();
	memset(to, 0x55, LEN);
	assert_int_equal(waitpid(child, NULL, 0), child);
	child = 0;
	for (size_t i = 0; i < LEN; i++)
		assert_true(to[i] == 0x55);
	mock_close(&us);
}

static void sender_that_is_killed_writes_nothing_afterwards(void **state)
{
	for (uint32_t round = 0; round < 60; round++) {
		meet(sender_body);
		begin();
		atomic_store(&board->go, 2);
		poll_for(round % 30);
		kill_sender();
	}
}

static void sender_that_is_killed_in_a_chunk_writes_nothing_afterwards(void **state)
{
	for (uint32_t round = 0; round < 60; round++) {
		stop_in_chunk(round);
		poll_for(round);
		assert_false(op.done);
		kill_sender();
	}
}

static void receiver_that_is_killed_harms_nobody(void **state)
{
	uint64_t written = 0;

	for (uint32_t round = 0; round < 60; round++) {
		meet(receiver_body);
		offer(&us);
		board->from = (uintptr_t)from;
		atomic_store(&board->go, 1);
		/* it reads while we compute, and we come by */
		for (uint32_t i = 0; i < 1 + round % 20 && us.conn; i++) {
			uint64_t end = platform_now_ns() + 100000;

			while (platform_now_ns() < end)
				platform_yield();
			poll_for(2);
		}
		if (us.conn)
			written += at(&us)->chunks_written;
		assert_int_equal(kill(child, SIGKILL), 0);
		mock_until(&us, NULL, !us.conn || us.wire->ops->check(us.conn));
		poll_for(10);
		assert_int_equal(waitpid(child, NULL, 0), child);
		child = 0;
		mock_close(&us);
	}
	assert_true(written > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sender_that_comes_back_writes_chunks),
		TEST(sender_that_may_not_write_leaves_it_to_the_receiver),
		TEST(sender_that_is_stopped_delays_no_more_than_its_transfer),
		TEST(sender_that_is_stopped_in_a_chunk_delays_its_transfer_alone),
		TEST(receiver_that_forks_goes_on),
		TEST(sender_that_is_killed_writes_nothing_afterwards),
		TEST(sender_that_is_killed_in_a_chunk_writes_nothing_afterwards),
		TEST(receiver_that_is_killed_harms_nobody),
	};

	alarm(600);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
