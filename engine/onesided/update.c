/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The target's side of atomics: what a request says is checked against the memory that it names, then one
 * method updates it. Called with the domain held, from progress.
 */
#include <rdma/fi_errno.h>
#include "ack.h"
#include "atomics.h"
#include "request.h"
#include "target.h"

/* An atomic request, taken apart. */
struct update {
	struct packet_atomic atomic;
	/* of an element, 0: nobody can do that; of all */
	size_t size, bytes;
	/* of operands that it carries; values to compare with are one */
	size_t sets;
	/* by which it is refused: id or seq */
	uint64_t which;
	/* where it names no list: without targets */
	struct request r;
};

/* What an atomic and its list say. 0, or -FI_EINVAL for what no peer sends */
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

/* Does it carry what it says, and name as much? */
static inline bool update_whole(const struct packet *packet, const struct update *u)
{
	uint64_t named = u->bytes;

	if (unlikely(packet->flags & PACKET_TARGETS) && !request_bytes(&u->r, &named))
		return false;
	return u->atomic.cnt && u->bytes <= ENGINE_ATOMIC_MAX && named == u->bytes &&
	       u->r.len == u->sets * u->bytes;
}

/* Does every piece hold whole elements, where they may stand? */
static inline bool update_fits(const struct update *u, const struct iovec *iov, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		if ((cnt > 1 && iov[i].iov_len % u->size) ||
		    !atomics_aligned(iov[i].iov_base, (enum fi_datatype)u->atomic.datatype))
			return false;
	return true;
}

/*
 * @iov: update_fits(), but for a single piece without a result, which atomics_apply() looks at itself
 * Returns 0, or -FI_EINVAL for such a one (nothing happened).
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

/* What access an operation needs, */
static inline uint64_t update_access(const struct update *u)
{
	if (likely(u->atomic.kind == ATOMICS_BASE))
		return FI_REMOTE_WRITE;
	return u->atomic.op == FI_ATOMIC_READ ? FI_REMOTE_READ
					      : FI_REMOTE_READ | FI_REMOTE_WRITE;
}

/* ... and what the endpoint counts it as. */
static inline uint64_t update_kind(const struct update *u)
{
	return u->atomic.id ? FI_REMOTE_READ : FI_REMOTE_WRITE;
}

/* Carry it out on this memory, and answer. 0, or -FI_E* that the initiator is told */
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

/* The same on the one place that the header names, */
static engine_path int update_place(struct engine_rx_ctx *ctx, struct engine_peer *peer,
				    const struct packet *packet, const struct update *u)
{
	uint64_t access = update_access(u);
	struct iovec iov[MR_IOV_MAX];
	struct engine_mr *mr;
	size_t cnt;
	int ret = request_place(peer, packet, u->bytes, access, iov, &cnt, &mr);

	if (likely(!ret))
		ret = update_do(peer, u, iov, cnt);
	if (likely(!ret)) {
		engine_mr_count(mr, access, u->bytes);
		request_completed_bytes(ctx, update_kind(u), u->bytes);
	}
	return ret;
}

/* ... or on those of the list. */
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
