/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of request.h: what borrowers may ask for, and what they get if they do not ask as they must.
 */
#define _GNU_SOURCE
#include "request.h"
#include "session_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/nvme.h>

static void returned_lease_is_gone(void **state)
{
	struct lease_message lease;
	struct rig_peer a;

	rig_connect(&a);
	lease = rig_borrow(&a, 0);
	assert_int_equal(rig_ask(&a, rig_about(&lease, LEASE_RETURN)), 0);
	assert_int_equal(rig_ask(&a, rig_about(&lease, LEASE_RETURN)), -ESTALE);
	assert_int_equal(rig_renew(&a, &lease), -ESTALE);
	rig_borrow(&a, 0);
	rig_leave(&a);
	/* That one has ended with the connection. */
	rig_connect(&a);
	rig_borrow(&a, 0);
	rig_leave(&a);
}

static int carry_out(struct session *s, struct lease_message msg)
{
	msg.version = LEASE_VERSION;
	s->msg = msg;
	request_carry_out(s);
	return s->msg.status;
}

/* As they end by their time, or by another connection. */
static void leases_that_end_otherwise_are_not_kept_in_mind(void **state)
{
	struct session *s = calloc(1, sizeof(*s));
	uint32_t i;

	assert_non_null(s);
	s->lender = &rig.lender;
	s->fd = s->process = -1;
	for (i = 0; i < 2 * LEASED_ENDED_MAX; i++) {
		struct lease_message borrow = { .kind = LEASE_BORROW, .ms = 10000 }, window;
		struct lent_lease lease;

		assert_int_equal(carry_out(s, borrow), 0);
		window = rig_about(&s->msg, LEASE_WINDOW);
		window.data_len = 0;
		window.flags = WEFT_WINDOW_READ;
		window.len = NVME_PAGE;
		window.fd_cnt = 1;
		lease = (struct lent_lease){ window.lease, window.generation, window.token };
		s->fds[s->fd_cnt++] = rig_memory(NVME_PAGE, F_SEAL_SHRINK);
		assert_int_equal(carry_out(s, window), 0);
		assert_int_equal(s->fd_cnt, 0);
		assert_int_equal(lent_end(rig.lents[0], &lease, LENT_WAIT_MS), 0);
	}
	assert_in_range(s->held.cnt, 1, LEASED_ENDED_MAX);
	assert_in_range(s->uses.cnt, 1, LEASED_ENDED_MAX);
	while (s->held.first)
		leased_drop(&s->held, &s->held.first);
	uses_end(&s->uses, -1, -1);
	assert_int_equal(s->uses.cnt, 0);
	free(s);
}

static void forged_requests_are_refused_with_a_line_for_each_kind(void **state)
{
	struct lease_message lease, other;
	struct rig_peer a, b;
	int i;

	rig_connect(&a);
	rig_connect(&b);
	lease = rig_borrow(&a, LEASE_SHARED);
	for (i = 0; i < 3; i++) {
		/* Another's lease, without its token, and with a wrong one. */
		other = lease;
		other.token = (struct lease_token){ i / 2, i % 2 };
		assert_int_equal(rig_renew(&b, &other), -EACCES);
		assert_int_equal(rig.lines, i ? 6 : 1);
		assert_int_equal(rig_ask(&b, rig_about(&other, LEASE_RETURN)), -EACCES);
		assert_int_equal(rig_ask(&b, rig_about(&other, LEASE_UNQUEUES)), -EACCES);
		/* A raw admin command: Format NVM, and ending a lease. */
		assert_int_equal(RIG_ASK(&b, .kind = LEASE_ADMIN, .device = lease.device,
					 .offset = 0x80),
				 -EPERM);
		assert_int_equal(RIG_ASK(&b, .kind = LEASE_ADMIN, .device = lease.device,
					 .offset = NVME_ADMIN_LEASE_END, .addr = lease.lease),
				 -EPERM);
		/* A stale address, and one of nobody's. */
		assert_int_equal(RIG_ASK(&b, .kind = LEASE_IMPORT, .device = RIG_NODE,
					 .index = 1, .generation = 1),
				 -ESTALE);
		assert_int_equal(RIG_ASK(&b, .kind = LEASE_IMPORT, .device = RIG_NODE + 1),
				 -EHOSTUNREACH);
		assert_int_equal(RIG_ASK(&b, .kind = LEASE_UNEXPORT, .index = 1), -ESTALE);
		/* A flag of none. */
		assert_int_equal(RIG_ASK(&b, .kind = LEASE_BORROW, .flags = 8, .ms = 1000),
				 -EINVAL);
	}
	assert_int_equal(rig.lines, 6);
	assert_int_equal(rig_renew(&a, &lease), 0);
	rig_leave(&a);
	rig_leave(&b);
}

static void queue_pair_and_window_of_another_are_not_found(void **state)
{
	struct lease_message lease, other, msg;
	struct rig_peer a, b;
	uint32_t qid;
	uint64_t addr;
	int fd = rig_memory(2 * NVME_PAGE, F_SEAL_SHRINK);

	rig_connect(&a);
	rig_connect(&b);
	lease = rig_borrow(&a, LEASE_SHARED);
	other = rig_borrow(&b, LEASE_SHARED);
	msg = rig_about(&lease, LEASE_WINDOW);
	msg.flags = WEFT_WINDOW_RW;
	msg.len = 2 * NVME_PAGE;
	msg.fd_cnt = 1;
	assert_int_equal(rig_ask_beside(&a, &msg, &fd), 0);
	addr = rig.last.msg.addr;
	msg = rig_about(&lease, LEASE_QUEUES);
	msg.count = 64;
	msg.addr = addr;
	msg.offset = addr + NVME_PAGE;
	assert_int_equal(rig_ask_beside(&a, &msg, NULL), 0);
	qid = rig.last.msg.index;
	packet_close_fds(rig.last.fds, rig.last.fd_cnt);

	msg = rig_about(&other, LEASE_UNQUEUES);
	msg.index = qid;
	assert_int_equal(rig_ask(&b, msg), -ENOENT);
	msg.index = qid + 65536;
	assert_int_equal(rig_ask(&b, msg), -ENOENT);
	assert_int_equal(rig.lines, 1);
	msg = rig_about(&other, LEASE_UNWINDOW);
	msg.addr = addr;
	msg.len = 2 * NVME_PAGE;
	assert_int_equal(rig_ask(&b, msg), -ENOENT);
	assert_int_equal(rig.lines, 2);
	/* Queues in the other's window. */
	msg = rig_about(&other, LEASE_QUEUES);
	msg.count = 64;
	msg.addr = addr;
	msg.offset = addr + NVME_PAGE;
	assert_int_equal(rig_ask(&b, msg), -EINVAL);
	assert_int_equal(rig.lines, 3);
	/* An eventfd that is announced and not there, and one that is there and was not announced. */
	msg.flags = WEFT_NVME_BLOCKING;
	assert_int_equal(rig_ask(&b, msg), -EINVAL);
	msg.flags = 0;
	msg.fd_cnt = 1;
	assert_int_equal(rig_ask_beside(&b, &msg, &fd), -EINVAL);
	assert_int_equal(rig.lines, 3);
	msg = rig_about(&lease, LEASE_UNQUEUES);
	msg.index = qid;
	assert_int_equal(rig_ask(&a, msg), 0);
	close(fd);
	rig_leave(&a);
	rig_leave(&b);
}

static void files_that_may_shrink_are_refused(void **state)
{
	struct lease_message lease, msg;
	int bare = rig_memory(2 * NVME_PAGE, F_SEAL_GROW),
	    good = rig_memory(NVME_PAGE, F_SEAL_SHRINK);
	struct rig_peer a;

	rig_connect(&a);
	lease = rig_borrow(&a, 0);
	msg = rig_about(&lease, LEASE_WINDOW);
	msg.flags = WEFT_WINDOW_RW;
	msg.len = 2 * NVME_PAGE;
	msg.fd_cnt = 1;
	assert_int_equal(rig_ask_beside(&a, &msg, &bare), -EBADF);
	assert_int_equal(rig_ask_beside(&a, &msg, &good), -EBADF);
	assert_int_equal(rig_ask_beside(&a, &msg, &rig.device.kicks[0]), -EBADF);
	assert_int_equal(rig.lines, 1);
	msg = (struct lease_message){ .kind = LEASE_EXPORT, .len = 2 * NVME_PAGE, .fd_cnt = 1 };
	assert_int_equal(rig_ask_beside(&a, &msg, &bare), -EBADF);
	assert_int_equal(rig_ask_beside(&a, &msg, &good), -EBADF);
	assert_int_equal(rig.lines, 2);
	msg.fd_cnt = 0;
	assert_int_equal(rig_ask_beside(&a, &msg, NULL), -EINVAL);
	close(bare);
	close(good);
	rig_leave(&a);
}

static void segment_of_huge_pages_is_refused(void **state)
{
	struct lease_message msg = { .kind = LEASE_EXPORT, .len = NVME_PAGE, .fd_cnt = 1 };
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	struct rig_peer a;
	struct stat st;

	if (fd < 0)
		skip();
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(ftruncate(fd, st.st_blksize), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	rig_connect(&a);
	assert_int_equal(rig_ask_beside(&a, &msg, &fd), -EBADF);
	close(fd);
	rig_leave(&a);
}

static void segment_is_had_by_its_address_until_its_connection_ends(void **state)
{
	struct lease_message msg = { .kind = LEASE_EXPORT, .len = NVME_PAGE, .fd_cnt = 1 };
	struct lease_message import = { .kind = LEASE_IMPORT, .device = RIG_NODE };
	int fd = rig_memory(NVME_PAGE, F_SEAL_SHRINK);
	struct rig_peer a, b, c;

	rig_connect(&a);
	rig_connect(&b);
	assert_int_equal(rig_ask_beside(&a, &msg, &fd), 0);
	assert_int_equal(rig.last.msg.device, RIG_NODE);
	import.index = rig.last.msg.index;
	import.generation = rig.last.msg.generation;
	assert_int_equal(rig_ask(&b, import), 0);
	assert_int_equal(rig.last.fd_cnt, 1);
	assert_int_equal(rig.last.msg.len, NVME_PAGE);
	rig.creds.uid = 65533;
	rig_connect(&c);
	assert_int_equal(rig_ask(&c, import), -EACCES);
	rig_leave(&a);
	assert_int_equal(rig_ask(&b, import), -ESTALE);
	close(fd);
	rig_leave(&b);
	rig_leave(&c);
}

static void lease_is_revoked_by_the_lenders_user_alone(void **state)
{
	struct lease_message lease, revoke;
	struct rig_peer a, b, c;

	rig_connect(&a);
	lease = rig_borrow(&a, 0);
	revoke = (struct lease_message){ .kind = LEASE_REVOKE,
					 .device = lease.device,
					 .lease = lease.lease,
					 .generation = lease.generation };
	rig.creds.uid = 65533;
	rig_connect(&b);
	assert_int_equal(rig_ask(&b, revoke), -EACCES);
	assert_int_equal(rig.lines, 1);
	assert_int_equal(rig_renew(&a, &lease), 0);
	rig.creds.uid = geteuid();
	rig_connect(&c);
	revoke.generation++;
	assert_int_equal(rig_ask(&c, revoke), -ESTALE);
	revoke.generation--;
	assert_int_equal(rig_ask(&c, revoke), 0);
	/* Who has revoked what is to be seen. */
	assert_int_equal(rig.lines, 2);
	assert_int_equal(rig_renew(&a, &lease), -ESTALE);
	rig_leave(&a);
	rig_leave(&b);
	rig_leave(&c);
}

static void device_is_borrowed_by_its_name_or_its_beginning(void **state)
{
	struct {
		struct lease_message msg;
		char name[WEFT_DEVICE_NAME_MAX];
	} m = { .msg = { .version = LEASE_VERSION,
			 .kind = LEASE_BORROW,
			 .flags = LEASE_SHARED,
			 .ms = 1000 } };
	static const struct {
		const char *name;
		int status;
	} tries[] = { { "", 0 },
		      { "nvme-", 0 },
		      { "nvme-11223344-FAKE1", 0 },
		      { "nvme-11223344-FAKE12", -ENODEV },
		      { "other", -ENODEV } };
	struct rig_peer a;
	size_t i;

	rig_connect(&a);
	for (i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		struct iovec iov = { &m, sizeof(m.msg) };

		m.msg.data_len = (uint32_t)strlen(tries[i].name);
		memcpy(m.name, tries[i].name, m.msg.data_len);
		iov.iov_len += m.msg.data_len;
		assert_int_equal(packet_send(a.fd, &iov, 1, NULL, 0), 0);
		assert_true(rig_take(&a) > 0);
		assert_int_equal(rig.last.msg.status, tries[i].status);
	}
	/* Other classes and vendors. */
	assert_int_equal(RIG_ASK(&a, .kind = LEASE_BORROW, .device = 9, .ms = 1000), -ENODEV);
	assert_int_equal(RIG_ASK(&a, .kind = LEASE_BORROW, .count = 9, .ms = 1000), -ENODEV);
	assert_int_equal(RIG_ASK(&a, .kind = LEASE_BORROW, .count = 0x1234,
				 .flags = LEASE_SHARED, .ms = 1000),
			 0);
	rig_leave(&a);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(returned_lease_is_gone),
		TEST(leases_that_end_otherwise_are_not_kept_in_mind),
		TEST(forged_requests_are_refused_with_a_line_for_each_kind),
		TEST(queue_pair_and_window_of_another_are_not_found),
		TEST(files_that_may_shrink_are_refused),
		TEST(segment_of_huge_pages_is_refused),
		TEST(segment_is_had_by_its_address_until_its_connection_ends),
		TEST(lease_is_revoked_by_the_lenders_user_alone),
		TEST(device_is_borrowed_by_its_name_or_its_beginning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
