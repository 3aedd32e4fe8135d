/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reading and writing registered memory of a peer without it: its keys are looked up in the table that
 * its domain shows (share.c), and the kernel copies, once. Called by the engine, and by poll().
 *
 * Where the peer polls, packets are better: both copy then, at the same time. So its
 * polls are watched, as for get (get.c), and only memory of one that computes, or sleeps, is
 * accessed so. Nothing in the table is believed in more than what it names: memory of the process that
 * we talk to, which the kernel checks.
 *
 * While we are inside of a region the pair says so, from before its key is looked at for the last time.
 * Its owner takes the key away and then looks there, so that nothing is moved once it has closed it.
 *
 * The peer may begin another program at any time, which has the same number. So what was read counts only
 * if the peer is still there afterwards, and a write passes a write guard of the peer's first, in the same system
 * call: the other program has none there (share.c).
 */
#include <rdma/fi_errno.h>
#include "polling.h"
#include "conn.h"
#include "copy.h"
#include "key_access.h"
#include "process_vm.h"
#include "transfer.h"

_Static_assert(WIRE_IOV_MAX <= SYS_WRITE_GUARDED_MAX, "a step is one call");

#define STEP	  (1u << 20) /* bytes of one system call: a close waits for no more */
#define MOVES_MIN 2u	     /* of the peer, by which it is seen to poll */
#define WATCH_NS  3000u	     /* time for them, of one that nothing is known of, */
#define WATCH_LEN 64u	   /* and a ns more for so many bytes, since packets would gain more, */
#define WATCH_MAX 20000u   /* up to that */
#define ROUND_NS  25000u   /* from one to the next, on the average: it may have much to copy */
#define SEEN_NS	  50000u   /* that a peer which was seen to move is believed to */
#define PAST_NS	  1000000u /* a look that long ago says nothing of now */

/* One of the places that an access names. */
struct place {
	struct mr_view view;
	uint64_t at; /* address in the peer */
	size_t len;
};

/* An access under way. */
struct pshm_direct {
	struct list link; /* conn->directs */
	struct wire_op *op;
	bool write;
	struct iovec iov[WIRE_IOV_MAX];
	size_t iov_cnt;
	size_t moved;
	struct place places[PACKET_TARGET_MAX];
	uint32_t place_cnt;
	uint32_t place; /* that we are at */
	size_t place_moved;
	uint64_t since_ns; /* when we began to watch the peer; 0: the decision is made */
	uint64_t watch_ns; /* how long */
	uint32_t moves;	   /* those of the peer then */
};

/* The peer's key table. */
struct pshm_reading {
	struct pshm_region region;
	struct mr_reader reader;
	uint64_t remote_events;
	uint64_t write_guard; /* its address there; 0: nothing may be written */
};

bool pshm_taken(struct wire_conn *base)
{
	struct pshm_conn *conn = pshm_conn_of(base);
	struct ring_tx *tx = &conn->tx;

	/* the ring may be empty, and a header wait for the next poll() */
	if (!pshm_sends_begun(conn))
		return false;
	ring_refresh(tx);
	return tx->head == tx->limit - (tx->mask + 1);
}

/* The table */

/* @theirs: what was shown, in a copy of our own */
static int reading_open(struct pshm_conn *conn, const struct pshm_shown *theirs)
{
	struct pshm_reading *r = platform_alloc(sizeof(*r));
	struct pshm_offer offer = { .pid = conn->process->pid, .fd = theirs->fd };
	int err;

	if (!r)
		return -FI_ENOMEM;
	r->remote_events = theirs->remote_events;
	r->write_guard = theirs->write_guard;
	memcpy(offer.nonce, theirs->nonce, PSHM_NONCE);
	err = pshm_table_open(&offer, &r->region);
	if (err)
		goto err_free;
	err = mr_reader_init(&r->reader, (char *)r->region.addr + PSHM_TABLE_HEAD);
	if (err)
		goto err_close;
	for (uint32_t i = 1; i < PSHM_TABLE_SLABS; i++)
		mr_reader_attach(&r->reader,
				 (char *)r->region.addr + PSHM_TABLE_HEAD + mr_slab_offset(i));
	conn->reading = r;
	return 0;

err_close:
	pshm_region_close(&r->region);
err_free:
	platform_free(r);
	return err;
}

/* Maps what the peer shows. 0; -FI_EOPNOTSUPP while it shows nothing; -FI_E* */
static int reading_make(struct pshm_conn *conn)
{
	const struct pshm_shown *theirs = &conn->pair->shown[pshm_other(conn)];
	struct pshm_shown shown;
	int err;

	/* A:pshm_shown.shown  before what is shown; pairs R:pshm_shown.shown */
	if (!atomic_load_explicit(&theirs->shown, memory_order_acquire))
		return -FI_EOPNOTSUPP;
	memcpy(&shown, theirs, sizeof(shown));
	err = reading_open(conn, &shown);
	/* it will not be found later either, unless it is being made: it is shown before that is over */
	if (err && err != -FI_EAGAIN && !pshm_scarce(err))
		conn->direct_refused[0] = conn->direct_refused[1] = err;
	return err;
}

/* Where an access goes. Every error is found again by the peer, that knows better. */
static int places_find(struct pshm_conn *conn, const struct wire_access *access,
		       struct place *places)
{
	uint64_t kind = access->write ? FI_REMOTE_WRITE : FI_REMOTE_READ;
	const struct pshm_reading *r;
	int err = conn->reading ? 0 : reading_make(conn);

	if (err)
		return err;
	r = conn->reading;
	if (r->remote_events & kind || (access->write && !r->write_guard))
		return -FI_EOPNOTSUPP;
	for (uint32_t i = 0; i < access->target_cnt; i++) {
		const struct packet_target *t = &access->targets[i];
		struct place *p = &places[i];

		err = mr_reader_find(&r->reader, t->key, &p->view);
		if (!err)
			err = mr_view_range(&p->view, t->addr, t->len, kind, &p->at);
		if (err)
			return err;
		p->len = (size_t)t->len;
		if (p->len != t->len || p->at > UINTPTR_MAX || p->len > UINTPTR_MAX - p->at)
			return -FI_EACCES;
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

/* May we go on to be inside of that region? */
static bool place_open(const struct pshm_conn *conn, const struct place *p)
{
	/* S:pshm_pair.inside  our mark before it; pairs S:pshm_pair.ended */
	return mr_reader_check(&conn->reading->reader, &p->view) &&
	       !atomic_load_explicit(&conn->pair->ended[pshm_other(conn)].value,
				     memory_order_seq_cst);
}

static ssize_t move_piece(const struct pshm_conn *conn, bool write, const struct iovec *local,
			  size_t cnt, const struct iovec *remote)
{
	void *write_guard = (void *)(uintptr_t)conn->reading->write_guard;
	pid_t pid = (pid_t)conn->process->pid;

	if (write)
		return sys_process_vm_write_guarded(pid, write_guard, local, cnt, remote, 1);
	return sys_process_vm_read(pid, local, cnt, remote, 1);
}

/*
 * Moves what is left of the place that an access is at, or STEP bytes. The number of the process is
 * its own as long as it lives: that is asked before, so that nobody else is written to, and after, so
 * that it was not read from anybody else.
 */
static int step(struct pshm_conn *conn, struct pshm_direct *d)
{
	_Atomic uint32_t *inside = &conn->pair->inside[conn->side].value;
	const struct place *p = &d->places[d->place];
	size_t left = p->len - d->place_moved, len = left < STEP ? left : STEP, cnt;
	struct iovec local[WIRE_IOV_MAX];
	struct iovec remote = { (void *)(uintptr_t)(p->at + d->place_moved), len };
	ssize_t n;

	cnt = iov_slice(d->iov, d->iov_cnt, d->moved, len, local);
	/* S:mr.check  we are inside before we look whether we may be; pairs S:mr.seq */
	atomic_store_explicit(inside, p->view.index, memory_order_seq_cst);
	if (!place_open(conn, p))
		n = -FI_EKEYREJECTED;
	else if (pshm_process_dead(conn->process))
		n = -FI_ECONNRESET;
	else
		n = move_piece(conn, d->write, local, cnt, &remote);
	/* R:pshm_pair.inside  what was moved before we are outside; pairs A:pshm_pair.inside */
	atomic_store_explicit(inside, 0, memory_order_release);
	if (n < 0)
		return refused(conn, d->write, n);
	if ((size_t)n != len)
		return -FI_EFAULT;
	if (pshm_process_dead(conn->process))
		return -FI_ECONNRESET;
	conn->wire->direct_len += len;
	d->moved += len;
	d->place_moved += len;
	return 0;
}

/* Moves as much as one round of progress may. Returns 1 when all of it is, 0, or -FI_E* */
static int move(struct pshm_conn *conn, struct pshm_direct *d)
{
	struct pshm_wire *w = conn->wire;

	if (w->direct_tick != w->tick) {
		w->direct_tick = w->tick;
		w->direct_len = 0;
	}
	for (;;) {
		int err;

		while (d->place < d->place_cnt && d->place_moved == d->places[d->place].len) {
			d->place++;
			d->place_moved = 0;
		}
		if (d->place == d->place_cnt)
			return 1;
		if (w->direct_len >= STEP)
			return 0;
		err = step(conn, d);
		if (err)
			return err;
	}
}

/* Does the peer poll */

enum peer_polling {
	PEER_POLLS,
	PEER_AWAY,
	PEER_UNKNOWN,
};

/* Counts what the peer does: polls, and packets that came. False when the first can't be seen. */
static bool peer_moves(struct pshm_conn *conn, uint32_t *moves)
{
	const struct pshm_inbox *inbox = pshm_peer_inbox(conn);

	if (!inbox)
		return false;
	*moves = atomic_load_explicit(&inbox->polls, memory_order_relaxed) + conn->rx.tail;
	return true;
}

/* What is known of that without waiting. @moves: out: now, where that has to be known */
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

/* It waits to know it. */
static void watch(struct pshm_direct *d, uint64_t now)
{
	size_t len = 0;

	for (uint32_t i = 0; i < d->place_cnt; i++)
		len += d->places[i].len;
	d->since_ns = now;
	d->watch_ns = WATCH_NS + len / WATCH_LEN;
	if (d->watch_ns > WATCH_MAX)
		d->watch_ns = WATCH_MAX;
}

/* What is known meanwhile. */
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

int pshm_direct(struct wire_conn *base, const struct wire_access *access, struct wire_op *op)
{
	struct pshm_conn *conn = pshm_conn_of(base);
	struct pshm_direct now = { .op = op, .write = access->write }, *d;
	uint64_t ns = platform_now_ns();
	enum peer_polling peer_polling;
	int ret;

	if (conn->wire->forked)
		return -FI_EOPBADSTATE;
	if (!conn->process->pid)
		return -FI_EPERM;
	if (conn->direct_refused[access->write])
		return conn->direct_refused[access->write];
	assert(access->iov_cnt <= WIRE_IOV_MAX && access->target_cnt <= PACKET_TARGET_MAX);
	peer_polling = polling_known(conn, ns, &now.moves);
	if (peer_polling == PEER_POLLS)
		return -FI_EBUSY;
	ret = places_find(conn, access, now.places);
	if (ret)
		return ret;
	now.place_cnt = access->target_cnt;
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
	list_push(&conn->directs, &d->link);
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
	if (!conn->reading)
		return;
	pshm_region_close(&conn->reading->region);
	platform_free(conn->reading);
	conn->reading = NULL;
}
