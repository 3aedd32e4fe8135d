/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-sided operations: RMA and atomics. The initiator's side is now.c and access.c under the
 * calls of rma.c and atomic.c, the target's is target.c, reply.c, update.c and ack.c.
 *
 *	initiator			target
 *	WRITE, ATOMIC (seq)	->	carried out in its turn
 *			<-  ACK (everything before that seq), or NAK (seq)
 *					At once where the request asks for it. The initiator may
 *					have completed it before: then it asks seldom (quiet.h).
 *	CREDIT that asks	->
 *			<-  ACK
 *	READ, ATOMIC (id)	->	carried out in its turn
 *			<-  RESPONSE (id, offset), or NAK (id)
 *	WRITE (seq) by sendv	->	its payload goes straight into registered memory; a large one
 *					takes no credit, and waits on the wire for its turn
 *			<-  ACK, or NAK (seq)
 *	RTS with targets	->	a rendezvous (rndv.c) into registered memory
 *			<-  FIN (id), or NAK (id)
 *
 * Where the wire can do it, large reads and writes go around the target (direct.c).
 *
 * Requests share the sequence of messages, so all that is posted to a peer begins there in that
 * order. A large request that has no credit is never held until its turn: its sender waits while it
 * may overtake a sendv.
 *
 * The caller holds the domain.
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
	/* source, destination of a READ, operands; borrowed during the call */
	const struct iovec *iov;
	size_t iov_cnt;
	/* len in bytes */
	const struct packet_target *targets;
	size_t target_cnt;
	/* PACKET_ATOMIC */
	const struct engine_update *update;
	/* ENGINE_DEFERRED: counts its end; NULL or held, taken on success */
	struct engine_cntr *work_cntr;
};

/* Room for what a struct engine_access points to. */
struct engine_access_room {
	struct iovec iov[ENGINE_IOV_MAX];
	struct packet_target targets[PACKET_TARGET_MAX];
	struct engine_update update;
};

/*
 * engine_access_check - can such an operation be begun?
 * @len: out: bytes of what it writes or reads, or of its operands
 * Returns 0 or the error of engine_access().
 */
int engine_access_check(const struct engine_access *access, size_t *len);

/*
 * engine_access_rma - what fi_readmsg or fi_writemsg is to do
 * @op:     PACKET_READ or PACKET_WRITE
 * @access: out: borrows the arrays of the call
 * Returns 0, -FI_EINVAL or -FI_EBADFLAGS. Source: fi_rma(3).
 */
int engine_access_rma(const struct engine_ctx *ctx, const struct fi_msg_rma *msg,
		      uint64_t flags, uint8_t op, struct engine_access *access);

/*
 * engine_iocs_count - elements of a list of any length; SIZE_MAX for more than there can be
 * (atomic.c)
 */
size_t engine_iocs_count(const struct fi_ioc *ioc, size_t cnt);

/*
 * engine_access_atomic - what fi_atomicmsg, fi_fetch_atomicmsg or fi_compare_atomicmsg is to do
 * @fetch:   where old values go, or NULL
 * @compare: what to compare with, or NULL
 * @access:  out: borrows @room and nothing of the call
 * Returns 0, -FI_EINVAL, -FI_EBADFLAGS or -FI_EOPNOTSUPP. Source: fi_atomic(3).
 */
int engine_access_atomic(const struct engine_ctx *ctx, const struct fi_msg_atomic *msg,
			 const struct fi_msg_fetch *fetch, const struct fi_msg_compare *compare,
			 uint64_t flags, struct engine_access *access,
			 struct engine_access_room *room);

/*
 * engine_access - begin a one-sided operation
 *
 * Returns 0, -FI_EAGAIN when tx_size of them are under way (nothing happened), -FI_EINVAL for
 * lengths that don't agree or a destination that is none, -FI_EMSGSIZE for too much to inject,
 * -FI_EOPBADSTATE before fi_enable.
 */
ssize_t engine_access(struct engine_ctx *ctx, const struct engine_access *access);

/*
 * engine_access_small - is it from one place here to one there, and so little that it may leave
 * whatever is under way? Of atomics those without a value to compare with
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
 * engine_access_call - engine_access() as a call of the program, which logs a refusal; takes the
 * domain
 * engine_access_begin - its part that is no inline; @now: engine_access_small() of it
 */
ssize_t engine_access_begin(struct engine_ctx *ctx, const struct engine_access *access,
			    bool now);

static inline ssize_t engine_access_call(struct engine_ctx *ctx,
					 const struct engine_access *access)
{
	return engine_access_begin(ctx, access, engine_access_small(access));
}

/*
 * engine_access_flags - flags of a call with flags as engine flags
 * @allowed: FI_* that the call knows
 * Returns 0 or -FI_EBADFLAGS.
 */
int engine_access_flags(const struct engine_tx_ctx *tx, uint64_t flags, uint64_t allowed,
			uint32_t *out);

#define ENGINE_LEVELS (PACKET_DELIVERY | PACKET_ACKED) /* of a message; of an access: */
_Static_assert(ENGINE_DELIVERED == PACKET_DELIVERY << 25 && ENGINE_ARRIVED == PACKET_ACKED << 25,
	       "one shift makes an access' level of a message's");

/*
 * engine_access_level - flags of a message that asks for the same, as those of a one-sided
 * operation Which needs no receive: to be matched is to be delivered.
 */
static inline uint32_t engine_access_level(uint32_t flags)
{
	return (flags & ~(uint32_t)(ENGINE_LEVELS | PACKET_MATCH)) | (flags & ENGINE_LEVELS)
									     << 25;
}

/* engine_access_injects - flags of a call that injects */
static inline uint32_t engine_access_injects(const struct engine_ctx *ctx)
{
	return engine_access_level(ENGINE_INJECT | (engine_tx_defaults(ctx) & ENGINE_LEVELS));
}

/* engine_access_defaults - flags of a call without flags */
static inline uint32_t engine_access_defaults(const struct engine_ctx *ctx)
{
	return engine_access_level(engine_tx_defaults(ctx) &
				   (ENGINE_COMPLETE | ENGINE_INJECT | ENGINE_LEVELS));
}

/* engine_access_start - send a request that was queued. 0 or -FI_EAGAIN */
int engine_access_start(struct engine_peer *peer, struct engine_tx *tx);

/*
 * engine_direct - read or write without the target, where the wire can and that is better
 * (direct.c) Returns 1 when it has ended (tx is gone), 0 when it is to go by packet, -FI_EAGAIN
 * while it is under way: then tx is, or has to become, the first of peer->queued.
 */
int engine_direct(struct engine_peer *peer, struct engine_tx *tx);
/* engine_direct_drop - the conn over which one may be under way is gone: the wire has forgotten it */
void engine_direct_drop(struct engine_peer *peer);

/*
 * engine_tx_access - what a request that is kept is to do
 * @len: bytes of what it writes or reads, or of its operands
 * @iov_cnt, @target_cnt: those of @access; constants of the caller where it knows them
 * The receive context of the peer is the caller's to set.
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

/* engine_tx_update - what an atomic has beside engine_tx_access() */
static inline void engine_tx_update(struct engine_tx *tx, const struct engine_update *update)
{
	memcpy(&tx->update, update, offsetof(struct engine_update, compare));
	for (size_t i = 0; i < update->compare_cnt; i++)
		tx->update.compare[i] = update->compare[i];
	for (size_t i = 0; i < update->result_cnt; i++)
		tx->update.result[i] = update->result[i];
}

/*
 * engine_atomic_head - what the packet of an atomic says of it; @id: of what waits for the result,
 * if it has one
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

/* engine_await_response - @tx, linked or not, was sent and ends with its RESPONSE, of @want bytes */
static inline void engine_await_response(struct engine_peer *peer, struct engine_tx *tx,
					 size_t want)
{
	tx->want = want;
	tx->state = TX_RESPONSE;
	list_remove(&tx->link);
	list_push(&peer->started, &tx->link);
}

/* engine_unacked - @tx was sent and ends with the ACK that covers it */
static inline void engine_unacked(struct engine_peer *peer, struct engine_tx *tx)
{
	tx->state = TX_ACK;
	list_push(&peer->unacked, &tx->link);
}

/* What arrives at the initiator. 0 or -FI_E* to end the conn. */
int engine_acked(struct engine_peer *peer, const struct packet *packet);
int engine_nacked(struct engine_peer *peer, const struct packet *packet);
int engine_response(struct engine_peer *peer, const struct packet *packet, const void *payload,
		    size_t avail, struct wire_dest *dest);
/* engine_response_arrived - what the wire was writing for @tx is there */
void engine_response_arrived(struct engine_tx *tx);

/* Slots that need no lock. Source: fi_atomic(3) */
int engine_atomic_writevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			     size_t *cnt);
int engine_atomic_readwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
				 size_t *cnt);
int engine_atomic_compwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
				 size_t *cnt);
int engine_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			struct fi_atomic_attr *attr, uint64_t flags);

/* Op tables, for callers that serialize; those that take the lock are in safe.c. */
extern struct fi_ops_rma engine_rma_ops;
extern struct fi_ops_atomic engine_atomic_ops;

#endif
