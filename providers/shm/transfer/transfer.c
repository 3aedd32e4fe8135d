/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Payload that does not fit in a packet: sendv copies it through the ring in fragments, so that
 * sender and receiver copy at the same time and small packets pass in between. And the part of
 * poll() that goes on with it, with what is read from peers (get.c), and with what they read
 * (coop_write.c). Called by the engine, and by poll().
 */
#include <rdma/fi_errno.h>
#include "polling.h"
#include "conn.h"
#include "copy.h"
#include "write_guard.h"
#include "get.h"
#include "grow.h"
#include "coop_write.h"
#include "key_access.h"
#include "lines.h"
#include "peer_arena.h"
#include "stores.h"
#include "transfer.h"

/* Chunks copied by system calls in one poll, of all connections: small messages wait for no more. */
#define COPIES_MAX 2
/*
 * Payload of a line, bytes: the least, the most, and how many there are if they are larger than
 * the least.
 */
#define FRAGMENT_MIN 8192u
#define FRAGMENT_MAX 16384u
#define FRAGMENT_CNT 8u

/* A sendv under way. */
struct pshm_transfer {
	struct pool_object pool;
	/* conn->sends */
	struct list link;
	struct wire_op *op;
	struct iovec iov[WIRE_IOV_MAX];
	size_t iov_cnt;
	/* bytes in all, and of those in the ring */
	size_t len;
	size_t moved;
	/* the header is in the ring */
	bool started;
	/* in conn->lent: position behind its line */
	uint32_t lent_to;
	struct packet hdr;
};

void pshm_transfers_init(struct pshm_wire *wire)
{
	pool_init(&wire->transfers, sizeof(struct pshm_transfer), 0);
	pshm_gets_init(wire);
	pshm_coop_writes_init(wire);
}

static struct pshm_transfer *transfer_of(struct list *node)
{
	return container_of(node, struct pshm_transfer, link);
}

static struct pshm_transfer *transfer_new(struct pshm_conn *conn, const struct iovec *iov,
					  size_t iov_cnt, size_t len, struct wire_op *op)
{
	struct pshm_transfer *t = pool_get(&conn->wire->transfers);

	assert(iov_cnt <= WIRE_IOV_MAX);
	if (!t)
		return NULL;
	list_init(&t->link);
	t->op = op;
	memcpy(t->iov, iov, iov_cnt * sizeof(*iov));
	t->iov_cnt = iov_cnt;
	t->len = len;
	t->moved = 0;
	t->started = false;
	return t;
}

static void transfer_free(struct pshm_conn *conn, struct pshm_transfer *t)
{
	list_remove(&t->link);
	pool_put(&conn->wire->transfers, t);
}

void pshm_op_done(struct pshm_conn *conn, struct wire_op *op, int status)
{
	op->next = NULL;
	op->wire_private = (uint64_t)(int64_t)status;
	*conn->done_end = op;
	conn->done_end = &op->next;
	pshm_mark_work(conn);
}

/*
 * Both sides copy at the same time, but for the first fragment and the last: a short transfer has
 * small ones. Of a long one between cores that share no cache less is spent on each when they are
 * larger; others would only leave the caches.
 */
static uint32_t fragment_max(const struct pshm_conn *conn, const struct pshm_transfer *t)
{
	uint32_t most = FRAGMENT_MIN, room = conn->tx.data_len / 4;

	if (pshm_stores_far(conn))
		while (most < FRAGMENT_MAX && most < t->len / FRAGMENT_CNT)
			most *= 2;
	return most < room ? most : room;
}

/*
 * Copies as many fragments as there is room for. A quarter of the lines and of the data area
 * is left to packets: control never waits for payload.
 */
static void send_move(struct pshm_conn *conn, struct pshm_transfer *t)
{
	uint32_t most = fragment_max(conn, t);

	while (t->moved < t->len || !t->started) {
		size_t left = t->len - t->moved;
		struct pshm_fragment fragment = { .len = left < most ? (uint32_t)left : most };
		struct ring_line *line;
		void *data = NULL;

		if (!ring_has_room(&conn->tx, (conn->tx.mask + 1) / 4,
				   conn->tx.data_len / 4 + most))
			return;
		line = fragment.len
			       ? ring_claim_data(&conn->tx, fragment.len, RING_ANYWHERE, &data)
			       : ring_claim(&conn->tx);
		if (!line)
			return;
		if (!t->started)
			memcpy(line->header, &t->hdr, sizeof(t->hdr));
		memcpy(line->payload, &fragment, sizeof(fragment));
		if (fragment.len)
			pshm_fill_from(conn, data, t->iov, t->iov_cnt, t->moved, fragment.len);
		pshm_line_publish(conn, line, t->started ? PSHM_NEXT : PSHM_FIRST);
		t->started = true;
		t->moved += fragment.len;
	}
	pshm_op_done(conn, t->op, 0);
	transfer_free(conn, t);
}

/*
 * Sends the header alone, and lends the payload to the peer until it has taken the line. Returns false
 * if the payload is not where the peer can read it, is better sent through the ring, or there is no
 * room.
 */
static bool send_lent(struct pshm_conn *conn, struct pshm_transfer *t)
{
	struct pshm_place place;
	struct ring_line *line;

	if (t->iov_cnt != 1 || t->len < PSHM_LENDS_MIN || t->len > PSHM_EAGER_MAX ||
	    !pshm_arena_lends(conn, t->iov[0].iov_base, t->len, &place) ||
	    (t->len > PSHM_CLAIM_MAX && !pshm_lending_next(&conn->lending, t->len)) ||
	    !ring_has_room(&conn->tx, (conn->tx.mask + 1) / 4, 0))
		return false;
	line = ring_claim(&conn->tx);
	if (!line)
		return false;
	memcpy(line->header, &t->hdr, sizeof(t->hdr));
	memcpy(line->payload, &place, sizeof(place));
	pshm_line_publish(conn, line, PSHM_PLACE);
	t->started = true;
	t->lent_to = conn->tx.head;
	list_add_tail(&conn->lent, &t->link);
	conn->wire->moved.lent++;
	conn->wire->moved.lent_bytes += t->len;
	pshm_mark_work(conn);
	return true;
}

bool pshm_lends(struct wire_conn *base, const void *buf, size_t len)
{
	struct pshm_conn *conn = pshm_conn_of(base);
	struct pshm_place place;

	/* a stream is faster if both sides copy */
	return list_empty(&conn->sends) && list_empty(&conn->lent) &&
	       pshm_arena_lends(conn, buf, len, &place);
}

bool pshm_lent(const struct wire *base)
{
	const struct pshm_wire *w = (const struct pshm_wire *)base;
	const struct pshm_conn *conn;

	if (w->forked)
		return false;
	list_for_each_entry(conn, &w->conns, all) {
		if (!conn->ended && !list_empty(&conn->lent))
			return true;
	}
	return false;
}

/* Ends the sends whose lines the peer has taken. Returns how many. */
static int lent_end(struct pshm_conn *conn)
{
	uint32_t taken;
	int cnt = 0;

	if (list_empty(&conn->lent))
		return 0;
	ring_refresh(&conn->tx);
	taken = conn->tx.limit - (conn->tx.mask + 1);
	while (!list_empty(&conn->lent)) {
		struct pshm_transfer *t = transfer_of(conn->lent.next);

		if ((int32_t)(taken - t->lent_to) < 0)
			break;
		pshm_op_done(conn, t->op, 0);
		transfer_free(conn, t);
		cnt++;
	}
	return cnt;
}

int pshm_sendv(struct wire_conn *base, const struct packet *hdr, const struct iovec *iov,
	       size_t iov_cnt, struct wire_op *op)
{
	struct pshm_conn *conn = pshm_conn_of(base);
	bool first = list_empty(&conn->sends);
	struct pshm_transfer *t;

	t = transfer_new(conn, iov, iov_cnt, hdr->len, op);
	if (!t)
		return -FI_EAGAIN;
	t->hdr = *hdr;
	if (first && send_lent(conn, t))
		return 0;
	if (hdr->len > PSHM_CLAIM_MAX)
		pshm_grow(conn);
	list_add_tail(&conn->sends, &t->link);
	pshm_mark_work(conn);
	if (first)
		send_move(conn, t);
	return 0;
}

bool pshm_sends_begun(const struct pshm_conn *conn)
{
	/* they begin in order */
	return list_empty(&conn->sends) || transfer_of(conn->sends.prev)->started;
}

/*
 * Reads or writes a chunk, if there is one. @copies: in, out: system calls that this poll() may
 * still make
 */
static int copy_move(struct pshm_conn *conn, int *copies)
{
	int steps;

	if (*copies <= 0)
		return 0;
	steps = pshm_gets_move(conn) + pshm_coop_writes_move(conn);
	*copies -= steps;
	return steps;
}

/*
 * Makes one step of everything under way on a connection, and ends operations. Returns how many
 * were made.
 */
static int conn_move(struct pshm_conn *conn, int *copies)
{
	struct wire_op *op, *next;
	int finished = 0;

	if (conn->growing == PSHM_OFFERED)
		pshm_grow_step(conn);
	finished += lent_end(conn);
	while (!list_empty(&conn->sends)) {
		struct pshm_transfer *t = transfer_of(conn->sends.next);
		size_t moved = t->moved;

		send_move(conn, t);
		if (!list_empty(&conn->sends) && transfer_of(conn->sends.next) == t) {
			finished += t->moved != moved;
			break;
		}
	}
	finished += copy_move(conn, copies);
	finished += pshm_direct_move(conn);

	op = conn->done;
	conn->done = NULL;
	conn->done_end = &conn->done;
	/* done() may end this connection: what is left is dropped then */
	for (; op && !conn->ended; op = next) {
		next = op->next;
		op->done(op, (int)(int64_t)op->wire_private);
		finished++;
	}
	return finished;
}

int pshm_transfers_move(struct pshm_wire *wire)
{
	struct list todo, *node;
	int finished = 0, copies = COPIES_MAX;

	/* done() may end any connection, which takes it off whatever list it is on */
	list_init(&todo);
	while ((node = list_pop(&wire->work)))
		list_add_tail(&todo, node);
	/* a different one begins each time, since COPIES_MAX may not do for all */
	node = list_pop(&todo);
	if (node)
		list_add_tail(&todo, node);
	while ((node = list_pop(&todo))) {
		struct pshm_conn *conn = container_of(node, struct pshm_conn, work);

		finished += conn_move(conn, &copies);
		if (!conn->ended &&
		    (!list_empty(&conn->sends) || !list_empty(&conn->lent) ||
		     !list_empty(&conn->gets) || !list_empty(&conn->coop_writes) ||
		     !list_empty(&conn->directs) || conn->done || conn->growing == PSHM_OFFERED))
			pshm_mark_work(conn);
	}
	return finished;
}

void pshm_transfers_fini(struct pshm_wire *wire)
{
	pool_fini(&wire->transfers);
	pool_fini(&wire->reads);
	pool_fini(&wire->coop_writes);
	sys_write_guard_close(wire->write_guard);
}

void pshm_transfers_drop(struct pshm_conn *conn, bool wait)
{
	while (!list_empty(&conn->sends))
		transfer_free(conn, transfer_of(conn->sends.next));
	while (!list_empty(&conn->lent))
		transfer_free(conn, transfer_of(conn->lent.next));
	pshm_coop_writes_drop(conn);
	pshm_gets_drop(conn, wait);
	pshm_direct_drop(conn);
	pshm_peer_arena_close(conn);
	conn->done = NULL;
	conn->done_end = &conn->done;
	list_remove(&conn->work);
}
