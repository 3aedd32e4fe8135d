/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A borrower without the library; raw.h has the contract. */
#define _GNU_SOURCE
#include "raw.h"
#include "fence.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <weft/device.h>

#define WAIT_MS 20000

void raw_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

void raw_is(const char *what, int is, int want)
{
	must(is == want, "%s: %d, not %d", what, is, want);
}

void raw_done(void)
{
	char byte;

	printf("done\n");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
}

struct raw raw_connect(const char *path)
{
	struct raw r = { .fd = packet_connect(path), .memory = -1, .kick = -1, .phase = 1 };

	must(r.fd >= 0, "no connection: %s", strerror(-r.fd));
	return r;
}

int raw_send(struct raw *r, const void *bytes, size_t len, const int *fds, uint32_t fd_cnt)
{
	struct iovec iov = { (void *)(uintptr_t)bytes, len };

	return packet_send(r->fd, &iov, 1, fds, fd_cnt);
}

void raw_ended(struct raw *r)
{
	uint8_t bytes[sizeof(struct lease_message) + LEASE_DATA_MAX];
	struct iovec iov = { bytes, sizeof(bytes) };
	ssize_t n;

	while ((n = packet_recv(r->fd, &iov, 1, r->got, &r->got_cnt, WAIT_MS)) > 0)
		packet_close_fds(r->got, r->got_cnt);
	must(!n, "the connection goes on: %s", strerror((int)-n));
	close(r->fd);
}

int raw_ask(struct raw *r, struct lease_message *msg, void *data, const int *fds)
{
	uint8_t none[LEASE_DATA_MAX];
	struct iovec iov[2] = { { msg, sizeof(*msg) }, { data ? data : none, msg->data_len } };
	int err;
	ssize_t n;

	packet_close_fds(r->got, r->got_cnt);
	msg->version = LEASE_VERSION;
	msg->seq = ++r->seq;
	err = packet_send(r->fd, iov, 2, fds, msg->fd_cnt);
	must(!err, "sending: %s", strerror(-err));
	iov[1].iov_len = LEASE_DATA_MAX;
	n = packet_recv(r->fd, iov, 2, r->got, &r->got_cnt, WAIT_MS);
	must(n >= (ssize_t)sizeof(*msg) && msg->seq == r->seq, "no answer to kind %u: %zd",
	     msg->kind, n);
	return msg->status;
}

struct lease_message raw_named(const struct raw *r, uint16_t kind)
{
	return (struct lease_message){ .kind = kind,
				       .device = r->device,
				       .lease = r->lease,
				       .generation = r->generation,
				       .token = r->token };
}

void raw_borrow(struct raw *r)
{
	struct lease_message msg = { .kind = LEASE_BORROW, .flags = LEASE_SHARED, .ms = 60000 };

	raw_is("borrowing", raw_ask(r, &msg, NULL, NULL), 0);
	r->device = msg.device;
	r->lease = msg.lease;
	r->generation = msg.generation;
	r->token = msg.token;
}

int raw_window(struct raw *r, int fd, uint32_t access, uint64_t len, uint64_t *addr)
{
	struct lease_message msg = raw_named(r, LEASE_WINDOW);
	int status;

	msg.flags = access;
	msg.len = len;
	msg.fd_cnt = 1;
	status = raw_ask(r, &msg, NULL, &fd);
	*addr = msg.addr;
	return status;
}

int raw_memory(size_t len, int seals)
{
	int fd = memfd_create("raw", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	must(fd >= 0 && !ftruncate(fd, (off_t)len) && !fcntl(fd, F_ADD_SEALS, seals),
	     "a memfd: %s", strerror(errno));
	return fd;
}

struct raw raw_pair(const char *path)
{
	struct raw r = raw_connect(path);
	const size_t len = RAW_PAGES * NVME_PAGE;
	struct lease_message msg;

	raw_borrow(&r);
	r.memory = raw_memory(len, F_SEAL_SHRINK);
	r.mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, r.memory, 0);
	must(r.mem != MAP_FAILED, "memory: %s", strerror(errno));
	raw_is("a window", raw_window(&r, r.memory, WEFT_WINDOW_RW, len, &r.addr), 0);
	msg = raw_named(&r, LEASE_QUEUES);
	msg.count = RAW_ENTRIES;
	msg.addr = raw_page(&r, RAW_SQ);
	msg.offset = raw_page(&r, RAW_CQ);
	raw_is("a queue pair", raw_ask(&r, &msg, NULL, NULL), 0);
	must(r.got_cnt == 2, "%u descriptors", r.got_cnt);
	r.qid = msg.index;
	r.kick = r.got[1];
	r.doorbells = mmap(NULL, msg.len, PROT_READ | PROT_WRITE, MAP_SHARED, r.got[0],
			   (off_t)msg.addr);
	must(r.doorbells != MAP_FAILED, "doorbells: %s", strerror(errno));
	r.got_cnt = 0;
	return r;
}

void raw_ring(struct raw *r, uint32_t tail)
{
	uint64_t one = 1;

	__atomic_store_n(&r->doorbells->sq_tail, tail, __ATOMIC_RELEASE);
	slot_fence();
	if (__atomic_load_n(&r->doorbells->asleep, __ATOMIC_RELAXED) &&
	    write(r->kick, &one, sizeof(one)) < 0)
		return; /* it is full: the controller has been told */
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int raw_status(struct raw *r)
{
	struct nvme_cqe *cqe = (struct nvme_cqe *)(r->mem + RAW_CQ * NVME_PAGE) + r->cq_head;
	uint64_t end = now_ms() + WAIT_MS;
	uint16_t status;

	while (status = __atomic_load_n(&cqe->status, __ATOMIC_ACQUIRE),
	       NVME_CQE_PHASE(status) != r->phase) {
		must(now_ms() < end, "no completion");
		sched_yield();
	}
	if (++r->cq_head == RAW_ENTRIES) {
		r->cq_head = 0;
		r->phase ^= 1;
	}
	__atomic_store_n(&r->doorbells->cq_head, r->cq_head, __ATOMIC_RELEASE);
	return NVME_CQE_STATUS(status) & ~NVME_SC_DNR;
}

int raw_do(struct raw *r, const struct nvme_sqe *sqe)
{
	memcpy(r->mem + RAW_SQ * NVME_PAGE + r->sq_tail * sizeof(*sqe), sqe, sizeof(*sqe));
	r->sq_tail = (r->sq_tail + 1) % RAW_ENTRIES;
	raw_ring(r, r->sq_tail);
	return raw_status(r);
}

struct nvme_sqe raw_read(const struct raw *r, uint32_t blocks)
{
	return (struct nvme_sqe){
		.opcode = NVME_IO_READ,
		.nsid = 1,
		.prp1 = raw_page(r, RAW_DATA),
		.prp2 = blocks > 16 ? raw_page(r, RAW_LIST) : raw_page(r, RAW_DATA + 1),
		.cdw12 = blocks - 1,
	};
}
