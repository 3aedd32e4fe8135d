/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of session.h: what ends a connection, and what ends with it.
 */
#define _GNU_SOURCE
#include "session_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/nvme.h>

#include "watch.h"

static void lease_ends_with_its_connection_unless_it_is_kept(void **state)
{
	struct lease_message one, kept;
	struct rig_peer a, b;

	rig_connect(&a);
	rig_connect(&b);
	one = rig_borrow(&a, LEASE_SHARED);
	kept = rig_borrow(&a, LEASE_SHARED | LEASE_KEPT);
	assert_int_equal(rig_renew(&b, &one), 0);
	rig_leave(&a);
	assert_int_equal(rig_renew(&b, &one), -ESTALE);
	assert_int_equal(rig_renew(&b, &kept), 0);
	rig_leave(&b);
	assert_int_equal(rig.lines, 0);
}

static void lease_goes_on_while_its_process_has_a_connection_that_attached(void **state)
{
	struct lease_message lease, attach;
	struct rig_peer a, b, c;

	rig_connect(&a);
	lease = rig_borrow(&a, LEASE_SHARED);
	rig_connect(&b);
	attach = rig_about(&lease, LEASE_ATTACH);
	assert_int_equal(rig_ask(&b, attach), 0);
	assert_int_equal(rig_ask(&b, attach), 0);
	rig_leave(&a);
	assert_int_equal(rig_renew(&b, &lease), 0);
	rig_connect(&c);
	rig_leave(&b);
	assert_int_equal(rig_renew(&c, &lease), -ESTALE);
	rig_leave(&c);
}

/* A process that waits until it is ended. */
static pid_t start_idle(void)
{
	pid_t child = fork();

	if (!child) {
		pause();
		_exit(0);
	}
	assert_true(child > 0);
	return child;
}

static void end_idle(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void process_that_uses_anothers_lease_does_not_end_it(void **state)
{
	struct lease_message lease;
	struct rig_peer a, b;
	pid_t child = start_idle();

	rig_connect(&a);
	lease = rig_borrow(&a, 0);
	rig.creds.pid = child;
	rig_connect(&b);
	assert_int_equal(rig_ask(&b, rig_about(&lease, LEASE_ATTACH)), 0);
	assert_in_range(rig.last.msg.ms, 1, 10000);
	rig_leave(&b);
	end_idle(child);
	assert_int_equal(rig_renew(&a, &lease), 0);
	rig_leave(&a);
}

/* A window with a queue pair in it. Returns its address */
static uint64_t open_pair(struct rig_peer *peer, const struct lease_message *lease)
{
	int fd = rig_memory(2 * NVME_PAGE, F_SEAL_SHRINK);
	struct lease_message msg = rig_about(lease, LEASE_WINDOW);
	uint64_t addr;

	msg.flags = WEFT_WINDOW_RW;
	msg.len = 2 * NVME_PAGE;
	msg.fd_cnt = 1;
	assert_int_equal(rig_ask_beside(peer, &msg, &fd), 0);
	close(fd);
	addr = rig.last.msg.addr;
	msg = rig_about(lease, LEASE_QUEUES);
	msg.count = 64;
	msg.addr = addr;
	msg.offset = addr + NVME_PAGE;
	assert_int_equal(rig_ask(peer, msg), 0);
	return addr;
}

static uint32_t pairs(void)
{
	struct weft_device_info info;

	lent_info(rig.lents[0], &info);
	return info.queue_pairs - info.queue_pairs_free;
}

static int close_window(struct rig_peer *peer, const struct lease_message *lease, uint64_t addr)
{
	struct lease_message msg = rig_about(lease, LEASE_UNWINDOW);

	msg.addr = addr;
	msg.len = 2 * NVME_PAGE;
	return rig_ask(peer, msg);
}

static void process_that_ends_leaves_nothing_open_of_anothers_lease(void **state)
{
	struct lease_message lease;
	struct rig_peer a, b;
	pid_t child = start_idle();
	uint64_t own, others;
	uint32_t qid;

	rig_connect(&a);
	lease = rig_borrow(&a, 0);
	own = open_pair(&a, &lease);
	rig.creds.pid = child;
	rig_connect(&b);
	assert_int_equal(rig_ask(&b, rig_about(&lease, LEASE_ATTACH)), 0);
	others = open_pair(&b, &lease);
	qid = rig.last.msg.index;
	assert_int_equal(pairs(), 2);
	/* What it closes and opens again is closed once. */
	assert_int_equal(RIG_ASK(&b, .kind = LEASE_UNQUEUES, .device = lease.device,
				 .lease = lease.lease, .generation = lease.generation,
				 .token = lease.token, .index = qid),
			 0);
	open_pair(&b, &lease);
	assert_int_equal(pairs(), 2);
	end_idle(child);
	assert_int_equal(rig_take(&b), 0);
	rig_leave(&b);
	assert_int_equal(pairs(), 1);
	assert_int_equal(close_window(&a, &lease, others), -ENOENT);
	assert_int_equal(RIG_ASK(&a, .kind = LEASE_UNQUEUES, .device = lease.device,
				 .lease = lease.lease, .generation = lease.generation,
				 .token = lease.token, .index = 1),
			 0);
	assert_int_equal(close_window(&a, &lease, own), 0);
	rig_leave(&a);
}

/* The lender has cut it off, or was too slow: the process connects again, and uses what it has meanwhile. */
static void connection_that_ends_alone_leaves_open_what_its_process_has(void **state)
{
	struct lease_message lease;
	struct rig_peer a, b;
	pid_t child = start_idle();
	uint64_t addr;

	rig_connect(&a);
	lease = rig_borrow(&a, 0);
	rig.creds.pid = child;
	rig_connect(&b);
	addr = open_pair(&b, &lease);
	rig_leave(&b);
	assert_int_equal(pairs(), 1);
	assert_int_equal(close_window(&a, &lease, addr), 0);
	end_idle(child);
	rig_leave(&a);
}

/* The connection is held by somebody else too. */
static void lease_ends_with_its_process(void **state)
{
	struct lease_message lease;
	struct rig_peer a, b;
	pid_t child = start_idle();

	rig_connect(&b);
	rig.creds.pid = child;
	rig_connect(&a);
	lease = rig_borrow(&a, LEASE_SHARED);
	end_idle(child);
	assert_int_equal(rig_take(&a), 0);
	pthread_join(a.thread, NULL);
	close(a.fd);
	assert_int_equal(rig_renew(&b, &lease), -ESTALE);
	rig_leave(&b);
}

static void watcher_hears_of_everything_after_its_answer(void **state)
{
	struct lease_message lease;
	struct rig_peer a, w;
	int i;

	rig_connect(&w);
	assert_int_equal(RIG_ASK(&w, .kind = LEASE_WATCH), 0);
	pthread_join(w.thread, NULL);
	rig_connect(&a);
	for (i = 0; i < 20; i++) {
		lease = rig_borrow(&a, 0);
		assert_int_equal(RIG_ASK(&a, .kind = LEASE_REVOKE, .device = lease.device,
					 .lease = lease.lease, .generation = lease.generation),
				 0);
		assert_int_equal(rig_take(&w), sizeof(rig.last.msg));
		assert_int_equal(rig.last.msg.kind, LEASE_EVENT);
		assert_int_equal(rig.last.msg.index, WEFT_EVENT_LEASE_ENDED);
		assert_int_equal(rig.last.msg.lease, lease.lease);
		assert_true(rig.last.msg.device == lease.device);
	}
	rig_leave(&a);
	close(w.fd);
}

static void watcher_that_takes_no_events_is_cut_off(void **state)
{
	struct rig_peer w, v;
	int room = 1, cnt = 0, i;

	rig_connect(&w);
	setsockopt(w.other, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	assert_int_equal(RIG_ASK(&w, .kind = LEASE_WATCH), 0);
	pthread_join(w.thread, NULL);
	rig_connect(&v);
	assert_int_equal(RIG_ASK(&v, .kind = LEASE_WATCH), 0);
	pthread_join(v.thread, NULL);
	for (i = 0; i < 100; i++) {
		watchers_tell(rig.lender.watchers, WEFT_EVENT_DEVICE_ADDED, 1, 0);
		assert_int_equal(rig_take(&v), sizeof(rig.last.msg));
	}
	while (rig_take(&w) > 0)
		cnt++;
	assert_in_range(cnt, 1, 99);
	close(w.fd);
	close(v.fd);
}

/* A session that has been sent this has ended, and has logged why. */
static void expect_end(const void *bytes, size_t len, uint32_t fd_cnt)
{
	int fds[2] = { rig_memory(NVME_PAGE, F_SEAL_SHRINK),
		       rig_memory(NVME_PAGE, F_SEAL_SHRINK) };
	struct iovec iov = { (void *)bytes, len };
	unsigned before = rig.lines;
	struct rig_peer a;

	rig_connect(&a);
	rig_borrow(&a, LEASE_SHARED);
	assert_int_equal(packet_send(a.fd, &iov, 1, fds, fd_cnt), 0);
	assert_int_equal(rig_take(&a), 0);
	assert_int_equal(rig.lines, before + 1);
	packet_close_fds(fds, 2);
	rig_leave(&a);
}

static void what_is_no_request_ends_the_connection_with_a_line(void **state)
{
	struct {
		struct lease_message msg;
		char more[LEASE_DATA_MAX + 1];
	} m = { .msg = { .version = LEASE_VERSION, .kind = LEASE_HELLO } };
	size_t len = sizeof(m.msg);
	uint32_t kind;

	expect_end("x", 1, 0);
	expect_end(&m, len - 1, 0);
	expect_end(&m, len + 1, 0);
	expect_end(&m, sizeof(m), 0);
	expect_end(&m, len, 1);
	m.msg.fd_cnt = 1;
	expect_end(&m, len, 0);
	expect_end(&m, len, 1);
	m.msg.kind = LEASE_WINDOW;
	expect_end(&m, len, 2);
	m.msg.fd_cnt = 0;
	m.msg.rsvd44 = 1;
	expect_end(&m, len, 0);
	m.msg.rsvd44 = 0;
	m.msg.data_len = 1;
	expect_end(&m, len, 0);
	for (kind = 0; kind < 70000; kind += kind < LEASE_KINDS + 2 ? 1 : 9999)
		if (!kind || kind >= LEASE_EVENT) {
			m.msg = (struct lease_message){ .version = LEASE_VERSION,
							.kind = (uint16_t)kind };
			if (m.msg.kind && m.msg.kind < LEASE_EVENT)
				continue;
			expect_end(&m, len, 0);
		}
}

/* Where others have taken what descriptors there are, a request is refused, and its lease goes on. */
static void request_whose_descriptors_have_no_room_is_refused(void **state)
{
	struct lease_message lease, msg;
	struct iovec iov = { &msg, sizeof(msg) };
	struct rlimit limit, none;
	struct rig_peer a;
	int next;

	rig_connect(&a);
	lease = rig_borrow(&a, LEASE_SHARED);
	next = dup(a.fd);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){ .rlim_cur = (rlim_t)next, .rlim_max = limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	msg = rig_about(&lease, LEASE_WINDOW);
	msg.version = LEASE_VERSION;
	msg.flags = WEFT_WINDOW_RW;
	msg.len = 4096;
	msg.fd_cnt = 1;
	assert_int_equal(packet_send(a.fd, &iov, 1, &a.fd, 1), 0);
	assert_int_equal(rig_take(&a), sizeof(msg));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(rig.last.msg.status, -EMFILE);
	assert_int_equal(rig_renew(&a, &lease), 0);
	assert_int_equal(rig.lines, 0);
	rig_leave(&a);
}

static void other_version_is_told_which_one_this_is(void **state)
{
	struct lease_message msg = { .version = LEASE_VERSION + 1,
				     .kind = LEASE_BORROW,
				     .ms = 1 };
	struct iovec iov = { &msg, sizeof(msg) };
	struct rig_peer a;

	rig_connect(&a);
	assert_int_equal(packet_send(a.fd, &iov, 1, NULL, 0), 0);
	assert_int_equal(rig_take(&a), sizeof(msg));
	assert_int_equal(rig.last.msg.version, LEASE_VERSION);
	assert_int_equal(rig.last.msg.status, -ENOPROTOOPT);
	assert_int_equal(RIG_ASK(&a, .kind = LEASE_HELLO), 0);
	assert_true(rig.last.msg.device == RIG_NODE);
	rig_leave(&a);
}

/* It asks and asks, and its process ends while its connection is held by another. */
static void who_takes_no_answers_is_cut_off(void **state)
{
	struct lease_message msg = { .version = LEASE_VERSION, .kind = LEASE_LIST };
	struct lease_message lease;
	struct rig_peer a, b;
	int room = 1;

	rig_connect(&a);
	lease = rig_borrow(&a, LEASE_SHARED);
	setsockopt(a.other, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	while (send(a.fd, &msg, sizeof(msg), MSG_NOSIGNAL) > 0)
		;
	pthread_join(a.thread, NULL);
	assert_int_equal(rig.lines, 1);
	rig_connect(&b);
	assert_int_equal(rig_renew(&b, &lease), -ESTALE);
	close(a.fd);
	rig_leave(&b);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lease_ends_with_its_connection_unless_it_is_kept),
		TEST(lease_goes_on_while_its_process_has_a_connection_that_attached),
		TEST(process_that_uses_anothers_lease_does_not_end_it),
		TEST(process_that_ends_leaves_nothing_open_of_anothers_lease),
		TEST(connection_that_ends_alone_leaves_open_what_its_process_has),
		TEST(lease_ends_with_its_process),
		TEST(watcher_hears_of_everything_after_its_answer),
		TEST(watcher_that_takes_no_events_is_cut_off),
		TEST(what_is_no_request_ends_the_connection_with_a_line),
		TEST(request_whose_descriptors_have_no_room_is_refused),
		TEST(other_version_is_told_which_one_this_is),
		TEST(who_takes_no_answers_is_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
