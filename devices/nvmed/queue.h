/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Submission and completion queues, the commands that were fetched from them, and what is posted. Queue memory and
 * doorbells belong to somebody who may write anything: an entry is copied once, a doorbell is loaded once and checked.
 */
#ifndef WEFT_NVMED_QUEUE_H
#define WEFT_NVMED_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "backend.h"
#include "nvme/spec.h"
#include "prp.h"
#include "share.h"

struct nvmed;
struct lease;

#define QUEUE_SIZE_MAX 4096u /* entries */
#define QUEUE_COMMANDS 128u  /* fetched and not completed, of one submission queue */

/*
 * struct command - one that was fetched
 * @sq:     NULL: free
 * @status: NVMe status so far; the first error stays
 * @left:   bytes for which no piece has begun; @inflight: pieces that have not ended
 * @offset: of the next piece in the backend
 * @bytes:  that it moves, for statistics
 * @ranges: of Dataset Management, that are not begun
 * @held:   it ends later, by something else than its pieces: events, deletion of a queue
 */
struct command {
	struct sq *sq;
	struct command *next;
	struct nvme_sqe sqe;
	uint16_t status;
	bool held;
	enum piece_op op;
	uint32_t inflight;
	uint32_t ranges;
	uint32_t bytes;
	uint64_t offset;
	uint64_t left;
	struct prp prp;
};

/*
 * struct cq
 * @ring:     all of it, if it is in one window of one file; else NULL, and each entry is looked up
 * @reserved: entries for commands that were fetched
 * @posted:   entries that no interrupt has told of; @next: another such queue
 * @direct:   the device itself has it
 * @broken:   its memory is gone: what completes is lost
 */
struct cq {
	uint16_t qid;
	uint16_t vector;
	bool interrupts;
	bool direct;
	bool broken;
	uint8_t phase;
	uint32_t size;
	uint32_t head;
	uint32_t tail;
	uint32_t reserved;
	uint32_t posted;
	uint32_t sq_cnt;
	uint32_t bad_head;
	uint64_t addr;
	uint8_t *ring;
	struct lease *lease;
	struct cq *next;
};

/*
 * struct sq
 * @tail:     as it was rung and found valid
 * @current:  a command of which not all pieces have begun
 * @commands: fetched ones and free ones, @free leads to these
 * @deficit:  of the scheduler; @blocked: its turn goes on when the backend has room
 * @share:    of the backend
 * @direct:   the device itself has it, and nothing is fetched here
 * @stopped:  nothing is fetched any more; @deleting: it ends once nothing is under way
 * @deleter:  the command that deletes it, if it is one
 */
struct sq {
	uint16_t qid;
	bool direct;
	bool stopped;
	bool deleting;
	bool blocked;
	bool is_hot;
	uint32_t size;
	uint32_t head;
	uint32_t tail;
	uint32_t bad_tail;
	uint32_t under_way;
	uint32_t idle;
	uint32_t place;
	int64_t deficit;
	struct sq_share share;
	uint64_t addr;
	uint8_t *ring;
	struct cq *cq;
	struct lease *lease;
	struct command *current;
	struct command *free;
	struct command *deleter;
	uint32_t command_cnt;
	struct command commands[];
};

struct queue_request {
	uint16_t qid;
	uint16_t cqid;	 /* of a submission queue */
	uint16_t vector; /* of a completion queue */
	bool interrupts;
	uint32_t size;
	uint64_t addr;
	struct lease *lease;
};

/*
 * cq_create, sq_create - make a queue
 * @req: its numbers, size and lease are valid; the completion queue is there
 *
 * Returns 0 or the NVMe status: Invalid PRP Offset, Data Transfer Error for memory that is not mapped, Internal Error.
 */
int cq_create(struct nvmed *c, const struct queue_request *req);
int sq_create(struct nvmed *c, const struct queue_request *req);

/* cq_destroy - the queue is gone; it has no submission queue */
void cq_destroy(struct nvmed *c, struct cq *cq);

/*
 * sq_stop - take no further doorbells, and end what has not begun: nvmed_chores() deletes the queue once nothing of it is
 * under way
 * @status: of commands that have not begun all of their pieces
 */
void sq_stop(struct nvmed *c, struct sq *sq, uint16_t status);

/* sq_destroy - the queue is gone; nothing of it is under way */
void sq_destroy(struct nvmed *c, struct sq *sq);

/* queues_remap - windows of a lease have changed: find the queues' memory again */
void queues_remap(struct nvmed *c, struct lease *lease);

/* sq_fetch - the next command, which has a completion entry reserved; NULL: there is none, or no room for it */
struct command *sq_fetch(struct nvmed *c, struct sq *sq);

/* sq_look - load the doorbell. Returns whether there are new commands */
bool sq_look(struct nvmed *c, struct sq *sq);

/* sq_ready - load the doorbells of both. Returns whether the queue's turn would move anything */
bool sq_ready(struct nvmed *c, struct sq *sq);

/* cq_look - load the doorbell of a completion queue */
void cq_look(struct nvmed *c, struct cq *cq);

/* cq_reserve - keep an entry. Returns false when the queue is full */
bool cq_reserve(struct nvmed *c, struct cq *cq);

/*
 * command_end - complete a command, and free it
 * @status: NVMe status; whether a retry makes sense is added here
 * @result: dword 0
 */
void command_end(struct nvmed *c, struct command *cmd, uint16_t status, uint32_t result);

/* command_abort - end a command that was fetched, if pieces of it are yet to begin. Returns whether it is */
bool command_abort(struct nvmed *c, struct command *cmd);

/* cqs_notify - interrupts for what was posted since the last call */
void cqs_notify(struct nvmed *c);

#endif
