/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A session, at the controller: a queue pair, an endpoint, and memory for both. The loop's thread alone.
 *
 * Commands come in a receive, which stays as it is until all of them have been taken. Each becomes a work, which has a
 * buffer of its own for small data, and gets a part of the session's pool for more. Its data is fetched if it did not come
 * along. Data that came with the last command of a message stays where it is, and the receive with it, until the work is
 * free, unless too few receives are left then: the data of a message's only command begins a page. Then its entry goes into
 * the submission queue. When it has completed, what was read is written to the borrower, or the borrower is told. A work is
 * free when that transfer has ended.
 */
#ifndef WEFT_DEVICES_REMOTE_SESSION_H
#define WEFT_DEVICES_REMOTE_SESSION_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <stdint.h>

#include "port.h"
#include "wire.h"

#define SESSION_INLINE	8192u /* data that comes along; a work's own buffer */
#define SESSION_MESSAGE (512u + SESSION_INLINE + 1024u) /* bytes of a receive */
#define SESSION_LEAD \
	(NVME_PAGE - sizeof(struct remote_head) - sizeof(struct nvme_sqe)) /* in front of it */
#define SESSION_RECEIVE nvme_page_len(SESSION_LEAD + SESSION_MESSAGE)
#define SESSION_POOL	(4u << 20) /* for data that is longer */
#define SESSION_DATA	(1u << 20) /* of one command */
#define SESSION_FETCH	32u	   /* entries that are read at once from the borrower's queue */
#define SESSION_TELLS	16u	   /* messages that are under way to the borrower */

struct nvmed;
struct session;

enum op_kind {
	OP_RECEIVE,
	OP_WORK,  /* a transfer of a command's data */
	OP_TELL,  /* a message to the borrower */
	OP_FETCH, /* entries of the borrower's queue are read */
};

/* struct op - what a completion leads to; in one list at most */
struct op {
	struct fi_context2 context;
	struct op *next;
	struct session *session;
	enum op_kind kind;
	uint32_t index;
};

struct ops {
	struct op *first, **last;
};

enum work_state {
	WORK_FREE,
	WORK_FETCHING, /* its data is read from the borrower */
	WORK_QUEUED,   /* its entry is in the submission queue */
	WORK_OUT,      /* it has completed, and is to be told */
	WORK_WRITING,  /* data is under way to the borrower */
	WORK_WRITTEN, /* the data is there, or will be before anything that is written now; it is to be told */
	WORK_SENDING,
};

/*
 * struct work - a command of the borrower, by the id that its entry has here
 * @sqe:     as it came
 * @buf, @len: its data, in the session's memory; @pages: of the pool, 0: its own buffer, or in what it @keeps
 * @pending: transfers of it that have not ended
 */
struct work {
	struct op op;
	enum work_state state;
	struct nvme_sqe sqe;
	struct nvme_cqe cqe;
	uint64_t buf;
	uint32_t len;
	uint32_t pages;
	uint32_t pending;
	struct receive *keeps;
};

/*
 * struct receive - @len: bytes of its message; @at: where its next command is; @left: commands that have not been taken;
 * @kept: a work has its data there
 */
struct receive {
	struct op op;
	uint32_t len;
	uint32_t at;
	uint32_t left;
	bool kept;
};

/*
 * struct near - queues in the borrower's memory; @entries 0: there are none
 * @tail, @head:     of its submission queue: as it was rung; what has been read
 * @fetched, @taken: entries that were read, and those of them that have been taken
 */
struct near {
	uint32_t entries;
	uint64_t sq_addr, sq_key, cq_addr, cq_key;
	uint32_t tail, head;
	uint32_t fetched, taken;
	bool fetching;
	uint32_t cq_tail;
	uint8_t phase;
};

/*
 * struct places - where what is in a session's memory; from @cqes on the lease's domain does not have it
 */
struct places {
	uint64_t sq, cq, lists, buffers, pool, receives;
	uint64_t cqes, fetched, tells;
	uint64_t len;
};

/*
 * struct session
 * @place:    what the borrower knows of it: the key that it has to say
 * @strangers: something of another key has come, and was logged
 * @memory:   a sealed file, @at says what is where; the first of it is a window of the lease's domain at @addr
 * @depth, @work_cnt, @entries: commands of the borrower; those that are known at once; entries of either queue
 * @peer:     the borrower, once it is @connected
 * @broken:   the endpoint is closed, and nothing is told any more
 * @made_ns:  when it was made
 * @over:     the pair is gone; @over_ns: since when
 * @idle:     polls since anything came
 * @waiting:  receives with commands that have not been taken
 * @kept_cnt: those of @receive_cnt that works keep
 * @out:      work that is to be told
 * @pool_map: a bit for each page in use
 */
struct session {
	struct session *next;
	struct nvmed *c;
	struct port port;
	struct fid_ep *ep;
	struct fid_mr *mr;
	struct remote_place place;
	uint16_t qid;
	uint32_t lease;
	bool connected;
	bool broken;
	bool strangers;
	bool over;
	bool end_told;
	fi_addr_t peer;
	int file;
	uint8_t *memory;
	uint64_t addr;
	struct places at;
	uint32_t depth, work_cnt, entries;
	uint32_t sq_tail, cq_head;
	uint8_t phase;
	struct work *work;
	struct receive *receives;
	struct op *tells;
	uint32_t receive_cnt, kept_cnt;
	struct ops free_work, free_tells, waiting, out;
	uint32_t tells_under_way;
	struct near near;
	struct op fetch;
	uint64_t made_ns;
	uint64_t over_ns;
	uint32_t idle;
	uint64_t pool_map[SESSION_POOL / NVME_PAGE / 64];
};

static inline void ops_init(struct ops *ops)
{
	ops->first = NULL;
	ops->last = &ops->first;
}

static inline void ops_add(struct ops *ops, struct op *op)
{
	op->next = NULL;
	*ops->last = op;
	ops->last = &op->next;
}

static inline struct op *ops_take(struct ops *ops)
{
	struct op *op = ops->first;

	if (!op)
		return NULL;
	ops->first = op->next;
	if (!ops->first)
		ops->last = &ops->first;
	return op;
}

static inline uint8_t *message_of(struct session *s, const struct receive *r)
{
	return s->memory + s->at.receives + r->op.index * SESSION_RECEIVE + SESSION_LEAD;
}

static inline struct work *work_of(struct op *op)
{
	return &op->session->work[op->index];
}

/*
 * session_create - make queue pair @qid of a lease, and an endpoint for it
 * Returns 0 or a negative errno, as slot.h has them for REMOTE.
 */
int session_create(struct nvmed *c, const struct port *port, uint32_t lease, uint16_t qid,
		   uint32_t depth, struct session **session);

/* session_place - out: where it is, for the borrower. Returns 0 or -FI_E* */
int session_place(struct session *s, struct remote_place *place);

/* session_break - the borrower does what it must not, or is not there: close the endpoint. The pair stays its lease's */
void session_break(struct session *s, const char *why);

/* session_take - take commands that have come, as many as there is room for */
void session_take(struct session *s);

/* session_received - a message has come, in a receive; it is posted again once all of it is taken */
void session_received(struct session *s, struct receive *r, size_t len);

/* session_stranger - what has come is not the borrower's: say so, once, and listen again */
void session_stranger(struct session *s, struct receive *r);

/* session_fetched - entries of the borrower's queue have come */
void session_fetched(struct session *s);

/* session_receive_again - all of a message is taken */
void session_receive_again(struct session *s, struct receive *r);

/* work_queue - its data is there, or can't be had (@err): put it into the submission queue, or have it fail */
void work_queue(struct session *s, struct work *w, int err);

/* work_end - it has completed */
void work_end(struct session *s, struct work *w, const struct nvme_cqe *cqe);

/* work_free - all of it has ended */
void work_free(struct session *s, struct work *w);

/* session_reap - take what has completed in the queue pair. Returns whether anything had */
bool session_reap(struct session *s);

/* session_tell - tell what has completed, as far as the provider takes it. Returns whether anything moved */
bool session_tell(struct session *s);

/* session_say - send a message. Returns 0 or -FI_E*; -FI_EAGAIN: nothing was sent */
int session_say(struct session *s, const void *message, size_t len);

/*
 * session_poll - take what has come and what has completed, and tell that
 * Of one that has been idle for long it looks at its network now and then only: such a look is a system call. Returns
 * whether anything moved.
 */
bool session_poll(struct session *s);

/* session_may_sleep - nothing is to be done until the port's descriptor says so */
bool session_may_sleep(struct session *s);

/* session_end - the pair goes: take what has completed, and let the domain's window go */
void session_end(struct session *s);

/* session_linger - of one that has ended: whether it still tells something. Its endpoint is closed otherwise */
bool session_linger(struct session *s);

/* session_destroy - free it; it has ended */
void session_destroy(struct session *s);

#endif
