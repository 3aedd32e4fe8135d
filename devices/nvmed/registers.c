/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registers: reading, writing, and what a write sets going */
#define _GNU_SOURCE
#include "registers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io.h"
#include "nvmed.h"

#define TIMEOUT_HALF_SECONDS 60u
#define RESERVED_BEHIND	     0x60u

static void publish32(struct nvmed *c, uint32_t at, uint32_t value)
{
	/* R:registers  what a change of state did; pairs the owner's acquire, or the answer of the slot */
	atomic_store_explicit((_Atomic uint32_t *)(c->regs.page + at), value,
			      memory_order_release);
}

static void publish64(struct nvmed *c, uint32_t at, uint64_t value)
{
	publish32(c, at, (uint32_t)value);
	publish32(c, at + 4, (uint32_t)(value >> 32));
}

static uint32_t published(const struct nvmed *c, uint64_t at)
{
	return atomic_load_explicit((_Atomic uint32_t *)(c->regs.page + at),
				    memory_order_relaxed);
}

static void set_csts(struct nvmed *c, uint32_t csts)
{
	c->regs.csts = csts;
	publish32(c, NVME_REG_CSTS, csts);
}

static void set_mask(struct nvmed *c, uint32_t mask)
{
	publish32(c, NVME_REG_INTMS, mask);
	publish32(c, NVME_REG_INTMC, mask);
	vectors_mask(c, mask);
}

static uint64_t capabilities(const struct nvmed *c)
{
	return (QUEUE_SIZE_MAX - 1) | NVME_CAP_CQR |
	       (uint64_t)TIMEOUT_HALF_SECONDS << NVME_CAP_TO_SHIFT |
	       (uint64_t)SLOT_DSTRD << NVME_CAP_DSTRD_SHIFT | NVME_CAP_CSS_NVM |
	       (c->cmb.len ? NVME_CAP_CMBS : 0);
}

int registers_init(struct nvmed *c)
{
	struct registers *r = &c->regs;
	int ret;

	r->fd = memfd_create("weft-nvmed registers", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (r->fd < 0)
		return -errno;
	if (ftruncate(r->fd, NVME_PAGE))
		goto err_close;
	r->page = mmap(NULL, NVME_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (r->page == MAP_FAILED)
		goto err_close;
	/* From here on nobody else gets to write it. */
	if (fcntl(r->fd, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL))
		goto err_unmap;
	publish64(c, NVME_REG_CAP, capabilities(c));
	publish32(c, NVME_REG_VS, NVME_VERSION_1_4);
	return 0;

err_unmap:
	ret = -errno;
	munmap(r->page, NVME_PAGE);
	close(r->fd);
	return ret;
err_close:
	ret = -errno;
	close(r->fd);
	return ret;
}

void registers_fini(struct nvmed *c)
{
	munmap(c->regs.page, NVME_PAGE);
	close(c->regs.fd);
}

void registers_fatal(struct nvmed *c)
{
	set_csts(c, c->regs.csts | NVME_CSTS_CFS);
}

/* Whether CC asks for what there is. The sizes of I/O entries matter when queues are created. */
static bool enable_check(const struct registers *r)
{
	return !NVME_CC_MPS(r->cc) && !NVME_CC_CSS(r->cc) && !NVME_CC_AMS(r->cc) &&
	       NVME_AQA_ASQS(r->aqa) && NVME_AQA_ACQS(r->aqa);
}

static bool admin_queues_create(struct nvmed *c)
{
	const struct registers *r = &c->regs;
	struct queue_request req = { .interrupts = true, .lease = &c->leases.each[0] };

	req.size = NVME_AQA_ACQS(r->aqa) + 1;
	req.addr = r->acq;
	if (cq_create(c, &req))
		return false;
	req.size = NVME_AQA_ASQS(r->aqa) + 1;
	req.addr = r->asq;
	if (!sq_create(c, &req))
		return true;
	cq_destroy(c, c->cqs[0]);
	return false;
}

static void enable(struct nvmed *c)
{
	if (!enable_check(&c->regs) || !admin_queues_create(c)) {
		registers_fatal(c);
		return;
	}
	c->regs.state = REGISTERS_ENABLED;
	set_csts(c, c->regs.csts | NVME_CSTS_RDY);
}

/*
 * A reset stops every queue. The owner's have no completions any more; borrowers are told what ends, in theirs, as
 * at the end of a lease.
 */
static void reset(struct nvmed *c)
{
	c->regs.state = REGISTERS_RESETTING;
	cqs_notify(c);
	for (uint32_t i = 0; i <= c->config.queue_cnt; i++)
		if (c->cqs[i] && c->cqs[i]->lease == &c->leases.each[0])
			c->cqs[i]->broken = true;
	leases_reset(c);
	for (uint32_t i = 0; i <= c->config.queue_cnt; i++)
		if (c->sqs[i])
			sq_stop(c, c->sqs[i], NVME_SC_ABORT_SQ_DELETED);
	c->chores = true;
}

static bool queues_left(const struct nvmed *c)
{
	for (uint32_t i = 0; i <= c->config.queue_cnt; i++)
		if (c->sqs[i])
			return true;
	return false;
}

static void reset_end(struct nvmed *c)
{
	for (uint32_t i = 0; i <= c->config.queue_cnt; i++)
		if (c->cqs[i])
			cq_destroy(c, c->cqs[i]);
	events_reset(c);
	features_reset(c);
	set_mask(c, 0);
	c->regs.state = REGISTERS_DISABLED;
	set_csts(c, 0);
	if (c->regs.cc & NVME_CC_EN)
		enable(c);
}

static void shutdown_begin(struct nvmed *c)
{
	set_csts(c, (c->regs.csts & ~(3u << 2)) | NVME_CSTS_SHST_BUSY);
	c->regs.flushing = true;
	c->chores = true;
}

void registers_flushed(struct nvmed *c)
{
	set_csts(c, (c->regs.csts & ~(3u << 2)) | NVME_CSTS_SHST_DONE);
}

static void shutdown_advance(struct nvmed *c)
{
	struct piece *p = piece_get(c);

	if (!p)
		return;
	c->regs.flushing = false;
	*p = (struct piece){ .op = PIECE_FLUSH };
	if (!c->backend->write_cache || c->backend->ops->start(c->backend, p)) {
		piece_put(c, p);
		registers_flushed(c);
	}
}

bool registers_advance(struct nvmed *c)
{
	if (c->regs.flushing)
		shutdown_advance(c);
	if (c->regs.state == REGISTERS_RESETTING && !queues_left(c) && !c->leases.ending)
		reset_end(c);
	return c->regs.flushing || c->regs.state == REGISTERS_RESETTING;
}

static void write_cc(struct nvmed *c, uint32_t cc)
{
	uint32_t before = c->regs.cc;

	c->regs.cc = cc;
	publish32(c, NVME_REG_CC, cc);
	if (NVME_CC_SHN(cc) && !NVME_CC_SHN(before))
		shutdown_begin(c);
	if (cc & NVME_CC_EN && !(before & NVME_CC_EN)) {
		if (c->regs.state == REGISTERS_DISABLED)
			enable(c);
	} else if (!(cc & NVME_CC_EN) && before & NVME_CC_EN) {
		if (c->regs.state != REGISTERS_RESETTING)
			reset(c);
	}
}

/* Controller memory shows itself, and is at an address of the owner's domain, when it is told so. */
static void write_cmbmsc(struct nvmed *c, uint64_t cmbmsc)
{
	struct lease *owner = &c->leases.each[0];
	uint64_t shown = NVME_CMBMSC_CRE | NVME_CMBMSC_CMSE, before = c->regs.cmbmsc, end;
	uint64_t base = NVME_CMBMSC_CBA(cmbmsc);
	uint32_t status = 0;

	if (!c->cmb.len)
		return;
	cmbmsc &= shown | ~0xfffull;
	if ((before & shown) == shown)
		domain_unmap(&owner->domain, NVME_CMBMSC_CBA(before), c->cmb.len);
	c->regs.cmbmsc = cmbmsc;
	if ((cmbmsc & shown) == shown && (__builtin_add_overflow(base, c->cmb.len, &end) ||
					  domain_map_own(&owner->domain, base, c->cmb.len,
							 c->cmb.base, c->cmb.device_addr))) {
		c->regs.cmbmsc &= ~NVME_CMBMSC_CMSE;
		status = NVME_CMBSTS_CBAI;
	}
	queues_remap(c, owner);
	publish64(c, NVME_REG_CMBMSC, cmbmsc);
	publish32(c, NVME_REG_CMBSTS, status);
	publish32(c, NVME_REG_CMBLOC, cmbmsc & NVME_CMBMSC_CRE ? cmb_location(&c->cmb) : 0);
	publish32(c, NVME_REG_CMBSZ, cmbmsc & NVME_CMBMSC_CRE ? cmb_size(&c->cmb) : 0);
}

static void write_address(struct nvmed *c, uint64_t *reg, uint32_t at, uint32_t half,
			  uint32_t value)
{
	if (c->regs.state != REGISTERS_DISABLED)
		return;
	if (half)
		*reg = (*reg & UINT32_MAX) | (uint64_t)value << 32;
	else
		*reg = (*reg & ~(uint64_t)UINT32_MAX) | (value & ~(NVME_PAGE - 1));
	publish64(c, at, *reg);
}

static void write32(struct nvmed *c, uint64_t at, uint32_t value)
{
	switch (at) {
	case NVME_REG_INTMS:
		set_mask(c, c->vectors.mask | value);
		break;
	case NVME_REG_INTMC:
		set_mask(c, c->vectors.mask & ~value);
		break;
	case NVME_REG_CC:
		write_cc(c, value);
		break;
	case NVME_REG_AQA:
		if (c->regs.state != REGISTERS_DISABLED)
			break;
		c->regs.aqa = value & 0x0fff0fff;
		publish32(c, NVME_REG_AQA, c->regs.aqa);
		break;
	case NVME_REG_ASQ:
	case NVME_REG_ASQ + 4:
		write_address(c, &c->regs.asq, NVME_REG_ASQ, at != NVME_REG_ASQ, value);
		break;
	case NVME_REG_ACQ:
	case NVME_REG_ACQ + 4:
		write_address(c, &c->regs.acq, NVME_REG_ACQ, at != NVME_REG_ACQ, value);
		break;
	case NVME_REG_CMBMSC:
		write_cmbmsc(c, (c->regs.cmbmsc & ~(uint64_t)UINT32_MAX) | value);
		break;
	case NVME_REG_CMBMSC + 4:
		write_cmbmsc(c, (c->regs.cmbmsc & UINT32_MAX) | (uint64_t)value << 32);
		break;
	}
}

/* A doorbell, through the slot: into the page, as if its owner had written it there */
static void write_doorbell(struct nvmed *c, uint64_t at, uint32_t value)
{
	uint64_t index = (at - NVME_REG_DOORBELLS) >> (2 + SLOT_DSTRD);
	uint64_t qid = index / 2;
	bool completion = index & 1;
	struct slot_doorbells *page;

	if (at & ((4u << SLOT_DSTRD) - 1) || qid > c->config.queue_cnt ||
	    !(completion ? (void *)c->cqs[qid] : (void *)c->sqs[qid])) {
		errors_add(c, &(struct nvme_error_log){ .sq_id = (uint16_t)qid,
							.cid = 0xffff,
							.location = 0xffff });
		event_raise(c, NVME_EVENT(NVME_EVENT_TYPE_ERROR, NVME_EVENT_BAD_DOORBELL_REG,
					  NVME_LOG_ERROR));
		return;
	}
	page = c->bells[qid].page;
	doorbell_store(completion ? &page->cq_head : &page->sq_tail, value);
}

static uint64_t doorbells_end(const struct nvmed *c)
{
	return NVME_REG_DOORBELLS + (c->config.queue_cnt + 1ull) * sizeof(struct slot_doorbells);
}

int registers_read(struct nvmed *c, uint64_t at, uint64_t len, uint64_t *value)
{
	if ((len != 4 && len != 8) || at % len || at >= doorbells_end(c))
		return -EINVAL;
	*value = 0;
	if (at >= NVME_REG_DOORBELLS)
		return 0;
	*value = published(c, at);
	if (len == 8)
		*value |= (uint64_t)published(c, at + 4) << 32;
	return 0;
}

int registers_write(struct nvmed *c, uint64_t at, uint64_t len, uint64_t value)
{
	if ((len != 4 && len != 8) || at % len || at >= doorbells_end(c) ||
	    (len == 4 && value >> 32))
		return -EINVAL;
	if (at >= NVME_REG_DOORBELLS) {
		if (len != 4)
			return -EINVAL;
		write_doorbell(c, at, (uint32_t)value);
		return 0;
	}
	if (at >= RESERVED_BEHIND)
		return 0;
	if (len == 8 && at == NVME_REG_CMBMSC) {
		write_cmbmsc(c, value);
		return 0;
	}
	write32(c, at, (uint32_t)value);
	if (len == 8)
		write32(c, at + 4, (uint32_t)(value >> 32));
	return 0;
}
