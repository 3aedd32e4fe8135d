/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * hostile_lender LENDER CASE - what a borrower says to a lender and must not
 *
 * Each request has the error that devices/lender/lent.h and weft/device.h name, or ends the connection.
 * hostile_test.py looks at who is beside it, and at the lender's log.
 */
#define _GNU_SOURCE
#include "raw.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/nvme.h>

#define LEN (4 * NVME_PAGE)

static const char *path;

static void answers(struct raw *r, const char *what, struct lease_message msg, int want)
{
	raw_is(what, raw_ask(r, &msg, NULL, NULL), want);
}

static void still_borrows(void)
{
	struct raw r = raw_pair(path);
	struct nvme_sqe sqe = raw_read(&r, 8);

	raw_is("a read", raw_do(&r, &sqe), 0);
	close(r.fd);
}

/* Requests about a lease, each with a name that is not its own. */
static void forged_names(void)
{
	static const uint16_t kinds[] = { LEASE_RENEW,	  LEASE_SHARE,	LEASE_RETURN,
					  LEASE_ATTACH,	  LEASE_WINDOW, LEASE_UNWINDOW,
					  LEASE_UNQUEUES, LEASE_QUEUES, LEASE_MEMORY,
					  LEASE_UNMEMORY };
	struct raw other = raw_pair(path), r = raw_pair(path);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct lease_message right = raw_named(&other, kinds[i]), msg;
		int fd = kinds[i] == LEASE_WINDOW ? r.memory : -1;

		right.ms = 1000;
		right.len = LEN;
		right.addr = other.addr;
		right.index = other.qid;
		right.count = RAW_ENTRIES;
		right.flags = kinds[i] == LEASE_WINDOW ? WEFT_WINDOW_RW : 0;
		right.fd_cnt = fd >= 0;
		msg = right, msg.token.low ^= 1;
		raw_is("another token", raw_ask(&r, &msg, NULL, &fd), -EACCES);
		msg = right, msg.token = (struct lease_token){ 0 };
		raw_is("no token", raw_ask(&r, &msg, NULL, &fd), -EACCES);
		msg = right, msg.token = r.token;
		raw_is("one's own token", raw_ask(&r, &msg, NULL, &fd), -EACCES);
		msg = right, msg.generation++;
		raw_is("the next generation", raw_ask(&r, &msg, NULL, &fd), -ESTALE);
		msg = right, msg.generation = 0;
		raw_is("no generation", raw_ask(&r, &msg, NULL, &fd), -ESTALE);
		msg = right, msg.lease = 0;
		raw_is("lease 0", raw_ask(&r, &msg, NULL, &fd), -ESTALE);
		msg = right, msg.lease = UINT32_MAX;
		raw_is("the last lease there is", raw_ask(&r, &msg, NULL, &fd), -ESTALE);
		msg = right, msg.device ^= 1;
		raw_is("another device", raw_ask(&r, &msg, NULL, &fd), -ENODEV);
	}
	still_borrows();
	answers(&other, "the other one's renewal",
		(struct lease_message){ .kind = LEASE_RENEW,
					.device = other.device,
					.lease = other.lease,
					.generation = other.generation,
					.token = other.token,
					.ms = 1000 },
		0);
}

/* What is another's, by a lease that is one's own. */
static void foreign_things(void)
{
	struct raw other = raw_pair(path), r = raw_pair(path);
	struct lease_message msg = raw_named(&r, LEASE_UNQUEUES);
	struct nvme_sqe sqe = raw_read(&r, 8);
	uint64_t addr;

	msg.index = other.qid;
	answers(&r, "another's queue pair", msg, -ENOENT);
	msg.index = 0;
	answers(&r, "the admin queue pair", msg, -ENOENT);
	msg.index = 65536 + r.qid;
	answers(&r, "a queue pair above all", msg, -ENOENT);
	/* A window that is behind all of its own */
	for (int i = 0; i < 4; i++)
		raw_is("a window", raw_window(&other, other.memory, WEFT_WINDOW_RW, LEN, &addr),
		       0);
	msg = raw_named(&r, LEASE_UNWINDOW);
	msg.addr = addr;
	msg.len = LEN;
	answers(&r, "another's window", msg, -ENOENT);
	sqe.prp1 = addr;
	raw_is("data in another's window", raw_do(&r, &sqe), NVME_SC_DATA_TRANSFER);
	msg = raw_named(&r, LEASE_QUEUES);
	msg.count = RAW_ENTRIES;
	msg.addr = addr;
	msg.offset = raw_page(&r, RAW_DATA);
	answers(&r, "a queue in another's window", msg, -EINVAL);
	msg.addr = raw_page(&r, RAW_DATA) + 64;
	answers(&r, "a queue inside a page", msg, -EINVAL);
	msg.addr = raw_page(&r, RAW_DATA);
	msg.count = 65536;
	answers(&r, "a queue of more entries than there are", msg, -EINVAL);
	msg.count = 1;
	answers(&r, "a queue of one entry", msg, -EINVAL);
	sqe = raw_read(&other, 8);
	raw_is("the other one's read", raw_do(&other, &sqe), 0);
	sqe = raw_read(&r, 8);
	raw_is("its own", raw_do(&r, &sqe), 0);
}

static void admin_commands(void)
{
	static const uint8_t opcodes[] = { NVME_ADMIN_DELETE_SQ,
					   NVME_ADMIN_CREATE_SQ,
					   NVME_ADMIN_DELETE_CQ,
					   NVME_ADMIN_CREATE_CQ,
					   NVME_ADMIN_ABORT,
					   NVME_ADMIN_SET_FEATURES,
					   NVME_ADMIN_ASYNC_EVENT,
					   0x10,
					   0x80,
					   0x84,
					   0xc0,
					   0xc4,
					   0xff };
	struct raw r = raw_pair(path);
	struct lease_message msg = { .kind = LEASE_ADMIN, .device = r.device };

	for (size_t i = 0; i < sizeof(opcodes); i++) {
		msg.offset = opcodes[i];
		msg.addr = r.qid;
		answers(&r, "an admin command", msg, -EPERM);
	}
	msg.offset = NVME_ADMIN_GET_LOG_PAGE;
	msg.addr = 0xc0 | 7u << 16;
	answers(&r, "the log of leases", msg, -EPERM);
	msg.addr = 0x02 | 0xfffu << 16;
	answers(&r, "more of a log than a page", msg, -EPERM);
	still_borrows();
}

static void stale_addresses(void)
{
	struct raw r = raw_connect(path);
	struct lease_message hello = { .kind = LEASE_HELLO }, msg, export;
	int fd = raw_memory(LEN, F_SEAL_SHRINK);

	raw_is("a greeting", raw_ask(&r, &hello, NULL, NULL), 0);
	export = (struct lease_message){ .kind = LEASE_EXPORT, .len = LEN, .fd_cnt = 1 };
	raw_is("an address", raw_ask(&r, &export, NULL, &fd), 0);
	msg = (struct lease_message){ .kind = LEASE_IMPORT,
				      .device = hello.device,
				      .index = export.index,
				      .generation = export.generation };
	answers(&r, "the segment", msg, 0);
	msg.generation++;
	answers(&r, "the next generation", msg, -ESTALE);
	msg.generation = 0;
	answers(&r, "no generation", msg, -ESTALE);
	msg.generation = export.generation;
	msg.index = UINT32_MAX;
	answers(&r, "a segment above all", msg, -ESTALE);
	msg.index = export.index;
	msg.device++;
	answers(&r, "another node", msg, -EHOSTUNREACH);
	msg = (struct lease_message){ .kind = LEASE_UNEXPORT,
				      .index = export.index,
				      .generation = export.generation + 1 };
	must(raw_ask(&r, &msg, NULL, NULL) < 0, "the next generation is taken back");
	struct raw thief = raw_connect(path);

	msg.generation--;
	must(raw_ask(&thief, &msg, NULL, NULL) < 0, "another's segment is taken back");
	raw_is("its own", raw_ask(&r, &msg, NULL, NULL), 0);
	msg.kind = LEASE_IMPORT;
	msg.device = hello.device;
	answers(&r, "one that is gone", msg, -ESTALE);
}

/* @what: a file that a device is to access and can't rely on */
static void refused(struct raw *r, const char *what, int fd)
{
	uint64_t addr;

	must(fd >= 0, "%s: %s", what, strerror(errno));
	raw_is(what, raw_window(r, fd, WEFT_WINDOW_RW, LEN, &addr), -EBADF);
	close(fd);
}

static void files_of_no_use(void)
{
	struct raw r = raw_pair(path);
	char name[] = "/tmp/weft-hostile-XXXXXX";
	int fd = raw_memory(LEN, F_SEAL_SHRINK), pipes[2];
	uint64_t addr;

	/* One that was sealed stays as long as it is, whatever its owner does. */
	raw_is("a window", raw_window(&r, fd, WEFT_WINDOW_RW, LEN, &addr), 0);
	must(ftruncate(fd, 0) && errno == EPERM, "a sealed file gets shorter");
	must(!ftruncate(fd, 2 * LEN), "it does not get longer");
	close(fd);
	refused(&r, "a memfd without seals", raw_memory(LEN, 0));
	refused(&r, "one that may not grow, but shrink", raw_memory(LEN, F_SEAL_GROW));
	refused(&r, "a short one", raw_memory(LEN - NVME_PAGE, F_SEAL_SHRINK));
	refused(&r, "an empty one", raw_memory(0, F_SEAL_SHRINK));
	refused(&r, "one that nobody may write to",
		raw_memory(LEN, F_SEAL_SHRINK | F_SEAL_WRITE));
	refused(&r, "a device", open("/dev/zero", O_RDWR));
	fd = mkstemp(name);
	unlink(name);
	refused(&r, "a file of a disk", fd);
	must(!pipe(pipes), "a pipe");
	refused(&r, "a pipe", pipes[0]);
	refused(&r, "an eventfd", eventfd(0, 0));
	refused(&r, "a socket", socket(AF_UNIX, SOCK_STREAM, 0));
	fd = raw_memory(LEN, F_SEAL_SHRINK);
	raw_is("no access", raw_window(&r, fd, 0, LEN, &addr), -EINVAL);
	raw_is("access that there is not", raw_window(&r, fd, 7, LEN, &addr), -EINVAL);
	raw_is("no length", raw_window(&r, fd, WEFT_WINDOW_RW, 0, &addr), -EINVAL);
	raw_is("half a page", raw_window(&r, fd, WEFT_WINDOW_RW, 2048, &addr), -EINVAL);
	raw_is("all there is", raw_window(&r, fd, WEFT_WINDOW_RW, ~0ull << 12, &addr), -EINVAL);
	still_borrows();
}

static void floods(void)
{
	struct raw r = raw_pair(path), many[64];
	struct lease_message msg = raw_named(&r, LEASE_WINDOW);
	int fds[PACKET_FDS_MAX], fd = raw_memory(LEN, F_SEAL_SHRINK), status = 0;
	uint32_t i;
	uint64_t addr;

	for (i = 0; i < PACKET_FDS_MAX; i++)
		fds[i] = fd;
	msg.flags = WEFT_WINDOW_RW;
	msg.len = LEN;
	msg.fd_cnt = PACKET_FDS_MAX;
	raw_is("descriptors", raw_ask(&r, &msg, NULL, fds), -EINVAL);
	msg = raw_named(&r, LEASE_QUEUES);
	msg.count = RAW_ENTRIES;
	msg.addr = raw_page(&r, RAW_DATA);
	msg.offset = raw_page(&r, RAW_DATA + 1);
	msg.fd_cnt = PACKET_FDS_MAX;
	raw_is("descriptors for a queue", raw_ask(&r, &msg, NULL, fds), -EINVAL);
	for (i = 0; !status && i < 100000; i++)
		status = raw_window(&r, fd, WEFT_WINDOW_RW, LEN, &addr);
	raw_is("windows", status, -ENOSPC);
	for (status = i = 0; !status && i < 1000; i++) {
		msg = raw_named(&r, LEASE_QUEUES);
		msg.count = 16;
		msg.addr = raw_page(&r, RAW_DATA + 2 * i);
		msg.offset = raw_page(&r, RAW_DATA + 2 * i + 1);
		status = raw_ask(&r, &msg, NULL, NULL);
	}
	raw_is("queue pairs", status, -ENOSPC);
	/* Descriptors beside what has none, by many who end so. */
	for (i = 0; i < sizeof(many) / sizeof(many[0]); i++)
		many[i] = raw_connect(path);
	msg = (struct lease_message){ .version = LEASE_VERSION,
				      .kind = LEASE_HELLO,
				      .fd_cnt = 64 };
	for (i = 0; i < sizeof(many) / sizeof(many[0]); i++) {
		raw_send(&many[i], &msg, sizeof(msg), fds, PACKET_FDS_MAX);
		raw_ended(&many[i]);
	}
	close(r.fd);
}

static void half_messages(void)
{
	struct lease_message hello = { .version = LEASE_VERSION, .kind = LEASE_HELLO }, msg;
	uint8_t bytes[sizeof(msg) + LEASE_DATA_MAX + 1] = { 0 };
	struct raw r;
	size_t len;

	for (len = 0; len < sizeof(bytes); len += len < sizeof(msg) ? 11 : 1001) {
		memcpy(bytes, &hello, sizeof(hello));
		r = raw_connect(path);
		/* Version and kind are there from 4 bytes on, and the rest is not. */
		if (len != sizeof(msg)) {
			raw_send(&r, bytes, len, NULL, 0);
			raw_ended(&r);
		}
	}
	/* More than there are lines for */
	for (uint32_t i = 0; i < 300; i++) {
		msg = hello;
		msg.data_len = i % 5 == 0;
		msg.fd_cnt = i % 5 == 1;
		msg.kind = i % 5 == 2 ? 0 : i % 5 == 3 ? LEASE_KINDS : LEASE_HELLO;
		msg.rsvd44 = i % 5 == 4;
		r = raw_connect(path);
		raw_send(&r, &msg, sizeof(msg), NULL, 0);
		raw_ended(&r);
	}
	still_borrows();
}

/* One whose messages have another layout: they had 88 bytes before tokens of 128 bits. */
static void old_version(void)
{
	struct lease_message hello = { .version = LEASE_VERSION - 1, .kind = LEASE_HELLO };
	struct raw r = raw_connect(path);

	raw_send(&r, &hello, 88, NULL, 0);
	raw_ended(&r);
	still_borrows();
}

/* One who asks and takes no answers, and one who watches and takes no events. */
static void never_reads(void)
{
	struct raw watcher = raw_connect(path), r = raw_connect(path);
	struct lease_message msg = { .version = LEASE_VERSION, .kind = LEASE_WATCH };
	int err = 0;

	raw_send(&watcher, &msg, sizeof(msg), NULL, 0);
	msg.kind = LEASE_LIST;
	while (!err)
		err = raw_send(&r, &msg, sizeof(msg), NULL, 0);
	must(err == -ETIMEDOUT || err == -EPIPE, "sending: %s", strerror(-err));
	for (int i = 0; i < 20; i++)
		still_borrows();
	raw_ended(&r);
}

/* Windows until there is no room for more. Returns how many */
static uint32_t fill(struct raw *r, const int *fds, uint32_t fd_cnt, uint64_t len)
{
	struct lease_message msg = raw_named(r, LEASE_WINDOW);
	uint32_t cnt = 0;
	int err;

	msg.flags = WEFT_WINDOW_READ;
	msg.len = len;
	msg.fd_cnt = fd_cnt;
	for (;;) {
		struct lease_message next = msg;

		err = raw_ask(r, &next, NULL, fds);
		if (err)
			break;
		cnt++;
	}
	raw_is("a window more", err, -ENOSPC);
	return cnt;
}

/* All descriptors of the controller, and all of its addresses, in as many leases as that takes: others have a window each. */
static void everything(void)
{
	struct raw r[3], beside;
	int fds[SLOT_FDS_MAX], fd;
	uint64_t addr;

	for (uint32_t i = 0; i < SLOT_FDS_MAX; i++)
		fds[i] = raw_memory(NVME_PAGE, F_SEAL_SHRINK);
	for (uint32_t i = 0; i < 2; i++) {
		r[i] = raw_connect(path);
		raw_borrow(&r[i]);
		fill(&r[i], fds, SLOT_FDS_MAX, NVME_PAGE);
		fill(&r[i], fds, 1, NVME_PAGE);
		still_borrows();
	}
	r[2] = raw_connect(path);
	raw_borrow(&r[2]);
	for (unsigned shift = 46; shift > 30; shift -= 5) {
		fd = raw_memory(1ULL << shift, F_SEAL_SHRINK);
		fill(&r[2], &fd, 1, 1ULL << shift);
		close(fd);
	}
	beside = raw_connect(path);
	raw_borrow(&beside);
	raw_is("a window beside them",
	       raw_window(&beside, fds[0], WEFT_WINDOW_RW, NVME_PAGE, &addr), 0);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "forged_names", forged_names },	{ "foreign_things", foreign_things },
	{ "admin_commands", admin_commands },	{ "stale_addresses", stale_addresses },
	{ "files_of_no_use", files_of_no_use }, { "floods", floods },
	{ "half_messages", half_messages },	{ "never_reads", never_reads },
	{ "old_version", old_version },		{ "everything", everything },
};

int main(int argc, char **argv)
{
	size_t i;

	if (argc != 3)
		return 2;
	path = argv[1];
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, argv[2])) {
			cases[i].run();
			raw_done();
			return 0;
		}
	return 2;
}
