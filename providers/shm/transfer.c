/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Payload that does not fit in a packet: sendv copies it through the ring in fragments, so
 * that sender and receiver copy at the same time and small packets pass in between; get reads
 * the peer's memory with one copy by the kernel. Called by the engine, and by poll().
 *
 * Two processes that both attend to a transfer are two to three times faster with sendv than
 * the kernel is alone (1 MiB: 60 against 160 us). So get looks first whether the peer polls: then
 * it declines, and the engine asks the peer to send. A peer that computes meanwhile is read.
 */
#include <rdma/fi_errno.h>
#include "conn.h"
#include "copy.h"
#include "process_vm.h"

#define ATTENTIVE_POLLS 2u    /* of the peer since it was asked for its memory */
#define ATTENTIVE_NS	3000u /* time for them */

/* A sendv or get under way. */
struct pshm_transfer {
	struct pool_object pool;
	struct list link; /* conn->sends or conn->gets */
	struct wire_op *op;
	struct iovec iov[WIRE_IOV_MAX];
	size_t iov_cnt;
	size_t len;	   /* bytes in all */
	size_t moved;	   /* of those */
	uint64_t addr;	   /* get: where they start in the peer */
	uint64_t since_ns; /* get: when it was asked for; 0: the decision to read is made */
	uint32_t polls;	   /* get: those of the peer then */
	bool started;	   /* sendv: the header is out */
	struct packet hdr; /* sendv */
};

void pshm_transfers_init(struct pshm_wire *wire)
{
	pool_init(&wire->transfers, sizeof(struct pshm_transfer), 0);
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

/* The operation is over; poll() tells the engine. */
static void finish(struct pshm_conn *conn, struct pshm_transfer *t, int status)
{
	struct wire_op *op = t->op;

	transfer_free(conn, t);
	op->next = NULL;
	op->wire_private[0] = (uint64_t)(int64_t)status;
	*conn->done_end = op;
	conn->done_end = &op->next;
	pshm_mark_work(conn);
}

/*
 * Copies as many fragments as there is room for. A quarter of the lines and of the data area
 * is left to packets: control never waits for payload.
 */
static void send_move(struct pshm_conn *conn, struct pshm_transfer *t)
{
	uint32_t most = conn->tx.data_len / 4 < PSHM_FRAGMENT ? conn->tx.data_len / 4
							      : PSHM_FRAGMENT;

	while (t->moved < t->len || !t->started) {
		size_t left = t->len - t->moved;
		struct pshm_fragment fragment = { .len = left < most ? (uint32_t)left : most };
		struct ring_line *line;
		void *data = NULL;

		if (!ring_has_room(&conn->tx, (conn->tx.mask + 1) / 4,
				   conn->tx.data_len / 4 + most))
			return;
		line = fragment.len ? ring_claim_data(&conn->tx, fragment.len, &data)
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
	finish(conn, t, 0);
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
	if (hdr->len > PSHM_CLAIM_MAX)
		pshm_grow(conn);
	list_push(&conn->sends, &t->link);
	pshm_mark_work(conn);
	if (first)
		send_move(conn, t);
	return 0;
}

/*
 * Reads up to PSHM_GET_STEP bytes more. That the peer still lives is asked after the read: then
 * it was not another process that has its number.
 */
static int get_move(struct pshm_conn *conn, struct pshm_transfer *t)
{
	size_t left = t->len - t->moved, step = left < PSHM_GET_STEP ? left : PSHM_GET_STEP;
	struct iovec local[WIRE_IOV_MAX];
	struct iovec remote = { .iov_base = (void *)(uintptr_t)(t->addr + t->moved),
				.iov_len = step };
	ssize_t n;

	n = sys_process_vm_read((pid_t)conn->process->pid, local,
				iov_slice(t->iov, t->iov_cnt, t->moved, step, local), &remote,
				1);
	if (n < 0) {
		if (n == -FI_EPERM || n == -FI_EACCES || n == -FI_ENOSYS)
			conn->get_refused = (int)n;
		return n == -ESRCH ? -FI_ECONNRESET : (int)n;
	}
	if ((size_t)n != step)
		return -FI_EFAULT;
	if (pshm_process_dead(conn->process))
		return -FI_ECONNRESET;
	t->moved += step;
	return 0;
}

/* How often the peer has polled; false when that can't be seen. */
static bool peer_polls(struct pshm_conn *conn, uint32_t *polls)
{
	const struct pshm_door *door = pshm_peer_door(conn);

	if (!door)
		return false;
	*polls = atomic_load_explicit(&door->polls, memory_order_relaxed);
	return true;
}

int pshm_get(struct wire_conn *base, uint64_t addr, const struct iovec *iov, size_t iov_cnt,
	     struct wire_op *op)
{
	struct pshm_conn *conn = pshm_conn_of(base);
	struct pshm_transfer *t;
	uint64_t end;
	size_t len;
	bool ok;
	int err;

	if (conn->get_refused)
		return conn->get_refused;
	len = iov_len(iov, iov_cnt, &ok);
	if (!ok || __builtin_add_overflow(addr, len, &end) || end > UINTPTR_MAX)
		return -FI_EFAULT;
	if (!len)
		return 1;
	t = transfer_new(conn, iov, iov_cnt, len, op);
	if (!t)
		return -FI_ENOMEM;
	t->addr = addr;
	t->since_ns = 0;
	if (peer_polls(conn, &t->polls)) {
		t->since_ns = platform_now_ns();
	} else {
		err = get_move(conn, t);
		if (err || t->moved == t->len) {
			transfer_free(conn, t);
			return err ? err : 1;
		}
	}
	list_push(&conn->gets, &t->link);
	pshm_mark_work(conn);
	return 0;
}

/* Goes on with the reads of a connection, in order. Returns how many steps were made. */
static int gets_move(struct pshm_conn *conn)
{
	int steps = 0;

	while (!list_empty(&conn->gets)) {
		struct pshm_transfer *t = transfer_of(conn->gets.next);
		uint32_t polls;
		int err;

		if (t->since_ns) {
			if (peer_polls(conn, &polls) && polls - t->polls >= ATTENTIVE_POLLS) {
				finish(conn, t, -FI_EBUSY);
				steps++;
				continue;
			}
			if (platform_now_ns() - t->since_ns < ATTENTIVE_NS)
				break;
			t->since_ns = 0;
		}
		err = get_move(conn, t);
		if (err || t->moved == t->len)
			finish(conn, t, err);
		steps++;
		break;
	}
	return steps;
}

/* One step of everything that a connection has under way, and the operations that are over. */
static int conn_move(struct pshm_conn *conn)
{
	struct wire_op *op, *next;
	int finished = 0;

	if (conn->growing == PSHM_OFFERED)
		pshm_grow_step(conn);
	while (!list_empty(&conn->sends)) {
		struct pshm_transfer *t = transfer_of(conn->sends.next);
		size_t moved = t->moved;

		send_move(conn, t);
		if (!list_empty(&conn->sends) && transfer_of(conn->sends.next) == t) {
			finished += t->moved != moved;
			break;
		}
	}
	finished += gets_move(conn);

	op = conn->done;
	conn->done = NULL;
	conn->done_end = &conn->done;
	/* done() may end this connection: what is left is dropped then */
	for (; op && !conn->ended; op = next) {
		next = op->next;
		op->done(op, (int)(int64_t)op->wire_private[0]);
		finished++;
	}
	return finished;
}

int pshm_transfers_move(struct pshm_wire *wire)
{
	struct list todo, *node;
	int finished = 0;

	/* done() may end any connection, which takes it off whatever list it is on */
	list_init(&todo);
	while ((node = list_pop(&wire->work)))
		list_push(&todo, node);
	while ((node = list_pop(&todo))) {
		struct pshm_conn *conn = container_of(node, struct pshm_conn, work);

		finished += conn_move(conn);
		if (!conn->ended && (!list_empty(&conn->sends) || !list_empty(&conn->gets) ||
				     conn->done || conn->growing == PSHM_OFFERED))
			pshm_mark_work(conn);
	}
	return finished;
}

void pshm_transfers_drop(struct pshm_conn *conn)
{
	while (!list_empty(&conn->sends))
		transfer_free(conn, transfer_of(conn->sends.next));
	while (!list_empty(&conn->gets))
		transfer_free(conn, transfer_of(conn->gets.next));
	conn->done = NULL;
	conn->done_end = &conn->done;
	list_remove(&conn->work);
}
