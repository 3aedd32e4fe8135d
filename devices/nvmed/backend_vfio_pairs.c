/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pairs of a real controller that borrowers use by themselves. They have its doorbells, and for that a descriptor
 * of the device, with which they can do anything to it: they are trusted. What is left to this process: making and
 * deleting queues, memory, interrupts, and the end of a lease.
 *
 * The front end's pair N is the controller's N + 1: the first one is this process's.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend_vfio.h"
#include "nvme/spec.h"
#include "slot/slot.h"
#include "watchdog.h"

static uint32_t device_qid(uint16_t qid)
{
	return qid + CARD_QID;
}

static int pairs_create_cq(struct backend *b, const struct backend_queue *q)
{
	struct hard *h = (struct hard *)b;
	struct nvme_sqe sqe = {
		.opcode = NVME_ADMIN_CREATE_CQ,
		.prp1 = q->addr,
		.cdw10 = device_qid(q->qid) | (q->size - 1) << 16,
		.cdw11 = NVME_QUEUE_CONTIGUOUS |
			 (q->interrupts ? NVME_CQ_INTERRUPTS | (uint32_t)q->vector << 16 : 0),
	};

	if (q->interrupts && (!q->vector || q->vector >= h->card.vectors))
		return NVME_SC_INVALID_VECTOR;
	return hard_admin(h, &sqe, NULL);
}

static int pairs_create_sq(struct backend *b, const struct backend_queue *q)
{
	struct nvme_sqe sqe = {
		.opcode = NVME_ADMIN_CREATE_SQ,
		.prp1 = q->addr,
		.cdw10 = device_qid(q->qid) | (q->size - 1) << 16,
		.cdw11 = NVME_QUEUE_CONTIGUOUS | device_qid(q->qid) << 16,
	};

	return hard_admin((struct hard *)b, &sqe, NULL);
}

/* Whatever the answer is, a controller that runs and has answered has no such queue any more. */
static bool delete (struct hard *h, uint8_t opcode, uint16_t qid)
{
	struct nvme_sqe sqe = { .opcode = opcode, .cdw10 = device_qid(qid) };

	if (card_is_quiet(&h->card))
		return true;
	return h->card.state == CARD_RUNS && hard_admin(h, &sqe, NULL) != NVME_SC_NOT_READY;
}

static bool pairs_delete_sq(struct backend *b, uint16_t qid)
{
	return delete ((struct hard *)b, NVME_ADMIN_DELETE_SQ, qid);
}

static void pairs_delete_cq(struct backend *b, uint16_t qid)
{
	delete ((struct hard *)b, NVME_ADMIN_DELETE_CQ, qid);
}

static int pairs_set_vector(struct backend *b, uint32_t vector, int fd)
{
	struct hard *h = (struct hard *)b;

	if (!vector || vector >= h->card.vectors)
		return fd >= 0 ? -EINVAL : 0;
	return vfio_interrupt(&h->card.vfio, vector, fd);
}

static int pairs_find_page(struct backend *b, uint16_t qid, int pidfd, struct backend_page *page)
{
	struct hard *h = (struct hard *)b;
	uint16_t of = (uint16_t)device_qid(qid);
	uint64_t sq = card_bell(&h->card, of, false), cq = card_bell(&h->card, of, true);
	uint64_t first = sq / NVME_PAGE * NVME_PAGE;
	int ret = watchdog_tell(h->watchdog, pidfd);

	/* Nobody would end it: there are no pairs for anyone. */
	if (ret)
		return ret == -EPIPE ? -ENOSPC : ret;
	*page = (struct backend_page){
		.fd = h->card.vfio.device,
		.offset = h->card.vfio.bar_offset + first,
		.len = (uint32_t)(cq / NVME_PAGE * NVME_PAGE + NVME_PAGE - first),
		.sq = (uint32_t)(sq - first),
		.cq = (uint32_t)(cq - first),
	};
	return 0;
}

/* The borrower's address is the device's. */
static int window_come(void *arg, struct window *w)
{
	struct hard *h = arg;
	int ret = card_map_at(&h->card, w->files[0].base, w->len, hard_access(w->access),
			      w->addr);

	/* Nobody copies what a device has read for several. */
	if (!ret && w->file_cnt > 1) {
		card_unmap(&h->card, w->addr, w->len);
		return -EOPNOTSUPP;
	}
	w->device_addr = w->addr;
	return ret;
}

void pairs_look(struct hard *h)
{
	bool lost = h->card.state != CARD_RUNS;

	h->b.losses += lost && !h->lost;
	h->lost = lost;
	if (h->watchdog_lost || watchdog_runs(h->watchdog))
		return;
	warnx("%s: the watchdog has ended: there are no direct queue pairs any more",
	      h->card.vfio.name);
	h->watchdog_lost = true;
	h->b.losses++;
}

int pairs_open(struct hard *h, char *why)
{
	if (h->card.pairs <= CARD_QID) {
		snprintf(why, VFIO_WHY_MAX, "%s: it has one queue pair, and none to lend",
			 h->card.vfio.name);
		return -ENOTSUP;
	}
	h->watchdog = watchdog_start(&h->card.vfio);
	if (h->watchdog < 0) {
		snprintf(why, VFIO_WHY_MAX, "%s: a watchdog: %s", h->card.vfio.name,
			 strerror(-h->watchdog));
		return h->watchdog;
	}
	h->pairs_hooks = (struct window_hooks){ window_come, hard_window_go, h };
	h->pairs = (struct backend_pairs){ .cnt = h->card.pairs - CARD_QID,
					   .hooks = &h->pairs_hooks,
					   .create_cq = pairs_create_cq,
					   .create_sq = pairs_create_sq,
					   .delete_sq = pairs_delete_sq,
					   .delete_cq = pairs_delete_cq,
					   .set_vector = pairs_set_vector,
					   .find_page = pairs_find_page };
	h->b.pairs = &h->pairs;
	h->b.how = "a real controller, by VFIO, whose queues are the borrowers'";
	return 0;
}

void pairs_close(struct hard *h)
{
	if (h->watchdog >= 0)
		close(h->watchdog);
}
