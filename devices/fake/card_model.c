/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A controller on a thread, and the IOMMU before it */
#define _GNU_SOURCE
#include "card_model.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "spec.h"
#include "vfio.h"

#define BAR_LEN	 0x4000u
#define PAIRS	 4u
#define QUEUES	 (PAIRS + 1)
#define MAPS	 256u
#define DWORDS	 (NVME_PAGE / sizeof(uint64_t))
#define WAITS	 256u
#define ALL_ONES 0xff

struct card_model model;

struct map {
	uint64_t addr;
	uint64_t len;
	uint8_t *mem;
	uint32_t access;
};

struct queue {
	uint64_t addr;
	uint32_t size;
	uint32_t at; /* the head of a submission queue, the tail of a completion queue */
	uint16_t phase;
};

/* struct wait - a range that a command under way has */
struct wait {
	uint64_t addr;
	uint64_t len;
};

static struct device {
	pthread_mutex_t lock;
	pthread_t thread;
	bool stop;
	bool enabled;
	bool vanished;
	uint8_t *bar;
	int alarm;
	int irq;
	struct map maps[MAPS];
	struct queue sqs[QUEUES];
	struct queue cqs[QUEUES];
	struct wait waits[WAITS];
	uint32_t wait_cnt;
} dev = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* More than that is no time between two looks at the clock, but one in which somebody did not come to run. */
#define GAP_NS 10000000ull

/* The clock that deadlines are of */
static struct {
	atomic_uint turns; /* of the device, so far */
	uint32_t seen;
	uint64_t real;
	uint64_t now;
} times = { .now = 1000000000000ull };

int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	int ret = __real_clock_gettime(clock, t);
	uint32_t turns = times.turns;
	uint64_t real;

	if (ret || clock != CLOCK_BOOTTIME)
		return ret;
	if (turns != times.seen) {
		real = (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
		times.now += real - times.real < GAP_NS ? real - times.real : GAP_NS;
		times.real = real;
		times.seen = turns;
	}
	t->tv_sec = (time_t)(times.now / 1000000000u);
	t->tv_nsec = (long)(times.now % 1000000000u);
	return 0;
}

static _Atomic uint32_t *reg(uint32_t at)
{
	return (_Atomic uint32_t *)(dev.bar + at);
}

static uint64_t reg64(uint32_t at)
{
	return *reg(at) | (uint64_t)*reg(at + 4) << 32;
}

/* Its own memory, where it was told to have it */
static uint8_t *reach_own(uint64_t addr, uint64_t len)
{
	uint64_t cmbmsc = reg64(NVME_REG_CMBMSC), at = addr - NVME_CMBMSC_CBA(cmbmsc);

	if (!model.has_cmb || !(cmbmsc & NVME_CMBMSC_CRE) || !(cmbmsc & NVME_CMBMSC_CMSE) ||
	    at >= MODEL_CMB || len > MODEL_CMB - at)
		return NULL;
	return model.cmb + at;
}

/* Where an address is, for at most a page. NULL: the IOMMU does not let it through */
static uint8_t *reach(uint64_t addr, uint64_t len, uint32_t access)
{
	uint8_t *own = reach_own(addr, len);

	if (own)
		return own;
	for (uint32_t i = 0; i < MAPS; i++) {
		struct map *m = &dev.maps[i];

		if (m->len && addr >= m->addr && addr - m->addr < m->len &&
		    len <= m->len - (addr - m->addr) && (m->access & access) == access &&
		    model.may_access)
			return m->mem + (addr - m->addr);
	}
	model.wild++;
	return NULL;
}

static void wait_on(uint64_t addr, uint64_t len)
{
	if (dev.wait_cnt < WAITS)
		dev.waits[dev.wait_cnt++] = (struct wait){ addr, len };
}

/* A part of a command's data */
static bool move(const struct nvme_sqe *sqe, uint64_t addr, uint64_t at, uint64_t len)
{
	bool reads = sqe->opcode == NVME_IO_READ;
	uint8_t *mem = reach(addr, len, reads ? VFIO_WRITES : VFIO_READS);

	if (!mem)
		return false;
	if (model.stalls)
		wait_on(addr, len);
	else if (reads)
		memcpy(mem, model.medium + at, len);
	else
		memcpy(model.medium + at, mem, len);
	return true;
}

/* Section 4.3: the first page, then the second or a list, which does not go on in a further one here. */
static uint16_t transfer(const struct nvme_sqe *sqe)
{
	uint64_t at = (sqe->cdw10 | (uint64_t)sqe->cdw11 << 32) * MODEL_BLOCK;
	uint64_t left = ((sqe->cdw12 & 0xffff) + 1ull) * MODEL_BLOCK;
	uint64_t part = NVME_PAGE - sqe->prp1 % NVME_PAGE, addr = sqe->prp1, n = 0;
	bool is_list;

	if (at > MODEL_LEN || left > MODEL_LEN - at)
		return NVME_SC_LBA_RANGE;
	is_list = left > part + NVME_PAGE;
	for (;;) {
		part = part < left ? part : left;
		if (!move(sqe, addr, at, part))
			return NVME_SC_DATA_TRANSFER;
		left -= part;
		at += part;
		if (!left)
			return 0;
		addr = sqe->prp2;
		if (is_list) {
			uint64_t *entry = n < DWORDS ? (uint64_t *)reach(sqe->prp2 + n++ * 8, 8,
									 VFIO_READS)
						     : NULL;

			if (!entry)
				return NVME_SC_DATA_TRANSFER;
			addr = *entry;
		}
		if (addr % NVME_PAGE)
			return NVME_SC_INVALID_PRP_OFFSET;
		part = NVME_PAGE;
	}
}

static uint16_t zeroes(const struct nvme_sqe *sqe)
{
	uint64_t at = (sqe->cdw10 | (uint64_t)sqe->cdw11 << 32) * MODEL_BLOCK;
	uint64_t len = ((sqe->cdw12 & 0xffff) + 1ull) * MODEL_BLOCK;

	if (at > MODEL_LEN || len > MODEL_LEN - at)
		return NVME_SC_LBA_RANGE;
	memset(model.medium + at, 0, len);
	return 0;
}

static uint16_t identify(const struct nvme_sqe *sqe)
{
	uint8_t *page = reach(sqe->prp1, NVME_PAGE, VFIO_WRITES);
	struct nvme_id_ctrl *ctrl = (struct nvme_id_ctrl *)page;
	struct nvme_id_ns *ns = (struct nvme_id_ns *)page;

	if (!page)
		return NVME_SC_DATA_TRANSFER;
	memset(page, 0, NVME_PAGE);
	if (sqe->cdw10 == NVME_CNS_CONTROLLER) {
		ctrl->vid = 0x1234;
		memset(ctrl->sn, ' ', sizeof(ctrl->sn));
		memcpy(ctrl->sn, "MODEL1", 6);
		memset(ctrl->mn, ' ', sizeof(ctrl->mn));
		memcpy(ctrl->mn, "A model", 7);
		memset(ctrl->fr, ' ', sizeof(ctrl->fr));
		memcpy(ctrl->fr, "F1", 2);
		ctrl->mdts = 4; /* 64 KiB */
		ctrl->oncs = model.oncs;
		ctrl->vwc = NVME_VWC_PRESENT;
	} else {
		ns->nsze = ns->ncap = MODEL_LEN / MODEL_BLOCK;
		ns->lbaf[0].lbads = 9;
	}
	return 0;
}

/* It has room for one error: it refuses to tell of more, as it may. */
static uint16_t get_log(const struct nvme_sqe *sqe)
{
	uint32_t len = ((sqe->cdw10 >> 16) + 1) * 4;
	struct nvme_smart_log smart = { .temperature = { 77, 1 }, .host_reads = { 1234 } };
	struct nvme_error_log error = { .count = model.errors, .status = NVME_SC_INTERNAL << 1 };
	uint8_t *page = reach(sqe->prp1, len, VFIO_WRITES);

	if (!page)
		return NVME_SC_DATA_TRANSFER;
	smart.error_log_entries[0] = model.errors;
	if ((sqe->cdw10 & 0xff) == NVME_LOG_SMART && len == sizeof(smart))
		memcpy(page, &smart, sizeof(smart));
	else if ((sqe->cdw10 & 0xff) == NVME_LOG_ERROR && len == sizeof(error))
		memcpy(page, &error, sizeof(error));
	else
		return NVME_SC_INVALID_FIELD;
	return 0;
}

static uint16_t queue_make(const struct nvme_sqe *sqe, struct queue *queues)
{
	uint32_t qid = sqe->cdw10 & 0xffff;

	if (!qid || qid >= QUEUES || queues[qid].size)
		return NVME_SC_INVALID_QID;
	queues[qid] =
		(struct queue){ .addr = sqe->prp1, .size = (sqe->cdw10 >> 16) + 1, .phase = 1 };
	return 0;
}

static uint16_t admin(const struct nvme_sqe *sqe, uint32_t *result)
{
	switch (sqe->opcode) {
	case NVME_ADMIN_IDENTIFY:
		return identify(sqe);
	case NVME_ADMIN_GET_LOG_PAGE:
		return get_log(sqe);
	case NVME_ADMIN_SET_FEATURES:
		*result = (PAIRS - 1) | (PAIRS - 1) << 16;
		return 0;
	case NVME_ADMIN_CREATE_CQ:
		return queue_make(sqe, dev.cqs);
	case NVME_ADMIN_CREATE_SQ:
		return queue_make(sqe, dev.sqs);
	}
	return NVME_SC_INVALID_OPCODE;
}

static void post(uint32_t qid, uint16_t cid, uint16_t status, uint32_t result)
{
	struct queue *q = &dev.cqs[qid];
	struct nvme_cqe *cqe = (struct nvme_cqe *)reach(q->addr + q->at * sizeof(*cqe),
							sizeof(*cqe), VFIO_WRITES);
	uint64_t one = 1;

	if (!cqe)
		return;
	cqe->result = result;
	cqe->sq_id = (uint16_t)qid;
	cqe->sq_head = (uint16_t)dev.sqs[qid].at;
	cqe->cid = cid;
	atomic_store((_Atomic uint16_t *)&cqe->status, (uint16_t)(status << 1 | q->phase));
	if (++q->at == q->size) {
		q->at = 0;
		q->phase ^= 1;
	}
	if (qid && dev.irq >= 0 && write(dev.irq, &one, sizeof(one)) < 0)
		model.wild++;
}

static uint16_t io(const struct nvme_sqe *sqe)
{
	switch (sqe->opcode) {
	case NVME_IO_READ:
	case NVME_IO_WRITE:
		return transfer(sqe);
	case NVME_IO_WRITE_ZEROES:
		return zeroes(sqe);
	case NVME_IO_FLUSH:
		return 0;
	}
	return NVME_SC_INVALID_OPCODE;
}

/* The next command of a queue. Returns whether there was one */
static bool queue_step(uint32_t qid)
{
	struct queue *q = &dev.sqs[qid];
	uint32_t tail = *reg(NVME_REG_DOORBELLS + 8 * qid), result = 0;
	struct nvme_sqe *at, sqe;
	uint16_t status;

	if (!q->size || tail >= q->size || q->at == tail)
		return false;
	at = (struct nvme_sqe *)reach(q->addr + q->at * sizeof(sqe), sizeof(sqe), VFIO_READS);
	if (!at)
		return false;
	sqe = *at;
	q->at = q->at + 1 == q->size ? 0 : q->at + 1;
	status = qid ? io(&sqe) : admin(&sqe, &result);
	if (qid && model.stalls)
		return true;
	if (qid && model.forges) {
		post(qid, (uint16_t)(sqe.cid ^ 0x55), 0, 0);
		post(qid, 60000, 0, 0);
	}
	post(qid, sqe.cid, status, result);
	return true;
}

static void begin(void)
{
	uint32_t aqa = *reg(NVME_REG_AQA);

	memset(dev.sqs, 0, sizeof(dev.sqs));
	memset(dev.cqs, 0, sizeof(dev.cqs));
	memset(dev.bar + NVME_REG_DOORBELLS, 0, BAR_LEN - NVME_REG_DOORBELLS);
	dev.sqs[0] = (struct queue){ reg64(NVME_REG_ASQ), NVME_AQA_ASQS(aqa) + 1, 0, 1 };
	dev.cqs[0] = (struct queue){ reg64(NVME_REG_ACQ), NVME_AQA_ACQS(aqa) + 1, 0, 1 };
	dev.enabled = true;
	*reg(NVME_REG_CSTS) = NVME_CSTS_RDY;
}

static void end(void)
{
	dev.enabled = false;
	dev.wait_cnt = 0;
	*reg(NVME_REG_CSTS) = 0;
}

static bool step(void)
{
	uint32_t cc = *reg(NVME_REG_CC);
	bool any = false;

	if (dev.vanished)
		return false;
	if (cc & NVME_CC_EN && !dev.enabled && !model.never_ready) {
		begin();
		return true;
	}
	if (!(cc & NVME_CC_EN) && dev.enabled && !model.stuck) {
		model.stops++;
		end();
		return true;
	}
	if (dev.enabled && NVME_CC_SHN(cc))
		*reg(NVME_REG_CSTS) = NVME_CSTS_RDY | NVME_CSTS_SHST_DONE;
	for (uint32_t qid = 0; dev.enabled && qid < QUEUES; qid++)
		any |= queue_step(qid);
	return any;
}

static void *run(void *arg)
{
	bool stop = false, any;

	while (!stop) {
		pthread_mutex_lock(&dev.lock);
		any = step();
		stop = dev.stop;
		times.turns++;
		pthread_mutex_unlock(&dev.lock);
		if (!any)
			nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
	}
	return arg;
}

void model_ask_back(void)
{
	uint64_t one = 1;

	if (write(dev.alarm, &one, sizeof(one)) < 0)
		model.wild++;
}

void model_vanish(void)
{
	pthread_mutex_lock(&dev.lock);
	dev.vanished = true;
	dev.enabled = false;
	memset(dev.bar, ALL_ONES, BAR_LEN);
	pthread_mutex_unlock(&dev.lock);
}

/* What follows is vfio.h's. */

int vfio_open(struct vfio *v, const char *address, char *why)
{
	*v = (struct vfio){ .container = -1,
			    .group = -1,
			    .device = -1,
			    .bar_len = BAR_LEN,
			    .vectors = QUEUES,
			    .range_cnt = 2,
			    .ranges = { { 0, 0xfedfffff }, { 0xfef00000, (1ull << 39) - 1 } } };
	strncpy(v->name, address, sizeof(v->name) - 1);
	v->alarm = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	v->bar = mmap(NULL, BAR_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	dev.bar = v->bar;
	dev.alarm = v->alarm;
	dev.irq = -1;
	dev.stop = dev.enabled = dev.vanished = false;
	dev.wait_cnt = 0;
	model.cmb = NULL;
	memset(dev.maps, 0, sizeof(dev.maps));
	/* Entries less one, and the NVM command set; it is ready within half a second, and doorbells are dense. */
	*reg(NVME_REG_CAP) = 127;
	*reg(NVME_REG_CAP + 4) = (uint32_t)(NVME_CAP_CSS_NVM >> 32);
	if (model.has_cmb) {
		model.cmb = mmap(NULL, MODEL_CMB, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		*reg(NVME_REG_CAP + 4) |= (uint32_t)(NVME_CAP_CMBS >> 32);
		*reg(NVME_REG_CMBLOC) = 2;
		*reg(NVME_REG_CMBSZ) = MODEL_CMB / NVME_PAGE << NVME_CMBSZ_SZ_SHIFT |
				       NVME_CMBSZ_RDS | NVME_CMBSZ_WDS;
	}
	return pthread_create(&dev.thread, NULL, run, NULL) ? -ENOMEM : 0;
}

/* In the place of the mapping is one that can be unmapped, and shows the same. */
void *vfio_bar_map(struct vfio *v, uint32_t bar, uint64_t at, uint64_t len)
{
	if (bar != 2 || at || len != MODEL_CMB)
		return NULL;
	return mremap(model.cmb, 0, MODEL_CMB, MREMAP_MAYMOVE);
}

void vfio_close(struct vfio *v)
{
	pthread_mutex_lock(&dev.lock);
	dev.stop = true;
	pthread_mutex_unlock(&dev.lock);
	pthread_join(dev.thread, NULL);
	munmap(v->bar, BAR_LEN);
	if (model.cmb)
		munmap(model.cmb, MODEL_CMB);
	model.cmb = NULL;
	close(v->alarm);
}

int vfio_map(struct vfio *v, uint64_t addr, void *mem, uint64_t len, uint32_t access)
{
	int ret = -ENOMEM;

	pthread_mutex_lock(&dev.lock);
	for (uint32_t i = 0; i < MAPS && ret; i++)
		if (!dev.maps[i].len) {
			dev.maps[i] = (struct map){ addr, len, mem, access };
			model.mapped++;
			ret = 0;
		}
	pthread_mutex_unlock(&dev.lock);
	return ret;
}

int vfio_unmap(struct vfio *v, uint64_t addr, uint64_t len)
{
	int ret = -ENOENT;

	pthread_mutex_lock(&dev.lock);
	for (uint32_t i = 0; i < MAPS && ret; i++)
		if (dev.maps[i].len == len && dev.maps[i].addr == addr) {
			dev.maps[i].len = 0;
			model.mapped--;
			ret = 0;
		}
	for (uint32_t i = 0; i < dev.wait_cnt; i++)
		if (dev.waits[i].addr >= addr && dev.waits[i].addr - addr < len)
			model.under_way++;
	pthread_mutex_unlock(&dev.lock);
	return ret;
}

int vfio_interrupts(struct vfio *v, const int *fds, uint32_t cnt)
{
	dev.irq = fds[0];
	return 0;
}

int vfio_interrupt(struct vfio *v, uint32_t vector, int fd)
{
	return 0;
}

int vfio_reset(struct vfio *v)
{
	pthread_mutex_lock(&dev.lock);
	model.resets++;
	if (!dev.vanished) {
		*reg(NVME_REG_CC) = 0;
		end();
	}
	pthread_mutex_unlock(&dev.lock);
	return 0;
}

int vfio_may_access(struct vfio *v, bool may)
{
	model.may_access = may;
	return 0;
}
