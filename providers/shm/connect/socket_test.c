/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of connections by a socket: in one process, and with neighbours that say nothing, or what
 * they should not. Those between processes are in far_test.c.
 */
#define _GNU_SOURCE /* memfd_create */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "local_socket.h"
#include "mock_child.h"
#include "mock_core.h"
#include "mock_descriptors.h"
#include "shm_endpoint.h"
#include "socket.h"

static struct mock a, b;

static int setup(void **state)
{
	return mock_board_open();
}

static int setup_hidden(void **state)
{
	mock_hide_proc();
	return setup(state);
}

static int teardown(void **state)
{
	sys_fault_clear();
	mock_close(&a);
	mock_close(&b);
	free(a.room);
	free(b.room);
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	mock_board_close();
	return 0;
}

static void pair_connected(void)
{
	mock_meet(&a, &b);
	assert_int_equal(pshm_conn_of(a.conn)->process->how, PSHM_BY_SOCKET);
}

/* One process */

static void messages_and_payload_pass_both_ways(void **state)
{
	enum { BIG = 3 << 20 };
	int before = mock_descriptors();
	unsigned char *buf = malloc(BIG);
	struct mock *both[] = { &a, &b };
	struct mock_op op;

	pair_connected();
	for (int i = 0; i < 2; i++) {
		struct mock *from = both[i], *to = both[!i];

		to->room = malloc(BIG);
		to->room_len = BIG;
		to->room_iovs = 1;
		for (uint64_t tag = 0; tag < 1000; tag++) {
			mock_until(&a, &b, mock_put(from->conn, tag, (uint32_t)tag % 3000));
			mock_poll(&a, &b);
		}
		mock_pattern(buf, BIG, MOCK_BIG);
		assert_int_equal(mock_sendv(from->conn, MOCK_BIG, buf, BIG, 2, &op), 0);
		mock_until(&a, &b, op.done && to->big_done && to->next_tag == 1000);
		assert_false(to->garbled);
		/* in the area that was received with the pair */
		assert_int_equal(pshm_conn_of(from->conn)->growing, PSHM_LARGE);
	}
	mock_close(&a);
	mock_until(&b, NULL, b.downs);
	assert_int_equal(b.down_err, 0);
	mock_close(&b);
	assert_int_equal(mock_descriptors(), before);
	free(buf);
}

static void descriptors_do_not_grow_with_connections(void **state)
{
	enum { CNT = 100 };
	struct rlimit limit, low;
	struct wire_conn *conn;
	int before;

	pair_connected();
	before = mock_descriptors();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = (struct rlimit){ .rlim_cur = (rlim_t)before + 20, .rlim_max = limit.rlim_max };
	setrlimit(RLIMIT_NOFILE, &low);
	for (int i = 2; i <= CNT; i++) {
		assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
		mock_until(&a, &b, a.ups == i && b.ups == i);
	}
	setrlimit(RLIMIT_NOFILE, &limit);
	assert_int_equal(a.downs + b.downs, 0);
	assert_int_equal(mock_descriptors(), before);
}

static void armed(struct mock *m)
{
	mock_arm_idle(m);
	assert_false(mock_rings(m));
}

static void sleeper_is_woken_by_messages_and_by_connections(void **state)
{
	struct wire_conn *conn;

	mock_open(&a);
	mock_open(&b);
	armed(&b); /* the first one */
	assert_int_equal(pshm_arm(b.wire), UINT64_MAX);
	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	assert_true(mock_rings(&b));
	mock_until(&a, &b, a.conn && b.conn);
	for (uint64_t i = 0; i < 10; i++) {
		armed(&b);
		assert_true(mock_put(a.conn, i, 8));
		assert_true(mock_rings(&b));
		pshm_disarm(b.wire);
		mock_until(&b, NULL, b.next_tag == i + 1);
	}
	/* the other one sleeps with a bound, and is woken by whoever looks */
	assert_in_range(mock_arm_idle(&a), 1, 10000000);
	assert_false(mock_rings(&a));
	assert_true(mock_put(b.conn, 0, 8));
	pshm_sockets_look();
	assert_true(mock_rings(&a));
	mock_until(&a, NULL, a.next_tag == 1);
}

static void endpoint_that_closes_meanwhile_refuses(void **state)
{
	struct wire_conn *conn;

	mock_open(&a);
	mock_open(&b);
	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	mock_close(&b); /* requested, and not handled yet */
	mock_until(&a, NULL, a.downs == 1);
	assert_int_equal(a.down_err, -FI_ECONNREFUSED);
	mock_open(&b);
	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	pshm_sockets_look(); /* the request waits for b's next poll */
	mock_close(&b);
	mock_until(&a, NULL, a.downs == 2);
	assert_int_equal(a.down_err, -FI_ECONNREFUSED);
	mock_open(&b);
	mock_connected(&a, &b, &b.addr);
}

static void asker_that_closes_meanwhile_is_forgotten(void **state)
{
	struct wire_conn *conn;

	mock_open(&a);
	mock_open(&b);
	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	pshm_sockets_look();
	mock_close(&a);
	for (int i = 0; i < 1000; i++)
		mock_poll(&b, NULL);
	assert_int_equal(b.ups + b.downs, 0);
}

static void engine_that_refuses_is_heard(void **state)
{
	struct wire_conn *conn;

	mock_open(&a);
	mock_open(&b);
	b.refuse = -FI_EALREADY;
	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	mock_until(&a, &b, a.downs);
	assert_int_equal(a.down_err, -FI_EALREADY);
}

/*
 * Without descriptors or memory for a while: the connection fails with a reason to try again, or
 * is late.
 */
static void want_of_descriptors_passes(void **state)
{
	const struct {
		enum sys_call call;
		int err;
		uint32_t skip;
	} wants[] = {
		{ SYS_CALL_ACCEPT, EMFILE, 0 },	 { SYS_CALL_SENDMSG, ETOOMANYREFS, 0 },
		{ SYS_CALL_SENDMSG, ENOMEM, 1 }, { SYS_CALL_RECVMSG, ENOMEM, 0 },
		{ SYS_CALL_EPOLL, ENOSPC, 0 },	 { SYS_CALL_EPOLL, ENOMEM, 1 },
		{ SYS_CALL_SOCKET, EMFILE, 0 },	 { SYS_CALL_CONNECT, EAGAIN, 0 },
	};
	struct wire_conn *conn;

	mock_open(&a);
	mock_open(&b);
	for (size_t i = 0; i < sizeof(wants) / sizeof(wants[0]); i++) {
		int ups = b.ups, before = mock_descriptors();
		uint64_t end = platform_now_ns() + 10000000000;

		sys_fault_set(wants[i].call, wants[i].err, wants[i].skip, 1);
		while (a.ups == ups) {
			int downs = a.downs;

			assert_true(platform_now_ns() < end);
			if (!mock_connect(&a, &b.addr, &conn))
				mock_until(&a, &b, a.ups > ups || a.downs > downs);
		}
		mock_until(&a, &b, b.ups > ups);
		pshm_disconnect(a.conn);
		mock_until(&a, &b, !b.conn);
		/* what ended is closed by whoever looks next */
		mock_until(&a, &b, mock_descriptors() == before);
	}
}

static void no_socket_leaves_proc(void **state)
{
	struct wire_conn *conn;

	sys_fault_set(SYS_CALL_SOCKET, EACCES, 0, 0);
	mock_open(&a);
	mock_open(&b);
	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	mock_until(&a, &b, a.conn && b.conn);
	assert_int_equal(pshm_conn_of(a.conn)->process->how, PSHM_BY_IMAGE);
}

/* Neighbours */

static uint64_t number_of(const struct mock *m)
{
	return pshm_sockets_number(m->addr.nonce);
}

static int stranger(void)
{
	int sock = sys_local_connect(number_of(&b), NULL);

	assert_true(sock >= 0);
	return sock;
}

static struct pshm_note ask_of(const struct pshm_region *pair)
{
	struct pshm_note note = { .magic = PSHM_NOTE_MAGIC,
				  .version = PSHM_NOTE_VERSION,
				  .type = PSHM_NOTE_ASK };

	memcpy(note.to, b.addr.nonce, PSHM_NONCE);
	memcpy(note.from, a.addr.nonce, PSHM_NONCE);
	memcpy(note.pair, ((struct pshm_pair *)pair->addr)->nonce, PSHM_NONCE);
	return note;
}

enum { ENDED = 1 };

/* Sends that; returns ENDED, the error of the refusal, or 0 when the inbox arrives. */
static int said(const void *msg, size_t len, const int *fds, unsigned int cnt)
{
	int sock = stranger(), ret = -FI_EAGAIN;
	struct sys_local_received received;
	struct pshm_note note;

	assert_int_equal(sys_local_send(sock, msg, len, fds, cnt), 0);
	for (int i = 0; i < 8 && ret == -FI_EAGAIN; i++) {
		pshm_sockets_look();
		ret = (int)sys_local_recv(sock, &note, sizeof(note), &received);
	}
	sys_local_close(sock);
	if (ret == -FI_EAGAIN || ret == -ECONNRESET)
		return ret == -FI_EAGAIN ? ret : ENDED;
	if (!ret)
		return ENDED;
	assert_int_equal(ret, sizeof(note));
	assert_int_equal(note.magic, PSHM_NOTE_MAGIC);
	if (note.type == PSHM_NOTE_REFUSED)
		return -(int)note.error;
	assert_int_equal(note.type, PSHM_NOTE_INBOX);
	assert_int_equal(received.cnt, 1);
	close(received.fds[0]);
	return 0;
}

static struct pshm_region pair_made(void)
{
	const struct pshm_sizes sizes = { PSHM_LINE_CNT, PSHM_DATA_LEN, PSHM_AREA_LEN };
	struct pshm_region region;

	assert_int_equal(pshm_pair_create(&sizes, &region), 0);
	pshm_hello_put(region.addr, PSHM_REQUESTER, &a.hello);
	return region;
}

#define FORGED(expected, change)                                               \
	do {                                                                   \
		note = ask_of(&pair);                                          \
		change;                                                        \
		assert_int_equal(said(&note, sizeof(note), fds, 2), expected); \
	} while (0)

static void forged_requests_are_refused_or_end_the_socket(void **state)
{
	struct pshm_region pair;
	struct pshm_note note;
	char longer[sizeof(note) + 1] = { 0 };
	int fds[2], before;

	mock_open(&a);
	mock_open(&b);
	pair = pair_made();
	before = mock_descriptors();
	fds[0] = pair.fd;
	fds[1] = ((struct pshm_wire *)a.wire)->own_inbox.fd;
	FORGED(ENDED, note.magic++);
	FORGED(ENDED, note.version++);
	FORGED(ENDED, note.type = 0);
	FORGED(ENDED, note.type = PSHM_NOTE_INBOX);
	FORGED(ENDED, note.type = PSHM_NOTE_REFUSED);
	FORGED(ENDED, note.type = PSHM_NOTE_WAKE);
	FORGED(ENDED, note.type = 77);
	FORGED(ENDED, note.zero = 1);
	FORGED(ENDED, note.error = 1);
	FORGED(ENDED, memset(note.to, 0, PSHM_NONCE));
	FORGED(ENDED, memset(note.from, 0, PSHM_NONCE));
	FORGED(ENDED, memset(note.pair, 0, PSHM_NONCE));
	FORGED(-FI_ECONNREFUSED, note.to[7] ^= 1);
	FORGED(-FI_EHOSTUNREACH, note.pair[0] ^= 1);
	FORGED(-FI_EHOSTUNREACH, note.from[0] ^= 1); /* not the inbox's */
	/* sizes and descriptors */
	note = ask_of(&pair);
	memcpy(longer, &note, sizeof(note));
	assert_int_equal(said(longer, sizeof(longer), fds, 2), ENDED);
	assert_int_equal(said(&note, sizeof(note) - 1, fds, 2), ENDED);
	assert_int_equal(said(&note, sizeof(note), NULL, 0), ENDED);
	assert_int_equal(said(&note, sizeof(note), fds, 1), ENDED);
	for (int i = 0; i < 1000; i++)
		mock_poll(&a, &b);
	assert_int_equal(mock_descriptors(), before);
	assert_int_equal(a.ups + a.downs + b.ups + b.downs, 0);
	/* and this is how it should be */
	assert_int_equal(said(&note, sizeof(note), fds, 2), 0);
	mock_until(&a, &b, b.ups == 1);
	pshm_region_close(&pair);
}

static void a_pair_that_is_too_small_is_refused_in_it(void **state)
{
	const struct pshm_sizes smallest = { RING_LINES_MIN, RING_DATA_MIN, 0 };
	struct pshm_region region;
	struct pshm_pair *pair;
	struct pshm_note note;
	int fds[2];

	mock_open(&a);
	mock_open(&b);
	assert_int_equal(pshm_pair_create(&smallest, &region), 0);
	pair = region.addr;
	fds[0] = region.fd;
	fds[1] = ((struct pshm_wire *)a.wire)->own_inbox.fd;
	note = ask_of(&region);
	assert_int_equal(said(&note, sizeof(note), fds, 2), 0);
	mock_until(&b, NULL, atomic_load(&pair->answer));
	assert_int_equal(atomic_load(&pair->answer), PSHM_REFUSED | FI_EPROTO << 8);
	pshm_region_close(&region);
}

#define MANY_ASKS 2000u

/* It may be busy: its answers wait, and so do its other requests. */
static void who_reads_no_answers_for_a_while_keeps_the_socket(void **state)
{
	uint32_t asked = 0, answered = 0;
	uint64_t end = platform_now_ns() + 10000000000;
	struct sys_local_received received;
	struct pshm_region pair;
	struct pshm_note note;
	int fds[2], sock;
	ssize_t n;

	mock_open(&a);
	mock_open(&b);
	pair = pair_made();
	fds[0] = pair.fd;
	fds[1] = ((struct pshm_wire *)a.wire)->own_inbox.fd;
	note = ask_of(&pair);
	note.to[7] ^= 1; /* no such endpoint: refused */
	sock = stranger();
	for (uint32_t i = 0; i < MANY_ASKS; i++) {
		asked += !sys_local_send(sock, &note, sizeof(note), fds, 2);
		pshm_sockets_look();
	}
	/* more than its end has room for; not without an end, though */
	assert_in_range(asked, 300, MANY_ASKS - 1);
	while (answered < asked) {
		pshm_sockets_look();
		n = sys_local_recv(sock, &note, sizeof(note), &received);
		assert_true(n == (ssize_t)sizeof(note) || n == -FI_EAGAIN);
		assert_true(platform_now_ns() < end);
		answered += n > 0;
	}
	sys_local_close(sock);
	pshm_region_close(&pair);
}

static void no_more_is_asked_at_a_time_than_there_is_room_for(void **state)
{
	enum { CNT = 600 };
	struct wire_conn *conn;
	int before;

	mock_open(&a);
	mock_open(&b);
	before = mock_descriptors();
	for (int i = 0; i < CNT; i++)
		assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	assert_in_range(mock_descriptors() - before, 0, 16);
	mock_until(&a, &b, a.ups == CNT && b.ups == CNT);
	assert_int_equal(a.downs + b.downs, 0);
}

static void three_descriptors_end_the_socket(void **state)
{
	int sock, before, fds[3];
	struct sys_local_received received;
	struct iovec iov;
	union {
		char room[CMSG_SPACE(sizeof(fds))];
		struct cmsghdr align;
	} control = { .room = { 0 } };
	struct msghdr hdr = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.room,
			      .msg_controllen = sizeof(control.room) };
	struct pshm_region pair;
	struct pshm_note note;

	mock_open(&a);
	mock_open(&b);
	pair = pair_made();
	note = ask_of(&pair);
	before = mock_descriptors();
	iov = (struct iovec){ &note, sizeof(note) };
	fds[0] = fds[1] = fds[2] = pair.fd;
	control.align = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(fds)),
					  .cmsg_level = SOL_SOCKET,
					  .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.align), fds, sizeof(fds));
	sock = stranger();
	assert_int_equal(sendmsg(sock, &hdr, 0), sizeof(note));
	pshm_sockets_look();
	assert_int_equal(sys_local_recv(sock, &note, sizeof(note), &received), 0);
	sys_local_close(sock);
	assert_int_equal(mock_descriptors(), before);
	pshm_region_close(&pair);
}

static void an_empty_message_ends_the_socket_and_leaves_no_descriptors(void **state)
{
	struct sys_local_received received;
	struct pshm_region pair;
	int sock, before, fds[2];
	char byte;

	mock_open(&a);
	mock_open(&b);
	pair = pair_made();
	before = mock_descriptors();
	fds[0] = fds[1] = pair.fd;
	sock = stranger();
	assert_int_equal(sys_local_send(sock, &byte, 0, fds, 2), 0);
	pshm_sockets_look();
	assert_int_equal(sys_local_recv(sock, &byte, 1, &received), 0);
	sys_local_close(sock);
	assert_int_equal(mock_descriptors(), before);
	pshm_region_close(&pair);
}

static void memory_that_can_change_its_size_is_refused(void **state)
{
	struct pshm_region pair;
	struct pshm_note note;
	int fds[2], loose;
	char *copy;

	mock_open(&a);
	mock_open(&b);
	pair = pair_made();
	note = ask_of(&pair);
	loose = memfd_create("loose", MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(loose, (off_t)pair.len), 0);
	copy = mmap(NULL, pair.len, PROT_READ | PROT_WRITE, MAP_SHARED, loose, 0);
	memcpy(copy, pair.addr, pair.len);
	fds[0] = loose;
	fds[1] = ((struct pshm_wire *)a.wire)->own_inbox.fd;
	assert_int_equal(said(&note, sizeof(note), fds, 2), -FI_EHOSTUNREACH);
	fds[0] = fds[1];
	assert_int_equal(said(&note, sizeof(note), fds, 2), -FI_EHOSTUNREACH);
	fds[0] = open("/dev/zero", O_RDWR);
	assert_int_equal(said(&note, sizeof(note), fds, 2), -FI_EHOSTUNREACH);
	close(fds[0]);
	/* sealed, with areas that are not there */
	fds[0] = pair.fd;
	((struct pshm_pair *)pair.addr)->area_len *= 2;
	assert_int_equal(said(&note, sizeof(note), fds, 2), -FI_EPROTO);
	((struct pshm_pair *)pair.addr)->area_len = PSHM_DATA_LEN;
	assert_int_equal(said(&note, sizeof(note), fds, 2), -FI_EPROTO);
	munmap(copy, pair.len);
	close(loose);
	pshm_region_close(&pair);
}

static void silent_neighbours_keep_nobody_from_connecting(void **state)
{
	enum { CNT = 300 };
	int socks[CNT], before;

	mock_open(&a);
	mock_open(&b);
	before = mock_descriptors();
	for (int i = 0; i < CNT; i++) {
		socks[i] = stranger();
		pshm_sockets_look();
	}
	assert_true(mock_descriptors() - before - CNT <= 66);
	mock_connected(&a, &b, &b.addr);
	for (int i = 0; i < CNT; i++)
		sys_local_close(socks[i]);
	/* the conn of this side is the remaining one, with both its ends */
	mock_until(&a, &b, mock_descriptors() == before + 2);
	assert_int_equal(a.downs + b.downs, 0);
	assert_int_equal(pshm_check(a.conn), 0);
}

/* Other processes */

static void copy_is_found_by_a_number_of_its_own(void **state)
{
	int status;
	pid_t copy;

	pair_connected();
	copy = fork();
	if (!copy) {
		struct weft_addr parent = a.addr;
		struct wire_conn *conn;

		alarm(600);
		mock_close(&a);
		mock_close(&b);
		mock_open(&a);
		mock_open(&b);
		if (pshm_sockets_number(a.addr.nonce) == pshm_sockets_number(parent.nonce) ||
		    mock_connect(&a, &b.addr, &conn))
			_exit(1);
		mock_until(&a, &b, a.conn && b.conn);
		_exit(0);
	}
	assert_int_equal(waitpid(copy, &status, 0), copy);
	assert_int_equal(status, 0);
	assert_true(mock_put(a.conn, 0, 8));
	mock_until(&b, NULL, b.next_tag == 1);
	assert_int_equal(pshm_check(a.conn) | pshm_check(b.conn), 0);
}

static int connect_as_stranger(struct mock *m)
{
	struct sys_local_received received;
	struct pshm_note note = { 0 };
	ssize_t n = -FI_EAGAIN;
	int sock;

	mock_step_wait(2);
	sock = sys_local_connect(number_of(&a), NULL);
	while (n == -FI_EAGAIN)
		n = sys_local_recv(sock, &note, sizeof(note), &received);
	return n ? 1 : 0; /* hung up */
}

static void another_user_is_refused_either_way(void **state)
{
	struct wire_conn *conn;

	mock_open(&a);
	if (!mock_child_start(mock_begin_nobody, connect_as_stranger))
		skip();
	mock_hide_proc();
	assert_int_equal(mock_connect(&a, &board->child, &conn), -FI_EHOSTUNREACH);
	atomic_store(&board->step, 2);
	for (int ended = 0, status; !ended;) {
		mock_poll(&a, NULL);
		ended = waitpid(child, &status, WNOHANG) == child;
		if (ended)
			assert_int_equal(status, 0);
	}
	child = 0;
}

#define TEST(name)	  cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_HIDDEN(name) cmocka_unit_test_setup_teardown(name, setup_hidden, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_HIDDEN(messages_and_payload_pass_both_ways),
		TEST_HIDDEN(descriptors_do_not_grow_with_connections),
		TEST_HIDDEN(sleeper_is_woken_by_messages_and_by_connections),
		TEST_HIDDEN(endpoint_that_closes_meanwhile_refuses),
		TEST_HIDDEN(asker_that_closes_meanwhile_is_forgotten),
		TEST_HIDDEN(engine_that_refuses_is_heard),
		TEST_HIDDEN(want_of_descriptors_passes),
		TEST(no_socket_leaves_proc),
		TEST_HIDDEN(forged_requests_are_refused_or_end_the_socket),
		TEST_HIDDEN(a_pair_that_is_too_small_is_refused_in_it),
		TEST_HIDDEN(three_descriptors_end_the_socket),
		TEST_HIDDEN(an_empty_message_ends_the_socket_and_leaves_no_descriptors),
		TEST_HIDDEN(memory_that_can_change_its_size_is_refused),
		TEST_HIDDEN(who_reads_no_answers_for_a_while_keeps_the_socket),
		TEST_HIDDEN(no_more_is_asked_at_a_time_than_there_is_room_for),
		TEST_HIDDEN(silent_neighbours_keep_nobody_from_connecting),
		TEST_HIDDEN(copy_is_found_by_a_number_of_its_own),
		TEST(another_user_is_refused_either_way),
	};

	alarm(600);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
