/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests of sleeping and waking: two endpoints in one process, and in two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "conn.h"
#include "polling.h"
#include "wake.h"
#include "fault.h"
#include "mock_engine.h"
#include "seeded.h"
#include "shm_endpoint.h"

static struct mock a, b;
static bool a_rings_late; /* when a bell is next cleared */

void __real_sys_fifo_clear(int fd);
void __wrap_sys_fifo_clear(int fd);

void __wrap_sys_fifo_clear(int fd)
{
	if (a_rings_late) {
		a_rings_late = false;
		pshm_peer_wake(pshm_conn_of(a.conn));
	}
	__real_sys_fifo_clear(fd);
}

static int setup(void **state)
{
	mock_meet(&a, &b);
	return 0;
}

/* The same where there are no barriers: each side makes its own. */
static int setup_unsure(void **state)
{
	sys_fault_set(SYS_CALL_MEMBARRIER, ENOSYS, 0, 0);
	return setup(state);
}

static int teardown(void **state)
{
	sys_fault_clear();
	mock_close(&a);
	mock_close(&b);
	return 0;
}

static void message_rings_for_who_is_armed_and_for_nobody_else(void **state)
{
	uint64_t sent = 0;

	assert_false(mock_rings(&b));
	assert_true(mock_put(a.conn, sent++, 8));
	assert_false(mock_rings(&b));
	assert_int_equal(pshm_arm(b.wire), 0); /* it is there */
	mock_until(&b, NULL, b.next_tag == sent);
	for (int i = 0; i < 5; i++) {
		mock_arm_idle(&b);
		assert_false(mock_rings(&b));
		assert_true(mock_put(a.conn, sent++, i % 2 ? 8 : 3000));
		assert_true(mock_rings(&b));
		assert_true(mock_put(a.conn, sent++, 8));
		pshm_disarm(b.wire);
		assert_false(mock_rings(&b));
		mock_until(&b, NULL, b.next_tag == sent);
		assert_true(mock_put(a.conn, sent++, 8));
		assert_false(mock_rings(&b));
		mock_until(&b, NULL, b.next_tag == sent);
	}
}

static void arming_again_silences_a_bell_that_rings_for_nothing(void **state)
{
	mock_arm_idle(&b);
	assert_true(mock_put(a.conn, 0, 8));
	assert_true(mock_rings(&b));
	mock_until(&b, NULL, b.next_tag == 1);
	assert_true(mock_rings(&b));
	mock_arm_idle(&b);
	assert_false(mock_rings(&b));
	assert_true(mock_put(a.conn, 1, 8));
	assert_true(mock_rings(&b));
}

/*
 * Its producer sees that the endpoint sleeps only once what it rang its doorbell for has been
 * read.
 */
static void wake_for_an_old_doorbell_does_not_hide_the_next(void **state)
{
	mock_arm_idle(&b);
	pshm_disarm(b.wire);
	a_rings_late = true;
	assert_true(pshm_arm(b.wire) > 0);
	assert_false(a_rings_late);
	assert_true(mock_put(a.conn, 0, 8));
	assert_true(mock_rings(&b));
}

static void connection_and_its_end_ring(void **state)
{
	struct wire_conn *conn;

	mock_arm_idle(&b);
	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	assert_true(mock_rings(&b));
	mock_until(&a, &b, b.ups == 2 && a.ups == 2);
	mock_arm_idle(&b);
	pshm_wire_ops.disconnect(conn);
	assert_true(mock_rings(&b));
	mock_until(&b, NULL, b.downs == 1);
	mock_arm_idle(&b);
	mock_close(&a);
	assert_true(mock_rings(&b));
}

static void payload_under_way_is_looked_after(void **state)
{
	enum { LEN = 8 << 20 };
	unsigned char *buf = calloc(1, LEN);
	struct mock_op op;

	mock_arm_idle(&a);
	assert_int_equal(mock_sendv(a.conn, MOCK_BIG, buf, LEN, 1, &op), 0);
	assert_int_equal(a.woken, 1); /* by a call of the program, while another thread sleeps */
	mock_arm_idle(&a);
	assert_true(pshm_arm(a.wire) < 1000000);
	mock_until(&a, &b, op.done);
	free(buf);
}

static void bell_that_cannot_be_opened_is_tried_again(void **state)
{
	mock_arm_idle(&b);
	sys_fault_set(SYS_CALL_OPEN_FD, EMFILE, 0, 1);
	assert_true(mock_put(a.conn, 0, 8));
	assert_false(mock_rings(&b));
	assert_true(mock_put(a.conn, 1, 8));
	assert_true(mock_rings(&b));
}

#define SHORT_NS 1000000u /* sleep of an endpoint that not every peer can wake */

static void who_cannot_be_rung_sleeps_for_a_moment(void **state)
{
	mock_arm_idle(&b);
	assert_true(pshm_arm(b.wire) > SHORT_NS);
	sys_fault_set(SYS_CALL_OPEN_FD, EMFILE, 0, 1);
	assert_true(mock_put(a.conn, 0, 8));
	assert_false(mock_rings(&b));
	pshm_disarm(b.wire);
	mock_until(&b, NULL, b.next_tag == 1);
	mock_arm_idle(&b);
	assert_in_range(pshm_arm(b.wire), 1, SHORT_NS);
	/* it can now */
	assert_true(mock_put(a.conn, 1, 8));
	assert_true(mock_rings(&b));
	pshm_disarm(b.wire);
	mock_until(&b, NULL, b.next_tag == 2);
	mock_arm_idle(&b);
	assert_true(pshm_arm(b.wire) > SHORT_NS);
}

static void peer_whose_inbox_is_unreachable_sleeps_for_a_moment(void **state)
{
	struct wire_conn *conn;

	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	/* the pair is opened, and then a's inbox is not */
	sys_fault_set(SYS_CALL_OPEN_FD, EACCES, 2, 1);
	mock_until(&a, &b, a.ups == 2 && b.ups == 2);
	assert_true(pshm_conn_of(b.conn)->inbox_unreachable);
	mock_arm_idle(&a);
	assert_in_range(pshm_arm(a.wire), 1, SHORT_NS);
}

/* A descriptor that lacks just then is no reason to do without the inbox for ever. */
static void inbox_that_lacked_a_descriptor_is_opened_later(void **state)
{
	struct wire_conn *conn;

	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	sys_fault_set(SYS_CALL_OPEN_FD, EMFILE, 2, 1);
	mock_until(&a, &b, a.ups == 2 && b.ups == 2);
	assert_false(pshm_conn_of(b.conn)->inbox_unreachable);
	assert_non_null(pshm_peer_inbox(pshm_conn_of(b.conn)));
	mock_arm_idle(&a);
	assert_true(pshm_arm(a.wire) > SHORT_NS);
}

static void no_pipe_is_told(void **state)
{
	sys_fault_set(SYS_CALL_PIPE, EMFILE, 0, 1);
	assert_int_equal(pshm_bell(b.wire, -1), -EMFILE);
	assert_true(pshm_bell(b.wire, -1) >= 0);
}

/* Two processes */

enum { ROUNDS = 20000 };

/* Sleeps until the next one is there; counts how often it slept. 0, or 1: it was not woken */
static int sleep_for(struct mock *m, uint64_t tag, uint32_t *slept, uint64_t *seed)
{
	/*
	 * sometimes it polls for a while first, so that the message arrives at any step of arming
	 */
	for (uint32_t spins = seeded_random(seed) % 100; spins && m->next_tag <= tag; spins--)
		mock_poll(m, NULL);
	while (m->next_tag <= tag) {
		struct pollfd p = { .fd = mock_poll_set(m), .events = POLLIN };
		uint64_t ns = pshm_arm(m->wire);

		if (ns) {
			++*slept;
			/* no bound but that of the test, unless there is a reason for one */
			if (!poll(&p, 1, ns == UINT64_MAX ? 10000 : 1) && ns == UINT64_MAX)
				return 1;
			pshm_disarm(m->wire);
		}
		mock_poll(m, NULL);
	}
	return 0;
}

/* Takes its time, so that the other one is at any step between polling and sleeping. */
static bool put_later(struct mock *m, uint64_t tag, uint64_t *seed)
{
	for (uint32_t n = seeded_random(seed) % 8 ? seeded_random(seed) % 400 : 4000; n; n--)
		platform_relax();
	return mock_put(m->conn, tag, 8);
}

/* They wake each other in turn. Returns 0 or what went wrong. */
static int in_turn(struct mock *m, bool first, uint32_t *slept)
{
	uint64_t seed = 0x5eed51ee + first;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		if (first && !put_later(m, i, &seed))
			return 2;
		if (sleep_for(m, i, slept, &seed))
			return 1;
		if (!first && !put_later(m, i, &seed))
			return 2;
	}
	return m->garbled ? 3 : 0;
}

static int other_process(int channel)
{
	struct mock m;
	uint32_t slept = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(600);
	mock_open(&m);
	if (write(channel, &m.addr, sizeof(m.addr)) != sizeof(m.addr))
		return 4;
	while (!m.conn)
		mock_poll(&m, NULL);
	return in_turn(&m, false, &slept);
}

static void no_wake_up_is_lost_between_two_processes(void **state)
{
	struct wire_conn *conn;
	struct weft_addr addr;
	int channel[2], status;
	uint32_t slept = 0;
	struct mock m;
	pid_t child;

	print_message("seed 0x5eed51ee\n");
	/* the first one that sleeps in a process sleeps without a bound */
	mock_close(&a);
	mock_close(&b);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, channel), 0);
	child = fork();
	if (!child)
		_exit(other_process(channel[1]));
	mock_open(&m);
	assert_int_equal(read(channel[0], &addr, sizeof(addr)), sizeof(addr));
	assert_int_equal(mock_connect(&m, &addr, &conn), 0);
	mock_until(&m, NULL, m.conn);
	assert_int_equal(in_turn(&m, true, &slept), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	print_message("slept %u times in %d rounds\n", slept, ROUNDS);
	assert_true(slept > 0);
	mock_close(&m);
	close(channel[0]);
	close(channel[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_UNSURE(name)                                           \
	{                                                           \
#name "_unsure", name, setup_unsure, teardown, NULL \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(message_rings_for_who_is_armed_and_for_nobody_else),
		TEST_UNSURE(message_rings_for_who_is_armed_and_for_nobody_else),
		TEST(arming_again_silences_a_bell_that_rings_for_nothing),
		TEST(wake_for_an_old_doorbell_does_not_hide_the_next),
		TEST_UNSURE(wake_for_an_old_doorbell_does_not_hide_the_next),
		TEST(connection_and_its_end_ring),
		TEST_UNSURE(connection_and_its_end_ring),
		TEST(payload_under_way_is_looked_after),
		TEST(bell_that_cannot_be_opened_is_tried_again),
		TEST(who_cannot_be_rung_sleeps_for_a_moment),
		TEST(peer_whose_inbox_is_unreachable_sleeps_for_a_moment),
		TEST(inbox_that_lacked_a_descriptor_is_opened_later),
		TEST(no_pipe_is_told),
		TEST(no_wake_up_is_lost_between_two_processes),
		TEST_UNSURE(no_wake_up_is_lost_between_two_processes),
	};

	alarm(600);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
