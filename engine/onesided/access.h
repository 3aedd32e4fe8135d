/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-sided operations: RMA and atomics. The initiator's side is now.c, access.c, direct.c and
 * answer.c below the calls of rma.c and atomic.c; the target's side is target.c, reply.c, update.c
 * and ack.c.
 *
 *	initiator			target
 *	WRITE, ATOMIC (seq)	->	carried out in its turn
 *			<-  ACK (everything before that seq), or NAK (seq)
 *					At once if the request asks for it. Few requests ask that
 *					are complete when they are sent (quiet.h).
 *	CREDIT that asks	->
 *			<-  ACK
 *	READ, ATOMIC (id)	->	carried out in its turn
 *			<-  RESPONSE (id, offset), or NAK (id)
 *	WRITE (seq) by sendv	->	the payload goes straight into registered memory; a
 *					large one uses no credit, and waits on the wire for its
 *					turn
 *			<-  ACK, or NAK (seq)
 *	RTS with targets	->	a rendezvous (message/rndv.c) into registered memory
 *			<-  FIN (id), or NAK (id)
 *
 * A wire that can access the target's memory carries out large reads and writes without the target
 * (direct.c).
 *
 * Requests and messages share one sequence: the target begins all operations of a peer in the order
 * in which they were posted. The target never holds a large request without credit until its turn:
 * the initiator sends such a request when it can no longer overtake a sendv.
 *
 * The caller holds the domain, except where a comment says otherwise.
 */
#ifndef WEFT_ACCESS_H
#define WEFT_ACCESS_H

#include <rdma/fi_atomic.h>
#include "ack.h"
#include "endpoint.h"
#include "reply.h"
#include "target.h"

/* One operation, as the calls express it; lives on the caller's stack. */
struct engine_access {
	/* PACKET_WRITE, PACKET_READ, PACKET_ATOMIC */
	uint8_t op;
	/* enum engine_flag, PACKET_CQ_DATA */
	uint32_t flags;
	fi_addr_t dest;
	void *context;
	uint64_t data;
	/* Source of a WRITE, destination of a READ, operands; borrowed during the call */
	const struct iovec *iov;
	size_t iov_cnt;
	/* Memory of the peer; their len is in bytes */
	const struct packet_target *targets;
	size_t target_cnt;
	/* PACKET_ATOMIC: what it does; else NULL */
	const struct engine_update *update;
	/* ENGINE_DEFERRED: counter of the deferred work, referenced, taken on success; or NULL */
	struct engine_cntr *work_cntr;
};

/* Memory for the arrays that a struct engine_access points to. */
struct engine_access_room {
	struct iovec iov[ENGINE_IOV_MAX];
	struct packet_target targets[PACKET_TARGET_MAX];
	struct engine_update update;
};

/*
 * engine_access_check - check the lengths of an operation; the destination is not checked
 * @len: out: length of what is written or read, or of the operands, bytes
 * Called by engine_access(), and when deferred work is queued.
 * Returns 0, -FI_EINVAL or -FI_EMSGSIZE as engine_access() does.
 */
int engine_access_check(const struct engine_access *access, size_t *len);

/*
 * engine_access_rma - translate the arguments of fi_readmsg or fi_writemsg
 * @flags:  of the call, FI_*
 * @op:     PACKET_READ or PACKET_WRITE
 * @access: out: borrows the arrays of @msg
 * Called by the slots, and when deferred work is queued; the domain need not be held.
 * Returns 0, -FI_EINVAL or -FI_EBADFLAGS. Source: fi_rma(3).
 */
int engine_access_rma(const struct engine_ctx *ctx, const struct fi_msg_rma *msg,
		      uint64_t flags, uint8_t op, struct engine_access *access);

/*
 * engine_iocs_count - returns the number of elements in the first ENGINE_IOV_MAX entries of @ioc,
 * or SIZE_MAX if the sum overflows (atomic.c)
 * @ioc: NULL: no elements
 */
size_t engine_iocs_count(const struct fi_ioc *ioc, size_t cnt);

/*
 * engine_access_atomic - translate the arguments of fi_atomicmsg, fi_fetch_atomicmsg or
 * fi_compare_atomicmsg
 * @fetch:   destination of the old values, or NULL
 * @compare: compare values, or NULL
 * @flags:   of the call, FI_*
 * @access:  out: borrows @room, and none of the arrays of the call
 * Called by the slots, and when deferred work is queued; the domain need not be held.
 * Returns 0, -FI_EINVAL, -FI_EBADFLAGS or -FI_EOPNOTSUPP. Source: fi_atomic(3).
 */
int engine_access_atomic(const struct engine_ctx *ctx, const struct fi_msg_atomic *msg,
			 const struct fi_msg_fetch *fetch, const struct fi_msg_compare *compare,
			 uint64_t flags, struct engine_access *access,
			 struct engine_access_room *room);

/*
 * engine_access - begin a one-sided operation
 *
 * Called by engine_access_begin(), and when deferred work is triggered.
 * Returns 0, or an error with nothing begun:
 * -FI_EAGAIN: tx_size operations are under way, there is no memory for another, or one that is
 *	       injected, and not by a trigger, is early (engine_inject_early()),
 * -FI_EINVAL: the lengths differ, or the destination is no peer,
 * -FI_EMSGSIZE: more than ENGINE_INJECT_MAX bytes to inject,
 * -FI_EOPBADSTATE: the endpoint is not enabled,
 * -FI_ENOMEM: no memory for the peer.
 */
ssize_t engine_access(struct engine_ctx *ctx, const struct engine_access *access);

/*
 * engine_access_small - returns true if the operation may take the fast path (now.h)
 * That is a write, or an atomic without compare values, with one buffer, one target and no more
 * than ENGINE_REORDER_LEN bytes, with no flags but a completion level, inject and FI_MORE. The
 * target may hold so many bytes without credit, so the operation may be sent whatever else is under
 * way.
 */
static inline bool engine_access_small(const struct engine_access *access)
{
	return access->op != PACKET_READ && access->iov_cnt == 1 && access->target_cnt == 1 &&
	       access->iov && access->iov->iov_base &&
	       access->iov->iov_len == access->targets[0].len &&
	       access->targets[0].len <= ENGINE_REORDER_LEN && access->targets[0].len &&
	       !(access->flags & ~(ENGINE_COMPLETE | ENGINE_INJECT | ENGINE_MORE |
				   ENGINE_DELIVERED | ENGINE_ARRIVED)) &&
	       (access->op == PACKET_WRITE || !access->update->compare_cnt);
}

/*
 * engine_access_call - carry out a call of the program: engine_access() with the fast path before
 * it; logs an error
 * engine_access_begin - the part of it that is not inlined
 * @now: engine_access_small() of @access
 *
 * Called by the slots. Holds the domain during the call; the caller need not hold it.
 * Returns as engine_access() does.
 */
ssize_t engine_access_begin(struct engine_ctx *ctx, const struct engine_access *access,
			    bool now);

static inline ssize_t engine_access_call(struct engine_ctx *ctx,
					 const struct engine_access *access)
{
	return engine_access_begin(ctx, access, engine_access_small(access));
}

/*
 * engine_access_flags - translate the flags of a call to those of a one-sided operation
 * @flags:   of the call, FI_*
 * @allowed: FI_* that this call accepts beside those that all one-sided calls accept
 * @out:     out: enum engine_flag, PACKET_CQ_DATA
 * The domain need not be held.
 * Returns 0 or -FI_EBADFLAGS.
 */
int engine_access_flags(const struct engine_tx_ctx *tx, uint64_t flags, uint64_t allowed,
			uint32_t *out);

/*
 * Completion levels among the flags of a message; ENGINE_DELIVERED and ENGINE_ARRIVED are those of
 * an access
 */
#define ENGINE_LEVELS (PACKET_DELIVERY | PACKET_ACKED)
_Static_assert(ENGINE_DELIVERED == PACKET_DELIVERY << 25 && ENGINE_ARRIVED == PACKET_ACKED << 25,
	       "one shift makes an access' level of a message's");

/*
 * engine_access_level - translate the flags of a message to those of a one-sided operation with
 * the same completion level
 * PACKET_MATCH is dropped: a one-sided operation has no receive to match, and delivery is enough.
 */
static inline uint32_t engine_access_level(uint32_t flags)
{
	return (flags & ~(uint32_t)(ENGINE_LEVELS | PACKET_MATCH)) | (flags & ENGINE_LEVELS)
									     << 25;
}

/* engine_access_injects - returns the flags of a call that injects, without flags of its own */
static inline uint32_t engine_access_injects(const struct engine_ctx *ctx)
{
	return engine_access_level(ENGINE_INJECT | (engine_tx_defaults(ctx) & ENGINE_LEVELS));
}

/* engine_access_defaults - returns the flags of a call that has no flags argument */
static inline uint32_t engine_access_defaults(const struct engine_ctx *ctx)
{
	return engine_access_level(engine_tx_defaults(ctx) &
				   (ENGINE_COMPLETE | ENGINE_INJECT | ENGINE_LEVELS));
}

/*
 * engine_access_start - send a one-sided operation, new or queued
 * @tx: may be freed on success
 * Called by engine_access(), and by progress for the first of peer->queued.
 * Returns 0, or -FI_EAGAIN if it has to wait in peer->queued.
 */
int engine_access_start(struct engine_peer *peer, struct engine_tx *tx);

/*
 * engine_direct - read or write without the target, if the wire can do so and that is faster
 * (direct.c)
 * @tx: the first of peer->queued, or not queued, and not TX_DIRECT; freed if 1 is returned
 * Returns 1: the operation has ended; 0: it has to be sent by packet; -FI_EAGAIN: the wire is
 * carrying it out. With -FI_EAGAIN the caller leaves @tx, or makes it, the first of peer->queued.
 */
int engine_direct(struct engine_peer *peer, struct engine_tx *tx);
/*
 * engine_direct_drop - the conn of the peer is gone: an operation that its wire was carrying out is
 * sent by packet instead
 */
void engine_direct_drop(struct engine_peer *peer);

/*
 * engine_tx_access - copy an operation into the struct engine_tx that keeps it
 * @len: length of what is written or read, or of the operands, bytes
 * @iov_cnt, @target_cnt: those of @access; constants if the caller knows them
 * The caller sets tx->rx_idx.
 */
static inline void engine_tx_access(struct engine_tx *tx, const struct engine_access *access,
				    size_t len, size_t iov_cnt, size_t target_cnt)
{
	tx->context = access->context;
	tx->buf = iov_cnt ? access->iov[0].iov_base : NULL;
	tx->tag = 0;
	tx->data = access->data;
	tx->len = len;
	tx->flags = access->flags;
	tx->work_cntr = access->work_cntr;
	tx->kind = access->op;
	tx->iov_cnt = (uint32_t)iov_cnt;
	for (size_t i = 0; i < iov_cnt; i++)
		tx->iov[i] = access->iov[i];
	tx->target_cnt = (uint32_t)target_cnt;
	for (size_t i = 0; i < target_cnt; i++)
		tx->targets[i] = access->targets[i];
}

/* engine_tx_update - copy the part of an atomic that engine_tx_access() does not copy */
static inline void engine_tx_update(struct engine_tx *tx, const struct engine_update *update)
{
	memcpy(&tx->update, update, offsetof(struct engine_update, compare));
	for (size_t i = 0; i < update->compare_cnt; i++)
		tx->update.compare[i] = update->compare[i];
	for (size_t i = 0; i < update->result_cnt; i++)
		tx->update.result[i] = update->result[i];
}

/*
 * engine_atomic_head - returns the struct packet_atomic of an operation
 * @id: id of the struct engine_tx that waits for the result; not used without a result
 */
static inline struct packet_atomic engine_atomic_head(const struct engine_update *update,
						      uint64_t id)
{
	return (struct packet_atomic){
		.id = update->result_cnt ? id : 0,
		.cnt = update->cnt,
		.kind = update->kind,
		.datatype = update->datatype,
		.op = update->op,
	};
}

/*
 * engine_await_response - @tx was sent, and ends with its RESPONSE
 * @tx:   in a list or not; moved to peer->started
 * @want: length of the response, bytes
 */
static inline void engine_await_response(struct engine_peer *peer, struct engine_tx *tx,
					 size_t want)
{
	tx->want = want;
	tx->state = TX_RESPONSE;
	list_remove(&tx->link);
	list_add_tail(&peer->started, &tx->link);
}

/* engine_unacked - @tx, in no list, was sent, and ends with the ACK that covers it */
static inline void engine_unacked(struct engine_peer *peer, struct engine_tx *tx)
{
	tx->state = TX_ACK;
	list_add_tail(&peer->unacked, &tx->link);
}

/*
 * engine_acked - an ACK has arrived: end the operations that it covers
 * engine_nacked - a NAK has arrived: fail the operation that it names
 * engine_response - a RESPONSE has arrived, or its header: write its payload to the destination
 * @payload: first bytes of the payload; untrusted, like @packet
 * @avail:   number of bytes at @payload
 * @dest:    out: where the wire writes the whole payload, if @avail is less than packet->len
 *
 * Called by progress for packets that arrive at the initiator (answer.c).
 * Returns 0 or -FI_E*, which ends the conn.
 */
int engine_acked(struct engine_peer *peer, const struct packet *packet);
int engine_nacked(struct engine_peer *peer, const struct packet *packet);
int engine_response(struct engine_peer *peer, const struct packet *packet, const void *payload,
		    size_t avail, struct wire_dest *dest);
/* engine_response_arrived - the wire has written a piece of the response of @tx; may free @tx */
void engine_response_arrived(struct engine_tx *tx);

/* Slots that access no state, and need no lock. Source: fi_atomic(3) */
int engine_atomic_writevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			     size_t *cnt);
int engine_atomic_readwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
				 size_t *cnt);
int engine_atomic_compwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
				 size_t *cnt);
int engine_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			struct fi_atomic_attr *attr, uint64_t flags);

/* Op tables for callers that serialize; those that take the lock are in object/safe.c. */
extern struct fi_ops_rma engine_rma_ops;
extern struct fi_ops_atomic engine_atomic_ops;

#endif
