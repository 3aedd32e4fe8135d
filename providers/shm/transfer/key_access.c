/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reading and writing registered memory of a peer without its help: keys are looked up in the table
 * that its domain publishes (share.c). What is in the peer's arena is mapped here and copied by our loads and
 * stores; the kernel copies the rest, once. Called by the engine, and by poll().
 *
 * Where the peer polls, packets are better than calls of the kernel: both sides copy then, at the same time. So its
 * count of polls is read, as for get (get.c), and only memory of a peer that computes or sleeps is accessed
 * by such calls. Of what is mapped that holds for longer reads, where packets have been faster (lending.c).
 *
 * The table is not trusted: it can name no more than memory of the connected process, which the
 * kernel checks. During an access the region is published in the pair (pshm_pair.inside), from
 * before its key is looked up for the last time. The owner invalidates the key and then reads that
 * word, so that no byte is moved once it has closed the region.
 *
 * The peer may execute another program at any time, which has the same process number. So data that
 * were read count only if the peer still exists afterwards, and each write passes the peer's write
 * guard first, in the same system call: another program has nothing mapped at its address
 * (share.c).
 */
#include <rdma/fi_errno.h>
#include "polling.h"
#include "conn.h"
#include "copy.h"
#include "key_access.h"
#include "peer_arena.h"
#include "peer_keys.h"
#include "process_vm.h"
#include "transfer.h"

_Static_assert(WIRE_IOV_MAX <= SYS_WRITE_GUARDED_MAX, "a step is one call");

/* Bytes of one system call: closing a region waits for no more. */
#define STEP (1u << 20)
/* Polls of the peer and packets from it by which it is seen to poll. */
#define MOVES_MIN 2u
/*
 * Time for which the polls of a peer are watched if no recent count is known: so many ns, and a ns
 * more for each WATCH_LEN bytes, since packets gain more then, up to WATCH_MAX.
 */
#define WATCH_NS  3000u
#define WATCH_LEN 64u
#define WATCH_MAX 20000u
/* Mean ns between two moves of a peer that polls: it may have much to copy. */
#define ROUND_NS 25000u
/* A peer that was seen to poll is taken to poll for so long. */
#define SEEN_NS 50000u
/* An older count is not used. */
#define PAST_NS 1000000u

/* One of the target ranges of an access, as its key resolves. */
struct target_range {
	/* where it is mapped here, or NULL */
	char *here;
	struct pshm_peer_chunk chunk;
	struct mr_view view;
	/* address in the peer, and bytes */
	uint64_t at;
	size_t len;
};

/* An access under way. */
struct pshm_direct {
	/* conn->directs */
	struct list link;
	struct wire_op *op;
	bool write;
	struct iovec iov[WIRE_IOV_MAX];
	size_t iov_cnt;
	size_t moved;
	struct target_range ranges[PACKET_TARGET_MAX];
	uint32_t range_cnt;
	/* index of the range that is being moved, bytes of it that have been */
	uint32_t range;
	size_t range_moved;
	/* when we began to watch the peer; 0: the decision is made */
	uint64_t since_ns;
	/* for how long */
	uint64_t watch_ns;
	/* count of peer_moves() when we began */
	uint32_t moves;
};

bool pshm_taken(struct wire_conn *base)
{
	struct pshm_conn *conn = pshm_conn_of(base);
	struct ring_tx *tx = &conn->tx;

	/* the ring may be empty while a header waits for the next poll() */
	if (!pshm_sends_begun(conn))
		return false;
	ring_refresh(tx);
	return tx->head == tx->limit - (tx->mask + 1);
}

/*
 * Resolves the targets of an access. @mapped: out: all of them are mapped here. On any error the
 * access goes by packet, and the peer decides.
 */
static int ranges_find(struct pshm_conn *conn, const struct wire_access *access,
		       struct target_range *ranges, bool *mapped)
{
	uint64_t kind = access->write ? FI_REMOTE_WRITE : FI_REMOTE_READ;
	const struct pshm_reading *r;
	int err = conn->reading ? 0 : pshm_reading_make(conn);

	if (err)
		return err;
	r = conn->reading;
	if (r->remote_events & kind)
		return -FI_EOPNOTSUPP;
	*mapped = true;
	for (uint32_t i = 0; i < access->target_cnt; i++) {
		const struct packet_target *t = &access->targets[i];
		struct target_range *p = &ranges[i];

		err = mr_reader_find(&r->reader, t->key, &p->view);
		if (!err)
			err = mr_view_range(&p->view, t->addr, t->len, kind, &p->at);
		if (err)
			return err;
		p->len = (size_t)t->len;
		if (p->len != t->len || p->at > UINTPTR_MAX || p->len > UINTPTR_MAX - p->at)
			return -FI_EACCES;
		p->here = pshm_peer_shows_arena(conn)
				  ? pshm_peer_range(conn, p->at, p->len, access->write,
						    &p->chunk)
				  : NULL;
		*mapped &= p->here != NULL;
	}
	return 0;
}

/* Moving */

static int refused(struct pshm_conn *conn, bool write, ssize_t err)
{
	if (err == -FI_EPERM || err == -FI_EACCES || err == -FI_ENOSYS)
		conn->direct_refused[write] = (int)err;
	return (int)err;
}

/*
 * Copies by the kernel. What was read counts if the key still resolves: the owner may have cut this process off
 * while it was stopped, and has shut the write guard then, and shows another one.
 */
static ssize_t move_piece(struct pshm_conn *conn, const struct mr_view *view, bool write,
			  const struct iovec *local, size_t cnt, const struct iovec *remote)
{
	struct pshm_reading *r = conn->reading;
	pid_t pid = (pid_t)conn->process->pid;
	ssize_t n;

	if (write) {
		n = sys_process_vm_write_guarded(pid, (void *)(uintptr_t)r->write_guard, local,
						 cnt, remote, 1);
		if (n == -FI_EFAULT)
			r->write_guard = pshm_shown_guard(conn);
		return n;
	}
	n = sys_process_vm_read(pid, local, cnt, remote, 1);
	return n < 0 || mr_reader_check(&r->reader, view) ? n : -FI_EKEYREJECTED;
}

/* Copies between our memory and a range that is mapped here. Returns bytes, or -FI_E*. */
static ssize_t copy_piece(struct pshm_conn *conn, const struct pshm_direct *d,
			  const struct iovec *local, size_t cnt, size_t len)
{
	const struct target_range *p = &d->ranges[d->range];
	char *here = p->here + d->range_moved;
	struct pshm_copy_choice *choice = pshm_copy_choice(
		&conn->copying, d->write ? PSHM_COPY_WRITE : PSHM_COPY_READ, p->len);

	if (!d->write) {
		pshm_copy_to_iov(choice, local, cnt, 0, here, len);
		return pshm_peer_copied(conn) &&
				       mr_reader_check(&conn->reading->reader, &p->view)
			       ? (ssize_t)len
			       : -FI_EKEYREJECTED;
	}
	for (size_t i = 0; i < cnt; i++) {
		struct iovec to = { here, local[i].iov_len };

		pshm_copy_to_iov(choice, &to, 1, 0, local[i].iov_base, to.iov_len);
		here += to.iov_len;
	}
	return pshm_peer_stored(conn, &p->chunk) ? (ssize_t)len : -FI_EKEYREJECTED;
}

/*
 * Moves what is left of the range that an access is at, or STEP bytes. A process has its number as
 * long as it lives: that is checked before, so that no other process is written to, and after, so
 * that no other one was read.
 */
static int step(struct pshm_conn *conn, struct pshm_direct *d)
{
	const struct target_range *p = &d->ranges[d->range];
	size_t left = p->len - d->range_moved, len = left < STEP ? left : STEP, cnt;
	struct iovec local[WIRE_IOV_MAX];
	struct iovec remote = { (void *)(uintptr_t)(p->at + d->range_moved), len };
	ssize_t n;

	cnt = iov_slice(d->iov, d->iov_cnt, d->moved, len, local);
	if (p->here)
		pshm_peer_touch(conn, &p->chunk, p->here + d->range_moved, len);
	pshm_enter(conn, p->view.index | (p->here ? PSHM_INSIDE_MAPPED : 0));
	if (!pshm_key_open(conn, &p->view))
		n = -FI_EKEYREJECTED;
	else if (p->here)
		n = pshm_peer_lets(conn, &p->chunk) ? copy_piece(conn, d, local, cnt, len)
						    : -FI_EKEYREJECTED;
	else if (pshm_process_dead(conn->process))
		n = -FI_ECONNRESET;
	else
		n = move_piece(conn, &p->view, d->write, local, cnt, &remote);
	pshm_leave(conn);
	if (n < 0)
		return p->here ? (int)n : refused(conn, d->write, n);
	if ((size_t)n != len)
		return -FI_EFAULT;
	if (!p->here && pshm_process_dead(conn->process))
		return -FI_ECONNRESET;
	conn->wire->direct_len += len;
	if (!d->write)
		conn->lending.arrived += len;
	d->moved += len;
	d->range_moved += len;
	return 0;
}

/* Moves as much as one round of progress may. Returns 1 when all is moved, 0 when not, or -FI_E*. */
static int move(struct pshm_conn *conn, struct pshm_direct *d)
{
	struct pshm_wire *w = conn->wire;

	if (w->direct_tick != w->tick) {
		w->direct_tick = w->tick;
		w->direct_len = 0;
	}
	for (;;) {
		int err;

		while (d->range < d->range_cnt && d->range_moved == d->ranges[d->range].len) {
			d->range++;
			d->range_moved = 0;
		}
		if (d->range == d->range_cnt)
			return 1;
		if (w->direct_len >= STEP)
			return 0;
		err = step(conn, d);
		if (err)
			return err;
	}
}

/* Whether the peer polls */

enum peer_polling {
	PEER_POLLS,
	PEER_AWAY,
	PEER_UNKNOWN,
};

/* @moves: out: polls of the peer plus packets from it. Returns false when its polls can't be seen. */
static bool peer_moves(struct pshm_conn *conn, uint32_t *moves)
{
	const struct pshm_inbox *inbox = pshm_peer_inbox(conn);

	if (!inbox)
		return false;
	*moves = atomic_load_explicit(&inbox->polls, memory_order_relaxed) + conn->rx.tail;
	return true;
}

/* What is known at once. @moves: out, for PEER_UNKNOWN: the count at which watching begins. */
static enum peer_polling polling_known(struct pshm_conn *conn, uint64_t now, uint32_t *moves)
{
	struct pshm_peer_polling *h = &conn->peer_polling;
	uint64_t ns = now - h->ns;
	uint32_t more;

	if (h->seen_ns && now - h->seen_ns < SEEN_NS)
		return PEER_POLLS;
	if (!peer_moves(conn, moves))
		return PEER_AWAY;
	more = *moves - h->moves;
	if (h->ns && !more)
		return ns >= WATCH_NS ? PEER_AWAY : PEER_UNKNOWN;
	h->moves = *moves;
	h->ns = now;
	if (ns >= PAST_NS || more < MOVES_MIN || ns / more >= ROUND_NS)
		return PEER_UNKNOWN;
	h->seen_ns = now;
	return PEER_POLLS;
}

static size_t ranges_len(const struct pshm_direct *d)
{
	size_t len = 0;

	for (uint32_t i = 0; i < d->range_cnt; i++)
		len += d->ranges[i].len;
	return len;
}

/* Begins to watch the peer for an access. */
static void watch(struct pshm_direct *d, uint64_t now)
{
	d->since_ns = now;
	d->watch_ns = WATCH_NS + ranges_len(d) / WATCH_LEN;
	if (d->watch_ns > WATCH_MAX)
		d->watch_ns = WATCH_MAX;
}

/* What is known by watching it so far. */
static enum peer_polling polling_watched(struct pshm_conn *conn, const struct pshm_direct *d)
{
	uint64_t now = platform_now_ns();
	uint32_t moves;

	if (peer_moves(conn, &moves) && moves - d->moves >= MOVES_MIN) {
		conn->peer_polling = (struct pshm_peer_polling){ moves, now, now };
		return PEER_POLLS;
	}
	return now - d->since_ns < d->watch_ns ? PEER_UNKNOWN : PEER_AWAY;
}

/*
 * Whether an access to memory that is not mapped here is to be made by system calls. Returns 0, or
 * -FI_E*: it is not.
 */
static int direct_call(struct pshm_conn *conn, const struct wire_access *access,
		       struct pshm_direct *d, uint64_t now, enum peer_polling *polling)
{
	bool mapped;
	int ret;

	if (conn->direct_refused[access->write])
		return conn->direct_refused[access->write];
	*polling = polling_known(conn, now, &d->moves);
	if (*polling == PEER_POLLS)
		return -FI_EBUSY;
	ret = ranges_find(conn, access, d->ranges, &mapped);
	return ret || !access->write || conn->reading->write_guard ? ret : -FI_EOPNOTSUPP;
}

/*
 * Whether an access to memory that is mapped here is to be made by our loads and stores. Between cores without a
 * common cache it takes long to load what the target has just stored: a target that polls copies at the same
 * time then. Returns 0, or -FI_EBUSY: it is not.
 */
static int direct_mapped(struct pshm_conn *conn, struct pshm_direct *d, uint64_t now,
			 enum peer_polling *polling)
{
	const struct target_range *first = &d->ranges[0];
	size_t len = ranges_len(d);

	if (d->write || len <= PSHM_EAGER_MAX)
		return 0;
	/* the time that the kernel takes to map it is not measured */
	if (first->len && pshm_peer_touch(conn, &first->chunk, first->here, 1))
		return 0;
	if (pshm_lending_read(&conn->lending, len))
		return 0;
	*polling = polling_known(conn, now, &d->moves);
	return *polling == PEER_POLLS ? -FI_EBUSY : 0;
}

int pshm_direct(struct wire_conn *base, const struct wire_access *access, struct wire_op *op)
{
	struct pshm_conn *conn = pshm_conn_of(base);
	struct pshm_direct now = { .op = op, .write = access->write }, *d;
	uint64_t ns = platform_now_ns();
	enum peer_polling peer_polling;
	bool mapped = false;
	int ret;

	if (conn->wire->forked)
		return -FI_EOPBADSTATE;
	if (!conn->process->pid)
		return -FI_EPERM;
	assert(access->iov_cnt <= WIRE_IOV_MAX && access->target_cnt <= PACKET_TARGET_MAX);
	if (pshm_peer_shows_arena(conn)) {
		ret = ranges_find(conn, access, now.ranges, &mapped);
		if (ret)
			return ret;
	}
	now.range_cnt = access->target_cnt;
	peer_polling = PEER_AWAY;
	ret = mapped ? direct_mapped(conn, &now, ns, &peer_polling)
		     : direct_call(conn, access, &now, ns, &peer_polling);
	if (ret)
		return ret;
	memcpy(now.iov, access->iov, access->iov_cnt * sizeof(*access->iov));
	now.iov_cnt = access->iov_cnt;
	if (peer_polling == PEER_UNKNOWN)
		watch(&now, ns);
	else if (list_empty(&conn->directs))
		ret = move(conn, &now);
	if (ret)
		return ret;
	d = platform_alloc(sizeof(*d));
	if (!d)
		return -FI_ENOMEM;
	*d = now;
	list_add_tail(&conn->directs, &d->link);
	pshm_mark_work(conn);
	return 0;
}

static void end(struct pshm_conn *conn, struct pshm_direct *d, int status)
{
	list_remove(&d->link);
	pshm_op_done(conn, d->op, status);
	platform_free(d);
}

int pshm_direct_move(struct pshm_conn *conn)
{
	int steps = 0;

	while (!list_empty(&conn->directs)) {
		struct pshm_direct *d = container_of(conn->directs.next, struct pshm_direct,
						     link);
		size_t moved = d->moved;
		int ret = 0;

		if (d->since_ns) {
			switch (polling_watched(conn, d)) {
			case PEER_UNKNOWN:
				return steps;
			case PEER_POLLS:
				ret = -FI_EBUSY;
				break;
			default:
				d->since_ns = 0;
				break;
			}
		}
		if (!ret)
			ret = move(conn, d);
		if (!ret)
			return steps + (d->moved != moved);
		end(conn, d, ret < 0 ? ret : 0);
		steps++;
	}
	return steps;
}

void pshm_direct_drop(struct pshm_conn *conn)
{
	struct list *node;

	while ((node = list_pop(&conn->directs)))
		platform_free(container_of(node, struct pshm_direct, link));
	pshm_reading_close(conn);
}
