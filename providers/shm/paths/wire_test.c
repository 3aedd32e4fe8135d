/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of the shm wire against its contract, with both endpoints in this process: what is
 * delivered, in which order, and how connections begin and end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "mock_core.h"
#include "mock_engine.h"
#include "mock_descriptors.h"

static struct mock a, b;

static int setup(void **state)
{
	mock_open(&a);
	mock_open(&b);
	return 0;
}

static int setup_connected(void **state)
{
	struct wire_conn *conn;

	setup(state);
	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	mock_until(&a, &b, a.conn && b.conn);
	assert_ptr_equal(a.conn, conn);
	return 0;
}

static int teardown(void **state)
{
	sys_fault_clear();
	mock_close(&a);
	mock_close(&b);
	free(a.room);
	free(b.room);
	return 0;
}

static void room_make(struct mock *m, size_t len, uint32_t iovs)
{
	free(m->room);
	m->room = calloc(1, len + 1);
	assert_non_null(m->room);
	m->room_len = len;
	m->room_iovs = iovs;
}

static void hellos_and_addresses_travel_both_ways(void **state)
{
	assert_int_equal(a.addr.kind, ADDR_NONCE);
	assert_int_equal(a.addr.pid, getpid());
	assert_true(addr_valid(&a.addr));
	assert_false(addr_same(&a.addr, &b.addr));
	assert_memory_equal(&a.heard, &b.hello, sizeof(struct hello));
	assert_memory_equal(&b.heard, &a.hello, sizeof(struct hello));
	assert_int_equal(a.ups, 1);
	assert_int_equal(b.ups, 1);
}

static void packets_of_every_length_arrive_in_order_both_ways(void **state)
{
	uint64_t sent_a = 0, sent_b = 0;

	for (uint32_t len = 0; len <= pshm_wire_ops.claim_max; len += len < 200 ? 1 : 977) {
		while (!mock_put(a.conn, sent_a, len))
			mock_poll(&b, NULL);
		sent_a++;
		while (!mock_put(b.conn, sent_b, pshm_wire_ops.claim_max - len))
			mock_poll(&a, NULL);
		sent_b++;
	}
	mock_until(&a, &b, b.next_tag == sent_a && a.next_tag == sent_b);
	assert_false(a.garbled);
	assert_false(b.garbled);
}

static void no_room_is_told_and_comes_back(void **state)
{
	uint64_t sent = 0;

	while (mock_put(a.conn, sent, 8))
		sent++;
	assert_int_equal(sent, PSHM_LINE_CNT);
	assert_false(mock_put(a.conn, sent, 8));
	mock_until(&b, NULL, b.next_tag == sent);
	for (int i = 0; i < 100; i++)
		assert_true(mock_put(a.conn, sent++, 8));
	mock_until(&b, NULL, b.next_tag == sent);
	assert_false(b.garbled);
}

static void large_payload_does_not_block_small_packets(void **state)
{
	enum { LEN = 4 << 20 };
	unsigned char *buf = malloc(LEN);
	uint32_t small = 0, before_end = 0;
	struct mock_op op;

	mock_pattern(buf, LEN, MOCK_BIG);
	room_make(&b, LEN, 1);
	assert_int_equal(mock_sendv(a.conn, MOCK_BIG, buf, LEN, 3, &op), 0);
	assert_int_equal(op.done, 0);
	while (!b.big_done) {
		/* control packets and small messages find room whatever the payload takes */
		assert_true(mock_put(a.conn, small, small % 2 ? 24 : 200));
		small++;
		mock_until(&b, NULL, b.next_tag == small);
		if (!b.big_done)
			before_end = small;
		mock_poll(&a, NULL);
	}
	assert_true(before_end > 3);
	mock_until(&a, &b, op.done);
	assert_int_equal(op.done, 1);
	assert_int_equal(op.status, 0);
	assert_false(b.garbled);
	free(buf);
}

static void sendvs_arrive_whole_one_after_the_other(void **state)
{
	static const size_t lens[] = { 0,    1,	   24,	  25,	  64,	 8191,
				       8192, 8193, 16384, 100000, 65536, 300001 };
	enum { CNT = sizeof(lens) / sizeof(lens[0]) };
	unsigned char *bufs[CNT];
	struct mock_op ops[CNT];

	room_make(&b, 300001, 4);
	for (size_t i = 0; i < CNT; i++) {
		bufs[i] = malloc(lens[i] + 1);
		mock_pattern(bufs[i], lens[i], MOCK_BIG + i);
	}
	for (size_t i = 0; i < CNT; i++)
		assert_int_equal(
			mock_sendv(a.conn, MOCK_BIG + i, bufs[i], lens[i], 1 + i % 4, &ops[i]),
			0);
	mock_until(&a, &b, b.big_done == CNT);
	assert_false(b.garbled);
	assert_int_equal(b.big.tag, MOCK_BIG + CNT - 1);
	mock_until(&a, &b, ops[CNT - 1].done);
	for (size_t i = 0; i < CNT; i++) {
		assert_int_equal(ops[i].done, 1);
		assert_int_equal(ops[i].status, 0);
		free(bufs[i]);
	}
}

static void queued_payload_leaves_lines_to_packets(void **state)
{
	enum { CNT = 2 * PSHM_LINE_CNT };
	static struct mock_op ops[CNT];
	unsigned char buf[16] = "";

	for (int i = 0; i < CNT; i++)
		assert_int_equal(mock_sendv(a.conn, MOCK_BIG, buf, 1, 1, &ops[i]), 0);
	for (uint64_t i = 0; i < 10; i++)
		assert_true(mock_put(a.conn, i, 24));
	mock_until(&a, &b, ops[CNT - 1].done && b.big_done == CNT);
	assert_int_equal(b.next_tag, 10);
	assert_false(b.garbled);
}

static void payload_beyond_the_destination_is_dropped(void **state)
{
	enum { LEN = 100000, ROOM = 30000 };
	unsigned char *buf = malloc(LEN);
	struct mock_op op;

	mock_pattern(buf, LEN, MOCK_BIG);
	room_make(&b, ROOM, 3);
	assert_int_equal(mock_sendv(a.conn, MOCK_BIG, buf, LEN, 1, &op), 0);
	mock_until(&a, &b, op.done && b.big_done == 1);
	assert_false(b.garbled);
	assert_int_equal(b.room[ROOM], 0);

	b.room_iovs = 0; /* all of it */
	assert_int_equal(mock_sendv(a.conn, MOCK_BIG, buf, LEN, 1, &op), 0);
	mock_until(&a, &b, op.done && b.big_done == 2);
	assert_true(mock_put(a.conn, 0, 8));
	mock_until(&b, NULL, b.next_tag == 1);
	free(buf);
}

/* Asks b to read and polls b alone, as if a computed; returns the status. */
static int got(uint64_t from, const struct iovec *iov, size_t iov_cnt)
{
	struct mock_op op;
	int ret;

	ret = mock_get(b.conn, 1, (void *)from, iov, iov_cnt, &op);
	if (ret)
		return ret < 0 ? ret : 0;
	assert_int_equal(op.done, 0);
	mock_until(&b, NULL, op.done);
	return op.status;
}

static void get_reads_the_peers_memory(void **state)
{
	enum { LEN = (5 << 20) / 2 + 3 };
	unsigned char *from = malloc(LEN), *to = calloc(1, LEN);
	struct iovec iov[2] = { { to, 1000 }, { to + 1000, 3000 } };

	mock_pattern(from, LEN, 5);
	assert_int_equal(got((uintptr_t)from, iov, 2), 0);
	assert_memory_equal(to, from, 4000);
	assert_int_equal(to[4000], 0);
	iov[1].iov_len = LEN - 1000;
	assert_int_equal(got((uintptr_t)from, iov, 2), 0);
	assert_memory_equal(to, from, LEN);
	free(from);
	free(to);
}

static void get_leaves_the_copy_to_a_peer_that_polls(void **state)
{
	char from[100] = "x", to[100] = "";
	struct iovec iov = { to, sizeof(to) };
	struct mock_op ops[3];

	for (int i = 0; i < 3; i++) {
		assert_int_equal(mock_get(b.conn, 1, from, &iov, 1, &ops[i]), 0);
	}
	for (int i = 0; i < 10; i++)
		mock_poll(&a, NULL);
	mock_poll(&b, NULL);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ops[i].done, 1);
		assert_int_equal(ops[i].status, -FI_EBUSY);
	}
	assert_int_equal(to[0], 0);
}

static void get_of_memory_that_is_not_there_fails(void **state)
{
	char *hole = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	unsigned char *to = malloc(4 << 20);
	struct iovec iov = { to, 100 };

	assert_true(hole != MAP_FAILED);
	assert_int_equal(got(UINT64_MAX - 10, &iov, 1), -FI_EFAULT);
	assert_int_equal(got(4096, &iov, 1), -FI_EFAULT);
	/* the later steps of a long one */
	munmap(hole + (2 << 20), 2 << 20);
	iov.iov_len = 4 << 20;
	assert_int_equal(got((uintptr_t)hole, &iov, 1), -FI_EFAULT);
	/* no reason not to try again */
	iov.iov_len = 100;
	assert_int_equal(got((uintptr_t)hole, &iov, 1), 0);
	munmap(hole, 2 << 20);
	free(to);
}

static void refused_get_is_remembered(void **state)
{
	char from[100] = "x", to[100];
	struct iovec iov = { to, sizeof(to) };
	struct mock_op op;

	sys_fault_set(SYS_CALL_PROCESS_VM_READV, EPERM, 0, 1);
	assert_int_equal(got((uintptr_t)from, &iov, 1), -FI_EPERM);
	assert_int_equal(mock_get(b.conn, 1, from, &iov, 1, &op), -FI_EPERM);
	assert_int_equal(mock_get(a.conn, 1, from, &iov, 1, &op), 0);
	mock_until(&a, NULL, op.done);
	assert_int_equal(op.status, 0);
}

static void engine_that_refuses_is_heard(void **state)
{
	struct wire_conn *conn;

	b.refuse = -FI_EALREADY;
	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	mock_until(&a, &b, a.downs);
	assert_int_equal(a.down_err, -FI_EALREADY);
	assert_int_equal(a.ups, 0);
	assert_int_equal(b.ups + b.downs, 0);
}

static void unreachable_addresses_are_told_at_once(void **state)
{
	struct weft_addr addr = b.addr;
	struct wire_conn *conn;
	int before = mock_descriptors(), pipes[2];

	addr.pid = 0;
	assert_int_equal(mock_connect(&a, &addr, &conn), -FI_EHOSTUNREACH);
	/* of a process that has no listening socket */
	b.addr.nonce[0] ^= 1;
	addr = b.addr;
	addr.ns_hash++;
	assert_int_equal(mock_connect(&a, &addr, &conn), -FI_EHOSTUNREACH);
	addr = b.addr;
	addr.pid = UINT32_MAX;
	assert_int_equal(mock_connect(&a, &addr, &conn), -FI_ECONNREFUSED);
	addr.pid = 4194303; /* the highest there can be */
	assert_int_equal(mock_connect(&a, &addr, &conn), -FI_ECONNREFUSED);
	addr.ns_hash++; /* another host's process may be there */
	assert_int_equal(mock_connect(&a, &addr, &conn), -FI_EHOSTUNREACH);
	addr = b.addr;
	addr.nonce[7] ^= 1;
	assert_int_equal(mock_connect(&a, &addr, &conn), -FI_ECONNREFUSED);
	addr = b.addr;
	addr.fd = 100000;
	assert_int_equal(mock_connect(&a, &addr, &conn), -FI_ECONNREFUSED);
	assert_int_equal(pipe(pipes), 0);
	addr.fd = (uint32_t)pipes[0];
	assert_int_equal(mock_connect(&a, &addr, &conn), -FI_ECONNREFUSED);
	addr.ns_hash++;
	assert_int_equal(mock_connect(&a, &addr, &conn), -FI_EHOSTUNREACH);
	close(pipes[0]);
	close(pipes[1]);
	assert_int_equal(mock_descriptors(), before);
}

static void forbidden_inbox_is_unreachable(void **state)
{
	struct wire_conn *conn;

	sys_fault_set(SYS_CALL_OPEN_FD, EACCES, 0, 1);
	sys_fault_set(SYS_CALL_CONNECT, ECONNREFUSED, 0, 1); /* and no socket */
	assert_int_equal(mock_connect(&a, &b.addr, &conn), -FI_EHOSTUNREACH);
	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
}

static void pair_that_the_owner_may_not_open_goes_down_as_unreachable(void **state)
{
	struct wire_conn *conn;

	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	sys_fault_set(SYS_CALL_OPEN_FD, EACCES, 0, 1);
	sys_fault_set(SYS_CALL_CONNECT, ECONNREFUSED, 0, 1);
	mock_until(&a, &b, a.downs);
	assert_int_equal(a.down_err, -FI_EHOSTUNREACH);
	assert_int_equal(b.ups, 0);
	/* the slot is free again */
	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	mock_until(&a, &b, a.conn && b.conn);
}

static void want_of_descriptors_is_no_reason_to_go_another_way(void **state)
{
	struct wire_conn *conn;

	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	sys_fault_set(SYS_CALL_OPEN_FD, EMFILE, 0, 1);
	mock_until(&a, &b, a.downs);
	assert_int_equal(a.down_err, -FI_EMFILE);
	/* and none while a request holds one, which it gives back */
	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	sys_fault_set(SYS_CALL_MEMFD_CREATE, EMFILE, 0, 1);
	assert_int_equal(mock_connect(&a, &b.addr, &conn), -FI_EAGAIN);
	mock_until(&a, &b, a.conn && b.conn);
	sys_fault_set(SYS_CALL_MEMFD_CREATE, EMFILE, 0, 1);
	assert_int_equal(mock_connect(&a, &b.addr, &conn), -FI_EMFILE);
}

static void limit_on_files_is_said_when_an_endpoint_opens(void **state)
{
	struct wire_attr attr = { .tx_size = 64 };
	struct rlimit before, limit;
	struct weft_addr addr = { 0 };
	struct wire *wire = NULL;
	char why[128] = "";
	int ret;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){ 32 << 10, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ret = pshm_wire_ops.open((struct engine_ep *)&a, &attr, &addr, &wire, why, sizeof(why));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(ret, -EFBIG);
	assert_null(wire);
	assert_non_null(strstr(why, "ulimit -f"));
}

static void want_of_descriptors_is_logged_once(void **state)
{
	int before = mock_warnings;
	struct wire_conn *conn;

	sys_fault_set(SYS_CALL_MEMFD_CREATE, EMFILE, 0, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(mock_connect(&a, &b.addr, &conn), -FI_EMFILE);
	assert_int_equal(mock_warnings, before + 1);
	assert_non_null(strstr(mock_log, strerror(EMFILE)));
	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	mock_until(&a, &b, a.conn && b.conn);
	assert_int_equal(mock_warnings, before + 1);
	/* another time, another line */
	sys_fault_set(SYS_CALL_MEMFD_CREATE, EMFILE, 0, 1);
	assert_int_equal(mock_connect(&a, &b.addr, &conn), -FI_EMFILE);
	assert_int_equal(mock_warnings, before + 2);
}

static void another_want_is_logged_too(void **state)
{
	int before = mock_warnings;
	struct wire_conn *conn;

	sys_fault_set(SYS_CALL_MEMFD_CREATE, EMFILE, 0, 1);
	assert_int_equal(mock_connect(&a, &b.addr, &conn), -FI_EMFILE);
	assert_int_equal(mock_warnings, before + 1);
	/* another error */
	sys_fault_set(SYS_CALL_MEMFD_CREATE, ENOMEM, 0, 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(mock_connect(&a, &b.addr, &conn), -FI_ENOMEM);
	assert_int_equal(mock_warnings, before + 2);
	assert_non_null(strstr(mock_log, strerror(ENOMEM)));
	/* of something else: a accepts */
	assert_int_equal(mock_connect(&b, &a.addr, &conn), 0);
	sys_fault_set(SYS_CALL_OPEN_FD, EMFILE, 0, 1);
	mock_until(&a, NULL, mock_warnings > before + 2);
	assert_int_equal(mock_warnings, before + 3);
}

static void want_of_descriptors_at_the_peer_is_logged_by_both(void **state)
{
	int before = mock_warnings;
	struct wire_conn *conn;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
		sys_fault_set(SYS_CALL_OPEN_FD, EMFILE, 0, 1);
		a.downs = 0;
		mock_until(&a, &b, a.downs);
		assert_int_equal(a.down_err, -FI_EMFILE);
	}
	assert_int_equal(mock_warnings, before + 2);
}

static void failed_calls_leave_nothing_behind(void **state)
{
	static const enum sys_call calls[] = {
		SYS_CALL_OPEN_IMAGE, SYS_CALL_OPEN_FD,	    SYS_CALL_FSTAT,
		SYS_CALL_MMAP,	     SYS_CALL_FCHMOD,	    SYS_CALL_FTRUNCATE,
		SYS_CALL_FCNTL_SEAL, SYS_CALL_MEMFD_CREATE,
	};
	int before = mock_descriptors();
	struct wire_conn *conn;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		for (uint32_t skip = 0; skip < 3; skip++) {
			int ret;

			sys_fault_set(calls[i], ENOMEM, skip, 1);
			ret = mock_connect(&a, &b.addr, &conn);
			a.ups = a.downs = 0;
			if (!ret) {
				mock_until(&a, &b, a.ups || a.downs);
				if (a.ups)
					pshm_wire_ops.disconnect(a.conn);
				mock_until(&b, NULL, !b.conn);
			}
			sys_fault_clear();
			assert_int_equal(mock_descriptors(), before);
		}
	}
}

static void orderly_close_comes_after_the_last_packet(void **state)
{
	for (uint64_t i = 0; i < 100; i++)
		assert_true(mock_put(a.conn, i, i % 60));
	mock_close(&a);
	/* looked for in this poll, which does not take all of them */
	((struct pshm_wire *)b.wire)->tick = UINT32_MAX;
	mock_poll(&b, NULL);
	assert_int_equal(b.downs, 0);
	mock_until(&b, NULL, b.downs);
	assert_int_equal(b.down_err, 0);
	assert_int_equal(b.next_tag, 100);
	assert_false(b.garbled);
}

static void end_within_a_payload_is_a_reset(void **state)
{
	enum { LEN = 1 << 20 };
	unsigned char *buf = calloc(1, LEN);
	struct mock_op op;

	room_make(&b, LEN, 1);
	assert_int_equal(mock_sendv(a.conn, MOCK_BIG, buf, LEN, 1, &op), 0);
	mock_poll(&b, NULL);
	pshm_wire_ops.disconnect(a.conn);
	free(buf);
	mock_until(&a, &b, b.downs);
	assert_int_equal(b.down_err, -FI_ECONNRESET);
	assert_int_equal(op.done, 0);
	assert_int_equal(a.downs, 0);
}

static void connection_may_end_from_within_a_packet(void **state)
{
	struct wire_conn *conn;

	for (uint64_t i = 0; i < 10; i++)
		assert_true(mock_put(a.conn, i, 100));
	b.end_in_packet = b.conn;
	mock_poll(&b, NULL);
	assert_int_equal(b.packets, 0);
	mock_until(&a, &b, a.downs);
	assert_int_equal(a.down_err, 0);
	assert_int_equal(b.downs, 0);
	assert_int_equal(mock_connect(&b, &a.addr, &conn), 0);
	mock_until(&a, &b, a.conn && b.conn);
}

static void packet_that_the_engine_rejects_ends_the_connection(void **state)
{
	b.packet_err = -FI_EPROTO;
	assert_true(mock_put(a.conn, 0, 8));
	mock_until(&a, &b, a.downs && b.downs);
	assert_int_equal(b.down_err, -FI_EPROTO);
	assert_int_equal(a.down_err, -FI_ECONNRESET);
}

static void request_given_up_frees_its_slot(void **state)
{
	struct wire_conn *conn;

	for (uint32_t i = 0; i < 3 * PSHM_SLOTS; i++) {
		assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
		pshm_wire_ops.disconnect(conn);
	}
	mock_poll(&a, &b);
	assert_int_equal(b.ups, 0);
	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	mock_until(&a, &b, a.conn && b.conn);
}

/* As many requests of a as b's mailbox has slots; further ones wait. */
static void mailbox_fill(void)
{
	struct wire_conn *conn;

	for (uint32_t i = 0; i < PSHM_SLOTS; i++)
		assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
}

static void more_than_a_mailbox_holds_all_come_up(void **state)
{
	struct wire_conn *conn;

	mailbox_fill();
	for (uint32_t i = 0; i < 2 * PSHM_SLOTS; i++)
		assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	mock_until(&a, &b, a.ups == 3 * (int)PSHM_SLOTS && b.ups == 3 * (int)PSHM_SLOTS);
	assert_int_equal(a.downs + b.downs, 0);
}

static void who_waits_for_a_slot_has_one_descriptor_for_the_process_and_no_more(void **state)
{
	struct wire_conn *conn;
	int before;

	mailbox_fill();
	before = mock_descriptors();
	for (uint32_t i = 0; i < PSHM_SLOTS; i++)
		assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	assert_int_equal(mock_descriptors(), before);
	pshm_wire_ops.disconnect(conn);
}

static void who_waits_for_a_slot_hears_that_the_inbox_closes(void **state)
{
	struct wire_conn *conn;

	mailbox_fill();
	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	mock_close(&b);
	mock_until(&a, NULL, a.downs == (int)PSHM_SLOTS + 1);
	assert_int_equal(a.down_err, -FI_ECONNREFUSED);
}

static void who_waits_for_a_slot_takes_the_peers_own_connection(void **state)
{
	struct wire_conn *conn, *theirs;

	mailbox_fill();
	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	assert_int_equal(mock_connect(&b, &a.addr, &theirs), 0);
	mock_until(&a, NULL, a.ups);
	assert_int_equal(a.downs, 1); /* what waited; the requests stand */
	assert_int_equal(a.down_err, -FI_EALREADY);
	mock_until(&a, &b, a.ups == (int)PSHM_SLOTS + 1);
	assert_int_equal(a.downs, 1);
}

static void want_of_descriptors_does_not_end_who_waits_for_a_slot(void **state)
{
	int ups = (int)PSHM_SLOTS, before = mock_warnings;
	struct wire_conn *conn;

	mailbox_fill();
	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	sys_fault_set(SYS_CALL_MEMFD_CREATE, EMFILE, 0, 1);
	mock_until(&a, &b, mock_warnings > before);
	mock_until(&a, &b, a.ups == ups + 1 && b.ups == ups + 1);
	assert_int_equal(a.downs, 0);
}

/* Pid of a process that has ended. */
static uint32_t dead_pid(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return (uint32_t)pid;
}

static void slots_of_the_dead_are_taken_over_but_not_their_requests(void **state)
{
	struct pshm_offer offer = { .pid = dead_pid() };
	struct pshm_ticket ticket[PSHM_SLOTS], other;
	struct pshm_region inbox;

	assert_int_equal(pshm_inbox_open(b.addr.pid, b.addr.fd, b.addr.nonce, &inbox), 0);
	for (uint32_t i = 0; i < PSHM_SLOTS; i++) {
		assert_int_equal(pshm_mailbox_claim(inbox.addr, offer.pid, &ticket[i]), 0);
		if (i)
			assert_int_equal(pshm_mailbox_post(inbox.addr, &offer, &ticket[i]), 0);
	}
	/* the process of a request is not looked up: b takes the request, and detects that */
	assert_int_equal(pshm_mailbox_claim(inbox.addr, (uint32_t)getpid(), &other), 0);
	assert_ptr_equal(other.slot, ticket[0].slot);
	assert_int_equal(pshm_mailbox_post(inbox.addr, &offer, &ticket[0]), -FI_EAGAIN);
	assert_null(ticket[0].slot);
	assert_int_equal(pshm_mailbox_claim(inbox.addr, (uint32_t)getpid(), &ticket[0]),
			 -FI_EAGAIN);
	mock_until(&b, NULL, !pshm_mailbox_claim(inbox.addr, (uint32_t)getpid(), &ticket[0]));
	pshm_region_close(&inbox);
}

static void closed_inbox_refuses_those_who_wait(void **state)
{
	struct wire_conn *conn;

	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	mock_close(&b);
	mock_until(&a, NULL, a.downs);
	assert_int_equal(a.down_err, -FI_ECONNREFUSED);
	/* its process lives, and reports that the endpoint is closed */
	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	mock_until(&a, NULL, a.downs == 2);
	assert_int_equal(a.down_err, -FI_ECONNREFUSED);
}

static void endpoint_connects_to_itself(void **state)
{
	struct wire_conn *conn;

	assert_int_equal(mock_connect(&a, &a.addr, &conn), 0);
	mock_until(&a, NULL, a.ups == 2);
	assert_true(mock_put(conn, 0, 8));
	assert_true(mock_put(conn, 1, 4000));
	mock_until(&a, NULL, a.next_tag == 2);
	assert_false(a.garbled);
}

static void connections_cost_no_descriptor_each(void **state)
{
	struct wire_conn *conn;
	int before = mock_descriptors();

	for (int i = 0; i < 50; i++) {
		assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
		mock_until(&a, &b, a.ups == i + 1 && b.ups == i + 1);
	}
	assert_int_equal(mock_descriptors(), before + 1); /* the process */
	mock_close(&a);
	mock_until(&b, NULL, b.downs == 50);
	assert_int_equal(mock_descriptors(), before); /* their inboxes are one descriptor */
}

#define TEST(name)	     cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_CONNECTED(name) cmocka_unit_test_setup_teardown(name, setup_connected, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_CONNECTED(hellos_and_addresses_travel_both_ways),
		TEST_CONNECTED(packets_of_every_length_arrive_in_order_both_ways),
		TEST_CONNECTED(no_room_is_told_and_comes_back),
		TEST_CONNECTED(large_payload_does_not_block_small_packets),
		TEST_CONNECTED(sendvs_arrive_whole_one_after_the_other),
		TEST_CONNECTED(queued_payload_leaves_lines_to_packets),
		TEST_CONNECTED(payload_beyond_the_destination_is_dropped),
		TEST_CONNECTED(get_reads_the_peers_memory),
		TEST_CONNECTED(get_leaves_the_copy_to_a_peer_that_polls),
		TEST_CONNECTED(get_of_memory_that_is_not_there_fails),
		TEST_CONNECTED(refused_get_is_remembered),
		TEST(engine_that_refuses_is_heard),
		TEST(unreachable_addresses_are_told_at_once),
		TEST(forbidden_inbox_is_unreachable),
		TEST(pair_that_the_owner_may_not_open_goes_down_as_unreachable),
		TEST(want_of_descriptors_is_no_reason_to_go_another_way),
		TEST(limit_on_files_is_said_when_an_endpoint_opens),
		TEST(want_of_descriptors_is_logged_once),
		TEST(another_want_is_logged_too),
		TEST(want_of_descriptors_at_the_peer_is_logged_by_both),
		TEST(failed_calls_leave_nothing_behind),
		TEST_CONNECTED(orderly_close_comes_after_the_last_packet),
		TEST_CONNECTED(end_within_a_payload_is_a_reset),
		TEST_CONNECTED(connection_may_end_from_within_a_packet),
		TEST_CONNECTED(packet_that_the_engine_rejects_ends_the_connection),
		TEST(request_given_up_frees_its_slot),
		TEST(more_than_a_mailbox_holds_all_come_up),
		TEST(who_waits_for_a_slot_has_one_descriptor_for_the_process_and_no_more),
		TEST(who_waits_for_a_slot_hears_that_the_inbox_closes),
		TEST(who_waits_for_a_slot_takes_the_peers_own_connection),
		TEST(want_of_descriptors_does_not_end_who_waits_for_a_slot),
		TEST(slots_of_the_dead_are_taken_over_but_not_their_requests),
		TEST(closed_inbox_refuses_those_who_wait),
		TEST(endpoint_connects_to_itself),
		TEST(connections_cost_no_descriptor_each),
	};

	alarm(600);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
