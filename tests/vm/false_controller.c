/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * false_controller - a disk of kofi_blk whose keeper and controller are this program, and say what they must not
 *
 * Arguments that are wrong are refused. A controller that answers by another key is none; messages that are garbage
 * change nothing; a read succeeds by all of its data and by nothing else, at the second try where the controller was not
 * ready; one whose queue pair ends, or is said to be gone, is carried out by the next pair. Each wait ends after WAIT_S.
 */
#define _GNU_SOURCE
#include "kofi_blk.h"
#include "port.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RECEIVES 8u
#define SENDS	 64u
#define LEN_MAX	 10240u
#define BLOCK	 512u
#define BLOCKS	 2048u
#define DEPTH	 16u
#define READ_LEN 4096u
#define FILL	 0x5a
#define WAIT_S	 60

enum mode {
	HONEST,
	OTHER_KEY,    /* answers CONNECT, but by another key */
	SCRIBBLES,    /* garbage before each answer */
	WITHOUT_DATA, /* says that a read has succeeded, and moves nothing */
	SHORT,	      /* moves half of it */
	FAILS,
	ENDS,	/* does not answer a read: the session ends */
	ABORTS, /* answers that the read's queue is gone */
	LATER,	/* is not ready for the first read; another try may do */
};

static struct {
	struct port port;
	struct fid_ep *ep;
	struct fid_mr *mr;
	struct remote_place place;
	fi_addr_t peer;
	_Atomic enum mode mode;
	atomic_bool stop;
	uint8_t in[RECEIVES][LEN_MAX], out[SENDS][1024], data[READ_LEN * 32];
	struct fi_context2 in_contexts[RECEIVES], out_contexts[SENDS];
	uint32_t out_idx;
} c;

#define CHECK(what)                                                                \
	do {                                                                       \
		if (!(what))                                                       \
			errx(1, "line %d: %s does not hold (%s)", __LINE__, #what, \
			     strerror(errno));                                     \
	} while (0)

static void listen_with(uint32_t idx)
{
	CHECK(!fi_recv(c.ep, c.in[idx], LEN_MAX, port_desc(c.mr), FI_ADDR_UNSPEC,
		       &c.in_contexts[idx]));
}

static void say(const void *message, size_t len)
{
	uint32_t idx = c.out_idx++ % SENDS;
	ssize_t ret;

	memcpy(c.out[idx], message, len);
	do {
		ret = fi_send(c.ep, c.out[idx], len, port_desc(c.mr), c.peer,
			      &c.out_contexts[idx]);
		if (ret == -FI_EAGAIN)
			fi_cq_read(c.port.cq, NULL, 0);
	} while (ret == -FI_EAGAIN);
}

static struct remote_head head_of(uint16_t kind, uint32_t count)
{
	return (struct remote_head){ REMOTE_VERSION, kind, count, c.place.key };
}

static void complete(uint16_t cid, uint16_t status)
{
	struct remote_complete m = { .head = head_of(REMOTE_COMPLETE, 1) };

	m.entries[0] = (struct nvme_cqe){ .cid = cid, .status = (uint16_t)(status << 1) };
	say(&m, sizeof(m.head) + sizeof(m.entries[0]));
}

static void move(const struct nvme_sqe *sqe, size_t len, uint64_t data)
{
	ssize_t ret;

	do {
		ret = fi_writedata(c.ep, c.data, len, port_desc(c.mr), data, c.peer, sqe->prp1,
				   sqe->prp2, NULL);
		if (ret == -FI_EAGAIN)
			fi_cq_read(c.port.cq, NULL, 0);
	} while (ret == -FI_EAGAIN);
}

static void scribble(const struct nvme_sqe *sqe)
{
	struct remote_complete m = { .head = head_of(REMOTE_COMPLETE, REMOTE_COMPLETE_MAX + 1) };
	uint8_t longer[1000] = { 0 };
	uint32_t i;

	for (i = 0; i < REMOTE_COMPLETE_MAX; i++)
		m.entries[i].cid = (uint16_t)(i % 2 ? 0xffff : sqe->cid);
	say(&m, sizeof(m));
	m.head.count = 5;
	say(&m, sizeof(m.head) + sizeof(m.entries[0]));
	m.head.count = 0;
	say(&m, sizeof(m.head));
	say(&m, sizeof(m.head) - 1);
	say(&m, 1);
	m.head.count = 1;
	m.head.version++;
	say(&m, sizeof(m.head) + sizeof(m.entries[0]));
	m.head = head_of(REMOTE_COMPLETE, 1);
	m.head.key.half[1] ^= 1;
	say(&m, sizeof(m.head) + sizeof(m.entries[0]));
	m.head = head_of(99, 1);
	say(&m, sizeof(m.head) + sizeof(m.entries[0]));
	/* Commands that are not under way */
	for (i = DEPTH; i < 2048; i += 97)
		complete((uint16_t)i, 0);
	complete((uint16_t)((sqe->cid + 1) % DEPTH), 0);
	say(longer, sizeof(longer));
	move(sqe, 8, remote_data(&c.place, sqe->cid) ^ 1ull << 40);
	move(sqe, 8, 0);
}

static void complete_later(const struct nvme_sqe *sqe)
{
	complete(sqe->cid, NVME_SC_NOT_READY);
	c.mode = HONEST;
}

static void answer(const struct nvme_sqe *sqe)
{
	enum mode mode = c.mode;
	size_t len = remote_data_len(sqe, BLOCK);

	if (mode == SCRIBBLES)
		scribble(sqe);
	if (sqe->opcode != NVME_IO_READ || mode == WITHOUT_DATA)
		complete(sqe->cid, 0);
	else if (mode == FAILS)
		complete(sqe->cid, NVME_SC_READ_ERROR);
	else if (mode == LATER)
		complete_later(sqe);
	else if (mode == ABORTS)
		complete(sqe->cid, NVME_SC_ABORT_SQ_DELETED);
	else if (mode == ENDS)
		say(&(struct remote_head){ REMOTE_VERSION, REMOTE_END, 0, c.place.key },
		    sizeof(struct remote_head));
	else
		move(sqe, mode == SHORT ? len / 2 : len, remote_data(&c.place, sqe->cid));
}

static void take(const uint8_t *bytes, size_t len)
{
	struct remote_head head;
	struct remote_connect hello;
	struct nvme_sqe sqe;

	CHECK(len >= sizeof(head));
	memcpy(&head, bytes, sizeof(head));
	CHECK(head.version == REMOTE_VERSION && remote_key_same(&head.key, &c.place.key));
	if (head.kind == REMOTE_CONNECT) {
		CHECK(len == sizeof(hello));
		memcpy(&hello, bytes, sizeof(hello));
		CHECK(!port_peer(&c.port, hello.name, hello.name_len, &c.peer));
		head = head_of(REMOTE_CONNECTED, 0);
		head.key.half[0] ^= c.mode == OTHER_KEY;
		say(&head, sizeof(head));
	} else if (head.kind == REMOTE_SUBMIT) {
		CHECK(head.count == 1 && len >= sizeof(head) + sizeof(sqe));
		memcpy(&sqe, bytes + sizeof(head), sizeof(sqe));
		CHECK(sqe.cid < DEPTH && sqe.nsid == 1);
		answer(&sqe);
	}
}

static void *serve(void *arg)
{
	while (!c.stop) {
		struct fi_cq_data_entry e;
		struct fi_cq_err_entry bad = { 0 };
		ssize_t n = fi_cq_read(c.port.cq, &e, 1);
		uintptr_t at;

		/* Of a pair that is gone */
		if (n == -FI_EAVAIL) {
			fi_cq_readerr(c.port.cq, &bad, 0);
			continue;
		}
		if (n != 1) {
			sched_yield();
			continue;
		}
		at = (uintptr_t)e.op_context - (uintptr_t)c.in_contexts;
		if (at >= sizeof(c.in_contexts))
			continue;
		take(c.in[at / sizeof(c.in_contexts[0])], e.len);
		listen_with((uint32_t)(at / sizeof(c.in_contexts[0])));
	}
	return NULL;
}

static void open_controller(void)
{
	struct port_request request = { .provider = "tcp",
					.host = "127.0.0.1",
					.own = true,
					.rma = true,
					.len_max = 1 << 20,
					.cq_len = 1024 };
	struct iovec all = { &c, sizeof(c) };
	size_t len = sizeof(c.place.name);
	uint32_t i;

	CHECK(!port_open(&request, &c.port) && !port_ep_open(&c.port, &c.ep));
	if (c.port.mr_mode & FI_MR_LOCAL)
		CHECK(!port_mr_open(&c.port, c.ep, &all, FI_SEND | FI_RECV | FI_WRITE, &c.mr));
	c.place = (struct remote_place){ .version = REMOTE_VERSION,
					 .data_len = 8,
					 .key = { { 0x0123456789abcdef, 0xfedcba9876543210 } },
					 .data_key = 0x1122334455667788,
					 .depth = DEPTH,
					 .message_max = 9728,
					 .inline_max = 8192,
					 .provider = "tcp" };
	CHECK(!port_ep_name(c.ep, c.place.name, &len));
	c.place.name_len = (uint32_t)len;
	memset(c.data, FILL, sizeof(c.data));
	for (i = 0; i < RECEIVES; i++)
		listen_with(i);
}

static struct kofi_blk_add good_add(void)
{
	return (struct kofi_blk_add){ .version = KOFI_BLK_VERSION,
				      .nsid = 1,
				      .blocks = BLOCKS,
				      .block_size = BLOCK,
				      .depth = DEPTH,
				      .fail_ms = WAIT_S * 1000 };
}

static struct kofi_blk_pair good_pair(void)
{
	return (struct kofi_blk_pair){ .place = c.place, .peer = "127.0.0.1" };
}

static int fails(int fd, unsigned long command, void *arg, int error)
{
	int ret = ioctl(fd, command, arg);

	if (ret != -1 || errno != error)
		warnx("%d, %s; expected: %s", ret, strerror(errno), strerror(error));
	return ret == -1 && errno == error;
}

#define BAD_ADD(change)                                       \
	do {                                                  \
		struct kofi_blk_add add = good_add();         \
		add.change;                                   \
		CHECK(fails(fd, KOFI_BLK_ADD, &add, EINVAL)); \
	} while (0)

#define BAD_PAIR(change, error)                                \
	do {                                                   \
		struct kofi_blk_pair pair = good_pair();       \
		pair.change;                                   \
		CHECK(fails(fd, KOFI_BLK_PAIR, &pair, error)); \
	} while (0)

static void bad_disks(int fd)
{
	BAD_ADD(version = 0);
	BAD_ADD(nsid = 0);
	BAD_ADD(blocks = 0);
	BAD_ADD(blocks = UINT64_MAX / BLOCK);
	BAD_ADD(block_size = 0);
	BAD_ADD(block_size = 256);
	BAD_ADD(block_size = 520);
	BAD_ADD(block_size = 8192);
	BAD_ADD(transfer_max = 100);
	BAD_ADD(transfer_max = 512);
	BAD_ADD(depth = 0);
	BAD_ADD(depth = KOFI_BLK_DEPTH_MAX + 1);
	BAD_ADD(features = 1 << 30);
	BAD_ADD(fail_ms = KOFI_BLK_FAIL_MAX + 1);
	BAD_ADD(rsvd40 = 1);
	CHECK(fails(fd, KOFI_BLK_ADD, NULL, EFAULT));
	CHECK(fails(fd, KOFI_BLK_REMOVE, NULL, ENODEV));
	CHECK(fails(fd, _IO('W', 0x6f), NULL, ENOTTY));
	BAD_PAIR(place.rsvd44 = 0, ENODEV);
}

static void bad_places(int fd)
{
	struct kofi_blk_add add = good_add();

	CHECK(fails(fd, KOFI_BLK_ADD, &add, EBUSY));
	CHECK(fails(fd, KOFI_BLK_PAIR, NULL, EFAULT));
	BAD_PAIR(place.version++, EINVAL);
	BAD_PAIR(place.data_len = 0, EINVAL);
	BAD_PAIR(place.data_len = 3, EINVAL);
	BAD_PAIR(place.name_len = 0, EINVAL);
	BAD_PAIR(place.name_len++, EINVAL);
	BAD_PAIR(place.name_len = REMOTE_NAME_MAX + 1, EINVAL);
	BAD_PAIR(place.depth = 0, EINVAL);
	BAD_PAIR(place.depth = DEPTH - 1, ENOSPC);
	BAD_PAIR(place.message_max = 64, EINVAL);
	BAD_PAIR(place.message_max = UINT32_MAX, EINVAL);
	BAD_PAIR(place.inline_max = 0, EINVAL);
	BAD_PAIR(place.inline_max = UINT32_MAX, EINVAL);
	BAD_PAIR(place.provider[0] = 'x', EOPNOTSUPP);
	do {
		struct kofi_blk_pair pair = good_pair();

		memset(pair.place.provider, 'x', sizeof(pair.place.provider));
		CHECK(fails(fd, KOFI_BLK_PAIR, &pair, EINVAL));
		pair = good_pair();
		memset(pair.peer, '1', sizeof(pair.peer));
		CHECK(fails(fd, KOFI_BLK_PAIR, &pair, EINVAL));
	} while (0);
	c.mode = OTHER_KEY;
	BAD_PAIR(place.rsvd44 = 0, ETIMEDOUT);
	c.mode = HONEST;
}

/* A read by a controller of that mode: 0, or its errno */
static int read_by(int disk, enum mode mode)
{
	uint8_t *mem = aligned_alloc(READ_LEN, READ_LEN);
	static off_t at;
	size_t i;
	int ret;

	CHECK(mem);
	c.mode = mode;
	at += READ_LEN;
	memset(mem, 0, READ_LEN);
	ret = pread(disk, mem, READ_LEN, at) == READ_LEN ? 0 : errno;
	for (i = 0; !ret && i < READ_LEN; i++)
		CHECK(mem[i] == FILL);
	free(mem);
	return ret;
}

struct read {
	int disk;
	enum mode mode;
};

static void *read_by_next_pair(void *arg)
{
	const struct read *read = arg;

	CHECK(!read_by(read->disk, read->mode));
	return NULL;
}

static void pair_ends(int fd, int disk, enum mode mode)
{
	struct kofi_blk_pair pair = good_pair();
	struct pollfd on = { .fd = fd, .events = POLLIN };
	struct read read = { disk, mode };
	pthread_t reader;

	CHECK(fails(fd, KOFI_BLK_PAIR, &pair, EBUSY));
	CHECK(!poll(&on, 1, 0));
	CHECK(!pthread_create(&reader, NULL, read_by_next_pair, &read));
	CHECK(poll(&on, 1, WAIT_S * 1000) == 1 && on.revents == POLLIN);
	c.mode = HONEST;
	CHECK(!ioctl(fd, KOFI_BLK_PAIR, &pair));
	CHECK(!pthread_join(reader, NULL));
	CHECK(!read_by(disk, HONEST));
}

static void other_users(void)
{
	int status;
	pid_t child;

	CHECK(!chmod(KOFI_BLK_FILE, 0666));
	child = fork();
	if (!child) {
		CHECK(!setuid(1000));
		_exit(open(KOFI_BLK_FILE, O_RDWR) >= 0 || errno != EPERM);
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
	CHECK(!chmod(KOFI_BLK_FILE, 0600));
}

int main(void)
{
	struct kofi_blk_add add = good_add();
	struct kofi_blk_pair pair;
	pthread_t server;
	char name[32];
	int fd, disk;

	other_users();
	fd = open(KOFI_BLK_FILE, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	open_controller();
	CHECK(!pthread_create(&server, NULL, serve, NULL));
	bad_disks(fd);
	CHECK(!ioctl(fd, KOFI_BLK_ADD, &add));
	bad_places(fd);
	pair = good_pair();
	CHECK(!ioctl(fd, KOFI_BLK_PAIR, &pair));
	snprintf(name, sizeof(name), "/dev/kofiblk%u", add.number);
	disk = open(name, O_RDWR | O_DIRECT | O_CLOEXEC);
	CHECK(disk >= 0);
	CHECK(!read_by(disk, HONEST));
	CHECK(!read_by(disk, SCRIBBLES));
	CHECK(read_by(disk, WITHOUT_DATA) == EIO);
	CHECK(read_by(disk, SHORT) == EIO);
	CHECK(read_by(disk, FAILS) == ENODATA);
	CHECK(!read_by(disk, LATER));
	pair_ends(fd, disk, ENDS);
	pair_ends(fd, disk, ABORTS);
	CHECK(fails(fd, KOFI_BLK_REMOVE, NULL, EBUSY));
	close(disk);
	CHECK(!ioctl(fd, KOFI_BLK_REMOVE));
	c.stop = true;
	CHECK(!pthread_join(server, NULL));
	printf("a disk and its controller: done\n");
	return 0;
}
