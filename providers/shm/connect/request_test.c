/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection requests of the shm wire that the engine answers later, and what comes with them:
 * through mailboxes, and over a socket.
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
#include "mock_engine.h"

static struct mock a, b;

static int setup(void **state)
{
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	mock_open(&a);
	mock_open(&b);
	b.later = true;
	return 0;
}

static int setup_hidden(void **state)
{
	setup(state);
	mock_hide_proc();
	return 0;
}

static int teardown(void **state)
{
	sys_fault_clear();
	mock_close(&a);
	mock_close(&b);
	return 0;
}

static void set_data(struct hello_data *data, const char *text)
{
	data->len = (uint32_t)strlen(text) + 1;
	memcpy(data->bytes, text, data->len);
}

static void poll_both(int rounds)
{
	while (rounds--)
		mock_poll(&a, &b);
}

/* A request of @a that waits at @b. */
static struct wire_conn *request(void)
{
	struct wire_conn *conn;

	b.request = NULL;
	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	mock_until(&a, &b, b.request);
	return conn;
}

static void a_request_is_accepted_later_and_carries_data_both_ways(void **state)
{
	set_data(&a.hello.data, "let me in");
	set_data(&b.hello.data, "welcome");
	request();
	assert_string_equal(b.peer_data.bytes, "let me in");
	poll_both(3000);
	assert_int_equal(a.ups + b.ups + a.downs + b.downs, 0);
	mock_accept(&b, b.request);
	assert_int_equal(b.ups, 0); /* only from poll */
	mock_until(&a, &b, a.ups && b.ups);
	assert_string_equal(a.heard.data.bytes, "welcome");
	assert_memory_equal(&b.heard, &a.hello, sizeof(a.hello));
	assert_true(mock_put(a.conn, 0, 100) && mock_put(b.conn, 0, 100));
	mock_until(&a, &b, a.packets && b.packets);
	assert_false(a.garbled || b.garbled);
}

static void a_request_is_refused_later_with_a_reason(void **state)
{
	struct hello_data why = { 0 };

	request();
	set_data(&why, "not you");
	pshm_wire_ops.refuse(b.request, -FI_EACCES, &why);
	mock_until(&a, &b, a.downs);
	assert_int_equal(a.down_err, -FI_EACCES);
	assert_string_equal(a.peer_data.bytes, "not you");
	assert_int_equal(a.ups + b.ups + b.downs, 0);
}

static void a_request_that_was_given_up_ends_when_it_is_accepted(void **state)
{
	pshm_wire_ops.disconnect(request());
	poll_both(3000);
	assert_int_equal(b.downs, 0); /* the engine owns it */
	mock_accept(&b, b.request);
	mock_until(&a, &b, b.downs);
	assert_int_equal(b.down_err, -FI_ECONNRESET);
	assert_int_equal(b.ups, 0);
}

static void a_request_that_was_given_up_may_be_refused(void **state)
{
	pshm_wire_ops.disconnect(request());
	poll_both(10);
	pshm_wire_ops.refuse(b.request, -FI_EACCES, NULL);
	poll_both(10);
	assert_int_equal(a.downs + b.downs, 0);
}

static void an_endpoint_that_closes_refuses_what_it_has_not_answered(void **state)
{
	request();
	mock_close(&b);
	mock_until(&a, NULL, a.downs);
	assert_int_equal(a.down_err, -FI_ECONNREFUSED);
}

static void a_conn_that_was_accepted_may_be_disconnected_before_it_is_up(void **state)
{
	set_data(&b.hello.data, "welcome");
	request();
	mock_accept(&b, b.request);
	pshm_wire_ops.disconnect(b.request);
	mock_until(&a, &b, a.downs);
	assert_int_equal(a.ups + b.ups + b.downs, 0);
	assert_int_equal(a.peer_data.len, 0); /* of an acceptance, not of this refusal */
}

static void requests_are_answered_in_any_order(void **state)
{
	struct wire_conn *requests[6];

	for (int i = 0; i < 6; i++) {
		request();
		requests[i] = b.request;
	}
	mock_accept(&b, requests[2]);
	pshm_wire_ops.refuse(requests[0], -FI_EACCES, NULL);
	mock_until(&a, &b, a.ups == 1 && b.ups == 1 && a.downs == 1);
	mock_accept(&b, requests[3]);
	mock_accept(&b, requests[1]);
	mock_accept(&b, requests[5]);
	pshm_wire_ops.refuse(requests[4], -FI_EACCES, NULL);
	mock_until(&a, &b, a.ups == 4 && b.ups == 4 && a.downs == 2);
}

static void an_armed_wire_is_woken_by_the_answer(void **state)
{
	request();
	mock_arm_idle(&b);
	b.woken = 0;
	mock_accept(&b, b.request);
	assert_int_equal(b.woken, 1);
	assert_int_equal(pshm_wire_ops.arm(b.wire), 0);
	mock_until(&a, &b, b.ups && a.ups);
}

/* The child requests, and is killed before the answer. */
static void a_request_of_a_process_that_has_died_breaks_once_it_is_accepted(void **state)
{
	struct wire_conn *conn;
	struct mock m = { 0 };
	pid_t pid = fork();
	int err;

	if (!pid) {
		mock_open(&m);
		if (mock_connect(&m, &b.addr, &conn))
			_exit(1);
		for (;;)
			mock_poll(&m, NULL);
	}
	mock_until(&b, NULL, b.request);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	mock_accept(&b, b.request);
	mock_until(&b, NULL, b.ups || b.downs);
	if (b.ups)
		mock_until(&b, NULL, (err = pshm_wire_ops.check(b.conn)) != 0);
	else
		err = b.down_err;
	assert_int_equal(err, -FI_ECONNRESET);
}

/* Returns 0, or what goes wrong. */
static int answer_in_child(void)
{
	for (int i = 0; i < 100; i++)
		mock_poll(&b, NULL);
	if (b.ups || b.downs)
		return 1;
	if (pshm_wire_ops.arm(b.wire) != UINT64_MAX)
		return 2; /* its threads would not sleep */
	mock_accept(&b, b.request);
	mock_poll(&b, NULL);
	return b.ups || b.downs != 1 || b.down_err != -FI_EOPBADSTATE ? 3 : 0;
}

static void an_answer_in_a_child_of_fork_ends_the_copy_alone(void **state)
{
	int status;
	pid_t pid;

	request();
	pid = fork();
	if (!pid)
		_exit(answer_in_child());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	poll_both(1000);
	assert_int_equal(a.ups + a.downs, 0);
	mock_accept(&b, b.request);
	mock_until(&a, &b, a.ups && b.ups);
}

static void data_that_are_too_long_are_refused(void **state)
{
	struct pshm_conn *conn;

	request();
	conn = pshm_conn_of(b.request);
	mock_accept(&b, b.request);
	conn->pair->hello_data_len[PSHM_ACCEPTOR] = UINT32_MAX;
	mock_until(&a, &b, a.downs);
	assert_int_equal(a.down_err, -FI_EINVAL);
	request();
	conn = pshm_conn_of(b.request);
	conn->pair->hello_data_len[PSHM_ACCEPTOR] = HELLO_DATA_MAX + 1;
	atomic_store(&conn->pair->answer, PSHM_REFUSED | FI_EACCES << 8);
	mock_until(&a, &b, a.downs == 2);
	assert_int_equal(a.down_err, -FI_EPROTO);
	pshm_wire_ops.refuse(b.request, -FI_EACCES, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_HIDDEN(name)                                              \
	{                                                              \
#name " by socket", name, setup_hidden, teardown, NULL \
	}
#define TEST_BOTH(name) TEST(name), TEST_HIDDEN(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_BOTH(a_request_is_accepted_later_and_carries_data_both_ways),
		TEST_BOTH(a_request_is_refused_later_with_a_reason),
		TEST_BOTH(a_request_that_was_given_up_ends_when_it_is_accepted),
		TEST_BOTH(a_request_that_was_given_up_may_be_refused),
		TEST_BOTH(an_endpoint_that_closes_refuses_what_it_has_not_answered),
		TEST_BOTH(a_conn_that_was_accepted_may_be_disconnected_before_it_is_up),
		TEST_BOTH(requests_are_answered_in_any_order),
		TEST_BOTH(an_armed_wire_is_woken_by_the_answer),
		TEST(a_request_of_a_process_that_has_died_breaks_once_it_is_accepted),
		TEST(an_answer_in_a_child_of_fork_ends_the_copy_alone),
		TEST(data_that_are_too_long_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
