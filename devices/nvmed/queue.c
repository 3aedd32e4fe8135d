/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Submission and completion queues */
#include "queue.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "nvmed.h"
#include "schedule.h"
#include "slot/fence.h"

#define SQE_LEN (1u << NVME_SQE_SHIFT)
#define CQE_LEN (1u << NVME_CQE_SHIFT)

/* A doorbell value that was reported; no valid one is equal. */
#define NO_BAD UINT32_MAX

/* Where all of a queue is, if that is in one window with one file. */
static uint8_t *ring_find(struct domain *d, uint64_t addr, uint64_t len, uint32_t access)
{
	struct window *w = domain_find(d, addr, access);

	if (!w || w->file_cnt != 1 || addr - w->addr > w->len - len || w->len < len)
		return NULL;
	return w->files[0].base + (addr - w->addr);
}

static int ring_check(struct domain *d, uint64_t addr, uint64_t len, uint32_t access)
{
	uint64_t end;

	if (addr % NVME_PAGE)
		return NVME_SC_INVALID_PRP_OFFSET;
	if (__builtin_add_overflow(addr, len, &end))
		return NVME_SC_DATA_TRANSFER;
	for (uint64_t at = addr; at < end; at += NVME_PAGE)
		if (!domain_find(d, at, access))
			return NVME_SC_DATA_TRANSFER;
	return 0;
}

static uint64_t cq_len(const struct cq *cq)
{
	return (uint64_t)cq->size * CQE_LEN;
}

static uint64_t sq_len(const struct sq *sq)
{
	return (uint64_t)sq->size * SQE_LEN;
}

/* The page of a pair, which its owner has asked for, or will. */
static int bells_have(struct nvmed *c, uint16_t qid)
{
	struct doorbells *db = &c->bells[qid];

	if (db->page)
		return 0;
	return doorbells_open(db, c->epoll, NVMED_TAG_KICK) ? NVME_SC_INTERNAL : 0;
}

/* The page ends with the last queue of the pair: who still has it rings nothing. That of the admin pair stays. */
static void bells_drop(struct nvmed *c, uint16_t qid)
{
	if (qid && !c->sqs[qid] && !c->cqs[qid])
		doorbells_close(&c->bells[qid]);
}

/* Whether a pair is one of the device's */
static bool is_direct(const struct nvmed *c, uint16_t qid)
{
	return qid && c->backend->pairs;
}

/* A device has no look at windows: for it a queue has to be in one of them. */
static int direct_check(const uint8_t *ring, const struct queue_request *req,
			struct backend_queue *q)
{
	*q = (struct backend_queue){ .qid = req->qid,
				     .vector = req->vector,
				     .interrupts = req->interrupts,
				     .size = req->size,
				     .addr = req->addr };
	return ring ? 0 : NVME_SC_INVALID_FIELD;
}

int cq_create(struct nvmed *c, const struct queue_request *req)
{
	int status = ring_check(&req->lease->domain, req->addr, (uint64_t)req->size * CQE_LEN,
				SLOT_DMA_WRITE);
	struct backend_queue q;
	struct cq *cq;

	if (!status)
		status = bells_have(c, req->qid);
	if (status)
		return status;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NVME_SC_INTERNAL;
	*cq = (struct cq){ .qid = req->qid,
			   .vector = req->vector,
			   .interrupts = req->interrupts,
			   .phase = 1,
			   .size = req->size,
			   .bad_head = NO_BAD,
			   .addr = req->addr,
			   .lease = req->lease };
	cq->ring = ring_find(&req->lease->domain, cq->addr, cq_len(cq), SLOT_DMA_WRITE);
	if (is_direct(c, req->qid)) {
		cq->direct = true;
		status = direct_check(cq->ring, req, &q);
		if (!status)
			status = c->backend->pairs->create_cq(c->backend, &q);
		if (status) {
			free(cq);
			return status;
		}
	}
	doorbell_store(&c->bells[req->qid].page->cq_head, 0);
	c->cqs[req->qid] = cq;
	req->lease->cq_cnt++;
	return 0;
}

int sq_create(struct nvmed *c, const struct queue_request *req)
{
	int status = ring_check(&req->lease->domain, req->addr, (uint64_t)req->size * SQE_LEN,
				SLOT_DMA_READ);
	uint32_t command_cnt = req->size - 1 < QUEUE_COMMANDS ? req->size - 1 : QUEUE_COMMANDS;
	struct backend_queue q;
	struct sq *sq;

	if (!status)
		status = bells_have(c, req->qid);
	if (status)
		return status;
	sq = calloc(1, sizeof(*sq) + command_cnt * sizeof(sq->commands[0]));
	if (!sq)
		return NVME_SC_INTERNAL;
	sq->qid = req->qid;
	sq->size = req->size;
	sq->bad_tail = NO_BAD;
	sq->addr = req->addr;
	sq->lease = req->lease;
	sq->cq = c->cqs[req->cqid];
	sq->ring = ring_find(&req->lease->domain, sq->addr, sq_len(sq), SLOT_DMA_READ);
	if (is_direct(c, req->qid)) {
		sq->direct = true;
		status = req->cqid == req->qid ? direct_check(sq->ring, req, &q)
					       : NVME_SC_INVALID_CQ;
		if (!status)
			status = c->backend->pairs->create_sq(c->backend, &q);
		if (status) {
			free(sq);
			return status;
		}
	}
	sq->command_cnt = command_cnt;
	for (uint32_t i = command_cnt; i; i--) {
		sq->commands[i - 1].next = sq->free;
		sq->free = &sq->commands[i - 1];
	}
	doorbell_store(&c->bells[req->qid].page->sq_tail, 0);
	c->sqs[req->qid] = sq;
	sq->cq->sq_cnt++;
	req->lease->sq_cnt++;
	if (!sq->direct)
		schedule_add(c, sq);
	return 0;
}

void cq_destroy(struct nvmed *c, struct cq *cq)
{
	assert(!cq->sq_cnt);
	cqs_notify(c);
	if (cq->direct)
		c->backend->pairs->delete_cq(c->backend, cq->qid);
	if (c->remote)
		c->remote->ops->ended(c->remote, cq->qid);
	cq->lease->cq_cnt--;
	c->cqs[cq->qid] = NULL;
	bells_drop(c, cq->qid);
	/* Who sleeps is to see that the page has ended. */
	if (cq->interrupts)
		vector_fire(c, cq->vector);
	/* One that does not interrupt has no vector, and the number 0, which is the admin queue's. */
	if (cq->lease != &c->leases.each[0] && cq->interrupts && cq->vector)
		vector_set(c, cq->vector, -1);
	free(cq);
}

void sq_destroy(struct nvmed *c, struct sq *sq)
{
	assert(!sq->under_way);
	if (!sq->direct)
		schedule_remove(c, sq);
	sq->cq->sq_cnt--;
	sq->lease->sq_cnt--;
	c->sqs[sq->qid] = NULL;
	bells_drop(c, sq->qid);
	free(sq);
}

static void command_free(struct command *cmd)
{
	struct sq *sq = cmd->sq;

	if (sq->current == cmd)
		sq->current = NULL;
	cmd->sq = NULL;
	cmd->next = sq->free;
	sq->free = cmd;
	sq->under_way--;
}

/* Free a held command without a completion, whatever holds it: the admin queue goes. */
static void command_release(struct nvmed *c, struct command *cmd)
{
	assert(cmd->held);
	if (!events_forget(c, cmd))
		cmd->sq->cq->reserved--;
	for (uint32_t i = 1; i <= c->config.queue_cnt; i++)
		if (c->sqs[i] && c->sqs[i]->deleter == cmd)
			c->sqs[i]->deleter = NULL;
	command_free(cmd);
}

void sq_stop(struct nvmed *c, struct sq *sq, uint16_t status)
{
	sq->stopped = true;
	for (uint32_t i = 0; i < sq->command_cnt; i++) {
		struct command *cmd = &sq->commands[i];

		if (!cmd->sq)
			continue;
		if (cmd->held) {
			command_release(c, cmd);
			continue;
		}
		if (!cmd->left && !cmd->ranges)
			continue;
		if (!cmd->status)
			cmd->status = status;
		cmd->left = cmd->ranges = 0;
		if (sq->current == cmd)
			sq->current = NULL;
		if (!cmd->inflight)
			command_end(c, cmd, cmd->status, 0);
	}
	sq->deleting = true;
	c->chores = true;
}

/* Its memory is gone, under a queue that goes on: nothing can be told in it any more, but to the owner. */
static void queue_broken(struct nvmed *c, uint16_t qid)
{
	if (qid)
		event_raise(c, NVME_EVENT(NVME_EVENT_TYPE_ERROR, NVME_EVENT_INTERNAL,
					  NVME_LOG_ERROR));
	else
		registers_fatal(c);
}

void queues_remap(struct nvmed *c, struct lease *lease)
{
	for (uint32_t i = 0; i <= c->config.queue_cnt; i++) {
		struct sq *sq = c->sqs[i];
		struct cq *cq = c->cqs[i];

		if (sq && sq->lease == lease)
			sq->ring = ring_find(&lease->domain, sq->addr, sq_len(sq),
					     SLOT_DMA_READ);
		if (cq && cq->lease == lease)
			cq->ring = ring_find(&lease->domain, cq->addr, cq_len(cq),
					     SLOT_DMA_WRITE);
	}
}

static uint32_t distance(uint32_t from, uint32_t to, uint32_t size)
{
	return to >= from ? to - from : to + size - from;
}

/* An entry of the error log about a queue and no command */
static void queue_error(struct nvmed *c, uint16_t qid, const struct lease *lease,
			uint16_t status)
{
	errors_add(c, &(struct nvme_error_log){ .sq_id = qid,
						.cid = 0xffff,
						.status = (uint16_t)(status << 1),
						.location = 0xffff,
						.command_specific = lease_index(c, lease) |
								    (uint64_t)lease->generation
									    << 32 });
}

static void doorbell_bad(struct nvmed *c, uint16_t qid, const struct lease *lease)
{
	queue_error(c, qid, lease, 0);
	event_raise(c,
		    NVME_EVENT(NVME_EVENT_TYPE_ERROR, NVME_EVENT_BAD_DOORBELL, NVME_LOG_ERROR));
}

bool sq_look(struct nvmed *c, struct sq *sq)
{
	uint32_t tail = doorbell_load(&c->bells[sq->qid].page->sq_tail);

	if (tail == sq->tail)
		return false;
	if (tail == sq->bad_tail)
		return false;
	/* The tail moves on, and not over entries that were not fetched. */
	if (tail >= sq->size ||
	    distance(sq->head, tail, sq->size) < distance(sq->head, sq->tail, sq->size)) {
		/* Once, until a valid one has come. */
		if (sq->bad_tail == NO_BAD)
			doorbell_bad(c, sq->qid, sq->lease);
		sq->bad_tail = tail;
		return false;
	}
	sq->bad_tail = NO_BAD;
	sq->tail = tail;
	return true;
}

void cq_look(struct nvmed *c, struct cq *cq)
{
	uint32_t head = doorbell_load(&c->bells[cq->qid].page->cq_head);

	if (head == cq->head || head == cq->bad_head)
		return;
	if (head >= cq->size ||
	    distance(cq->head, head, cq->size) > distance(cq->head, cq->tail, cq->size)) {
		if (cq->bad_head == NO_BAD)
			doorbell_bad(c, cq->qid, cq->lease);
		cq->bad_head = head;
		return;
	}
	cq->bad_head = NO_BAD;
	cq->head = head;
}

static bool cq_has_room(const struct cq *cq)
{
	return distance(cq->head, cq->tail, cq->size) + cq->reserved < cq->size - 1;
}

bool cq_reserve(struct nvmed *c, struct cq *cq)
{
	if (!cq_has_room(cq)) {
		cq_look(c, cq);
		if (!cq_has_room(cq))
			return false;
	}
	cq->reserved++;
	return true;
}

/* An entry that is not in one piece with the rest of its queue. */
static uint8_t *sq_entry(struct nvmed *c, struct sq *sq)
{
	uint64_t at = sq->addr + (uint64_t)sq->head * SQE_LEN;
	struct window *w = domain_find(&sq->lease->domain, at, SLOT_DMA_READ);

	if (w)
		return w->files[0].base + (at - w->addr);
	sq->stopped = true;
	queue_error(c, sq->qid, sq->lease, NVME_SC_DATA_TRANSFER);
	queue_broken(c, sq->qid);
	return NULL;
}

struct command *sq_fetch(struct nvmed *c, struct sq *sq)
{
	struct command *cmd = sq->free;
	const uint8_t *entry;

	if (sq->head == sq->tail && !sq_look(c, sq))
		return NULL;
	if (!cmd || !cq_reserve(c, sq->cq))
		return NULL;
	entry = sq->ring ? sq->ring + (size_t)sq->head * SQE_LEN : sq_entry(c, sq);
	if (!entry) {
		sq->cq->reserved--;
		return NULL;
	}
	/* The one time that the entry is read: what its owner writes there later changes nothing. */
	memcpy(&cmd->sqe, entry, sizeof(cmd->sqe));
	atomic_signal_fence(memory_order_acq_rel);
	sq->head = sq->head + 1 == sq->size ? 0 : sq->head + 1;
	sq->free = cmd->next;
	sq->under_way++;
	cmd->sq = sq;
	cmd->status = NVME_SC_SUCCESS;
	cmd->held = false;
	cmd->inflight = 0;
	cmd->ranges = 0;
	cmd->bytes = 0;
	cmd->left = 0;
	return cmd;
}

/* The last eight bytes of an entry, with the phase, are one store. */
union cqe_end {
	struct {
		uint16_t sq_head;
		uint16_t sq_id;
		uint16_t cid;
		uint16_t status;
	} of;
	uint64_t word;
};

static_assert(offsetof(struct nvme_cqe, sq_head) == 8, "figure 123");

static void cqe_store(uint8_t *at, uint32_t result, const union cqe_end *end)
{
	atomic_store_explicit((_Atomic uint64_t *)at, result, memory_order_relaxed);
	/* R:cqe.phase  the rest of the entry and the command's data before it; pairs A:cqe.phase of its owner */
	atomic_store_explicit((_Atomic uint64_t *)(at + 8), end->word, memory_order_release);
}

/* An entry of a queue that is in several windows, or in several files. */
static bool cqe_store_far(struct cq *cq, uint32_t result, const union cqe_end *end)
{
	uint64_t at = cq->addr + (uint64_t)cq->tail * CQE_LEN;
	struct window *w = domain_find(&cq->lease->domain, at, SLOT_DMA_WRITE);

	if (!w)
		return false;
	for (uint32_t i = 0; i < w->file_cnt; i++)
		cqe_store(w->files[i].base + (at - w->addr), result, end);
	return true;
}

static void cq_post(struct nvmed *c, const struct command *cmd, uint16_t status, uint32_t result)
{
	struct cq *cq = cmd->sq->cq;
	union cqe_end end = { .of = { .sq_head = (uint16_t)cmd->sq->head,
				      .sq_id = cmd->sq->qid,
				      .cid = cmd->sqe.cid,
				      .status = (uint16_t)(status << 1 | cq->phase) } };

	if (cq->broken)
		return;
	if (cq->ring) {
		cqe_store(cq->ring + (size_t)cq->tail * CQE_LEN, result, &end);
	} else if (!cqe_store_far(cq, result, &end)) {
		cq->broken = true;
		queue_broken(c, cq->qid);
		return;
	}
	if (++cq->tail == cq->size) {
		cq->tail = 0;
		cq->phase ^= 1;
	}
	if (!cq->interrupts)
		return;
	if (!cq->posted++) {
		cq->next = c->unnotified;
		c->unnotified = cq;
	}
}

/* Whether the same command may succeed later, as it is. */
static bool retriable(uint16_t status)
{
	switch (status) {
	case NVME_SC_SUCCESS:
	case NVME_SC_DATA_TRANSFER:
	case NVME_SC_INTERNAL:
	case NVME_SC_ABORT_REQUESTED:
	case NVME_SC_ABORT_SQ_DELETED:
	case NVME_SC_CAPACITY:
	case NVME_SC_NOT_READY:
	case NVME_SC_ABORT_LIMIT:
	case NVME_SC_AER_LIMIT:
	case NVME_SC_COMPARE_FAILURE:
	case NVME_SC_WRITE_FAULT:
	case NVME_SC_READ_ERROR:
		return true;
	}
	return false;
}

static void command_failed(struct nvmed *c, const struct command *cmd, uint16_t status)
{
	uint64_t lba = cmd->sq->qid ? cmd->sqe.cdw10 | (uint64_t)cmd->sqe.cdw11 << 32 : 0;

	errors_add(c, &(struct nvme_error_log){
			      .sq_id = cmd->sq->qid,
			      .cid = cmd->sqe.cid,
			      .status = (uint16_t)(status << 1 | cmd->sq->cq->phase),
			      .location = 0xffff,
			      .lba = lba,
			      .nsid = cmd->sqe.nsid });
	status &= (uint16_t)~NVME_SC_DNR;
	if (status == NVME_SC_READ_ERROR || status == NVME_SC_WRITE_FAULT)
		c->stats.media_errors++;
}

void command_end(struct nvmed *c, struct command *cmd, uint16_t status, uint32_t result)
{
	struct sq *sq = cmd->sq;

	assert(!cmd->inflight);
	if (status && !sq->cq->broken) {
		if (!retriable(status))
			status |= NVME_SC_DNR;
		command_failed(c, cmd, status);
	}
	sq->lease->commands++;
	if (!status)
		sq->lease->bytes += cmd->bytes;
	sq->cq->reserved--;
	cq_post(c, cmd, status, result);
	command_free(cmd);
}

bool command_abort(struct nvmed *c, struct command *cmd)
{
	if (cmd->held) {
		if (cmd->sq->qid || !cq_reserve(c, cmd->sq->cq))
			return false;
		if (!events_forget(c, cmd)) {
			cmd->sq->cq->reserved--;
			return false;
		}
		cmd->held = false;
	} else if (!cmd->left && !cmd->ranges) {
		return false;
	}
	if (!cmd->status)
		cmd->status = NVME_SC_ABORT_REQUESTED;
	cmd->left = cmd->ranges = 0;
	if (cmd->sq->current == cmd)
		cmd->sq->current = NULL;
	if (!cmd->inflight)
		command_end(c, cmd, cmd->status, 0);
	return true;
}

bool sq_ready(struct nvmed *c, struct sq *sq)
{
	if (sq->stopped)
		return false;
	if (sq->current)
		return !sq->blocked && !share_waits(c, sq);
	cq_look(c, sq->cq);
	return (sq->head != sq->tail || sq_look(c, sq)) && sq->free && cq_has_room(sq->cq);
}

void cqs_notify(struct nvmed *c)
{
	if (!c->unnotified)
		return;
	/* F:polling  entries before this load; pairs F:polling of a queue's owner that is about to sleep */
	slot_fence();
	while (c->unnotified) {
		struct cq *cq = c->unnotified;
		uint32_t posted = cq->posted;

		c->unnotified = cq->next;
		cq->posted = 0;
		if (!doorbell_peek(&c->bells[cq->qid].page->polling))
			vector_raise(c, cq->vector, posted, !cq->qid);
	}
}
