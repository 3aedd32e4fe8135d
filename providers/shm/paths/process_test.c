/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of the shm wire between processes: streams both ways, processes that are killed at any
 * time, fork, and users who may not open each other's /proc files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "mock_child.h"
#include "shm_endpoint.h"

static struct mock us;

static int setup(void **state)
{
	return mock_board_open();
}

static int teardown(void **state)
{
	sys_fault_clear();
	mock_close(&us);
	free(us.room);
	us.room = NULL;
	mock_board_close();
	return 0;
}

/* Sends and receives @cnt packets and, in between, large payload. */
static void stream(struct mock *m, uint64_t cnt)
{
	enum { BIG = 200000 };
	unsigned char *buf = malloc(BIG);
	uint64_t sent = 0, big = 0;
	struct mock_op op;

	m->room = malloc(BIG);
	m->room_len = BIG;
	m->room_iovs = 1;
	mock_op_init(&op);
	op.done = 1;
	mock_until(m, NULL, ({
			   while (sent < cnt &&
				  mock_put(m->conn, sent,
					   (uint32_t)(sent % 7 ? sent % 25 : sent % 3000)))
				   sent++;
			   if (op.done && big < cnt / 1000) {
				   mock_pattern(buf, BIG, MOCK_BIG + big);
				   assert_int_equal(mock_sendv(m->conn, MOCK_BIG + big++, buf,
							       BIG, 2, &op),
						    0);
			   }
			   m->next_tag == cnt && m->big_done == cnt / 1000 &&
				   sent == cnt &&op.done;
		   }));
	assert_false(m->garbled);
	free(buf);
}

#define STREAM 50000u

static int stream_body(struct mock *m)
{
	mock_until(m, NULL, m->conn);
	stream(m, STREAM);
	atomic_store(&board->result, m->garbled ? 1 : 2);
	mock_close(m);
	return 0;
}

static void streams_pass_both_ways(void **state)
{
	mock_child_start(NULL, stream_body);
	mock_open(&us);
	mock_connected(&us, NULL, &board->child);
	stream(&us, STREAM);
	mock_until(&us, NULL, us.downs);
	assert_int_equal(us.down_err, 0);
	assert_int_equal(atomic_load(&board->result), 2);
	mock_child_ended(0);
}

static int killed_body(struct mock *m)
{
	mock_child_says(m);
	return raise(SIGKILL);
}

static void killed_peer_is_found_after_what_it_left(void **state)
{
	struct wire_conn *conn;
	int err = 0;

	mock_child_start(NULL, killed_body);
	mock_open(&us);
	mock_connected(&us, NULL, &board->child);
	conn = us.conn;
	mock_child_ended(SIGKILL);
	if (us.next_tag < 100)
		assert_int_equal(pshm_wire_ops.check(conn), 0);
	mock_until(&us, NULL, (err = pshm_wire_ops.check(conn)) != 0);
	assert_int_equal(err, -FI_ECONNRESET);
	assert_int_equal(us.next_tag, 100);
	assert_int_equal(us.downs, 0);
	pshm_wire_ops.disconnect(conn);
}

/* Another program in its place, for as long as it is not killed. */
static int begin_another(void)
{
	return execlp("sleep", "sleep", "60", (char *)NULL);
}

static int other_program_body(struct mock *m)
{
	mock_child_says(m);
	return begin_another();
}

/* Returns what connecting to the child does; a connection is given up at once. */
static int try_connect(void)
{
	struct wire_conn *conn;
	int err = mock_connect(&us, &board->child, &conn);

	if (!err)
		pshm_wire_ops.disconnect(conn);
	return err;
}

static void peer_that_begins_another_program_is_dead(void **state)
{
	struct wire_conn *conn;
	int err = 0;

	mock_child_start(NULL, other_program_body);
	mock_open(&us);
	mock_connected(&us, NULL, &board->child);
	conn = us.conn;
	mock_until(&us, NULL, (err = pshm_wire_ops.check(conn)) != 0);
	assert_int_equal(err, -FI_ECONNRESET);
	assert_int_equal(us.next_tag, 100);
	assert_int_equal(kill(child, 0), 0);
	pshm_wire_ops.disconnect(conn);
	/* The kernel closes the peer's descriptors after its memory was freed. */
	mock_until(&us, NULL, (err = try_connect()) != 0);
	assert_int_equal(err, -FI_ECONNREFUSED);
}

static int before_the_answer_body(struct mock *m)
{
	mock_step_wait(2);
	return begin_another();
}

static void owner_of_an_inbox_that_begins_another_program_refuses(void **state)
{
	struct wire_conn *conn;

	mock_child_start(NULL, before_the_answer_body);
	mock_open(&us);
	assert_int_equal(mock_connect(&us, &board->child, &conn), 0);
	mock_poll(&us, NULL);
	atomic_store(&board->step, 2);
	mock_until(&us, NULL, us.downs);
	assert_int_equal(us.down_err, -FI_ECONNREFUSED);
	assert_int_equal(kill(child, 0), 0);
}

static int pause_body(struct mock *m)
{
	return pause();
}

static void killed_owner_of_an_inbox_refuses(void **state)
{
	struct wire_conn *conn;

	mock_child_start(NULL, pause_body);
	mock_open(&us);
	assert_int_equal(mock_connect(&us, &board->child, &conn), 0);
	mock_poll(&us, NULL);
	kill(child, SIGKILL);
	mock_child_ended(SIGKILL);
	mock_until(&us, NULL, us.downs);
	assert_int_equal(us.down_err, -FI_ECONNREFUSED);
	assert_int_equal(mock_connect(&us, &board->child, &conn), -FI_ECONNREFUSED);
}

static void zombie_is_dead(void **state)
{
	siginfo_t info;

	mock_child_start(NULL, killed_body);
	mock_open(&us);
	mock_connected(&us, NULL, &board->child);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	mock_until(&us, NULL, us.next_tag == 100);
	assert_int_equal(pshm_wire_ops.check(us.conn), -FI_ECONNRESET);
}

static int crowd_body(struct mock *m)
{
	struct wire_conn *conn;
	int cnt = 0;

	/* the last ones wait for slots */
	while (cnt < 2 * (int)PSHM_SLOTS && !mock_connect(m, &board->parent, &conn))
		cnt++;
	atomic_store(&board->result, cnt);
	return raise(SIGKILL);
}

static void slots_of_the_dead_are_used_again(void **state)
{
	struct wire_conn *conn;

	mock_open(&us);
	board->parent = us.addr;
	mock_child_start(NULL, crowd_body);
	mock_child_ended(SIGKILL);
	assert_int_equal(atomic_load(&board->result), 2 * PSHM_SLOTS);
	/* all slots are a dead process's, and we have not looked at them */
	assert_int_equal(mock_connect(&us, &us.addr, &conn), 0);
	mock_until(&us, NULL, us.ups == 2);
	assert_int_equal(us.downs, 0);
}

static int crowd_that_leaves_body(struct mock *m)
{
	struct wire_conn *conn;

	for (uint32_t i = 0; i < PSHM_SLOTS; i++)
		if (mock_connect(m, &board->parent, &conn))
			_exit(1);
	atomic_store(&board->result, 1);
	mock_step_wait(2);
	return begin_another();
}

static void slots_of_a_program_that_is_no_more_are_used_again(void **state)
{
	struct pshm_process *process;
	struct wire_conn *conn;

	mock_open(&us);
	board->parent = us.addr;
	mock_child_start(NULL, crowd_that_leaves_body);
	assert_int_equal(pshm_process_get((uint32_t)child, &process), 0);
	atomic_store(&board->step, 2);
	for (uint64_t end = platform_now_ns() + 10000000000; !pshm_process_dead(process);)
		assert_true(platform_now_ns() < end);
	pshm_process_put(process);
	assert_int_equal(atomic_load(&board->result), 1);
	assert_int_equal(mock_connect(&us, &us.addr, &conn), 0);
	mock_until(&us, NULL, us.ups == 2);
	assert_int_equal(us.downs, 0);
	assert_int_equal(kill(child, 0), 0);
}

static int get_body(struct mock *m)
{
	static unsigned char from[1 << 16];

	mock_pattern(from, sizeof(from), 3);
	mock_until(m, NULL, m->conn);
	atomic_store(&board->result, 1);
	mock_put(m->conn, (uintptr_t)from, 0);
	mock_step_wait(2);
	return atomic_load(&board->step) == 3 ? begin_another() : raise(SIGKILL);
}

static void get_reads_the_process_and_no_other_after_it(void **state)
{
	unsigned char to[1 << 16];
	struct iovec iov = { to, sizeof(to) };
	struct mock_op op;

	mock_child_start(NULL, get_body);
	mock_open(&us);
	mock_connected(&us, NULL, &board->child);
	mock_until(&us, NULL, us.packets);
	assert_int_equal(mock_get(us.conn, 1, (void *)us.big.tag, &iov, 1, &op), 0);
	mock_until(&us, NULL, op.done);
	assert_int_equal(op.status, 0);
	assert_true(mock_is_pattern(to, sizeof(to), 3));
	atomic_store(&board->step, 2);
	mock_child_ended(SIGKILL);
	assert_int_equal(mock_get(us.conn, 1, (void *)us.big.tag, &iov, 1, &op), 0);
	mock_until(&us, NULL, op.done);
	assert_int_equal(op.status, -FI_ECONNRESET);
}

static void get_reads_the_program_and_no_other_after_it(void **state)
{
	struct pshm_process *process;
	unsigned char to[1 << 16];
	struct iovec iov = { to, sizeof(to) };
	struct mock_op op;

	mock_child_start(NULL, get_body);
	mock_open(&us);
	mock_connected(&us, NULL, &board->child);
	mock_until(&us, NULL, us.packets);
	process = pshm_conn_of(us.conn)->process;
	atomic_store(&board->step, 3);
	mock_until(&us, NULL, pshm_process_dead(process));
	assert_int_equal(mock_get(us.conn, 1, (void *)us.big.tag, &iov, 1, &op), 0);
	mock_until(&us, NULL, op.done);
	assert_int_equal(op.status, -FI_ECONNRESET);
}

static void program_is_held_with_its_process(void **state)
{
	struct pshm_process *one, *same, *next;
	int err;

	mock_child_start(NULL, before_the_answer_body);
	assert_int_equal(pshm_process_get((uint32_t)child, &one), 0);
	assert_int_equal(pshm_process_get((uint32_t)child, &same), 0);
	assert_ptr_equal(one, same);
	assert_int_equal(one->how, PSHM_BY_IMAGE);
	atomic_store(&board->step, 2);
	mock_open(&us);
	mock_until(&us, NULL, pshm_process_dead(one));
	assert_false(pshm_process_gone((uint32_t)child));
	/* not before it has begun */
	mock_until(&us, NULL,
		   (err = pshm_process_get((uint32_t)child, &next)) != -FI_EHOSTUNREACH);
	assert_int_equal(err, 0);
	assert_ptr_not_equal(one, next);
	assert_false(pshm_process_dead(next));
	pshm_process_put(one);
	pshm_process_put(same);
	pshm_process_put(next);
}

static void other_ways_to_hold_a_process_find_its_death(void **state)
{
	struct pshm_process *process;

	for (int i = 0; i < 2; i++) {
		mock_child_start(NULL, pause_body);
		sys_fault_set(SYS_CALL_OPEN_IMAGE, ENOENT, 0, 1);
		if (i)
			sys_fault_set(SYS_CALL_PIDFD_OPEN, ENOSYS, 0, 1);
		assert_int_equal(pshm_process_get((uint32_t)child, &process), 0);
		assert_int_equal(process->how, i ? PSHM_BY_FOLDER : PSHM_BY_PIDFD);
		assert_false(pshm_process_dead(process));
		kill(child, SIGKILL);
		mock_child_ended(SIGKILL);
		assert_true(pshm_process_dead(process));
		pshm_process_put(process);
	}
}

static int echo_body(struct mock *m)
{
	mock_until(m, NULL, m->conn);
	mock_until(m, NULL, m->next_tag == 1);
	mock_put(m->conn, 0, 8);
	mock_until(m, NULL, m->next_tag == 3 || m->garbled);
	atomic_store(&board->result, m->garbled ? 1 : 2);
	mock_close(m);
	return 0;
}

static _Atomic bool looking_over;

/* Holds the table's lock most of the time. */
static void *look_up(void *arg)
{
	struct pshm_process *process;

	while (!atomic_load(&looking_over))
		if (!pshm_process_get((uint32_t)getppid(), &process))
			pshm_process_put(process);
	return NULL;
}

static void fork_finds_the_table_of_processes_whole(void **state)
{
	struct pshm_process *process;
	pthread_t thread;
	int status, ended;

	pshm_process_watch();
	atomic_store(&looking_over, false);
	assert_int_equal(pthread_create(&thread, NULL, look_up, NULL), 0);
	for (int i = 0; i < 50; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid) {
			alarm(600);
			_exit(pshm_process_get((uint32_t)getppid(), &process));
		}
		ended = waitpid(pid, &status, 0);
		assert_int_equal(ended, pid);
		assert_int_equal(status, 0);
	}
	atomic_store(&looking_over, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void copy_made_by_fork_can_do_no_harm(void **state)
{
	const struct pshm_inbox *inbox;
	struct wire_conn *conn;
	uint32_t polls;
	int status;
	pid_t copy;

	mock_child_start(NULL, echo_body);
	mock_open(&us);
	mock_connected(&us, NULL, &board->child);
	assert_true(mock_put(us.conn, 0, 8));
	inbox = ((struct pshm_wire *)us.wire)->inbox;
	polls = atomic_load(&inbox->polls);
	copy = fork();
	assert_true(copy >= 0);
	if (!copy) {
		alarm(600);
		conn = us.conn;
		if (mock_put(conn, 1, 8) || mock_put(conn, 1, 800) ||
		    pshm_wire_ops.check(conn) != -FI_EOPBADSTATE)
			_exit(1);
		if (pshm_arm(us.wire)) /* poll() has something: the end */
			_exit(5);
		for (int i = 0; i < 1000; i++)
			mock_poll(&us, NULL);
		if (pshm_arm(us.wire) != UINT64_MAX)
			_exit(6);
		if (us.packets || us.downs != 1 || us.down_err != -FI_EOPBADSTATE)
			_exit(2);
		if (mock_connect(&us, &board->child, &conn) != -FI_EOPBADSTATE)
			_exit(3);
		mock_close(&us);
		/* an endpoint of its own */
		mock_open(&us);
		_exit(mock_connect(&us, &us.addr, &conn) ? 4 : 0);
	}
	assert_int_equal(waitpid(copy, &status, 0), copy);
	assert_int_equal(status, 0);
	/* no peer may take it for this process */
	assert_int_equal(atomic_load(&inbox->polls), polls);
	mock_until(&us, NULL, us.next_tag == 1);
	assert_true(mock_put(us.conn, 1, 8));
	assert_true(mock_put(us.conn, 2, 800));
	mock_until(&us, NULL, us.downs);
	assert_int_equal(us.down_err, 0);
	assert_int_equal(atomic_load(&board->result), 2);
}

static int nobody_body(struct mock *m)
{
	struct wire_conn *conn;
	int err = mock_connect(m, &board->parent, &conn);

	atomic_store(&board->result, err ? -err : 1);
	while (!m->downs)
		mock_poll(m, NULL);
	return 0;
}

static void another_user_is_unreachable_either_way(void **state)
{
	struct wire_conn *conn;

	mock_open(&us);
	board->parent = us.addr;
	if (!mock_child_start(mock_begin_nobody, nobody_body))
		skip();
	mock_until(&us, NULL, atomic_load(&board->result));
	assert_int_equal(atomic_load(&board->result), FI_EHOSTUNREACH);
	/* we may open its inbox; it may not open what we offer, and says so */
	assert_int_equal(mock_connect(&us, &board->child, &conn), 0);
	mock_until(&us, NULL, us.downs || us.ups);
	assert_int_equal(us.down_err, -FI_EHOSTUNREACH);
	assert_int_equal(us.ups, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(streams_pass_both_ways),
		TEST(killed_peer_is_found_after_what_it_left),
		TEST(peer_that_begins_another_program_is_dead),
		TEST(owner_of_an_inbox_that_begins_another_program_refuses),
		TEST(killed_owner_of_an_inbox_refuses),
		TEST(zombie_is_dead),
		TEST(slots_of_the_dead_are_used_again),
		TEST(slots_of_a_program_that_is_no_more_are_used_again),
		TEST(get_reads_the_process_and_no_other_after_it),
		TEST(get_reads_the_program_and_no_other_after_it),
		TEST(program_is_held_with_its_process),
		TEST(other_ways_to_hold_a_process_find_its_death),
		TEST(fork_finds_the_table_of_processes_whole),
		TEST(copy_made_by_fork_can_do_no_harm),
		TEST(another_user_is_unreachable_either_way),
	};

	alarm(600);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
