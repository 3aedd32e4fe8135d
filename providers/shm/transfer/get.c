/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Payload that its receiver reads from the sender's memory, with one copy by the kernel. Called by
 * the engine, and by poll().
 *
 * Two processes that both poll during a transfer are two to three times faster with sendv than the
 * kernel alone (1 MiB: 60 against 160 us). So get checks first whether the peer polls; if so it
 * declines, and the engine asks the peer to send. The memory of a peer that computes meanwhile is
 * read, a chunk in each poll, so that small messages pass in between. After the first chunk the
 * rest is a cooperative copy: as soon as the peer polls, it writes chunks while this side reads
 * others (coop_copy.h). If it keeps pace, the engine asks it to send the rest.
 *
 * Memory of a peer that is mapped here is copied at once, or in the same way asked for where that makes
 * the program faster (lending.h).
 *
 * A ring that stays small, since its producer has no area left for it, is slower than the kernel
 * when both ends copy, from some hundred KiB on.
 */
#include <rdma/fi_errno.h>
#include "polling.h"
#include "conn.h"
#include "copy.h"
#include "write_guard.h"
#include "get.h"
#include "lines.h"
#include "peer_arena.h"
#include "process_vm.h"
#include "transfer.h"

/* Polls of the peer within POLLING_NS by which it is seen to poll. */
#define POLLING_MIN 2u
#define POLLING_NS  3000u

/*
 * A sender that has completed a chunk during each of the receiver's last PACE chunks polls: from
 * there on the ring is faster, if it is large, and at least PACE_CHUNKS are left.
 */
#define PACE	    2u
#define PACE_CHUNKS (262144u / PSHM_CHUNK_LEN)

/* Bytes of a step where the source is mapped. */
#define MAPPED_STEP (512u << 10)

/* Bytes from which on both ends are faster without a ring that stays small. */
#define SMALL_RING_MIN (512u << 10)

/* A connection that ends waits at most so long for a peer that holds a chunk, */
#define RELEASE_NS 1000000000u
/* and after so long the write guard is shut. */
#define GUARD_NS 1000000u

/* A get under way. */
struct pshm_read {
	struct pool_object pool;
	/* conn->gets */
	struct list link;
	struct wire_op *op;
	struct wire_source from;
	struct iovec iov[WIRE_IOV_MAX];
	size_t iov_cnt;
	/* bytes in all */
	size_t len;
	/* bytes read, from the start, before it became a cooperative copy */
	size_t moved;
	/* when get began to watch the peer; 0: the decision to read is made */
	uint64_t since_ns;
	/* count of the peer's polls then */
	uint32_t polls;
	/* the source is memory that we have mapped, at these places */
	bool mapped;
	struct iovec here[WIRE_IOV_MAX];
	/* NULL: it is not a cooperative copy yet, and the rest means nothing */
	struct pshm_coop_copy *slot;
	uint32_t slot_idx;
	uint32_t gen;
	uint32_t chunk_cnt;
	/* chunks that we have claimed */
	uint32_t ours;
	/* chunks claimed by both sides, and by the peer; known once drained */
	uint32_t claimed;
	uint32_t theirs;
	/* chunks that the peer had ended at our last one */
	uint32_t written;
	/* consecutive chunks of this side during each of which that has grown */
	uint32_t pace;
	/* no more can be claimed */
	bool drained;
	/* why it was given up, -FI_E*, or 0 */
	int status;
};

void pshm_gets_init(struct pshm_wire *wire)
{
	pool_init(&wire->reads, sizeof(struct pshm_read), 0);
}

/* Copies @len bytes from @at on, which are mapped here. */
static int copy_part(struct pshm_conn *conn, const struct pshm_read *r, size_t at, size_t len)
{
	struct iovec part[WIRE_IOV_MAX];
	size_t cnt = iov_slice(r->here, r->from.iov_cnt, at, len, part);
	struct pshm_copy_choice *choice = pshm_copy_choice(&conn->copying, PSHM_COPY_MESSAGE,
							   r->len);

	for (size_t i = 0; i < cnt; i++) {
		pshm_copy_to_iov(choice, r->iov, r->iov_cnt, at, part[i].iov_base,
				 part[i].iov_len);
		at += part[i].iov_len;
	}
	conn->lending.arrived += len;
	return pshm_peer_copied(conn) ? 0 : -FI_ECONNRESET;
}

/*
 * Has the kernel read @len bytes from @at on. Whether the peer is alive is checked after the read: if so, what
 * was read was neither another process that has its number, nor another program in its place.
 */
static int call_part(struct pshm_conn *conn, const struct pshm_read *r, size_t at, size_t len)
{
	struct iovec local[WIRE_IOV_MAX], remote[WIRE_IOV_MAX];
	size_t local_cnt = iov_slice(r->iov, r->iov_cnt, at, len, local);
	size_t remote_cnt = iov_slice(r->from.iov, r->from.iov_cnt, at, len, remote);
	ssize_t n;

	n = sys_process_vm_read((pid_t)conn->process->pid, local, local_cnt, remote, remote_cnt);
	if (pshm_process_dead(conn->process))
		return -FI_ECONNRESET;
	if (n < 0) {
		if (n == -FI_EPERM || n == -FI_EACCES || n == -FI_ENOSYS)
			conn->get_refused = (int)n;
		return n == -ESRCH ? -FI_ECONNRESET : (int)n;
	}
	if ((size_t)n != len)
		return -FI_EFAULT;
	/* A peer that has ended the connection may have changed what was read. */
	return pshm_peer_copied(conn) ? 0 : -FI_ECONNRESET;
}

/* Reads a chunk of a cooperative copy, whose source is not mapped here. */
static int read_chunk(struct pshm_conn *conn, const struct pshm_read *r, uint32_t chunk)
{
	size_t at = (size_t)chunk * PSHM_CHUNK_LEN, left = r->len - r->moved - at;

	return call_part(conn, r, r->moved + at, left < PSHM_CHUNK_LEN ? left : PSHM_CHUNK_LEN);
}

/*
 * Returns a slot that is not in use, or NULL: there is none, or the peer can't write to our
 * memory.
 */
static struct pshm_coop_copy *slot_find(struct pshm_conn *conn, uint32_t *idx)
{
	enum pshm_side other = pshm_other(conn);

	*idx = (uint32_t)__builtin_ctz(~conn->coop_slots);
	if (*idx >= PSHM_COOP_COPIES ||
	    atomic_load_explicit(&conn->pair->no_coop_write[other].value, memory_order_relaxed))
		return NULL;
	if (!conn->wire->write_guard && sys_write_guard_open(&conn->wire->write_guard))
		return NULL;
	return &conn->pair->coop_copies[conn->side][*idx];
}

/* Makes what is left a cooperative copy, if it is long enough and a slot and a line are free. */
static void invite(struct pshm_conn *conn, struct pshm_read *r)
{
	struct pshm_coop_task task = { .chunk_len = PSHM_CHUNK_LEN };
	struct pshm_coop_invite invite = { .zero = 0 };
	struct pshm_coop_copy *slot;
	struct ring_line *line;
	size_t left = r->len - r->moved;

	if (left < PSHM_COOP_COPY_MIN || left / PSHM_CHUNK_LEN > INT32_MAX)
		return;
	slot = slot_find(conn, &invite.slot);
	if (!slot)
		return;
	line = ring_claim(&conn->tx);
	if (!line)
		return; /* the ring is full */
	task.id = r->from.id;
	task.skip = r->moved;
	task.len = left;
	task.write_guard = (uintptr_t)conn->wire->write_guard;
	task.chunk_cnt = (uint32_t)((left + PSHM_CHUNK_LEN - 1) / PSHM_CHUNK_LEN);
	task.iov_cnt = (uint32_t)iov_slice(r->iov, r->iov_cnt, r->moved, left, task.iov);
	invite.gen = ++conn->coop_gens[invite.slot];
	pshm_coop_copy_open(slot, invite.gen, &task);
	memset(line->header, 0, sizeof(line->header));
	memcpy(line->header, &invite, sizeof(invite));
	/* R:ring_line.word  the slot is open before the line; pairs A:ring_line.word */
	pshm_line_publish(conn, line, PSHM_COOP_COPY);
	conn->coop_slots |= 1u << invite.slot;
	r->slot = slot;
	r->slot_idx = invite.slot;
	r->gen = invite.gen;
	r->chunk_cnt = task.chunk_cnt;
	r->ours = r->theirs = r->written = r->pace = 0;
	r->drained = false;
	r->status = 0;
}

/* @claimed: chunks, by both. A peer that moves the word back makes us claim some again. */
static void claims_end(struct pshm_read *r, uint32_t claimed)
{
	r->claimed = claimed;
	r->theirs = claimed > r->ours ? claimed - r->ours : 0;
	r->drained = true;
}

/* Lets no more chunks be claimed. @status: the reason, unless an earlier one is set. */
static void withdraw(struct pshm_read *r, int status)
{
	if (!r->drained)
		claims_end(r, pshm_coop_copy_close(r->slot, r->gen, r->chunk_cnt));
	if (!r->status)
		r->status = status;
}

/* Returns true if the peer holds a chunk of our memory. */
static bool held(const struct pshm_read *r)
{
	uint32_t failed;

	return r->slot && pshm_coop_copy_written(r->slot, &failed) < r->theirs;
}

/*
 * Ends a copy that is drained and of which the peer holds no chunk. Returns 0: all is there;
 * -FI_EBUSY: the bytes up to op->moved are, and the peer is to send the rest; or -FI_E*.
 */
static int settle(struct pshm_conn *conn, const struct pshm_read *r)
{
	uint32_t failed;
	int err;

	pshm_coop_copy_written(r->slot, &failed);
	if (r->status && r->status != -FI_EBUSY)
		return r->status;
	if (failed > r->claimed)
		return -FI_EPROTO;
	err = failed ? read_chunk(conn, r, failed - 1) : 0;
	if (err || r->claimed == r->chunk_cnt)
		return err;
	r->op->moved = r->moved + (uint64_t)r->claimed * PSHM_CHUNK_LEN;
	return -FI_EBUSY;
}

/*
 * Returns true if the peer's ring has its initial size, and the peer has published that it will not
 * grow.
 */
static bool ring_stays_small(const struct pshm_conn *conn)
{
	enum pshm_side other = pshm_other(conn);

	return !conn->rx_moved &&
	       atomic_load_explicit(&conn->pair->small[other].value, memory_order_relaxed);
}

/* Returns true if the rest would be faster through the ring. @chunk: the one that was just read */
static bool ring_is_better(const struct pshm_conn *conn, struct pshm_read *r, uint32_t chunk)
{
	uint32_t failed, written = pshm_coop_copy_written(r->slot, &failed);

	r->pace = written != r->written ? r->pace + 1 : 0;
	r->written = written;
	return r->pace >= PACE && r->chunk_cnt - chunk > PACE_CHUNKS && !ring_stays_small(conn);
}

/*
 * One step of a cooperative copy. Returns 1 when it is over (@status: out), 0 when not, or
 * -FI_EAGAIN: the peer still holds a chunk.
 */
static int coop_move(struct pshm_conn *conn, struct pshm_read *r, int *status)
{
	uint32_t chunk;
	int err;

	if (!r->drained) {
		switch (pshm_coop_copy_claim(r->slot, r->gen, r->chunk_cnt, &chunk)) {
		case PSHM_CLAIMED:
			r->ours++;
			err = read_chunk(conn, r, chunk);
			if (!err && ring_is_better(conn, r, chunk))
				err = -FI_EBUSY;
			if (err)
				withdraw(r, err);
			return 0;
		case PSHM_NONE_LEFT:
			claims_end(r, r->chunk_cnt);
			break;
		case PSHM_NOT_OURS: /* the peer has broken the word */
			*status = -FI_EPROTO;
			return 1;
		}
	}
	if (held(r))
		return -FI_EAGAIN;
	*status = settle(conn, r);
	return 1;
}

/* One step of a read without the peer's help. Returns 1 when it is over (@status: out), or 0. */
static int alone_move(struct pshm_conn *conn, struct pshm_read *r, int *status)
{
	size_t left = r->len - r->moved, most = r->mapped ? MAPPED_STEP : PSHM_CHUNK_LEN;
	size_t step = left < most ? left : most;

	if (r->mapped && !r->moved) {
		conn->wire->moved.read++;
		conn->wire->moved.read_bytes += r->len;
	}
	*status = r->mapped ? copy_part(conn, r, r->moved, step)
			    : call_part(conn, r, r->moved, step);
	if (*status)
		return 1;
	r->moved += step;
	if (r->moved == r->len)
		return 1;
	if (!r->mapped)
		invite(conn, r);
	return 0;
}

/* @polls: out: number of polls of the peer. Returns false if it can't be read. */
static bool peer_polls(struct pshm_conn *conn, uint32_t *polls)
{
	const struct pshm_inbox *inbox = pshm_peer_inbox(conn);

	if (!inbox)
		return false;
	*polls = atomic_load_explicit(&inbox->polls, memory_order_relaxed);
	return true;
}

/*
 * Returns 1 when it is over (@status: out), 0 when a step was made, or -FI_EAGAIN: nothing can be
 * done now.
 */
static int read_move(struct pshm_conn *conn, struct pshm_read *r, int *status)
{
	uint32_t polls;

	if (r->slot)
		return coop_move(conn, r, status);
	if (r->since_ns) {
		if (peer_polls(conn, &polls) && polls - r->polls >= POLLING_MIN) {
			*status = -FI_EBUSY;
			return 1;
		}
		if (platform_now_ns() - r->since_ns < POLLING_NS)
			return -FI_EAGAIN;
		r->since_ns = 0;
	}
	return alone_move(conn, r, status);
}

static void read_free(struct pshm_conn *conn, struct pshm_read *r)
{
	if (r->slot)
		conn->coop_slots &= ~(1u << r->slot_idx);
	list_remove(&r->link);
	pool_put(&conn->wire->reads, r);
}

/* Returns true if the source has @len bytes, at addresses that do not wrap. */
static bool source_holds(const struct wire_source *from, size_t len)
{
	uintptr_t end;
	bool ok;

	for (uint32_t i = 0; i < from->iov_cnt; i++)
		if (__builtin_add_overflow((uintptr_t)from->iov[i].iov_base,
					   from->iov[i].iov_len, &end))
			return false;
	return iov_len(from->iov, from->iov_cnt, &ok) >= len && ok;
}

/* Returns true if payload that is mapped is better copied here, also from a peer that polls. */
static bool mapped_is_better(struct pshm_conn *conn, size_t len)
{
	return len <= PSHM_EAGER_MAX || pshm_lending_next(&conn->lending, len);
}

int pshm_get(struct wire_conn *base, const struct wire_source *from, const struct iovec *iov,
	     size_t iov_cnt, struct wire_op *op)
{
	struct pshm_conn *conn = pshm_conn_of(base);
	struct iovec here[WIRE_IOV_MAX];
	struct pshm_read *r;
	bool ok, mapped;
	size_t len;
	int status;

	len = iov_len(iov, iov_cnt, &ok);
	if (!ok || !source_holds(from, len))
		return -FI_EFAULT;
	if (!len)
		return 1;
	mapped = pshm_peer_memory(conn, from->iov, from->iov_cnt, false, here);
	if (!mapped && conn->get_refused)
		return conn->get_refused;
	r = pool_get(&conn->wire->reads);
	if (!r)
		return -FI_ENOMEM;
	list_init(&r->link);
	r->op = op;
	r->from = *from;
	memcpy(r->iov, iov, iov_cnt * sizeof(*iov));
	r->iov_cnt = iov_cnt;
	r->len = len;
	r->moved = 0;
	r->since_ns = 0;
	r->slot = NULL;
	r->mapped = mapped;
	if (mapped)
		memcpy(r->here, here, from->iov_cnt * sizeof(*here));
	list_add_tail(&conn->gets, &r->link);
	if (!(mapped && mapped_is_better(conn, len)) &&
	    (len < SMALL_RING_MIN || !ring_stays_small(conn)) && peer_polls(conn, &r->polls)) {
		r->since_ns = platform_now_ns();
	} else if (alone_move(conn, r, &status)) {
		read_free(conn, r);
		return status ? status : 1;
	}
	pshm_mark_work(conn);
	return 0;
}

int pshm_gets_move(struct pshm_conn *conn)
{
	struct pshm_read *r;
	int steps = 0;

	list_for_each_entry(r, &conn->gets, link) {
		int ret, status = 0;

		ret = read_move(conn, r, &status);
		if (ret == 1) {
			pshm_op_done(conn, r->op, status);
			read_free(conn, r);
		}
		if (ret < 0)
			continue; /* the others go on */
		steps++;
		/* a read that is declined has cost nothing */
		if (status != -FI_EBUSY)
			break;
	}
	return steps;
}

/* Waits until the peer holds no chunk of our memory, for RELEASE_NS at most. */
static void wait_released(struct pshm_conn *conn)
{
	enum pshm_side other = pshm_other(conn);
	const _Atomic uint32_t *ended = &conn->pair->ended[other].value;
	struct pshm_wire *w = conn->wire;
	uint64_t begin = platform_now_ns(), since;
	struct pshm_read *r;
	bool shut = false;

	list_for_each_entry(r, &conn->gets, link) {
		while (held(r) && !pshm_process_dead(conn->process) &&
		       !atomic_load_explicit(ended, memory_order_relaxed)) {
			since = platform_now_ns() - begin;
			if (!shut && since > GUARD_NS && w->write_guard) {
				/* a peer that was stopped before it wrote never will */
				shut = !sys_write_guard_shut(w->write_guard);
				if (shut)
					w->write_guard = NULL;
			}
			if (since > RELEASE_NS)
				return;
			platform_yield();
		}
	}
}

void pshm_gets_drop(struct pshm_conn *conn, bool wait)
{
	struct pshm_read *r;

	/* In a forked child the slots are the parent's. */
	list_for_each_entry(r, &conn->gets, link)
		if (r->slot && !conn->wire->forked)
			withdraw(r, -FI_ECANCELED);
	if (wait && !list_empty(&conn->gets))
		wait_released(conn);
	while (!list_empty(&conn->gets))
		read_free(conn, container_of(conn->gets.next, struct pshm_read, link));
}
