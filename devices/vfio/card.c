/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An NVMe controller by VFIO */
#define _GNU_SOURCE
#include "card.h"

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "mmio.h"

#define ADMIN_ENTRIES 64u
#define IO_ENTRIES    256u

#define NS_PER_MS    1000000ull
#define ADMIN_NS     (1000 * NS_PER_MS)
#define SHUTDOWN_NS  (5000 * NS_PER_MS)
#define RETRY_NS     (5000 * NS_PER_MS)
#define ABSENT_NS    (2000 * NS_PER_MS)
#define ADVANCE_NS   (1 * NS_PER_MS)
#define ALL_ONES     UINT32_MAX /* what a register of a device that is not there reads as */
#define NSID	     1u
#define CAP_NO_PAGES UINT64_MAX
#define CMB_UNIT_MAX 6u /* 64 GiB */

struct card_pages {
	struct nvme_sqe admin_sq[ADMIN_ENTRIES];
	struct nvme_cqe admin_cq[NVME_PAGE / sizeof(struct nvme_cqe)];
	uint8_t data[NVME_PAGE];
	struct nvme_sqe sq[IO_ENTRIES];
	struct nvme_cqe cq[IO_ENTRIES];
	uint64_t lists[CARD_COMMANDS][NVME_PAGE / sizeof(uint64_t)];
};

static_assert(offsetof(struct card_pages, admin_cq) % NVME_PAGE == 0, "a queue begins a page");
static_assert(offsetof(struct card_pages, sq) % NVME_PAGE == 0, "likewise");
static_assert(offsetof(struct card_pages, cq) % NVME_PAGE == 0, "likewise");
static_assert(offsetof(struct card_pages, lists) % NVME_PAGE == 0, "likewise");
static_assert(sizeof(struct card_pages) % NVME_PAGE == 0, "whole pages are mapped");

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint32_t reg_read(const struct card *card, uint32_t reg)
{
	return mmio_read(card->vfio.bar + reg);
}

static void reg_write(struct card *card, uint32_t reg, uint32_t value)
{
	mmio_write(card->vfio.bar + reg, value);
}

/* In halves, the lower one first: not every path to a device takes 64 bits at once. */
static uint64_t reg_read64(const struct card *card, uint32_t reg)
{
	uint64_t low = reg_read(card, reg);

	return low | (uint64_t)reg_read(card, reg + 4) << 32;
}

static void reg_write64(struct card *card, uint32_t reg, uint64_t value)
{
	reg_write(card, reg, (uint32_t)value);
	reg_write(card, reg + 4, (uint32_t)(value >> 32));
}

static void ring_reset(struct card_ring *r)
{
	memset(r->cq, 0, r->cq_size * sizeof(*r->cq));
	r->tail = r->rung = r->head = 0;
	r->phase = 1;
	r->taken = false;
}

size_t card_bell(const struct card *card, uint16_t qid, bool completion)
{
	return NVME_REG_DOORBELLS + (2u * (size_t)qid + completion) * card->bell;
}

static uint8_t *ring_bell(const struct card *card, const struct card_ring *r, bool completion)
{
	return card->vfio.bar + card_bell(card, r->qid, completion);
}

static void ring_put(struct card_ring *r, const struct nvme_sqe *sqe)
{
	r->sq[r->tail] = *sqe;
	r->tail = r->tail + 1 == r->sq_size ? 0 : r->tail + 1;
}

static void ring_tell(struct card *card, struct card_ring *r)
{
	if (r->rung != r->tail) {
		mmio_publish();
		mmio_write(ring_bell(card, r, false), r->tail);
		r->rung = r->tail;
	}
	if (r->taken) {
		mmio_write(ring_bell(card, r, true), r->head);
		r->taken = false;
	}
}

static bool ring_take(struct card_ring *r, struct nvme_cqe *cqe)
{
	const struct nvme_cqe *at = &r->cq[r->head];
	uint16_t status = atomic_load_explicit((const _Atomic uint16_t *)&at->status,
					       memory_order_relaxed);

	if (NVME_CQE_PHASE(status) != r->phase)
		return false;
	mmio_acquire();
	memcpy(cqe, at, sizeof(*cqe));
	cqe->status = status;
	if (++r->head == r->cq_size) {
		r->head = 0;
		r->phase ^= 1;
	}
	r->taken = true;
	return true;
}

/* The next completion of an admin command. Returns false if there was none when it was @end. */
static bool admin_take(struct card *card, uint64_t end, struct nvme_cqe *cqe)
{
	bool over;

	do {
		/* Before the look: this thread may have stood still since the last one. */
		over = clock_ns() > end;
		if (ring_take(&card->admin, cqe))
			return true;
	} while (!over);
	return false;
}

int card_admin(struct card *card, struct nvme_sqe *sqe, void *data, uint32_t *result)
{
	uint64_t end = clock_ns() + ADMIN_NS;
	struct nvme_cqe cqe;

	if (card->state != CARD_RUNS && card->state != CARD_STARTS)
		return -ENODEV;
	sqe->cid = ++card->admin_cid;
	if (data)
		sqe->prp1 = card->addr + offsetof(struct card_pages, data);
	ring_put(&card->admin, sqe);
	ring_tell(card, &card->admin);
	do {
		if (!admin_take(card, end, &cqe))
			return -ETIMEDOUT;
		ring_tell(card, &card->admin);
	} while (cqe.cid != sqe->cid);
	if (data)
		memcpy(data, card->pages->data, NVME_PAGE);
	if (result)
		*result = cqe.result;
	return NVME_CQE_STATUS(cqe.status) & 0x7ff;
}

static int identify(struct card *card, uint32_t cns, uint32_t nsid, void *page)
{
	struct nvme_sqe sqe = { .opcode = NVME_ADMIN_IDENTIFY, .nsid = nsid, .cdw10 = cns };

	return card_admin(card, &sqe, page, NULL);
}

/* As many I/O pairs as it gives: 65,535 is more than any has. */
static int pairs_ask(struct card *card)
{
	struct nvme_sqe sqe = { .opcode = NVME_ADMIN_SET_FEATURES,
				.cdw10 = NVME_FEATURE_QUEUES,
				.cdw11 = 0xfffe | 0xfffeu << 16 };
	uint32_t given;
	int ret = card_admin(card, &sqe, NULL, &given);
	uint32_t sqs = given & 0xffff, cqs = given >> 16;

	if (!ret)
		card->pairs = (sqs < cqs ? sqs : cqs) + 1;
	return ret;
}

static int pair_create(struct card *card)
{
	uint32_t size = CARD_QID | (card->io.sq_size - 1) << 16;
	struct nvme_sqe cq = { .opcode = NVME_ADMIN_CREATE_CQ,
			       .prp1 = card->addr + offsetof(struct card_pages, cq),
			       .cdw10 = size,
			       .cdw11 = NVME_QUEUE_CONTIGUOUS | NVME_CQ_INTERRUPTS };
	struct nvme_sqe sq = { .opcode = NVME_ADMIN_CREATE_SQ,
			       .prp1 = card->addr + offsetof(struct card_pages, sq),
			       .cdw10 = size,
			       .cdw11 = NVME_QUEUE_CONTIGUOUS | CARD_QID << 16 };
	int ret;

	ring_reset(&card->io);
	ret = card_admin(card, &cq, NULL, NULL);
	return ret ? ret : card_admin(card, &sq, NULL, NULL);
}

/* It is ready: what else it takes until it runs. Another device in its place is not the one that was lent. */
static int begin(struct card *card)
{
	struct nvme_id_ctrl *ctrl = malloc(sizeof(*ctrl));
	int ret;

	if (!ctrl)
		return -ENOMEM;
	ret = identify(card, NVME_CNS_CONTROLLER, 0, ctrl);
	if (!ret && card->ctrl.sn[0] && memcmp(card->ctrl.sn, ctrl->sn, sizeof(ctrl->sn)))
		ret = -ENODEV;
	if (!ret)
		ret = identify(card, NVME_CNS_NAMESPACE, NSID, &card->ns);
	if (!ret)
		ret = pairs_ask(card);
	if (!ret)
		ret = pair_create(card);
	if (!ret)
		card->ctrl = *ctrl;
	free(ctrl);
	return ret;
}

/* Told to stop; until it says that it has, it may access memory. */
static void stop(struct card *card, uint64_t now)
{
	card->state = CARD_STOPS;
	card->until = now + card->ready_ns;
	reg_write(card, NVME_REG_CC, 0);
}

/* The upper half first: the lower one has the bits that make it count. */
static void memory_show(struct card *card)
{
	const struct card_memory *m = &card->memory;

	if (!m->base)
		return;
	reg_write(card, NVME_REG_CMBMSC + 4, (uint32_t)(m->addr >> 32));
	reg_write(card, NVME_REG_CMBMSC,
		  (uint32_t)(m->addr | NVME_CMBMSC_CRE | NVME_CMBMSC_CMSE));
}

static void start(struct card *card, uint64_t now)
{
	ring_reset(&card->admin);
	reg_write(card, NVME_REG_AQA,
		  (card->admin.sq_size - 1) | (card->admin.cq_size - 1) << 16);
	reg_write64(card, NVME_REG_ASQ, card->addr + offsetof(struct card_pages, admin_sq));
	reg_write64(card, NVME_REG_ACQ, card->addr + offsetof(struct card_pages, admin_cq));
	memory_show(card);
	mmio_publish();
	reg_write(card, NVME_REG_CC,
		  NVME_CC_EN | NVME_SQE_SHIFT << NVME_CC_IOSQES_SHIFT |
			  NVME_CQE_SHIFT << NVME_CC_IOCQES_SHIFT);
	card->state = CARD_STARTS;
	card->until = now + card->ready_ns;
}

static void failed(struct card *card, uint64_t now, const char *why)
{
	warnx("%s: %s; the next try is in %u s", card->vfio.name, why,
	      (unsigned)(RETRY_NS / 1000000000u));
	/* Whatever it thinks it does, nothing reaches memory. */
	vfio_may_access(&card->vfio, false);
	card->state = CARD_FAILED;
	card->until = now + RETRY_NS;
}

/* It does not even stop: the function is reset, which a controller has no say in. */
static void force(struct card *card, uint64_t now)
{
	int ret = vfio_reset(&card->vfio);

	card->was_reset = true;
	if (ret) {
		failed(card, now, "the controller does not stop, nor can it be reset");
		return;
	}
	vfio_may_access(&card->vfio, true);
	stop(card, now);
}

void card_fail(struct card *card, uint64_t now, const char *why)
{
	if (card->state != CARD_RUNS)
		return;
	warnx("%s: %s: the controller is reset", card->vfio.name, why);
	card->was_reset = false;
	stop(card, now);
}

static void gone(struct card *card, const char *why)
{
	warnx("%s: %s", card->vfio.name, why);
	/* Of a device that is asked back nothing may reach memory from here on. */
	reg_write(card, NVME_REG_CC, 0);
	vfio_may_access(&card->vfio, false);
	card->state = CARD_GONE;
}

void card_look(struct card *card, uint64_t now)
{
	uint32_t csts;
	uint64_t cnt;

	if (card->state == CARD_GONE)
		return;
	csts = reg_read(card, NVME_REG_CSTS);
	/* While a function is reset, by whomever, it is not there either. */
	if (csts != ALL_ONES)
		card->seen = now;
	if (read(card->vfio.alarm, &cnt, sizeof(cnt)) == sizeof(cnt))
		gone(card, "the device is asked back, or has an error that ends its use");
	else if (csts == ALL_ONES && now - card->seen > ABSENT_NS)
		gone(card, "the device is not there any more");
	else if (csts == ALL_ONES)
		return;
	else if (card->state == CARD_RUNS && csts & NVME_CSTS_CFS)
		card_fail(card, now, "a fatal status");
	else if (card->state == CARD_RUNS && !(csts & NVME_CSTS_RDY))
		card_fail(card, now, "somebody has reset the device");
}

static void look_started(struct card *card, uint64_t now)
{
	uint32_t csts = reg_read(card, NVME_REG_CSTS);
	uint64_t until = card->until;
	int ret;

	if (csts == ALL_ONES && now <= card->until)
		return;
	if (!(reg_read(card, NVME_REG_CC) & NVME_CC_EN) && now <= card->until) {
		/* It was told nothing: the function was in a reset. */
		start(card, now);
		card->until = until;
	} else if (csts & NVME_CSTS_RDY && !(csts & NVME_CSTS_CFS)) {
		ret = begin(card);
		if (ret) {
			failed(card, now, "the controller is ready, and does not begin");
			return;
		}
		card->state = CARD_RUNS;
		card->until = UINT64_MAX;
		warnx("%s: the controller runs again", card->vfio.name);
	} else if (csts & NVME_CSTS_CFS || now > card->until) {
		if (card->was_reset)
			failed(card, now, "the controller does not become ready");
		else
			force(card, now);
	}
}

uint64_t card_advance(struct card *card, uint64_t now)
{
	switch (card->state) {
	case CARD_RUNS:
	case CARD_GONE:
		return UINT64_MAX;
	case CARD_STOPS:
		if (!(reg_read(card, NVME_REG_CSTS) & NVME_CSTS_RDY))
			start(card, now);
		else if (now > card->until && !card->was_reset)
			force(card, now);
		else if (now > card->until)
			failed(card, now, "the controller does not stop after a reset");
		break;
	case CARD_STARTS:
		look_started(card, now);
		break;
	case CARD_FAILED:
		if (now > card->until)
			force(card, now);
		break;
	}
	return card->state == CARD_FAILED ? card->until : now + ADVANCE_NS;
}

uint64_t *card_list(struct card *card, uint32_t id, uint64_t *addr)
{
	*addr = card->addr + offsetof(struct card_pages, lists) + (uint64_t)id * NVME_PAGE;
	return card->pages->lists[id];
}

void card_put(struct card *card, const struct nvme_sqe *sqe)
{
	ring_put(&card->io, sqe);
}

void card_ring(struct card *card)
{
	if (card->state == CARD_RUNS)
		ring_tell(card, &card->io);
}

bool card_take(struct card *card, struct nvme_cqe *cqe)
{
	return card->state == CARD_RUNS && ring_take(&card->io, cqe);
}

int card_map(struct card *card, void *mem, uint64_t len, uint32_t access, uint64_t *addr)
{
	int ret = addresses_take(&card->addresses, len, addr);

	if (ret)
		return ret;
	ret = vfio_map(&card->vfio, *addr, mem, len, access);
	if (ret)
		addresses_give(&card->addresses, *addr);
	return ret;
}

int card_map_at(struct card *card, void *mem, uint64_t len, uint32_t access, uint64_t addr)
{
	int ret = addresses_claim(&card->addresses, addr, len);

	if (ret)
		return ret;
	ret = vfio_map(&card->vfio, addr, mem, len, access);
	if (ret)
		addresses_give(&card->addresses, addr);
	return ret;
}

int card_unmap(struct card *card, uint64_t addr, uint64_t len)
{
	int ret = vfio_unmap(&card->vfio, addr, len);

	if (!ret)
		addresses_give(&card->addresses, addr);
	return ret;
}

/* What the registers say that matters before anything is begun */
static int capabilities_take(struct card *card, char *why)
{
	uint64_t cap = reg_read64(card, NVME_REG_CAP);
	uint32_t entries = NVME_CAP_MQES(cap) + 1;

	if (cap == CAP_NO_PAGES || !(cap & NVME_CAP_CSS_NVM) || NVME_CAP_MPSMIN(cap)) {
		snprintf(why, VFIO_WHY_MAX,
			 "%s: no NVMe controller with the NVM command set and pages of 4 KiB",
			 card->vfio.name);
		return -ENODEV;
	}
	card->entries_max = entries;
	card->bell = 4u << NVME_CAP_DSTRD(cap);
	card->ready_ns = (NVME_CAP_TO(cap) + 1) * 500 * NS_PER_MS;
	return 0;
}

static int memory_make(struct card *card)
{
	uint32_t entries = card->entries_max < IO_ENTRIES ? card->entries_max : IO_ENTRIES;
	struct card_pages *pages = mmap(NULL, sizeof(*pages), PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int ret;

	if (pages == MAP_FAILED)
		return -errno;
	card->pages = pages;
	ret = card_map(card, pages, sizeof(*pages), VFIO_READS | VFIO_WRITES, &card->addr);
	if (ret)
		return ret;
	card->admin = (struct card_ring){ .sq = pages->admin_sq,
					  .cq = pages->admin_cq,
					  .sq_size = ADMIN_ENTRIES,
					  .cq_size = ADMIN_ENTRIES };
	card->io = (struct card_ring){ .sq = pages->sq,
				       .cq = pages->cq,
				       .sq_size = entries,
				       .cq_size = entries,
				       .qid = CARD_QID };
	return 0;
}

/* All vectors at once: the kernel gives no further ones later. */
static int interrupts_make(struct card *card, uint32_t vectors)
{
	int *fds, ret;

	card->vectors = vectors < card->vfio.vectors ? vectors : card->vfio.vectors;
	if (!card->vectors)
		return -ENOTSUP;
	card->irq = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (card->irq < 0)
		return -errno;
	fds = malloc(card->vectors * sizeof(*fds));
	if (!fds)
		return -ENOMEM;
	for (uint32_t i = 0; i < card->vectors; i++)
		fds[i] = i ? -1 : card->irq;
	ret = vfio_interrupts(&card->vfio, fds, card->vectors);
	free(fds);
	return ret;
}

/* The first time: it is waited for. */
static int bring_up(struct card *card)
{
	uint64_t now = clock_ns();

	card->seen = now;
	vfio_reset(&card->vfio);
	vfio_may_access(&card->vfio, true);
	stop(card, now);
	while (card->state == CARD_STOPS || card->state == CARD_STARTS) {
		if (card->state == CARD_STARTS && reg_read(card, NVME_REG_CSTS) & NVME_CSTS_RDY)
			break;
		card_advance(card, clock_ns());
		nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
	}
	return card->state == CARD_STARTS ? begin(card) : -ETIMEDOUT;
}

int card_open(struct card *card, const char *address, uint32_t vectors, char *why)
{
	int ret;

	*card = (struct card){ .irq = -1, .state = CARD_FAILED };
	ret = vfio_open(&card->vfio, address, why);
	if (ret)
		return ret;
	addresses_init(&card->addresses, card->vfio.ranges, card->vfio.range_cnt);
	ret = capabilities_take(card, why);
	if (ret)
		goto err_close;
	ret = memory_make(card);
	if (ret) {
		snprintf(why, VFIO_WHY_MAX, "%s: memory for its queues: %s%s", card->vfio.name,
			 strerror(-ret),
			 ret == -ENOMEM ? " (what may be locked: ulimit -l)" : "");
		goto err_close;
	}
	ret = interrupts_make(card, vectors);
	if (ret) {
		snprintf(why, VFIO_WHY_MAX, "%s: interrupts by MSI-X: %s", card->vfio.name,
			 strerror(-ret));
		goto err_close;
	}
	ret = bring_up(card);
	if (!ret) {
		card->state = CARD_RUNS;
		card->until = UINT64_MAX;
		return 0;
	}
	snprintf(why, VFIO_WHY_MAX, "%s: the controller does not begin: %s %d", card->vfio.name,
		 ret < 0 ? strerror(-ret) : "NVMe status", ret);
err_close:
	card_close(card);
	return ret < 0 ? ret : -EIO;
}

static void shut_down(struct card *card)
{
	uint64_t end = clock_ns() + SHUTDOWN_NS;
	uint32_t csts;

	reg_write(card, NVME_REG_CC, reg_read(card, NVME_REG_CC) | NVME_CC_SHN_NORMAL);
	do {
		csts = reg_read(card, NVME_REG_CSTS);
		nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
	} while (NVME_CSTS_SHST(csts) != NVME_CSTS_SHST(NVME_CSTS_SHST_DONE) &&
		 csts != ALL_ONES && clock_ns() < end);
	reg_write(card, NVME_REG_CC, 0);
	while (reg_read(card, NVME_REG_CSTS) & NVME_CSTS_RDY && clock_ns() < end)
		;
}

/* What it has, and where in which BAR; false: none that data of both directions can be in */
static bool memory_find(struct card *card, uint32_t *bar, uint64_t *at)
{
	uint32_t loc, sz;
	uint64_t unit;

	if (!(reg_read64(card, NVME_REG_CAP) & NVME_CAP_CMBS))
		return false;
	reg_write(card, NVME_REG_CMBMSC + 4, 0);
	reg_write(card, NVME_REG_CMBMSC, NVME_CMBMSC_CRE);
	loc = reg_read(card, NVME_REG_CMBLOC);
	sz = reg_read(card, NVME_REG_CMBSZ);
	if (~sz & (NVME_CMBSZ_RDS | NVME_CMBSZ_WDS) || NVME_CMBSZ_SZU(sz) > CMB_UNIT_MAX)
		return false;
	unit = (uint64_t)NVME_PAGE << 4 * NVME_CMBSZ_SZU(sz);
	*bar = NVME_CMBLOC_BIR(loc);
	*at = (loc >> NVME_CMBLOC_OFST_SHIFT) * unit;
	card->memory.len = (sz >> NVME_CMBSZ_SZ_SHIFT) * unit;
	return card->memory.len;
}

int card_memory_open(struct card *card)
{
	struct card_memory *m = &card->memory;
	uint32_t bar;
	uint64_t at;
	int ret;

	/* Of registers 0 and 1 the rest is in use. */
	if (!memory_find(card, &bar, &at) || bar < 2)
		return 0;
	if (addresses_take(&card->addresses, m->len, &m->addr))
		return 0;
	m->base = vfio_bar_map(&card->vfio, bar, at, m->len);
	if (!m->base) {
		addresses_give(&card->addresses, m->addr);
		return 0;
	}
	shut_down(card);
	ret = bring_up(card);
	if (!ret && reg_read(card, NVME_REG_CMBSTS) & NVME_CMBSTS_CBAI) {
		munmap(m->base, m->len);
		m->base = NULL;
	}
	card->state = ret ? CARD_FAILED : CARD_RUNS;
	card->until = UINT64_MAX;
	return ret < 0 ? ret : ret ? -EIO : 0;
}

void card_close(struct card *card)
{
	if (card->state == CARD_RUNS)
		shut_down(card);
	vfio_may_access(&card->vfio, false);
	if (card->addr)
		vfio_unmap(&card->vfio, card->addr, sizeof(*card->pages));
	vfio_close(&card->vfio);
	if (card->irq >= 0)
		close(card->irq);
	if (card->pages)
		munmap(card->pages, sizeof(*card->pages));
	if (card->memory.base)
		munmap(card->memory.base, card->memory.len);
	addresses_fini(&card->addresses);
}
