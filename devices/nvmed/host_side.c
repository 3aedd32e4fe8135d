/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* For tests: an owner with queue pairs */
#define _GNU_SOURCE
#include "host_side.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "slot/fence.h"

#define WAIT_SECONDS 20

static bool late(struct timespec *since)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!since->tv_sec)
		*since = now;
	return now.tv_sec - since->tv_sec > WAIT_SECONDS;
}

static void progress(struct host *h)
{
	if (h->progress)
		h->progress(h->arg);
}

int host_connect(struct host *h, const char *path, void (*run)(void *), void *arg)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	*h = (struct host){ .progress = run, .arg = arg, .memory_fd = -1 };
	strncpy(addr.sun_path, path, sizeof(addr.sun_path) - 1);
	h->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (h->fd < 0)
		return -errno;
	if (!connect(h->fd, (struct sockaddr *)&addr, sizeof(addr)))
		return 0;
	close(h->fd);
	return -errno;
}

void host_close(struct host *h)
{
	close(h->fd);
	if (h->registers)
		munmap((void *)(uintptr_t)h->registers, NVME_PAGE);
	if (h->memory)
		munmap(h->memory, HOST_MEMORY_LEN);
	if (h->memory_fd >= 0)
		close(h->memory_fd);
}

static int send_message(struct host *h, const struct slot_message *m, const int *fds,
			uint32_t cnt)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(SLOT_FDS_MAX * sizeof(int))] = { 0 };
	struct iovec iov = { (void *)(uintptr_t)m, sizeof(*m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (cnt) {
		struct cmsghdr *head = (struct cmsghdr *)room;

		msg.msg_control = room;
		msg.msg_controllen = CMSG_SPACE(cnt * sizeof(int));
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(cnt * sizeof(int));
		memcpy(CMSG_DATA(head), fds, cnt * sizeof(int));
	}
	return sendmsg(h->fd, &msg, MSG_NOSIGNAL) == (ssize_t)sizeof(*m) ? 0 : -EPIPE;
}

static int receive_message(struct host *h, struct slot_message *m, int *got)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(SLOT_FDS_MAX * sizeof(int))];
	struct timespec since = { 0 };
	struct iovec iov = { m, sizeof(*m) };
	struct msghdr msg;
	ssize_t len;

	do {
		msg = (struct msghdr){ .msg_iov = &iov,
				       .msg_iovlen = 1,
				       .msg_control = room,
				       .msg_controllen = sizeof(room) };
		progress(h);
		len = recvmsg(h->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (len < 0 && errno == EAGAIN && !late(&since));
	if (len != sizeof(*m))
		return -EPIPE;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (got)
				got[i] = fd;
			else
				close(fd);
		}
	return m->status;
}

int host_ask(struct host *h, struct slot_message *m, const int *fds, uint32_t cnt, int *got)
{
	int ret;

	m->version = SLOT_VERSION;
	m->seq = ++h->seq;
	m->fd_cnt = cnt;
	ret = send_message(h, m, fds, cnt);
	return ret ? ret : receive_message(h, m, got);
}

uint8_t *host_memory(uint64_t len, int *fd)
{
	void *at;

	*fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0 || ftruncate(*fd, (off_t)len) || fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK))
		return NULL;
	at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	return at == MAP_FAILED ? NULL : at;
}

int host_map(struct host *h, uint32_t domain, uint64_t addr, uint64_t len, uint32_t access,
	     int fd)
{
	struct slot_message m = {
		.kind = SLOT_MAP, .domain = domain, .access = access, .addr = addr, .len = len
	};

	return host_ask(h, &m, &fd, 1, NULL);
}

int host_unmap(struct host *h, uint32_t domain, uint64_t addr, uint64_t len)
{
	bool waited = false;
	int ret;

	for (;;) {
		struct slot_message m = {
			.kind = SLOT_UNMAP, .domain = domain, .addr = addr, .len = len
		};

		ret = host_ask(h, &m, NULL, 0, NULL);
		if (ret != -EINPROGRESS)
			return waited && ret == -ENOENT ? 0 : ret;
		waited = true;
	}
}

/* What an owner before this one has left: everything ends. */
static int begin_anew(struct host *h)
{
	struct timespec since = { 0 };
	struct slot_message m;

	host_write(h, NVME_REG_CC, 0);
	while (host_read(h, NVME_REG_CSTS) && !late(&since))
		progress(h);
	for (;;) {
		m = (struct slot_message){ .kind = SLOT_DOMAIN };
		if (host_ask(h, &m, NULL, 0, NULL))
			return m.status == -ENOENT ? 0 : -EIO;
		if (host_unmap(h, 0, m.addr, m.len))
			return -EIO;
	}
}

int host_attach(struct host *h)
{
	struct slot_message m = { .kind = SLOT_ATTACH };
	int fds[SLOT_FDS_MAX];
	int ret = host_ask(h, &m, NULL, 0, fds);
	void *at;

	if (ret)
		return ret;
	h->attached = m;
	at = mmap(NULL, NVME_PAGE, PROT_READ, MAP_SHARED, fds[0], 0);
	close(fds[0]);
	if (at == MAP_FAILED)
		return -errno;
	h->registers = at;
	h->memory = host_memory(HOST_MEMORY_LEN, &h->memory_fd);
	if (!h->memory)
		return -ENOMEM;
	ret = begin_anew(h);
	if (ret)
		return ret;
	return host_map(h, 0, HOST_BASE, HOST_MEMORY_LEN, SLOT_DMA_READ | SLOT_DMA_WRITE,
			h->memory_fd);
}

uint64_t host_take(struct host *h, uint64_t len)
{
	uint64_t at = h->used;

	len = nvme_page_len(len);
	if (at + len > HOST_MEMORY_LEN)
		at = h->used = 0; /* a test that takes this much has done with the first of it */
	h->used = at + len;
	memset(h->memory + at, 0, len);
	return HOST_BASE + at;
}

void *host_at(const struct host *h, uint64_t addr)
{
	return h->memory + (addr - HOST_BASE);
}

int host_write(struct host *h, uint32_t reg, uint64_t value)
{
	bool is_long = reg == NVME_REG_ASQ || reg == NVME_REG_ACQ || reg == NVME_REG_CMBMSC;
	struct slot_message m = {
		.kind = SLOT_WRITE, .addr = reg, .len = is_long ? 8 : 4, .value = value
	};

	return host_ask(h, &m, NULL, 0, NULL);
}

uint32_t host_read(struct host *h, uint32_t reg)
{
	return atomic_load_explicit((const _Atomic uint32_t *)(h->registers + reg),
				    memory_order_acquire);
}

int host_pair_page(struct host_pair *p)
{
	struct slot_message m = { .kind = SLOT_REGION,
				  .addr = NVME_REG_DOORBELLS +
					  p->qid * sizeof(struct slot_doorbells),
				  .len = sizeof(struct slot_doorbells) };
	int fds[SLOT_FDS_MAX];
	int ret = host_ask(p->host, &m, NULL, 0, fds);
	void *at;

	if (ret)
		return ret;
	at = mmap(NULL, sizeof(struct slot_doorbells), PROT_READ | PROT_WRITE, MAP_SHARED,
		  fds[0], 0);
	p->page_fd = fds[0];
	p->kick = fds[1];
	if (at == MAP_FAILED)
		return -errno;
	p->page = at;
	return 0;
}

static void pair_init(struct host *h, struct host_pair *p, uint16_t qid, uint16_t size)
{
	uint64_t sq_len = (uint64_t)size * sizeof(struct nvme_sqe);

	sq_len = nvme_page_len(sq_len);
	*p = (struct host_pair){ .host = h, .qid = qid, .size = size, .phase = 1 };
	p->base = host_take(h, sq_len + (uint64_t)size * sizeof(struct nvme_cqe));
	p->sq = host_at(h, p->base);
	p->cq = (struct nvme_cqe *)((uint8_t *)p->sq + sq_len);
}

static uint64_t pair_cq(const struct host_pair *p)
{
	return p->base + (uint64_t)((uint8_t *)p->cq - (uint8_t *)p->sq);
}

void host_pair_forget(struct host_pair *p)
{
	if (!p->page)
		return;
	munmap(p->page, sizeof(struct slot_doorbells));
	close(p->page_fd);
	close(p->kick);
	p->page = NULL;
}

int host_enable(struct host *h, struct host_pair *admin, uint16_t size)
{
	struct timespec since = { 0 };
	int ret;

	pair_init(h, admin, 0, size);
	host_write(h, NVME_REG_AQA, (uint32_t)(size - 1) << 16 | (uint32_t)(size - 1));
	host_write(h, NVME_REG_ASQ, admin->base);
	host_write(h, NVME_REG_ACQ, pair_cq(admin));
	ret = host_write(h, NVME_REG_CC,
			 NVME_CC_EN | NVME_SQE_SHIFT << NVME_CC_IOSQES_SHIFT |
				 NVME_CQE_SHIFT << NVME_CC_IOCQES_SHIFT);
	if (!ret)
		ret = host_pair_page(admin);
	if (ret)
		return ret;
	while (!(host_read(h, NVME_REG_CSTS) & (NVME_CSTS_RDY | NVME_CSTS_CFS)) && !late(&since))
		progress(h);
	return host_read(h, NVME_REG_CSTS) == NVME_CSTS_RDY ? 0 : -EIO;
}

uint16_t host_submit(struct host_pair *p, const struct nvme_sqe *sqe)
{
	p->sq[p->tail] = *sqe;
	p->sq[p->tail].cid = ++p->cid;
	p->tail = p->tail + 1 == p->size ? 0 : p->tail + 1;
	return p->cid;
}

void host_ring(struct host_pair *p)
{
	/* R:doorbell  entries; pairs A:doorbell of the controller */
	atomic_store_explicit((_Atomic uint32_t *)&p->page->sq_tail, p->tail,
			      memory_order_release);
	/* F:asleep  the doorbell before this load; pairs F:asleep of the controller */
	slot_fence();
	if (atomic_load_explicit((_Atomic uint32_t *)&p->page->asleep, memory_order_relaxed)) {
		uint64_t one = 1;

		if (write(p->kick, &one, sizeof(one)) < 0)
			return;
	}
}

bool host_poll(struct host_pair *p, struct nvme_cqe *cqe)
{
	struct nvme_cqe *at = &p->cq[p->head];
	/* A:cqe.phase  the rest of the entry and the data; pairs R:cqe.phase of the controller */
	uint16_t status = atomic_load_explicit((_Atomic uint16_t *)&at->status,
					       memory_order_acquire);

	if (NVME_CQE_PHASE(status) != p->phase)
		return false;
	*cqe = *at;
	p->sq_head = cqe->sq_head;
	if (++p->head == p->size) {
		p->head = 0;
		p->phase ^= 1;
	}
	atomic_store_explicit((_Atomic uint32_t *)&p->page->cq_head, p->head,
			      memory_order_release);
	return true;
}

bool host_wait(struct host_pair *p, struct nvme_cqe *cqe)
{
	struct timespec since = { 0 };

	while (!host_poll(p, cqe)) {
		progress(p->host);
		if (late(&since))
			return false;
	}
	return true;
}

uint16_t host_run(struct host_pair *p, const struct nvme_sqe *sqe, uint32_t *result)
{
	struct nvme_cqe cqe;

	host_submit(p, sqe);
	host_ring(p);
	if (!host_wait(p, &cqe) || cqe.cid != p->cid)
		return 0xffff;
	if (result)
		*result = cqe.result;
	return NVME_CQE_STATUS(cqe.status) & (uint16_t)~NVME_SC_DNR;
}

uint16_t host_pair_create(struct host *h, struct host_pair *admin, struct host_pair *p,
			  uint16_t qid, uint16_t size, uint32_t lease, int vector)
{
	struct nvme_sqe sqe = { .opcode = NVME_ADMIN_CREATE_CQ,
				.cdw10 = qid | (uint32_t)(size - 1) << 16,
				.cdw11 = NVME_QUEUE_CONTIGUOUS,
				.cdw14 = lease };
	uint16_t status;

	pair_init(h, p, qid, size);
	if (host_pair_page(p))
		return 0xffff;
	if (vector >= 0)
		sqe.cdw11 |= NVME_CQ_INTERRUPTS | (uint32_t)vector << 16;
	sqe.prp1 = pair_cq(p);
	status = host_run(admin, &sqe, NULL);
	if (status)
		return status;
	sqe.opcode = NVME_ADMIN_CREATE_SQ;
	sqe.prp1 = p->base;
	sqe.cdw11 = NVME_QUEUE_CONTIGUOUS | (uint32_t)qid << 16;
	return host_run(admin, &sqe, NULL);
}

struct nvme_sqe host_rw(struct host *h, uint8_t opcode, uint64_t lba, uint32_t blocks,
			uint64_t addr, uint64_t len)
{
	uint64_t first = NVME_PAGE - addr % NVME_PAGE;
	struct nvme_sqe sqe = { .opcode = opcode,
				.nsid = 1,
				.prp1 = addr,
				.cdw10 = (uint32_t)lba,
				.cdw11 = (uint32_t)(lba >> 32),
				.cdw12 = blocks - 1 };

	if (len > first + NVME_PAGE) {
		uint64_t pages = (len - first + NVME_PAGE - 1) / NVME_PAGE;
		uint64_t *list;

		sqe.prp2 = host_take(h, pages * sizeof(uint64_t));
		list = host_at(h, sqe.prp2);
		for (uint64_t i = 0; i < pages; i++)
			list[i] = addr + first + i * NVME_PAGE;
	} else if (len > first) {
		sqe.prp2 = addr + first;
	}
	return sqe;
}
