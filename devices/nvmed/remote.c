/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs of borrowers elsewhere, which this process has for them; remote.h has the contract. */
#include "remote.h"

#include <errno.h>

#include "nvmed.h"

int remote_refusal(struct nvmed *c, uint32_t lease, uint16_t qid, uint32_t depth, uint32_t most)
{
	if (!lease || !depth || depth > most)
		return -EINVAL;
	if (!qid || qid > c->config.queue_cnt)
		return -ENOENT;
	if (c->sqs[qid] || c->cqs[qid])
		return -EEXIST;
	if (!(c->regs.cc & NVME_CC_EN) || !lease_get(c, lease))
		return -ENXIO;
	return 0;
}

int remote_queues_make(struct nvmed *c, uint32_t lease, uint16_t qid, uint32_t entries,
		       uint64_t sq, uint64_t cq)
{
	struct queue_request queue = {
		.qid = qid,
		.cqid = qid,
		.size = entries,
		.addr = REMOTE_ADDR(qid) + cq,
		.lease = &c->leases.each[lease],
	};

	/* Who has a page of an earlier life of this pair rings nothing here. */
	doorbells_close(&c->bells[qid]);
	if (cq_create(c, &queue))
		return -ENOMEM;
	queue.addr = REMOTE_ADDR(qid) + sq;
	if (!sq_create(c, &queue))
		return 0;
	cq_destroy(c, c->cqs[qid]);
	return -ENOMEM;
}

void remote_window_end(struct nvmed *c, uint32_t lease, uint16_t qid, uint64_t len)
{
	struct lease *of = &c->leases.each[lease];

	if (!domain_unmap(&of->domain, REMOTE_ADDR(qid), len))
		queues_remap(c, of);
}
