/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What an owner may say on the slot, and what it can't do to the controller by it */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "rig.h"

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	rig_open(r, RIG_MEMORY, NULL);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	rig_close(*state);
	free(*state);
	return 0;
}

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int cnt = 0;

	while (readdir(d))
		cnt++;
	closedir(d);
	return cnt;
}

static int ask(struct rig *r, struct slot_message m)
{
	return host_ask(&r->h, &m, NULL, 0, NULL);
}

static void messages_that_are_none_are_refused(void **state)
{
	struct rig *r = *state;
	struct slot_message m = { .kind = 0 };

	assert_int_equal(ask(r, m), -EPROTO);
	assert_int_equal(ask(r, (struct slot_message){ .kind = SLOT_KINDS }), -EPROTO);
	assert_int_equal(ask(r, (struct slot_message){ .kind = UINT16_MAX }), -EPROTO);
	assert_int_equal(
		ask(r, (struct slot_message){ .kind = SLOT_READ, .len = 4, .rsvd28 = 1 }),
		-EINVAL);
	assert_int_equal(
		ask(r, (struct slot_message){ .kind = SLOT_READ, .len = 4, .status = 1 }),
		-EINVAL);
	assert_int_equal(
		ask(r, (struct slot_message){ .kind = SLOT_READ, .len = 4, .value = 1 }),
		-EINVAL);
	assert_int_equal(ask(r, (struct slot_message){ .kind = SLOT_QUEUE, .index = 9 }),
			 -ENOENT);
	assert_int_equal(ask(r, (struct slot_message){ .kind = SLOT_QUEUE, .index = 1 }),
			 -ENOENT);
	assert_int_equal(
		ask(r, (struct slot_message){ .kind = SLOT_QUEUE, .index = UINT32_MAX }),
		-ENOENT);
	assert_int_equal(ask(r, (struct slot_message){ .kind = SLOT_DOMAIN, .domain = 5000 }),
			 -EINVAL);
	assert_int_equal(ask(r, (struct slot_message){ .kind = SLOT_DOMAIN, .index = 1 }),
			 -ENOENT);
	assert_int_equal(ask(r, (struct slot_message){ .kind = SLOT_ATTACH }), -EBUSY);
}

static void descriptors_have_to_be_what_they_should(void **state)
{
	struct rig *r = *state;
	int before = descriptors();
	int fd = memfd_create("t", MFD_ALLOW_SEALING), pipes[2], many[SLOT_FDS_MAX], sealed;
	struct slot_message m;

	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_int_equal(host_map(&r->h, 0, 0x1000, 1 << 20, 3, fd), -EBADF); /* may shrink */
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_int_equal(host_map(&r->h, 0, 0x1000, 2 << 20, 3, fd), -EBADF); /* is shorter */
	assert_int_equal(host_map(&r->h, 0, 0x1000, 1 << 20, 3, fd), 0);
	assert_int_equal(host_map(&r->h, 0, 0x2000, 4096, 3, fd), -EEXIST);
	assert_int_equal(host_map(&r->h, 0, 0, 8192, 3, fd), -EEXIST);
	assert_int_equal(host_map(&r->h, 0, 0, 4096, 3, fd), 0);
	assert_int_equal(host_unmap(&r->h, 0, 0, 8192), -ENOENT);
	assert_int_equal(host_unmap(&r->h, 0, 0x1000, 4096), -ENOENT);
	assert_int_equal(host_unmap(&r->h, 0, 0x1000, 1 << 20), 0);
	assert_int_equal(host_unmap(&r->h, 0, 0, 4096), 0);
	assert_int_equal(host_map(&r->h, 0, 0x1800, 4096, 3, fd), -EINVAL);
	assert_int_equal(host_map(&r->h, 0, 0x1000, 0, 3, fd), -EINVAL);
	assert_int_equal(host_map(&r->h, 0, 0x1000, 100, 3, fd), -EINVAL);
	assert_int_equal(host_map(&r->h, 0, 0x1000, 4096, 0, fd), -EINVAL);
	assert_int_equal(host_map(&r->h, 0, 0x1000, 4096, 4, fd), -EINVAL);
	assert_int_equal(host_map(&r->h, 0, UINT64_MAX & ~4095ull, 8192, 3, fd), -EINVAL);
	assert_int_equal(host_map(&r->h, 0, UINT64_MAX & ~4095ull, 4096, 3, fd), 0);
	assert_int_equal(host_unmap(&r->h, 0, UINT64_MAX & ~4095ull, 4096), 0);
	assert_int_equal(host_map(&r->h, 5000, 0x1000, 4096, 3, fd), -EINVAL);
	m = (struct slot_message){ .kind = SLOT_MAP, .access = 3, .addr = 0x1000, .len = 4096 };
	assert_int_equal(host_ask(&r->h, &m, NULL, 0, NULL), -EINVAL); /* no file */
	m = (struct slot_message){ .kind = SLOT_MAP,
				   .access = 3,
				   .addr = 0x1000,
				   .len = 4096,
				   .offset = INT64_MAX & ~4095ull };
	assert_int_equal(host_ask(&r->h, &m, &fd, 1, NULL), -EINVAL);
	/* A file that must not be written can be read. */
	sealed = memfd_create("t", MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(sealed, 4096), 0);
	assert_int_equal(fcntl(sealed, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE), 0);
	assert_int_equal(host_map(&r->h, 0, 0x1000, 4096, SLOT_DMA_WRITE, sealed), -EBADF);
	assert_int_equal(host_map(&r->h, 0, 0x1000, 4096, SLOT_DMA_READ, sealed), 0);
	assert_int_equal(host_unmap(&r->h, 0, 0x1000, 4096), 0);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(host_map(&r->h, 0, 0x1000, 4096, 3, pipes[0]), -EBADF);
	m = (struct slot_message){ .kind = SLOT_VECTOR };
	assert_int_equal(host_ask(&r->h, &m, &pipes[1], 1, NULL), -EBADF);
	/* As many files as there may be, and one bad one among them */
	for (uint32_t i = 0; i < SLOT_FDS_MAX; i++)
		many[i] = fd;
	m = (struct slot_message){ .kind = SLOT_MAP, .access = 3, .addr = 0x1000, .len = 4096 };
	assert_int_equal(host_ask(&r->h, &m, many, SLOT_FDS_MAX, NULL), 0);
	assert_int_equal(host_unmap(&r->h, 0, 0x1000, 4096), 0);
	many[SLOT_FDS_MAX - 1] = pipes[0];
	m = (struct slot_message){ .kind = SLOT_MAP, .access = 3, .addr = 0x1000, .len = 4096 };
	assert_int_equal(host_ask(&r->h, &m, many, SLOT_FDS_MAX, NULL), -EBADF);
	m = (struct slot_message){ .kind = SLOT_READ,
				   .len = 4 }; /* descriptors beside what has none */
	assert_int_equal(host_ask(&r->h, &m, many, 3, NULL), -EINVAL);
	m = (struct slot_message){ .kind = SLOT_VECTOR, .index = 9 };
	assert_int_equal(host_ask(&r->h, &m, &fd, 1, NULL), -EINVAL);
	close(sealed);
	close(fd);
	close(pipes[0]);
	close(pipes[1]);
	assert_int_equal(descriptors(), before);
}

/* What a borrower has mapped may be all that the process can have: its owner is told, and goes on. */
static void an_owner_goes_on_where_there_are_no_more_descriptors(void **state)
{
	struct rig *r = *state;
	int fd = memfd_create("t", MFD_ALLOW_SEALING), next = dup(fd);
	struct rlimit limit, none;

	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){ .rlim_cur = (rlim_t)next, .rlim_max = limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(host_map(&r->h, 0, 0x1000, 4096, 3, fd), -EMFILE);
	assert_int_equal(ask(r, (struct slot_message){ .kind = SLOT_READ, .len = 4 }), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(host_map(&r->h, 0, 0x1000, 4096, 3, fd), 0);
	assert_int_equal(host_unmap(&r->h, 0, 0x1000, 4096), 0);
	close(fd);
}

static void descriptors_beside_nothing_are_closed(void **state)
{
	struct rig *r = *state;
	struct host other;
	int before, fd = memfd_create("t", 0);
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct msghdr msg = { .msg_control = room, .msg_controllen = sizeof(room) };
	struct cmsghdr *head = (struct cmsghdr *)room;

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	before = descriptors();
	rig_connect(r, &other);
	assert_int_equal(sendmsg(other.fd, &msg, MSG_NOSIGNAL), 0);
	rig_rounds(r, 5);
	host_close(&other);
	rig_rounds(r, 5);
	assert_int_equal(descriptors(), before);
	close(fd);
}

static void regions_are_pages_and_granules(void **state)
{
	struct rig *r = *state;
	static const struct {
		uint32_t index;
		uint64_t addr, len, value;
		int status;
	} bad[] = {
		{ 0, 0, 4096, 0, -EINVAL },
		{ 0, 0x1000, 8192, 0, -EINVAL },
		{ 0, 0x1001, 4096, 0, -EINVAL },
		{ 0, 0x1000 + 9 * 4096, 4096, 0, -ENOENT },
		{ 1, 0x1000, 4096, 0, -ENOENT },
		{ 2, 0, 4096, 0, -EINVAL },
		{ 2, 1 << 20, 64 << 10, 0, -ENOENT },
		{ 2, 0, 2 << 20, 0, -ENOENT },
		{ 2, 0, 0, 0, -EINVAL },
		{ 2, 64 << 10, UINT64_MAX & ~0xffffull, 0, -EINVAL },
		{ 2, 0, 64 << 10, 2, -EINVAL },
	};
	int fds[SLOT_FDS_MAX];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(ask(r, (struct slot_message){ .kind = SLOT_REGION,
							       .index = bad[i].index,
							       .addr = bad[i].addr,
							       .len = bad[i].len,
							       .value = bad[i].value }),
				 bad[i].status);
	struct slot_message m = { .kind = SLOT_REGION, .index = 2, .len = 1 << 20 };

	assert_int_equal(host_ask(&r->h, &m, NULL, 0, fds), 0);
	assert_int_equal(m.fd_cnt, 16);
	for (uint32_t i = 0; i < m.fd_cnt; i++) {
		assert_int_equal(ftruncate(fds[i], 0), -1); /* nobody resizes them */
		close(fds[i]);
	}
	m = (struct slot_message){ .kind = SLOT_REGION, .addr = 0x2000, .len = 4096 };
	assert_int_equal(host_ask(&r->h, &m, NULL, 0, fds), 0);
	assert_int_equal(m.fd_cnt, 2);
	assert_int_equal(ftruncate(fds[0], 0), -1);
	close(fds[0]);
	close(fds[1]);
}

static void the_registers_can_only_be_read(void **state)
{
	struct rig *r = *state;
	struct slot_message m = { .kind = SLOT_ATTACH };
	int fds[SLOT_FDS_MAX];

	host_close(&r->h);
	rig_rounds(r, 5);
	rig_connect(r, &r->h);
	assert_int_equal(host_ask(&r->h, &m, NULL, 0, fds), 0);
	assert_int_equal(m.offset, 8);
	assert_int_equal(m.addr, 1 << 20);
	assert_int_equal(m.len, 64 << 10);
	assert_true(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0) ==
		    MAP_FAILED);
	assert_int_equal(pwrite(fds[0], "x", 1, 0), -1);
	close(fds[0]);
}

static void there_is_one_owner_and_others_wait_outside(void **state)
{
	struct rig *r = *state;
	struct host others[12];
	struct slot_message m;

	for (int i = 0; i < 12; i++) {
		rig_connect(r, &others[i]);
		m = (struct slot_message){ .kind = SLOT_READ, .len = 4 };
		assert_int_equal(host_ask(&others[i], &m, NULL, 0, NULL), -EPERM);
		m = (struct slot_message){ .kind = SLOT_ATTACH };
		assert_int_equal(host_ask(&others[i], &m, NULL, 0, NULL), -EBUSY);
	}
	assert_int_equal(ask(r, (struct slot_message){ .kind = SLOT_READ, .len = 4 }), 0);
	for (int i = 0; i < 12; i++)
		host_close(&others[i]);
	assert_int_equal(send(r->h.fd, "x", 1, 0),
			 1); /* what is no message ends the connection */
	rig_rounds(r, 3);
	m = (struct slot_message){ .kind = SLOT_READ, .len = 4 };
	assert_int_equal(host_ask(&r->h, &m, NULL, 0, NULL), -EPIPE);
}

static void an_owner_that_takes_no_answers_is_let_go(void **state)
{
	struct rig *r = *state;
	struct slot_message m = { .version = SLOT_VERSION, .kind = SLOT_READ, .len = 4 };
	int sent = 0;

	for (int i = 0; i < 100000; i++) {
		ssize_t n = send(r->h.fd, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EPIPE)
			break;
		sent += n > 0;
		rig_rounds(r, 1);
	}
	assert_in_range(sent, 1, 99999);
	assert_int_equal(r->loop.slot.owner, -1);
}

static void a_new_owner_finds_what_was_left(void **state)
{
	struct rig *r = *state;
	struct host_pair q;
	struct nvme_sqe sqe;
	struct slot_message m;
	struct slot_doorbells *old;
	int fds[SLOT_FDS_MAX];
	uint64_t data, serial = r->h.attached.value;
	uint8_t *memory = r->h.memory;

	assert_int_equal(host_enable(&r->h, &r->admin, 16), 0);
	data = host_take(&r->h, NVME_PAGE);
	rig_pair(r, &q, 1, 16, 0);
	sqe = host_rw(&r->h, NVME_IO_READ, 0, 8, data, 4096);
	for (int i = 0; i < 20; i++)
		assert_int_equal(host_run(&q, &sqe, NULL), 0);
	/* The owner goes; the queue goes on. */
	close(r->h.fd);
	rig_rounds(r, 5);
	for (int i = 0; i < 20; i++)
		assert_int_equal(host_run(&q, &sqe, NULL), 0);
	close(r->h.memory_fd);
	r->h.memory_fd = -1;
	munmap((void *)(uintptr_t)r->h.registers, NVME_PAGE);
	rig_connect(r, &r->h);
	q.host = &r->h;
	m = (struct slot_message){ .kind = SLOT_ATTACH };
	assert_int_equal(host_ask(&r->h, &m, NULL, 0, fds), 0);
	assert_int_equal(m.value, serial);
	close(fds[0]);
	m = (struct slot_message){ .kind = SLOT_DOMAIN };
	assert_int_equal(host_ask(&r->h, &m, NULL, 0, fds), 0);
	assert_int_equal(m.addr, HOST_BASE);
	assert_int_equal(m.len, HOST_MEMORY_LEN);
	assert_int_equal(m.access, 3);
	close(fds[0]);
	m = (struct slot_message){ .kind = SLOT_QUEUE, .index = 1 };
	assert_int_equal(host_ask(&r->h, &m, NULL, 0, NULL), 0);
	assert_int_equal(m.addr, (40 % 16) | (uint64_t)(40 % 16) << 32);
	assert_int_equal(m.len & 0xffff, 40 % 16);
	assert_int_equal(m.len >> 32 & 0xffff, 40 % 16);
	assert_int_equal(m.len >> 63, 1 ^ (40 / 16 & 1));
	/* The page of the admin pair is another one, which begins where the old one ended. */
	old = r->admin.page;
	r->admin.host = &r->h;
	close(r->admin.kick);
	close(r->admin.page_fd);
	assert_int_equal(host_pair_page(&r->admin), 0);
	assert_int_equal(r->admin.page->sq_tail, r->admin.tail);
	sqe = (struct nvme_sqe){ .opcode = NVME_ADMIN_IDENTIFY, .cdw10 = 1, .prp1 = data };
	r->h.memory = memory;
	assert_int_equal(rig_admin(r, sqe, NULL), 0);
	old->sq_tail = 9;
	rig_rounds(r, 50);
	assert_int_equal(rig_admin(r, sqe, NULL), 0);
	munmap(old, sizeof(*old));
	host_pair_forget(&q);
}

static void pages_are_of_one_life_of_their_pair(void **state)
{
	struct rig *r = *state;
	struct host_pair first, second;
	struct nvme_sqe sqe;
	uint64_t data;

	assert_int_equal(host_enable(&r->h, &r->admin, 16), 0);
	data = host_take(&r->h, NVME_PAGE);
	rig_pair(r, &first, 1, 16, 0);
	sqe = host_rw(&r->h, NVME_IO_READ, 0, 8, data, 4096);
	assert_int_equal(host_run(&first, &sqe, NULL), 0);
	for (uint8_t op = NVME_ADMIN_DELETE_SQ; op <= NVME_ADMIN_DELETE_CQ; op += 4)
		assert_int_equal(
			rig_admin(r, (struct nvme_sqe){ .opcode = op, .cdw10 = 1 }, NULL), 0);
	rig_pair(r, &second, 1, 16, 0);
	first.page->sq_tail = 5;
	rig_rounds(r, 100);
	assert_int_equal(host_run(&second, &sqe, NULL), 0);
	assert_int_equal(second.sq_head, 1);
	host_pair_forget(&first);
	host_pair_forget(&second);
}

static void who_keeps_an_eventfd_wakes_nobody(void **state)
{
	struct rig *r = *state;
	struct epoll_event event;
	struct host_pair q;
	uint64_t one = 1;

	assert_int_equal(host_enable(&r->h, &r->admin, 16), 0);
	rig_pair(r, &q, 1, 16, 0);
	for (uint8_t op = NVME_ADMIN_DELETE_SQ; op <= NVME_ADMIN_DELETE_CQ; op += 4)
		assert_int_equal(
			rig_admin(r, (struct nvme_sqe){ .opcode = op, .cdw10 = 1 }, NULL), 0);
	while (epoll_wait(r->c->epoll, &event, 1, 0) > 0)
		;
	assert_int_equal(write(q.kick, &one, sizeof(one)), sizeof(one));
	assert_int_equal(epoll_wait(r->c->epoll, &event, 1, 0), 0);
	host_pair_forget(&q);
}

/* Nobody waits for the borrower that has filled it. */
static void a_full_vector_is_not_written(void **state)
{
	struct rig *r = *state;
	uint64_t full = UINT64_MAX - 1, count;
	int fd = eventfd(0, 0);
	struct slot_message m = { .kind = SLOT_VECTOR, .index = 1 };

	assert_int_equal(write(fd, &full, sizeof(full)), sizeof(full));
	assert_int_equal(host_ask(&r->h, &m, &fd, 1, NULL), 0);
	vector_fire(r->c, 1);
	/* It goes on once there is room. */
	assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
	vector_fire(r->c, 1);
	assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
	assert_int_equal(count, 1);
	close(fd);
}

static void a_socket_of_nobody_is_replaced(void **state)
{
	struct rig *r = *state;
	struct slot s, other;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char path[128];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	assert_int_equal(slot_open(&s, r->c, r->path), -EADDRINUSE);
	snprintf(path, sizeof(path), "%s/other", r->folder);
	strcpy(addr.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	assert_int_equal(slot_open(&s, r->c, path), 0);
	assert_int_equal(slot_open(&other, r->c, path), -EADDRINUSE);
	slot_close(&s);
	assert_int_equal(access(path, F_OK), -1);
	/* What is no socket stays. */
	fd = open(path, O_CREAT | O_RDWR, 0600);
	close(fd);
	assert_int_equal(slot_open(&s, r->c, path), -EADDRINUSE);
	assert_int_equal(unlink(path), 0);
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	assert_int_equal(slot_open(&s, r->c, path), -ENAMETOOLONG);
}

static void nothing_is_left_after_a_thousand_owners(void **state)
{
	struct rig *r = *state;
	int before = 0;

	for (int i = 0; i < 1000; i++) {
		struct host_pair q;

		assert_int_equal(host_enable(&r->h, &r->admin, 16), 0);
		rig_pair(r, &q, 1, 16, 0);
		host_pair_forget(&q);
		host_pair_forget(&r->admin);
		host_close(&r->h);
		rig_rounds(r, 3);
		rig_connect(r, &r->h);
		assert_int_equal(host_attach(&r->h), 0);
		if (i == 10)
			before = descriptors();
	}
	assert_int_equal(descriptors(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(messages_that_are_none_are_refused),
		TEST(descriptors_have_to_be_what_they_should),
		TEST(an_owner_goes_on_where_there_are_no_more_descriptors),
		TEST(descriptors_beside_nothing_are_closed),
		TEST(regions_are_pages_and_granules),
		TEST(the_registers_can_only_be_read),
		TEST(there_is_one_owner_and_others_wait_outside),
		TEST(an_owner_that_takes_no_answers_is_let_go),
		TEST(a_new_owner_finds_what_was_left),
		TEST(pages_are_of_one_life_of_their_pair),
		TEST(who_keeps_an_eventfd_wakes_nobody),
		TEST(a_full_vector_is_not_written),
		TEST(a_socket_of_nobody_is_replaced),
		TEST(nothing_is_left_after_a_thousand_owners),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
