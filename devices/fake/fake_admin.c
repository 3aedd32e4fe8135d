/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The admin queue of the model of a controller; fake_parts.h has the contract. */
#define _GNU_SOURCE
#include "fake_parts.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void complete(struct fake_device *dev, uint16_t cid, uint16_t status, uint32_t result)
{
	uint32_t entries = NVME_AQA_ACQS(dev->aqa) + 1;
	struct nvme_cqe cqe = { .result = result,
				.sq_head = dev->sq_head,
				.cid = cid,
				.status = (uint16_t)(status << 1 | dev->phase) };
	uint64_t one = 1;

	fake_put(dev, dev->acq + dev->cq_tail * sizeof(cqe), &cqe,
		 offsetof(struct nvme_cqe, status));
	atomic_thread_fence(memory_order_release);
	fake_put(dev, dev->acq + dev->cq_tail * sizeof(cqe) + offsetof(struct nvme_cqe, status),
		 &cqe.status, sizeof(cqe.status));
	dev->cq_tail = (uint16_t)((dev->cq_tail + 1) % entries);
	if (!dev->cq_tail)
		dev->phase ^= 1;
	if (dev->vectors[0] >= 0 && write(dev->vectors[0], &one, sizeof(one)) < 0)
		return;
}

static void tell_events(struct fake_device *dev)
{
	uint32_t i = 0;

	while (dev->asked_cnt && i < dev->pending_cnt) {
		uint32_t event = dev->pending[i];

		if (dev->masked >> (event & 7) & 1) {
			i++;
			continue;
		}
		dev->masked |= 1u << (event & 7);
		dev->pending_cnt--;
		memmove(dev->pending + i, dev->pending + i + 1,
			(dev->pending_cnt - i) * sizeof(uint32_t));
		complete(dev, dev->asked[0], 0, event);
		dev->asked_cnt--;
		memmove(dev->asked, dev->asked + 1, dev->asked_cnt * sizeof(uint16_t));
	}
}

void fake_add_event(struct fake_device *dev, uint32_t event)
{
	uint32_t i;

	for (i = 0; i < dev->pending_cnt; i++)
		if (dev->pending[i] == event)
			return;
	assert(dev->pending_cnt < 16);
	dev->pending[dev->pending_cnt++] = event;
	tell_events(dev);
}

/* All of a lease is gone. */
void fake_over(struct fake_device *dev, uint32_t number)
{
	struct fake_lease *lease = &dev->leases[number];

	fake_drop_queues(dev, number);
	fake_drop_domain(dev, number);
	lease->runs = lease->ends = false;
}

static uint16_t arm(struct fake_device *dev, const struct nvme_sqe *sqe)
{
	struct fake_lease *lease = &dev->leases[sqe->cdw10];

	if (!sqe->cdw10 || sqe->cdw10 > NVME_LEASES || !sqe->cdw12 ||
	    sqe->cdw12 > NVME_LEASE_MS_MAX || sqe->cdw11 < lease->generation ||
	    (sqe->cdw11 == lease->generation && !lease->runs))
		return NVME_SC_INVALID_FIELD;
	if (sqe->cdw11 > lease->generation && (lease->runs || lease->ends))
		return NVME_SC_SEQUENCE;
	lease->runs = true;
	lease->generation = sqe->cdw11;
	lease->remaining_ms = dev->armed = sqe->cdw12;
	return 0;
}

static uint16_t end(struct fake_device *dev, const struct nvme_sqe *sqe, uint32_t *result)
{
	struct fake_lease *lease = &dev->leases[sqe->cdw10 <= NVME_LEASES ? sqe->cdw10 : 0];

	if (!sqe->cdw10 || sqe->cdw10 > NVME_LEASES || !lease->generation ||
	    sqe->cdw11 > lease->generation)
		return NVME_SC_INVALID_FIELD;
	if (sqe->cdw11 < lease->generation || (!lease->runs && !lease->ends))
		return 0;
	lease->runs = false;
	lease->ends = true;
	if (dev->slow)
		*result = NVME_UNDER_WAY;
	else
		fake_over(dev, sqe->cdw10);
	return 0;
}

static uint16_t create(struct fake_device *dev, const struct nvme_sqe *sqe, bool cq)
{
	uint32_t qid = sqe->cdw10 & 0xffff, entries = (sqe->cdw10 >> 16) + 1;
	struct fake_queue *queue = &dev->queues[qid <= FAKE_PAIRS ? qid : 0];
	uint32_t i;

	if (!qid || qid > FAKE_PAIRS || (cq ? queue->cq : queue->sq))
		return NVME_SC_INVALID_QID;
	if (entries > 4096)
		return NVME_SC_INVALID_QUEUE_SIZE;
	if (sqe->cdw14 > NVME_LEASES || (sqe->cdw14 && !dev->leases[sqe->cdw14].runs))
		return NVME_SC_INVALID_FIELD;
	for (i = 0; i < dev->mapping_cnt; i++)
		if (dev->mappings[i].domain == sqe->cdw14 &&
		    sqe->prp1 >= dev->mappings[i].addr &&
		    sqe->prp1 - dev->mappings[i].addr < dev->mappings[i].len)
			break;
	if (i == dev->mapping_cnt)
		return NVME_SC_DATA_TRANSFER;
	if (!cq && !queue->cq)
		return NVME_SC_INVALID_CQ;
	queue->lease = sqe->cdw14;
	queue->entries = entries;
	if (cq) {
		queue->cq = true;
		queue->cq_addr = sqe->prp1;
	} else {
		queue->sq = true;
		queue->sq_addr = sqe->prp1;
	}
	return 0;
}

static uint16_t delete (struct fake_device *dev, const struct nvme_sqe *sqe, bool cq,
			uint32_t *result)
{
	uint32_t qid = sqe->cdw10 & 0xffff;
	struct fake_queue *queue = &dev->queues[qid <= FAKE_PAIRS ? qid : 0];

	if (!qid || qid > FAKE_PAIRS || !(cq ? queue->cq : queue->sq))
		return NVME_SC_INVALID_QID;
	if (cq && queue->sq)
		return NVME_SC_INVALID_QUEUE_DELETION;
	if (!cq && dev->slow) {
		*result = NVME_UNDER_WAY;
		return 0;
	}
	if (cq)
		queue->cq = false;
	else
		queue->sq = false;
	if (!queue->cq && !queue->sq)
		fake_drop_page(dev, qid);
	return 0;
}

static uint16_t identify(struct fake_device *dev, const struct nvme_sqe *sqe)
{
	union {
		struct nvme_id_ctrl ctrl;
		struct nvme_id_ns ns;
		uint8_t bytes[NVME_IDENTIFY_LEN];
	} page = { .bytes = { 0 } };

	if (sqe->cdw10 == NVME_CNS_CONTROLLER) {
		page.ctrl.vid = 0x1234;
		memset(page.ctrl.sn, ' ', sizeof(page.ctrl.sn) + sizeof(page.ctrl.mn));
		memcpy(page.ctrl.sn, dev->sn, strnlen(dev->sn, sizeof(dev->sn)));
		memcpy(page.ctrl.mn, "Fake", 4);
	} else if (sqe->cdw10 == NVME_CNS_NAMESPACE && sqe->nsid == 1) {
		page.ns.nsze = 1000;
		page.ns.lbaf[0].lbads = 9;
	} else if (sqe->cdw10 != NVME_CNS_NAMESPACE) {
		return NVME_SC_INVALID_FIELD;
	}
	fake_put(dev, sqe->prp1, &page, sizeof(page));
	return 0;
}

static size_t leases_log(struct fake_device *dev, struct nvme_lease_log *log)
{
	uint32_t i, n = 0, qid;

	for (i = 1; i <= NVME_LEASES; i++) {
		if (!dev->leases[i].runs && !dev->leases[i].ends)
			continue;
		log[n] = (struct nvme_lease_log){ .lease = i,
						  .generation = dev->leases[i].generation,
						  .remaining_ms = dev->leases[i].remaining_ms };
		for (qid = 1; qid <= FAKE_PAIRS; qid++)
			log[n].queue_pairs += dev->queues[qid].sq && dev->queues[qid].lease == i;
		n++;
	}
	memset(&log[n], 0, sizeof(*log));
	return (n + 1) * sizeof(*log);
}

static uint16_t get_log(struct fake_device *dev, const struct nvme_sqe *sqe)
{
	static struct nvme_lease_log log[NVME_LEASES + 1];
	uint8_t page[NVME_PAGE] = { 0 };
	size_t len = ((sqe->cdw10 >> 16) + 1) * 4, have = 0;
	const void *from = page;

	switch (sqe->cdw10 & 0xff) {
	case NVME_LOG_ERROR:
		from = dev->errors;
		have = dev->error_cnt * sizeof(dev->errors[0]);
		dev->masked &= ~(1u << NVME_EVENT_TYPE_ERROR);
		break;
	case NVME_LOG_SMART:
		have = 512;
		break;
	case NVME_LOG_LEASES:
		from = log;
		have = leases_log(dev, log);
		if (!(sqe->cdw10 & NVME_LOG_RETAIN))
			dev->masked &= ~(1u << NVME_EVENT_TYPE_VENDOR);
		break;
	default:
		return NVME_SC_INVALID_LOG_PAGE;
	}
	if (len > NVME_PAGE || sqe->cdw12 > have)
		return NVME_SC_INVALID_FIELD;
	if (from != page)
		memcpy(page, (const uint8_t *)from + sqe->cdw12,
		       len < have - sqe->cdw12 ? len : have - sqe->cdw12);
	fake_put(dev, sqe->prp1, page, len);
	if (dev->reading && from == log)
		dev->reading(dev, sqe->cdw12);
	return 0;
}

uint32_t fake_device_commands(const struct fake_device *dev, uint8_t opcode)
{
	return __atomic_load_n(&dev->commands[opcode], __ATOMIC_RELAXED);
}

static void run_command(struct fake_device *dev, const struct nvme_sqe *sqe)
{
	uint16_t status = dev->status[sqe->opcode];
	uint32_t result = 0;

	__atomic_fetch_add(&dev->commands[sqe->opcode], 1, __ATOMIC_RELAXED);
	if (status) {
		complete(dev, sqe->cid, status, 0);
		return;
	}
	switch (sqe->opcode) {
	case NVME_ADMIN_IDENTIFY:
		status = identify(dev, sqe);
		break;
	case NVME_ADMIN_GET_LOG_PAGE:
		status = get_log(dev, sqe);
		break;
	case NVME_ADMIN_SET_FEATURES:
	case NVME_ADMIN_GET_FEATURES:
		result = (FAKE_PAIRS - 1) | (FAKE_PAIRS - 1) << 16;
		break;
	case NVME_ADMIN_CREATE_CQ:
	case NVME_ADMIN_CREATE_SQ:
		status = create(dev, sqe, sqe->opcode == NVME_ADMIN_CREATE_CQ);
		break;
	case NVME_ADMIN_DELETE_CQ:
	case NVME_ADMIN_DELETE_SQ:
		status = delete (dev, sqe, sqe->opcode == NVME_ADMIN_DELETE_CQ, &result);
		break;
	case NVME_ADMIN_ASYNC_EVENT:
		if (dev->asked_cnt < dev->asked_max) {
			dev->asked[dev->asked_cnt++] = sqe->cid;
			tell_events(dev);
			return;
		}
		status = NVME_SC_AER_LIMIT;
		break;
	case NVME_ADMIN_LEASE_ARM:
		status = arm(dev, sqe);
		break;
	case NVME_ADMIN_LEASE_END:
		status = end(dev, sqe, &result);
		break;
	default:
		status = NVME_SC_INVALID_OPCODE;
	}
	/* As a controller does: another try ends no better. */
	complete(dev, sqe->cid, status ? status | NVME_SC_DNR : 0, result);
	tell_events(dev);
}

static bool run(struct fake_device *dev)
{
	uint32_t entries = NVME_AQA_ASQS(dev->aqa) + 1;
	bool any = false;

	if (dev->mute || dev->gone || !(dev->csts & NVME_CSTS_RDY) || !dev->pages[0])
		return false;
	while (dev->sq_head !=
	       __atomic_load_n(&dev->pages[0]->sq_tail, __ATOMIC_ACQUIRE) % entries) {
		struct nvme_sqe sqe;

		fake_get(dev, dev->asq + dev->sq_head * sizeof(sqe), &sqe, sizeof(sqe));
		dev->sq_head = (uint16_t)((dev->sq_head + 1) % entries);
		run_command(dev, &sqe);
		any = true;
	}
	return any;
}

bool fake_device_run(struct fake_device *dev)
{
	bool any;

	pthread_mutex_lock(&dev->lock);
	any = run(dev);
	pthread_mutex_unlock(&dev->lock);
	return any;
}
