/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Admin commands */
#include "admin.h"

#include <string.h>

#include "identify.h"
#include "nvmed.h"

#define FLAGS_FUSE 0x03
#define FLAGS_PSDT 0xc0

/* Bytes of the scratch area to the command's data pointer */
static int transfer(struct nvmed *c, const struct command *cmd, uint64_t len)
{
	struct segment segs[PRP_SEGMENTS(sizeof(c->scratch))];
	const uint8_t *from = c->scratch;
	struct prp prp;
	uint32_t cnt;
	int status = prp_begin(&prp, cmd->sqe.prp1, cmd->sqe.prp2, len);

	if (!status)
		status = prp_gather(&prp, &c->leases.each[0].domain, SLOT_DMA_WRITE, len, segs,
				    &cnt);
	if (status)
		return status;
	for (uint32_t i = 0; i < cnt; i++) {
		for (uint32_t f = 0; f < segs[i].window->file_cnt; f++)
			memcpy(segs[i].window->files[f].base + segs[i].at, from, segs[i].len);
		from += segs[i].len;
	}
	return 0;
}

static int identify(struct nvmed *c, const struct command *cmd)
{
	int status = identify_page(c, cmd, c->scratch);

	return status ? status : transfer(c, cmd, NVME_IDENTIFY_LEN);
}

static int get_log_page(struct nvmed *c, const struct command *cmd)
{
	uint64_t len;
	int status = log_page(c, cmd, c->scratch, sizeof(c->scratch), &len);

	return status ? status : transfer(c, cmd, len);
}

/* What both kinds of queues have in cdw10, cdw11 and cdw14. Returns an NVMe status */
static int queue_request(struct nvmed *c, const struct command *cmd, bool exists,
			 struct queue_request *req)
{
	*req = (struct queue_request){
		.qid = (uint16_t)cmd->sqe.cdw10,
		.size = (cmd->sqe.cdw10 >> 16) + 1,
		.addr = cmd->sqe.prp1,
		.lease = lease_get(c, cmd->sqe.cdw14),
	};
	if (!req->qid || req->qid > c->config.queue_cnt || exists)
		return NVME_SC_INVALID_QID;
	if (req->size < 2 || req->size > QUEUE_SIZE_MAX)
		return NVME_SC_INVALID_QUEUE_SIZE;
	if (!(cmd->sqe.cdw11 & NVME_QUEUE_CONTIGUOUS) || !req->lease)
		return NVME_SC_INVALID_FIELD;
	return 0;
}

static bool queue_exists(void **queues, const struct nvmed *c, uint32_t qid)
{
	return qid <= c->config.queue_cnt && queues[qid];
}

static int create_cq(struct nvmed *c, const struct command *cmd)
{
	bool exists = queue_exists((void **)c->cqs, c, cmd->sqe.cdw10 & 0xffff);
	struct queue_request req;
	int status = queue_request(c, cmd, exists, &req);

	if (status)
		return status;
	req.vector = NVME_CQ_VECTOR(cmd->sqe.cdw11);
	req.interrupts = cmd->sqe.cdw11 & NVME_CQ_INTERRUPTS;
	if (req.vector >= c->vectors.cnt)
		return NVME_SC_INVALID_VECTOR;
	if (NVME_CC_IOCQES(c->regs.cc) != NVME_CQE_SHIFT)
		return NVME_SC_INVALID_QUEUE_SIZE;
	/* The other half of its pair shares its page, and with it its borrower. */
	if (c->sqs[req.qid] && c->sqs[req.qid]->lease != req.lease)
		return NVME_SC_INVALID_FIELD;
	return cq_create(c, &req);
}

static int create_sq(struct nvmed *c, const struct command *cmd)
{
	bool exists = queue_exists((void **)c->sqs, c, cmd->sqe.cdw10 & 0xffff);
	struct queue_request req;
	int status = queue_request(c, cmd, exists, &req);

	if (status)
		return status;
	req.cqid = cmd->sqe.cdw11 >> 16;
	if (!req.cqid || !queue_exists((void **)c->cqs, c, req.cqid))
		return NVME_SC_INVALID_CQ;
	if (NVME_CC_IOSQES(c->regs.cc) != NVME_SQE_SHIFT)
		return NVME_SC_INVALID_QUEUE_SIZE;
	if (c->cqs[req.cqid]->lease != req.lease ||
	    (c->cqs[req.qid] && c->cqs[req.qid]->lease != req.lease))
		return NVME_SC_INVALID_FIELD;
	return sq_create(c, &req);
}

static int delete_cq(struct nvmed *c, const struct command *cmd)
{
	uint32_t qid = cmd->sqe.cdw10 & 0xffff;

	if (!qid || !queue_exists((void **)c->cqs, c, qid))
		return NVME_SC_INVALID_QID;
	if (c->cqs[qid]->sq_cnt)
		return NVME_SC_INVALID_QUEUE_DELETION;
	cq_destroy(c, c->cqs[qid]);
	return 0;
}

static int delete_sq(struct nvmed *c, struct command *cmd, uint32_t *result)
{
	bool ask = cmd->sqe.cdw14 & NVME_DELETE_ASK;
	uint32_t qid = cmd->sqe.cdw10 & 0xffff;
	struct sq *sq;

	if (!qid || qid > c->config.queue_cnt)
		return NVME_SC_INVALID_QID;
	sq = c->sqs[qid];
	if (ask && !sq)
		return 0; /* it is gone */
	if (!sq || (!ask && sq->deleter))
		return NVME_SC_INVALID_QID;
	if (ask) {
		*result = NVME_UNDER_WAY;
	} else {
		sq->deleter = cmd;
		cmd->held = true;
	}
	if (!sq->deleting)
		sq_stop(c, sq, NVME_SC_ABORT_SQ_DELETED);
	return 0;
}

/* Dword 0 of Abort: 0 when the command was aborted, 1 when not */
static int abort_command(struct nvmed *c, const struct command *cmd, uint32_t *result)
{
	uint32_t qid = cmd->sqe.cdw10 & 0xffff, cid = cmd->sqe.cdw10 >> 16;
	struct sq *sq;

	*result = 1;
	if (!queue_exists((void **)c->sqs, c, qid))
		return NVME_SC_INVALID_FIELD;
	sq = c->sqs[qid];
	for (uint32_t i = 0; i < sq->command_cnt; i++) {
		struct command *victim = &sq->commands[i];

		if (!victim->sq || victim == cmd || victim->sqe.cid != cid)
			continue;
		if (command_abort(c, victim))
			*result = 0;
		break;
	}
	return 0;
}

static int run(struct nvmed *c, struct command *cmd, uint32_t *result)
{
	if (cmd->sqe.flags & (FLAGS_FUSE | FLAGS_PSDT))
		return NVME_SC_INVALID_FIELD;
	switch (cmd->sqe.opcode) {
	case NVME_ADMIN_DELETE_SQ:
		return delete_sq(c, cmd, result);
	case NVME_ADMIN_CREATE_SQ:
		return create_sq(c, cmd);
	case NVME_ADMIN_GET_LOG_PAGE:
		return get_log_page(c, cmd);
	case NVME_ADMIN_DELETE_CQ:
		return delete_cq(c, cmd);
	case NVME_ADMIN_CREATE_CQ:
		return create_cq(c, cmd);
	case NVME_ADMIN_IDENTIFY:
		return identify(c, cmd);
	case NVME_ADMIN_ABORT:
		return abort_command(c, cmd, result);
	case NVME_ADMIN_SET_FEATURES:
		return feature_set(c, cmd, result);
	case NVME_ADMIN_GET_FEATURES:
		return feature_get(c, cmd, result);
	case NVME_ADMIN_ASYNC_EVENT:
		return event_request(c, cmd);
	case NVME_ADMIN_LEASE_ARM:
		return lease_arm(c, cmd);
	case NVME_ADMIN_LEASE_END:
		return lease_end(c, cmd, result);
	}
	return NVME_SC_INVALID_OPCODE;
}

void admin_begin(struct nvmed *c, struct command *cmd)
{
	uint32_t result = 0;
	int status = run(c, cmd, &result);

	if (!cmd->held)
		command_end(c, cmd, (uint16_t)status, result);
}
