/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The admin queue of an NVMe controller; admin.h has the contract. Its memory is three pages of a memfd, mapped for the
 * controller at ADMIN_ADDR of the owner's domain: submission queue, completion queue, data.
 */
#define _GNU_SOURCE
#include "admin.h"
#include "fence.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define ADMIN_ADDR    0x100000u
#define ADMIN_ENTRIES 64u
#define COMMAND_MS    5000

/* How often the controller is looked at while a command is waited for. */
#define CHECK_MS 5

/* Ids of commands that ask for events, by whichever owner, and no other command's. */
#define EVENT_CIDS 0xff00u

struct pages {
	struct nvme_sqe sq[ADMIN_ENTRIES];
	struct nvme_cqe cq[NVME_PAGE / sizeof(struct nvme_cqe)];
	uint8_t data[NVME_PAGE];
};

static_assert(sizeof(struct pages) == 3 * NVME_PAGE, "what is mapped");

/*
 * struct admin - an admin queue
 * @kick:    wakes the controller; @vector: it interrupts
 * @cid, @event_cid: of the last command, and of the last one that asks for an event
 * @asked:   the latter is under way
 * @events:  types of events that came, as bits
 * @lost:    0, or why the controller is not used any more
 */
struct admin {
	struct function *function;
	struct pages *pages;
	struct slot_doorbells *doorbells;
	int kick;
	int vector;
	uint16_t sq_tail;
	uint16_t cq_head;
	uint8_t phase;
	uint16_t cid;
	uint16_t event_cid;
	bool asked;
	uint32_t events;
	int lost;
};

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void pause_us(long us)
{
	nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL);
}

static int write_reg(struct function *f, uint32_t reg, uint32_t width, uint64_t value)
{
	return f->ops->write(f, reg, width, value);
}

static int wait_ready(struct function *f, bool ready, uint32_t ms)
{
	uint64_t csts, end = now_ms() + ms;
	int err;

	for (;;) {
		err = f->ops->read(f, NVME_REG_CSTS, 4, &csts);
		if (err)
			return err;
		if (csts & NVME_CSTS_CFS)
			return -EIO;
		if ((csts & NVME_CSTS_RDY) == (ready ? NVME_CSTS_RDY : 0))
			return 0;
		if (now_ms() > end)
			return -ETIMEDOUT;
		pause_us(500);
	}
}

static int map_pages(struct admin *admin, int fd)
{
	void *mem = mmap(NULL, sizeof(struct pages), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (mem == MAP_FAILED)
		return -errno;
	admin->pages = mem;
	return 0;
}

/* Memory of its own, which the controller may access from now on. */
static int new_pages(struct admin *admin)
{
	int fd = memfd_create("weft-admin", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct function_mapping mapping = {
		.access = SLOT_DMA_READ | SLOT_DMA_WRITE,
		.addr = ADMIN_ADDR,
		.len = sizeof(struct pages),
		.fds = &fd,
		.fd_cnt = 1,
	};
	int err;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(struct pages)) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		err = -errno;
	else
		err = map_pages(admin, fd);
	if (!err)
		err = admin->function->ops->map(admin->function, &mapping);
	close(fd);
	return err;
}

/* What an owner before has mapped stays over a reset; nothing accesses it any more. */
static int unmap_left(struct function *f)
{
	int fds[SLOT_FDS_MAX], err;

	for (;;) {
		struct function_mapping mapping = { 0 };

		err = f->ops->mapping(f, 0, &mapping, fds);
		if (err)
			return err == -ENOENT ? 0 : err;
		while (mapping.fd_cnt)
			close(fds[--mapping.fd_cnt]);
		err = f->ops->unmap(f, 0, mapping.addr, mapping.len);
		if (err && err != -EINPROGRESS)
			return err;
	}
}

static int start(struct admin *admin, uint64_t cap)
{
	uint32_t ms = NVME_CAP_TO(cap) * 500 + 500;
	struct function *f = admin->function;
	int err = write_reg(f, NVME_REG_CC, 4, 0);

	if (!err)
		err = wait_ready(f, false, ms);
	if (!err)
		err = unmap_left(f);
	if (!err)
		err = new_pages(admin);
	if (!err)
		err = write_reg(f, NVME_REG_AQA, 4,
				(ADMIN_ENTRIES - 1) | (ADMIN_ENTRIES - 1) << 16);
	if (!err)
		err = write_reg(f, NVME_REG_ASQ, 8, ADMIN_ADDR);
	if (!err)
		err = write_reg(f, NVME_REG_ACQ, 8, ADMIN_ADDR + offsetof(struct pages, cq));
	if (!err)
		err = write_reg(f, NVME_REG_CC, 4,
				NVME_CC_EN | NVME_SQE_SHIFT << NVME_CC_IOSQES_SHIFT |
					NVME_CQE_SHIFT << NVME_CC_IOCQES_SHIFT);
	admin->phase = 1;
	return err ? err : wait_ready(f, true, ms);
}

/* Go on with the memory and the places that the last owner had. -ENOENT: there was none. */
static int adopt(struct admin *admin)
{
	struct function_mapping mapping = { 0 };
	struct function *f = admin->function;
	struct function_queue queue;
	int fds[SLOT_FDS_MAX];
	uint64_t csts;
	int err = f->ops->read(f, NVME_REG_CSTS, 4, &csts);

	if (err)
		return err;
	if ((csts & (NVME_CSTS_RDY | NVME_CSTS_CFS)) != NVME_CSTS_RDY)
		return -ENOENT;
	err = f->ops->queue(f, 0, &queue);
	if (!err)
		err = f->ops->mapping(f, 0, &mapping, fds);
	if (err)
		return err;
	if (mapping.addr == ADMIN_ADDR && mapping.len == sizeof(struct pages) &&
	    mapping.fd_cnt == 1)
		err = map_pages(admin, fds[0]);
	else
		err = -ENOENT;
	while (mapping.fd_cnt)
		close(fds[--mapping.fd_cnt]);
	admin->sq_tail = queue.sq_tail % ADMIN_ENTRIES;
	/* What the last owner did not take is nobody's: this one begins at what comes next. */
	admin->cq_head = queue.cq_tail % ADMIN_ENTRIES;
	admin->phase = queue.cq_phase;
	return err;
}

static int open_doorbells(struct admin *admin)
{
	int fds[SLOT_FDS_MAX];
	uint32_t cnt;
	void *mem;
	int err = admin->function->ops->region(admin->function, 0, NVME_REG_DOORBELLS,
					       NVME_PAGE, false, fds, &cnt);

	if (err)
		return err;
	if (cnt != 2) {
		while (cnt)
			close(fds[--cnt]);
		return -EPROTO;
	}
	mem = mmap(NULL, NVME_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	err = mem == MAP_FAILED ? -errno : 0;
	close(fds[0]);
	admin->kick = fds[1];
	if (!err)
		admin->doorbells = mem;
	return err;
}

static void kick_if_asleep(struct admin *admin)
{
	uint64_t one = 1;

	/* F:asleep  the doorbell before this look; pairs F:asleep of the controller, before it sleeps */
	slot_fence();
	if (__atomic_load_n(&admin->doorbells->asleep, __ATOMIC_RELAXED) &&
	    write(admin->kick, &one, sizeof(one)) < 0)
		return; /* it is full: the controller has been told */
}

static void submit(struct admin *admin, const struct nvme_sqe *sqe)
{
	admin->pages->sq[admin->sq_tail] = *sqe;
	admin->sq_tail = (admin->sq_tail + 1) % ADMIN_ENTRIES;
	/* R:doorbell  the entry before the tail; pairs A:doorbell of the controller */
	__atomic_store_n(&admin->doorbells->sq_tail, admin->sq_tail, __ATOMIC_RELEASE);
	kick_if_asleep(admin);
}

/* Take a completion, if there is one. */
static bool take(struct admin *admin, struct nvme_cqe *cqe)
{
	struct nvme_cqe *slot = &admin->pages->cq[admin->cq_head];
	/* A:cqe.phase  the phase before the rest of the entry; pairs R:cqe.phase of the controller */
	uint16_t status = __atomic_load_n(&slot->status, __ATOMIC_ACQUIRE);

	if (NVME_CQE_PHASE(status) != admin->phase)
		return false;
	*cqe = *slot;
	cqe->status = status;
	admin->cq_head = (admin->cq_head + 1) % ADMIN_ENTRIES;
	if (!admin->cq_head)
		admin->phase ^= 1;
	__atomic_store_n(&admin->doorbells->cq_head, admin->cq_head, __ATOMIC_RELEASE);
	kick_if_asleep(admin);
	if (cqe->cid < EVENT_CIDS)
		return true;
	if (cqe->cid == admin->event_cid)
		admin->asked = false;
	/* Also one that an owner before asked for. A refusal is none: there are such ones in plenty. */
	if (!NVME_CQE_STATUS(status))
		admin->events |= 1u << (cqe->result & 7);
	return true;
}

/* Whether a controller that has not completed a command yet will. */
static int check(struct admin *admin)
{
	uint64_t csts;
	int err = admin->function->ops->read(admin->function, NVME_REG_CSTS, 4, &csts);

	if (err)
		return err;
	return csts & NVME_CSTS_CFS || !(csts & NVME_CSTS_RDY) ? -ENOTRECOVERABLE : 0;
}

static int wait_for(struct admin *admin, uint16_t cid, struct nvme_cqe *cqe)
{
	uint64_t end = 0, next = 0, now;
	uint32_t looks = 0;
	int err;

	while (!take(admin, cqe) || cqe->cid != cid) {
		if (++looks < 1000)
			continue;
		now = now_ms();
		if (!end) {
			end = now + COMMAND_MS;
			next = now + CHECK_MS;
		}
		if (now > end)
			return -ETIMEDOUT;
		if (now > next) {
			next = now + CHECK_MS;
			err = check(admin);
			if (err)
				return err;
		}
		pause_us(20);
	}
	return 0;
}

int admin_command(struct admin *admin, struct nvme_sqe *sqe, void *data, struct nvme_cqe *cqe)
{
	if (admin->lost)
		return admin->lost;
	if (data) {
		memcpy(admin->pages->data, data, NVME_PAGE);
		sqe->prp1 = ADMIN_ADDR + offsetof(struct pages, data);
	}
	admin->cid = (uint16_t)((admin->cid + 1) % EVENT_CIDS);
	sqe->cid = admin->cid;
	submit(admin, sqe);
	admin->lost = wait_for(admin, sqe->cid, cqe);
	if (data && !admin->lost)
		memcpy(data, admin->pages->data, NVME_PAGE);
	return admin->lost;
}

int admin_do(struct admin *admin, const char *what, struct nvme_sqe *sqe, void *data,
	     struct nvme_cqe *cqe)
{
	struct nvme_cqe own;
	int err;

	if (!cqe)
		cqe = &own;
	err = admin_command(admin, sqe, data, cqe);
	if (err)
		lender_log("%s: the controller does not carry it out: %s", what, strerror(-err));
	else if (NVME_CQE_STATUS(cqe->status)) {
		lender_log("%s: the controller answers with status 0x%x", what,
			   NVME_CQE_STATUS(cqe->status));
		err = -EIO;
	}
	return err;
}

static void ask_for_event(struct admin *admin)
{
	struct nvme_sqe sqe = { .opcode = NVME_ADMIN_ASYNC_EVENT };

	if (admin->asked || admin->lost)
		return;
	admin->asked = true;
	admin->event_cid = (uint16_t)(admin->event_cid + 1) | EVENT_CIDS;
	sqe.cid = admin->event_cid;
	submit(admin, &sqe);
}

int admin_fd(const struct admin *admin)
{
	return admin->vector;
}

int admin_events(struct admin *admin, uint32_t *types)
{
	struct nvme_cqe cqe;
	uint64_t cnt;

	if (admin->lost)
		return admin->lost;
	if (read(admin->vector, &cnt, sizeof(cnt)) < 0 && errno != EAGAIN)
		return -errno;
	while (take(admin, &cqe))
		;
	*types = admin->events;
	admin->events = 0;
	if (*types)
		ask_for_event(admin);
	return 0;
}

int admin_alive(struct admin *admin)
{
	if (!admin->lost)
		admin->lost = check(admin);
	return admin->lost;
}

int admin_open(struct function *function, struct admin **out, bool *adopted)
{
	struct admin *admin = calloc(1, sizeof(*admin));
	struct timespec t;
	uint64_t cap;
	int err;

	if (!admin)
		return -ENOMEM;
	*admin = (struct admin){ .function = function, .kick = -1, .vector = -1 };
	/* Ids that an owner before this one had in use are not likely to come back as ours. */
	clock_gettime(CLOCK_MONOTONIC, &t);
	admin->cid = (uint16_t)(((uint64_t)t.tv_nsec >> 10) % EVENT_CIDS);
	admin->event_cid = (uint16_t)((uint64_t)t.tv_nsec >> 10 | EVENT_CIDS);
	err = function->ops->read(function, NVME_REG_CAP, 8, &cap);
	if (!err) {
		err = adopt(admin);
		*adopted = !err;
		if (err == -ENOENT)
			err = start(admin, cap);
	}
	if (!err)
		err = open_doorbells(admin);
	if (!err) {
		admin->vector = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		err = admin->vector < 0 ? -errno
					: function->ops->vector(function, 0, admin->vector);
	}
	if (err) {
		admin_close(admin);
		return err;
	}
	__atomic_store_n(&admin->doorbells->cq_head, admin->cq_head, __ATOMIC_RELEASE);
	kick_if_asleep(admin);
	ask_for_event(admin);
	*out = admin;
	return 0;
}

void admin_close(struct admin *admin)
{
	if (admin->pages)
		munmap(admin->pages, sizeof(*admin->pages));
	if (admin->doorbells)
		munmap(admin->doorbells, NVME_PAGE);
	if (admin->kick >= 0)
		close(admin->kick);
	if (admin->vector >= 0)
		close(admin->vector);
	free(admin);
}
