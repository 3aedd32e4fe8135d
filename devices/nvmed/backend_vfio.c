/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A namespace of a real controller (vfio/card.h). A piece is a command of its, whose data moves between it and the
 * windows themselves: these are mapped in the IOMMU at addresses that are known here alone. What borrowers write never
 * reaches the controller: its queues, PRPs and doorbells are this process's.
 *
 * A controller that does not end a command in time is reset, and all that it has ends with an error. Pieces begun
 * meanwhile end with Namespace Not Ready, which says that a later try makes sense.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend_vfio.h"
#include "nvme/spec.h"
#include "slot/slot.h"

#define NSID   1u
#define BYTES  (4u << 20)
#define ZEROES (4u << 20)

/* How often commands under way are looked at */
#define LOOK_NS 100000000ull

static_assert(PIECE_SEGS_MAX - 1 <= NVME_PAGE / sizeof(uint64_t), "a page of PRPs is enough");

/* Point a command at its piece's data: the first page, the second one or a list of those behind. */
static void data_point(struct hard *h, struct nvme_sqe *sqe, const struct piece *p)
{
	uint64_t list_addr, *list = card_list(&h->card, sqe->cid, &list_addr);
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->seg_cnt; i++) {
		const struct segment *s = &p->segs[i];
		uint64_t addr = s->window->device_addr + s->at, left = s->len;

		while (left) {
			uint64_t part = NVME_PAGE - addr % NVME_PAGE;

			part = part < left ? part : left;
			if (n)
				list[n - 1] = addr;
			else
				sqe->prp1 = addr;
			n++;
			addr += part;
			left -= part;
		}
	}
	if (n == 2)
		sqe->prp2 = list[0];
	else if (n > 2)
		sqe->prp2 = list_addr;
}

static void range_point(struct hard *h, struct nvme_sqe *sqe, const struct piece *p)
{
	struct nvme_dsm_range range = { .blocks = (uint32_t)(p->len / h->device.block),
					.lba = p->offset / h->device.block };
	uint64_t addr;

	memcpy(card_list(&h->card, sqe->cid, &addr), &range, sizeof(range));
	sqe->prp1 = addr;
	sqe->cdw11 = NVME_DSM_DEALLOCATE;
}

static void range_of(const struct hard *h, struct nvme_sqe *sqe, const struct piece *p)
{
	uint64_t lba = p->offset / h->device.block;

	sqe->cdw10 = (uint32_t)lba;
	sqe->cdw11 = (uint32_t)(lba >> 32);
	sqe->cdw12 = (uint32_t)(p->len / h->device.block - 1) | (p->durable ? NVME_RW_FUA : 0);
}

static void command_make(struct hard *h, struct nvme_sqe *sqe, const struct piece *p)
{
	sqe->nsid = NSID;
	switch (p->op) {
	case PIECE_READ:
	case PIECE_WRITE:
	case PIECE_COMPARE:
		sqe->opcode = p->op == PIECE_READ    ? NVME_IO_READ
			      : p->op == PIECE_WRITE ? NVME_IO_WRITE
						     : NVME_IO_COMPARE;
		range_of(h, sqe, p);
		data_point(h, sqe, p);
		break;
	case PIECE_ZERO:
	case PIECE_DEALLOCATE:
		sqe->opcode = NVME_IO_WRITE_ZEROES;
		range_of(h, sqe, p);
		if (p->op == PIECE_DEALLOCATE && h->device.dlfeat & 1u << 3)
			sqe->cdw12 |= NVME_RW_DEAC;
		break;
	case PIECE_DISCARD:
		sqe->opcode = NVME_IO_DSM;
		range_point(h, sqe, p);
		break;
	case PIECE_FLUSH:
		sqe->opcode = NVME_IO_FLUSH;
		break;
	}
}

static bool hard_start(struct backend *b, struct piece *p)
{
	struct hard *h = (struct hard *)b;
	struct nvme_sqe sqe = { 0 };

	if (h->card.state != CARD_RUNS) {
		p->status = NVME_SC_NOT_READY;
		return true;
	}
	assert(h->free_cnt);
	sqe.cid = h->free[--h->free_cnt];
	h->requests[sqe.cid] = (struct request){ .piece = p };
	command_make(h, &sqe, p);
	card_put(&h->card, &sqe);
	return false;
}

static void hard_submit(struct backend *b)
{
	card_ring(&((struct hard *)b)->card);
}

/* What was read for several is in the first one's memory. */
static void multicast_copy(const struct piece *p)
{
	for (uint32_t i = 0; i < p->seg_cnt; i++) {
		const struct segment *s = &p->segs[i];

		for (uint32_t f = 1; f < s->window->file_cnt; f++)
			memcpy(s->window->files[f].base + s->at,
			       s->window->files[0].base + s->at, s->len);
	}
}

static struct piece *request_end(struct hard *h, uint16_t id, uint16_t status)
{
	struct piece *p = h->requests[id].piece;

	h->requests[id].piece = NULL;
	h->free[h->free_cnt++] = id;
	p->status = status;
	if (!status && p->op == PIECE_READ)
		multicast_copy(p);
	return p;
}

static uint32_t hard_reap(struct backend *b, void (*done)(void *, struct piece *), void *arg)
{
	struct hard *h = (struct hard *)b;
	struct nvme_cqe cqe;
	uint32_t cnt = 0;

	if (h->free_cnt == CARD_COMMANDS)
		return 0;
	while (card_take(&h->card, &cqe)) {
		/* An entry of a command that is not under way is the controller's mistake. */
		if (cqe.cid >= CARD_COMMANDS || !h->requests[cqe.cid].piece)
			continue;
		done(arg, request_end(h, cqe.cid,
				      NVME_CQE_STATUS(cqe.status) & (0x7ff | NVME_SC_DNR)));
		cnt++;
	}
	for (uint16_t id = 0; card_is_quiet(&h->card) && id < CARD_COMMANDS; id++)
		if (h->requests[id].piece) {
			done(arg, request_end(h, id, NVME_SC_INTERNAL));
			cnt++;
		}
	card_ring(&h->card);
	return cnt;
}

static int hard_event(struct backend *b)
{
	return ((struct hard *)b)->card.irq;
}

static int hard_alarm(struct backend *b)
{
	return ((struct hard *)b)->card.vfio.alarm;
}

int hard_admin(struct hard *h, struct nvme_sqe *sqe, void *data)
{
	int ret = h->card.state == CARD_RUNS ? card_admin(&h->card, sqe, data, NULL) : -ENODEV;

	if (ret == -ETIMEDOUT)
		card_fail(&h->card, h->now, "an admin command does not end");
	return ret < 0 ? NVME_SC_NOT_READY : ret;
}

/* From its beginning: not every controller knows offsets. */
static int hard_log(struct backend *b, uint8_t id, void *page, uint32_t len)
{
	uint8_t whole[NVME_PAGE];
	struct nvme_sqe sqe = { .opcode = NVME_ADMIN_GET_LOG_PAGE,
				.nsid = UINT32_MAX,
				.cdw10 = id | (len / 4 - 1) << 16 };
	int status = hard_admin((struct hard *)b, &sqe, whole);

	if (!status)
		memcpy(page, whole, len);
	return status;
}

/* @missed: by how much this look is later than it was to be. In that time nobody asked for completions. */
static bool is_late(struct hard *h, uint64_t now, uint64_t missed)
{
	for (uint32_t id = 0; id < CARD_COMMANDS; id++) {
		struct request *r = &h->requests[id];

		if (!r->piece)
			continue;
		if (!r->since)
			r->since = now;
		r->since += now - r->since < missed ? now - r->since : missed;
		if (now - r->since > h->deadline_ns)
			return true;
	}
	return false;
}

static uint64_t hard_due(struct backend *b, uint64_t now)
{
	struct hard *h = (struct hard *)b;
	bool under_way = h->free_cnt < CARD_COMMANDS;
	uint64_t next;

	h->now = now;
	if (now >= h->next_look) {
		uint64_t missed = now - h->next_look;

		h->next_look = now + LOOK_NS;
		card_look(&h->card, now);
		if (under_way && is_late(h, now, missed))
			card_fail(&h->card, now, "a command does not end");
	}
	next = card_advance(&h->card, now);
	if (h->b.pairs)
		pairs_look(h);
	b->gone = h->card.state == CARD_GONE;
	/* Of direct borrowers' commands nothing is known: the controller is looked at as long as there may be some. */
	if ((under_way || h->b.pairs) && h->next_look < next)
		next = h->next_look;
	return next;
}

uint32_t hard_access(uint32_t access)
{
	return (access & SLOT_DMA_READ ? VFIO_READS : 0) |
	       (access & SLOT_DMA_WRITE ? VFIO_WRITES : 0);
}

static int window_come(void *arg, struct window *w)
{
	struct hard *h = arg;
	int ret = card_map(&h->card, w->files[0].base, w->len, hard_access(w->access),
			   &w->device_addr);

	if (ret == -ENOMEM)
		warnx("a window of %llu bytes does not fit in what may be locked (ulimit -l), "
		      "or in memory",
		      (unsigned long long)w->len);
	return ret ? -ENOMEM : 0;
}

bool hard_window_go(void *arg, struct window *w)
{
	struct hard *h = arg;
	int ret = card_unmap(&h->card, w->device_addr, w->len);

	if (ret)
		warnx("a window of %llu bytes can't be unmapped, and stays: %s",
		      (unsigned long long)w->len, strerror(-ret));
	return !ret;
}

static void hard_close(struct backend *b)
{
	struct hard *h = (struct hard *)b;

	card_close(&h->card);
	pairs_close(h);
	free(h);
}

static void text_take(char *to, const char *from, size_t len)
{
	while (len && (from[len - 1] == ' ' || !from[len - 1]))
		len--;
	memcpy(to, from, len);
	to[len] = '\0';
}

/* What its namespace is. Returns 0 or a negative errno, with @why */
static int namespace_take(struct hard *h, char *why)
{
	const struct nvme_id_ctrl *ctrl = &h->card.ctrl;
	const struct nvme_id_ns *ns = &h->card.ns;
	const struct nvme_lba_format *format = &ns->lbaf[ns->flbas & 0xf];
	uint32_t block = format->lbads < 32 ? 1u << format->lbads : 0;

	if (!ns->nsze || ns->nsze > INT64_MAX / 4096 || format->ms ||
	    (block != 512 && block != 4096)) {
		snprintf(why, VFIO_WHY_MAX,
			 "%s: its namespace 1 is not one of blocks of 512 or 4096 bytes "
			 "without metadata",
			 h->card.vfio.name);
		return -ENOTSUP;
	}
	h->device = (struct backend_device){
		.block = block,
		.vendor = ctrl->vid,
		.subsystem = ctrl->ssvid,
		.oncs = ctrl->oncs &
			(NVME_ONCS_COMPARE | NVME_ONCS_DSM | NVME_ONCS_WRITE_ZEROES),
		.dlfeat = ns->dlfeat,
		.mdts = ctrl->mdts,
		.warm = ctrl->wctemp,
		.hot = ctrl->cctemp,
	};
	text_take(h->device.serial, ctrl->sn, sizeof(ctrl->sn));
	text_take(h->device.model, ctrl->mn, sizeof(ctrl->mn));
	text_take(h->device.firmware, ctrl->fr, sizeof(ctrl->fr));
	return 0;
}

static void ops_make(struct hard *h)
{
	uint8_t mdts = h->card.ctrl.mdts;

	h->ops = (struct backend_ops){
		.slice = PIECE_LEN_MAX,
		.zeroes = ZEROES,
		.depth = h->card.io.sq_size - 1 < CARD_COMMANDS ? h->card.io.sq_size - 1
								: CARD_COMMANDS,
		.bytes = BYTES,
		.start = hard_start,
		.submit = hard_submit,
		.reap = hard_reap,
		.event = hard_event,
		.due = hard_due,
		.alarm = hard_alarm,
		.log = hard_log,
		.close = hard_close,
	};
	if (mdts && mdts < 8 && NVME_PAGE << mdts < PIECE_LEN_MAX)
		h->ops.slice = NVME_PAGE << mdts;
	h->hooks = (struct window_hooks){ window_come, hard_window_go, h };
	h->b = (struct backend){ .ops = &h->ops,
				 .len = h->card.ns.nsze * h->device.block,
				 .write_cache = h->card.ctrl.vwc & NVME_VWC_PRESENT,
				 .how = "a real controller, by VFIO",
				 .device = &h->device,
				 .hooks = &h->hooks };
}

static int memory_take(struct hard *h, char *why)
{
	const struct card_memory *m = &h->card.memory;
	int ret = card_memory_open(&h->card);

	if (ret)
		snprintf(why, VFIO_WHY_MAX,
			 "%s: the controller does not begin with its own memory: %s",
			 h->card.vfio.name, strerror(-ret));
	if (ret || !m->base)
		return ret;
	h->memory = (struct backend_memory){ m->base, m->len, m->addr };
	h->b.memory = &h->memory;
	return 0;
}

int backend_vfio_open(const struct backend_vfio *from, struct backend **b, char *why)
{
	struct hard *h = calloc(1, sizeof(*h));
	int ret;

	if (!h)
		return -ENOMEM;
	h->watchdog = -1;
	ret = card_open(&h->card, from->address, from->direct ? UINT32_MAX : 1, why);
	if (ret)
		goto err_free;
	ret = namespace_take(h, why);
	if (ret)
		goto err_close;
	h->deadline_ns = from->deadline_ms * 1000000ull;
	for (uint16_t id = 0; id < CARD_COMMANDS; id++)
		h->free[h->free_cnt++] = (uint16_t)(CARD_COMMANDS - 1 - id);
	ops_make(h);
	ret = from->direct ? pairs_open(h, why) : memory_take(h, why);
	if (ret)
		goto err_close;
	*b = &h->b;
	return 0;

err_close:
	card_close(&h->card);
err_free:
	free(h);
	return ret;
}
