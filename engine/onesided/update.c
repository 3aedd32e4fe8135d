/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The target's side of atomics: a request is checked against the memory that it names, and
 * atomics_apply() updates that memory. Called with the domain held, by progress.
 */
#include <rdma/fi_errno.h>
#include "ack.h"
#include "atomics.h"
#include "request.h"
#include "target.h"

/* A parsed atomic request. */
struct update {
	struct packet_atomic atomic;
	/* Length of an element, 0: the operation is not supported; length of all; bytes */
	size_t size, bytes;
	/* Arrays of @bytes that it carries: operands and compare values, 0 to 2 */
	size_t sets;
	/* Id or seq that a NAK names */
	uint64_t which;
	/* Its targets are set only if the request has a list of them */
	struct request r;
};

/*
 * Parse an atomic request and its list of targets. Returns 0, or -FI_EINVAL for a request that no
 * peer of this version sends.
 */
static inline int update_read(const struct packet *packet, const void *payload, struct update *u)
{
	struct packet_atomic *atomic = &u->atomic;

	if (packet->len < sizeof(*atomic))
		return -FI_EINVAL;
	memcpy(atomic, payload, sizeof(*atomic));
	if (atomic->reserved || (atomic->kind == ATOMICS_BASE) != !atomic->id)
		return -FI_EINVAL;
	if (atomic->id && (!(atomic->id >> 32) || packet->flags & PACKET_ACKED))
		return -FI_EINVAL;
	u->which = atomic->id ? atomic->id : packet->seq;
	u->size = atomics_element((enum atomics_kind)atomic->kind,
				  (enum fi_datatype)atomic->datatype, (enum fi_op)atomic->op);
	u->bytes = atomic->cnt * u->size;
	u->sets = atomic->kind == ATOMICS_COMPARE ? 2 : atomic->op != FI_ATOMIC_READ;
	if (unlikely(packet->flags & ~(uint32_t)PACKET_ACKED))
		return engine_request_read(packet, payload, sizeof(*atomic), u->bytes, &u->r);
	u->r.carried = (const char *)payload + sizeof(*atomic);
	u->r.len = packet->len - sizeof(*atomic);
	return 0;
}

/*
 * Returns true if the lengths of the operands, of the targets and of the elements agree, and are in
 * bounds.
 */
static inline bool update_whole(const struct packet *packet, const struct update *u)
{
	uint64_t named = u->bytes;

	if (unlikely(packet->flags & PACKET_TARGETS) && !request_bytes(&u->r, &named))
		return false;
	return u->atomic.cnt && u->bytes <= ENGINE_ATOMIC_MAX && named == u->bytes &&
	       u->r.len == u->sets * u->bytes;
}

/* Returns true if every piece of memory is aligned for the datatype and has whole elements. */
static inline bool update_fits(const struct update *u, const struct iovec *iov, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		if ((cnt > 1 && iov[i].iov_len % u->size) ||
		    !atomics_aligned(iov[i].iov_base, (enum fi_datatype)u->atomic.datatype))
			return false;
	return true;
}

/*
 * Update the memory. @iov: update_fits(); not required of a single piece without a result, whose
 * alignment atomics_apply() checks. @result: out: old values; NULL: none. Returns 0, or -FI_EINVAL
 * if such a single piece is not aligned (nothing happened).
 */
static inline int update_apply(const struct update *u, const struct iovec *iov, size_t cnt,
			       char *result)
{
	const char *operand = u->r.carried;
	const char *compare = u->sets == 2 ? operand + u->bytes : NULL;
	size_t at = 0;
	int ret = 0;

	for (size_t i = 0; i < cnt; i++) {
		struct atomics_update piece = {
			.kind = (enum atomics_kind)u->atomic.kind,
			.datatype = (enum fi_datatype)u->atomic.datatype,
			.op = (enum fi_op)u->atomic.op,
			.target = iov[i].iov_base,
			.operand = operand + at,
			.compare = compare ? compare + at : NULL,
			.result = result ? result + at : NULL,
			.cnt = likely(cnt == 1) ? u->atomic.cnt : iov[i].iov_len / u->size,
		};

		ret = atomics_apply(&piece);
		assert(!ret || cnt == 1);
		at += iov[i].iov_len;
	}
	return ret;
}

/* Returns the access to the regions that an operation needs. */
static inline uint64_t update_access(const struct update *u)
{
	if (likely(u->atomic.kind == ATOMICS_BASE))
		return FI_REMOTE_WRITE;
	return u->atomic.op == FI_ATOMIC_READ ? FI_REMOTE_READ
					      : FI_REMOTE_READ | FI_REMOTE_WRITE;
}

/* Returns the kind of access that the endpoint counts for an operation. */
static inline uint64_t update_kind(const struct update *u)
{
	return u->atomic.id ? FI_REMOTE_READ : FI_REMOTE_WRITE;
}

/*
 * Carry out an operation on @iov, and send its result if it has one. Returns 0, or the -FI_E* to
 * refuse the request with.
 */
static inline int update_do(struct engine_peer *peer, const struct update *u,
			    const struct iovec *iov, size_t cnt)
{
	struct answer answer;

	if (likely(cnt == 1 && !u->atomic.id))
		return update_apply(u, iov, 1, NULL);
	if (unlikely(!update_fits(u, iov, cnt)))
		return -FI_EINVAL;
	if (!u->atomic.id)
		return update_apply(u, iov, cnt, NULL);
	if (!answer_claim(peer, u->atomic.id, u->bytes, &answer))
		return -FI_ENOMEM;
	update_apply(u, iov, cnt, answer.at);
	answer_send(peer, &answer);
	return 0;
}

/* Carry out an operation on the one target in the header; returns as update_do() does */
static engine_path int update_place(struct engine_rx_ctx *ctx, struct engine_peer *peer,
				    const struct packet *packet, const struct update *u)
{
	uint64_t access = update_access(u);
	struct iovec iov[MR_IOV_MAX];
	struct engine_mr *mr;
	size_t cnt;
	int ret;

	engine_registrar_out(peer->ep->domain);
	ret = request_place(peer, packet, u->bytes, access, iov, &cnt, &mr);
	if (likely(!ret))
		ret = update_do(peer, u, iov, cnt);
	if (likely(!ret)) {
		engine_mr_count(mr, access, u->bytes);
		request_completed_bytes(ctx, update_kind(u), u->bytes);
	}
	return ret;
}

/* Carry out an operation on the targets of the list; returns as update_do() does */
static int update_places(struct engine_rx_ctx *ctx, struct engine_peer *peer,
			 const struct packet *packet, const struct update *u)
{
	struct engine_landing landing;
	int ret = engine_request_land(peer->ep, &u->r, update_access(u), &landing);

	if (ret)
		return ret;
	ret = update_do(peer, u, landing.iov, landing.iov_cnt);
	if (!ret) {
		engine_request_completed_of(ctx, &landing, update_kind(u), update_access(u));
		if (packet->flags & PACKET_CQ_DATA)
			engine_request_completed_data(ctx, peer, FI_ATOMIC, packet->data,
						      u->bytes);
	}
	landing_release(&landing);
	return ret;
}

int engine_request_atomic(struct engine_rx_ctx *ctx, struct engine_peer *peer,
			  const struct packet *packet, const void *payload)
{
	struct update u;
	int ret;

	if (unlikely(answers_overflow(peer) || update_read(packet, payload, &u)))
		return -FI_EINVAL;
	request_counted(peer, u.r.len);
	if (likely(!u.atomic.id))
		engine_ack_due(peer, packet->flags);
	if (unlikely(!u.size)) {
		engine_request_refuse(peer, u.which, -FI_EOPNOTSUPP);
		return 0;
	}
	if (unlikely(!update_whole(packet, &u)))
		return -FI_EINVAL;
	if (likely(!(packet->flags & PACKET_TARGETS)))
		ret = update_place(ctx, peer, packet, &u);
	else
		ret = update_places(ctx, peer, packet, &u);
	if (unlikely(ret))
		engine_request_refuse(peer, u.which, ret);
	return 0;
}
