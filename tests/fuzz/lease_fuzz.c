/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: what a borrower says to a lender, with descriptors of every kind beside it. The lender is a real one over a
 * model of a controller. Requests begin as an honest borrower would make them and are changed byte by byte; they are all in
 * the socket before the session begins.
 *
 * Checked: nothing crashes or hangs, each answer is one to a request that was made and has what it says it has, and no
 * lease, window or descriptor is left when the session has ended.
 */
#define _GNU_SOURCE
#include "session_rig.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <weft/nvme.h>

#include "exports.h"
#include "fuzz.h"
#include "input.h"
#include "watch.h"

#define LEN	     (64u << 10)
#define REQUESTS_MAX 24u

enum file_kind { SEALED, READ_ONLY, UNSEALED, SHORT, EVENT, FILES };

static int files[FILES];

/* Leases that there are, as an honest borrower would know them; a session's first is of a number known before. */
static struct lease_message lease;

static void begin_files(void)
{
	files[SEALED] = rig_memory(LEN, F_SEAL_SHRINK);
	files[READ_ONLY] = rig_memory(LEN, F_SEAL_SHRINK | F_SEAL_WRITE);
	files[UNSEALED] = rig_memory(LEN, 0);
	files[SHORT] = rig_memory(100, F_SEAL_SHRINK);
	files[EVENT] = eventfd(0, EFD_CLOEXEC);
	MUST(files[EVENT] >= 0);
}

static uint64_t some_addr(void)
{
	uint8_t how = input_byte();

	return how & 0x80 ? input_long() : (1ULL << 32) + (how & 0x0fu) * 0x1000u;
}

/* What a kind of request has beside the lease. Returns how many descriptors go along */
static uint32_t details(struct lease_message *m)
{
	switch (m->kind) {
	case LEASE_LIST:
		m->index = input_byte() % 2;
		break;
	case LEASE_BORROW:
		m->device = 0;
		m->flags = input_byte() % 8;
		m->ms = input_byte() * 100u;
		break;
	case LEASE_RENEW:
		m->ms = input_byte() * 100u;
		break;
	case LEASE_WINDOW:
		m->flags = 1 + input_byte() % 3;
		m->offset = input_byte() % 2 * 0x1000u;
		m->len = (1 + input_byte() % 16) * 0x1000u;
		return 1 + (input_byte() & 0x80 ? input_byte() % PACKET_FDS_MAX : 0);
	case LEASE_UNWINDOW:
		m->addr = some_addr();
		m->len = (1 + input_byte() % 16) * 0x1000u;
		break;
	case LEASE_QUEUES:
		m->addr = some_addr();
		m->offset = some_addr();
		m->count = 1 + input_byte();
		m->flags = input_byte() & 1 ? WEFT_NVME_BLOCKING : 0;
		return m->flags ? 1 : 0;
	case LEASE_UNQUEUES:
		m->index = input_byte() % 9;
		break;
	case LEASE_MEMORY:
		m->len = (1 + input_byte() % 8) * 0x1000u;
		break;
	case LEASE_UNMEMORY:
		m->index = input_byte() % 16;
		m->count = input_byte() % 16;
		break;
	case LEASE_ADMIN:
		m->offset = 6 | (uint64_t)(input_byte() % 3) << 32;
		m->addr = input_byte() % 4;
		break;
	case LEASE_EXPORT:
		m->len = (1 + input_byte() % 16) * 0x1000u;
		m->flags = input_byte() & 1;
		return 1 + input_byte() % 2;
	case LEASE_UNEXPORT:
	case LEASE_IMPORT:
		m->device = RIG_NODE;
		m->index = input_byte() % 4;
		m->generation = input_byte() % 4;
		break;
	}
	return 0;
}

static void send_one(int fd, uint32_t seq)
{
	static const char name[] = "nvme-";
	struct lease_message m = lease;
	struct iovec iov[2] = { { &m, sizeof(m) }, { (void *)name, 0 } };
	int beside[PACKET_FDS_MAX];
	uint32_t cnt, i;

	m.version = LEASE_VERSION;
	m.kind = (uint16_t)(1 + input_byte() % (LEASE_KINDS - 1));
	m.seq = seq;
	cnt = details(&m);
	if (m.kind == LEASE_BORROW)
		iov[1].iov_len = m.data_len = input_byte() % 6;
	for (i = 0; i < cnt; i++)
		beside[i] = files[input_byte() % 4 ? (m.kind == LEASE_QUEUES ? EVENT : SEALED)
						   : input_byte() % FILES];
	m.fd_cnt = cnt;
	if (input_byte() & 1)
		((uint8_t *)&m)[input_byte() % sizeof(m)] ^= input_byte();
	if (input_byte() > 250)
		iov[0].iov_len = input_byte() % sizeof(m);
	packet_send(fd, iov, 2, beside, cnt);
}

static void take_answers(int fd)
{
	static struct rig_answer a;
	struct iovec iov[2] = { { &a.msg, sizeof(a.msg) }, { a.data, sizeof(a.data) } };
	ssize_t n;

	while ((n = packet_recv(fd, iov, 2, a.fds, &a.fd_cnt, 0)) > 0) {
		MUST(n == (ssize_t)(sizeof(a.msg) + a.msg.data_len));
		MUST(a.msg.version == LEASE_VERSION && a.msg.status <= 0);
		MUST(a.msg.fd_cnt == a.fd_cnt && (!a.msg.status || !a.fd_cnt));
		packet_close_fds(a.fds, a.fd_cnt);
	}
}

/* A lease that is kept, which the input knows of. */
static void borrow_kept(void)
{
	struct lent_borrower by = { 1, 0 };
	struct lent_lease l;
	struct weft_device_info info;

	lent_info(rig.lents[0], &info);
	MUST(!lent_borrow(rig.lents[0], &by, LEASE_SHARED | LEASE_KEPT, 60000, &l));
	lease = (struct lease_message){ .device = info.id,
					.lease = l.lease,
					.generation = l.generation,
					.token = l.token };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	int fds[2], room = 4 << 20;
	uint32_t seq;

	if (!files[SEALED])
		begin_files();
	MUST(!rig_setup(NULL));
	borrow_kept();
	input_begin(data, len);
	rig.creds.uid += input_byte() & 1;
	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	MUST(!packet_limit(fds[0]) && !packet_limit(fds[1]));
	for (seq = 1; input_left() && seq <= REQUESTS_MAX; seq++)
		send_one(fds[0], seq);
	shutdown(fds[0], SHUT_WR);
	session_serve(&rig.lender, fds[1]);
	take_answers(fds[0]);
	close(fds[0]);
	/* Descriptors are counted. */
	MUST(!rig_teardown(NULL));
	return 0;
}
