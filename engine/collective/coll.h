/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collectives. A group is an ordered list of members that have joined it. A collective is a
 * schedule of rounds (coll_rounds.c, coll_reduce.c); each round sends and receives messages, and
 * begins when those of the last one have ended.
 *
 *	mc_fid.c	the fid of a group: join, close
 *	coll_fid.c	the calls of programs
 *	coll_join.c	agreement of the members
 *	coll_run.c	steps and rounds, and their end
 *	coll_break.c	failures: lost members, broken groups
 *	coll.c		the state of an endpoint
 *
 * The messages are tagged ones with PACKET_GROUP: an endpoint has a receive context of its own for
 * them, so that no receive of a program ever matches one. Each member names a group by an id of
 * its own, which the others learn when they join and put into the tags of what they send to it. A
 * tag contains the place of the collective in the order of calls. Between two members the messages
 * of one collective match in their order.
 *
 * Failures. A member whose conn broke is lost: a collective that waits for a message of it, or has
 * one to send to it, ends with an error. Such an end, or fi_cancel, breaks the group: that
 * collective and all later ones end with the same error at every member, to whom a COLL_BREAK is
 * sent. A member that sees another one die sends a COLL_LOST to the others, since not all of them
 * have a conn that would break.
 *
 * Rounds run at the end of a call or of a round of progress, never from inside the paths of
 * messages. The caller holds the domain.
 */
#ifndef WEFT_COLL_H
#define WEFT_COLL_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include "endpoint.h"

#define COLL_MEMBERS_MAX 65535u
#define COLL_LEN_MAX	 (1ull << 40) /* bytes that one member sends to or receives from another */
#define COLL_STEPS_MAX	 32u	      /* messages of one round */
#define COLL_WINDOW	 8u	      /* members that a round exchanges messages with */
#define COLL_SMALL	 8192u /* bytes up to which few rounds are faster than few bytes */
#define COLL_PHASES_MAX	 5u

/* Addresses of groups: never an index of an AV, nor an address of a set. */
#define COLL_ADDR (1ull << 61)

/*
 * Tags. COLL_STEP: id of the group at the receiver (30 bits), place of the collective in the order
 * of calls (16), phase (16). COLL_BREAK: the same, of the first collective that fails; data: FI_E*.
 * COLL_LOST: id; data: rank. COLL_JOIN: see coll_join.c.
 */
enum coll_kind {
	COLL_STEP,
	COLL_JOIN,
	COLL_LOST,
	COLL_BREAK,
};

#define COLL_ID_MAX ((1u << 30) - 1)

/* coll_tag - make a tag; @id, @seq, @phase: as above */
static inline uint64_t coll_tag(enum coll_kind kind, uint32_t id, uint16_t seq, uint16_t phase)
{
	return (uint64_t)kind << 62 | (uint64_t)id << 32 | (uint64_t)seq << 16 | phase;
}

static inline enum coll_kind coll_tag_kind(uint64_t tag)
{
	return (enum coll_kind)(tag >> 62);
}

static inline uint32_t coll_tag_id(uint64_t tag)
{
	return (uint32_t)(tag >> 32) & COLL_ID_MAX;
}

static inline uint16_t coll_tag_seq(uint64_t tag)
{
	return (uint16_t)(tag >> 16);
}

/* coll_before - returns true if @a is before @b in the order of calls, which wraps around */
static inline bool coll_before(uint16_t a, uint16_t b)
{
	return (int16_t)(uint16_t)(a - b) < 0;
}

struct coll_op;

/* The state of collectives of an endpoint; allocated when the program or a peer first uses one. */
struct engine_coll {
	struct engine_ep *ep;
	/* Context of the messages; belongs to no program */
	struct engine_ctx ctx;
	struct engine_tx_ctx tx;
	struct engine_rx_ctx rx;
	struct list groups;
	/* struct coll_op that may continue */
	struct list ready;
	/* Due while @ready has entries or there are notices to send */
	struct engine_task task;
	uint32_t next_id;
	/* Notices of all groups */
	uint32_t notice_cnt;
};

/* A COLL_LOST or COLL_BREAK that is still to be sent to members. */
struct coll_notice {
	/* Link in group->notices */
	struct list link;
	enum coll_kind kind;
	uint16_t seq;
	uint64_t data;
	/* Rank of the next member to send it to */
	uint32_t next;
};

struct engine_group {
	struct fid_mc mc;
	struct engine_coll *coll;
	/* Link in coll->groups */
	struct list link;
	/* struct coll_op in the order of the calls */
	struct list ops;
	/* struct coll_notice */
	struct list notices;
	/* Collectives that the group is for, of ENGINE_SET_COLLECTIVES */
	uint64_t collectives;
	/* Id of the group at this member, in tags that are sent to it */
	uint32_t id;
	uint32_t rank, cnt;
	/* Place of the next collective in the order of calls */
	uint16_t seq;
	/* With @broken: place of the first collective that fails */
	uint16_t broken_seq;
	/* 0 or -FI_E* */
	int broken;
	/* @ids are known */
	bool named;
	bool joined;
	/* Closed by the program; freed with the last entry of @ops */
	bool closed;
	/* By rank, true if the member is lost; in the memory of @addrs */
	uint8_t *lost;
	/* By rank, the id of the group at each member; in the memory of @addrs */
	uint32_t *ids;
	/* By rank */
	fi_addr_t *addrs;
};

/* One message of a round: the context of its send or receive. */
struct coll_step {
	struct coll_op *op;
	uint32_t rank;
	bool recv;
	/* Of a cancelled join, with a member that was not reached yet; @owed: its answer is due */
	bool late, owed;
	uint64_t tag;
	void *buf;
	size_t len;
};

/* A collective under way. */
struct coll_op {
	/* Link in group->ops */
	struct list link;
	/* Link in coll->ready */
	struct list ready;
	struct engine_group *group;
	enum fi_collective_op kind;
	uint16_t seq;
	bool join;
	/* Context whose counter and queue report the end, or NULL */
	struct engine_tx_ctx *tx;
	/* Context whose queue reports the end if @tx has none, or NULL */
	struct engine_rx_ctx *rx;
	/* coll_op_run() runs: messages that end only count down @pending */
	bool running;
	/* After an error: no message is begun any more */
	bool stopped;
	/* A join that was cancelled: its end is reported, and it still answers other members */
	bool reported;
	/* Its steps with members that may turn up later, COLL_STEPS_MAX or NULL; owned */
	struct coll_step *late;
	/* Used of them, and not ended of these */
	uint32_t late_used, late_cnt;
	/* First error */
	int error;
	void *context;
	/* Join: event to be posted at the end; owned */
	struct eq_event *event;

	/* Input, borrowed */
	const void *in;
	/* Result, borrowed */
	void *out;
	/* Number of elements, and bytes of one */
	size_t cnt, size;
	enum fi_datatype datatype;
	enum fi_op op;
	uint32_t root;
	/* Bytes of each member's part; 0: @cnt elements, divided evenly */
	size_t block;
	/* Parts under way; that of @work_first is the first */
	uint8_t *work;
	uint32_t work_first;
	/* Room for one message */
	uint8_t *spare;
	/* Memory of @work and @spare that is not the program's, owned */
	void *memory;

	/*
	 * phase - handle the end of the last round, and add the steps of the next one; op->round
	 * counts from 0. Returns true if the phase ends with these steps, if any.
	 */
	bool (*phases[COLL_PHASES_MAX])(struct coll_op *op);
	/* Called after the last phase without an error; or NULL */
	void (*finish)(struct coll_op *op);
	/* Reports the end, with or without an error; NULL: a completion */
	void (*report)(struct coll_op *op);
	uint32_t phase, round;
	/* Variable of the phase */
	uint32_t state;
	uint32_t step_cnt, started, pending;
	struct coll_step steps[COLL_STEPS_MAX];
};

/* coll.c */

/* engine_coll_get - of an enabled endpoint; made if there is none. NULL without memory */
struct engine_coll *engine_coll_get(struct engine_ep *ep);
/*
 * engine_coll_free - release it with its groups and collectives: wires are closed, messages are
 * dropped
 */
void engine_coll_free(struct engine_ep *ep);
/* engine_coll_busy - returns true if the program has a group of it that it has not closed */
bool engine_coll_busy(const struct engine_ep *ep);
/* engine_group_at - the group with that id, or NULL */
struct engine_group *engine_group_at(const struct engine_coll *coll, uint32_t id);
/* engine_group_of - the group with that address, which the program has not closed, or NULL */
struct engine_group *engine_group_of(const struct engine_ep *ep, fi_addr_t addr);

/* engine_groups - the operations that the paths of messages call for groups */
extern const struct engine_group_ops engine_groups;

/* coll_run.c */

/*
 * engine_coll_begin - begin a collective that is set up
 *
 * Takes @op, which is in no list. It may have ended when this returns.
 */
void engine_coll_begin(struct engine_group *group, struct coll_op *op);
/* engine_coll_cancel - end the collective with that context. 0 or -FI_ENOENT */
int engine_coll_cancel(struct engine_ctx *ctx, void *context);
/*
 * coll_run - struct engine_task.run: run collectives of an endpoint that may continue, and send
 * notices
 */
bool coll_run(struct engine_task *task);

/* coll_op_new - returns a collective for the caller to set up, owned; NULL without memory */
struct coll_op *coll_op_new(void *context);
/* coll_op_free - free a collective that was not begun, or has ended; takes it */
void coll_op_free(struct coll_op *op);
/* coll_op_at - the collective under way with that place in the order of calls, or NULL */
struct coll_op *coll_op_at(const struct engine_group *group, uint16_t seq);
/* coll_fail - end the collective when the task runs, with its first error, else @err */
void coll_fail(struct coll_op *op, int err);

/* coll_step - add a step to the round; COLL_STEPS_MAX at most */
void coll_step(struct coll_op *op, bool recv, uint32_t rank, uint64_t tag, const void *buf,
	       size_t len);
/* coll_send, coll_recv - the same with the tag of a collective */
void coll_send(struct coll_op *op, uint32_t rank, const void *buf, size_t len);
void coll_recv(struct coll_op *op, uint32_t rank, void *buf, size_t len);
/* coll_sent, coll_received - engine_group_ops: a step has ended */
void coll_sent(void *context, int status);
void coll_received(struct engine_rx *rx, int status);

/* coll_peer - the peer of a member, or NULL if there is none yet */
struct engine_peer *coll_peer(const struct engine_group *group, uint32_t rank);
/*
 * coll_send_to - send @msg, whose payload and tag are set, to a member. 0, -FI_EAGAIN or another
 * -FI_E*
 */
ssize_t coll_send_to(struct engine_group *group, uint32_t rank, struct engine_msg *msg);
/*
 * coll_unsent - find sends of a collective to a member that have not left: they wait for a conn,
 * for ever if no process listens there
 * @cancel: end them
 *
 * Returns true if there is one.
 */
bool coll_unsent(struct coll_op *op, uint32_t rank, bool cancel);

/* coll_break.c */

/* engine_group_free - free a group without collectives; takes it */
void engine_group_free(struct engine_group *group);
/* engine_group_joined - all members have joined, and their ids are known */
void engine_group_joined(struct engine_group *group);
/* engine_group_break - collective @seq and all later ones fail at every member; @err: -FI_E* */
void engine_group_break(struct engine_group *group, uint16_t seq, int err);
/*
 * engine_group_close - the program leaves: collectives under way fail, and the last of them frees
 * the group
 */
void engine_group_close(struct engine_group *group);
/* coll_group_settle - free a group that was closed, once it has no collectives and notices */
void coll_group_settle(struct engine_group *group);
/* coll_notices_send - send notices to members. Returns false when there was no room */
bool coll_notices_send(struct engine_coll *coll);
/*
 * coll_stray, coll_peer_lost - engine_group_ops: a message without a receive, and a peer that
 * ended
 */
bool coll_stray(struct engine_peer *peer, const struct packet *packet);
void coll_peer_lost(struct engine_peer *peer, bool died);

/* coll_join.c */

/* engine_join_setup - set up the rounds by which members agree. Returns 0 or -FI_ENOMEM */
int engine_join_setup(struct coll_op *op);
/* engine_join_received - a receive of a join has ended */
void engine_join_received(const struct coll_step *step, int status);
/* engine_join_forgo - a join was cancelled: go on without members that were never reached */
void engine_join_forgo(struct coll_op *op);
/* engine_join_late - a step with such a member has ended */
void engine_join_late(struct coll_step *step, int status);
/* engine_join_answer - refuse those that have turned up. Returns false when there was no room */
bool engine_join_answer(struct coll_op *op);
/* engine_join_failed - a join has ended with an error */
void engine_join_failed(struct coll_op *op);
/* engine_join_begins - returns true for the tag of BEGIN, which only brings up a conn */
bool engine_join_begins(uint64_t tag);

/*
 * coll_rounds.c, coll_reduce.c: set up the rounds of @op, whose parameters are set. Return 0 or
 * -FI_ENOMEM
 */
int coll_barrier(struct coll_op *op);
int coll_broadcast(struct coll_op *op);
int coll_alltoall(struct coll_op *op);
int coll_allgather(struct coll_op *op);
int coll_scatter(struct coll_op *op);
int coll_gather(struct coll_op *op);
int coll_allreduce(struct coll_op *op);
int coll_reduce(struct coll_op *op);
int coll_reduce_scatter(struct coll_op *op);

/*
 * Places are ranks counted from the root, which has place 0. A member's part is found by its place.
 *
 * coll_off - offset of the part of @place in the whole buffer, bytes; @place may be the number of
 * members
 * coll_at - the part of @place in op->work
 * coll_part - bytes of the parts from @place to before @end
 * coll_rank - rank of the member at @place, any number; coll_place - place of this member
 * coll_reach - size of the binomial subtree of @place in a full tree, a power of two: its children
 * are at the smaller powers of two behind it
 * coll_subtree - first place behind that subtree
 */
size_t coll_off(const struct coll_op *op, uint32_t place);
uint8_t *coll_at(const struct coll_op *op, uint32_t place);
size_t coll_part(const struct coll_op *op, uint32_t place, uint32_t end);
uint32_t coll_rank(const struct coll_op *op, uint64_t place);
uint32_t coll_place(const struct coll_op *op);
uint32_t coll_reach(const struct coll_op *op, uint32_t place);
uint32_t coll_subtree(const struct coll_op *op, uint32_t place);
/* coll_memory - allocate op->work and op->spare, of these sizes in bytes. Returns 0 or -FI_ENOMEM */
int coll_memory(struct coll_op *op, size_t work, size_t spare);
/* coll_move - copy; the buffers may overlap, and may be NULL if @len is 0 */
void coll_move(void *to, const void *from, size_t len);
/* coll_overlap - returns true if the two ranges share a byte */
bool coll_overlap(const void *a, size_t a_len, const void *b, size_t b_len);

/* Phases that both files use: they move parts up a binomial tree, and around a ring. */
bool coll_tree_gather(struct coll_op *op);
bool coll_ring_gather(struct coll_op *op);

/* mc_fid.c */

/* engine_coll_join - the slot of fi_join_collective */
int engine_coll_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
		     void *context);

/* coll_fid.c */

/* engine_coll_calls - the op table of what has FI_COLLECTIVE */
struct fi_ops_collective *engine_coll_calls(void);
int engine_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
			    struct fi_collective_attr *attr, uint64_t flags);

#endif
