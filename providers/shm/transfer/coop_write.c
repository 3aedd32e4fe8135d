/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sender's part of cooperative copies (coop_copy.h): while the receiver reads our memory, we
 * write chunks into its memory. Called by poll(), one chunk in each, so that messages pass in
 * between.
 *
 * The receiver is not trusted. The bytes that it names are written only if they are of a send that
 * this peer was offered; a wrong address of its memory harms the receiver alone.
 */
#include <rdma/fi_errno.h>
#include "conn.h"
#include "copy.h"
#include "coop_write.h"
#include "lines.h"
#include "process_vm.h"

_Static_assert(WIRE_IOV_MAX <= SYS_WRITE_GUARDED_MAX, "a chunk is one call");

/* A copy that the peer has invited us to. */
struct pshm_coop_write {
	struct pool_object pool;
	/* conn->coop_writes */
	struct list link;
	struct pshm_coop_copy *slot;
	uint32_t gen;
	/* chunks that we have claimed and ended */
	uint32_t ended;
	struct pshm_coop_task task;
};

void pshm_coop_writes_init(struct pshm_wire *wire)
{
	pool_init(&wire->coop_writes, sizeof(struct pshm_coop_write), 0);
}

static struct pshm_coop_write *write_of(struct list *node)
{
	return container_of(node, struct pshm_coop_write, link);
}

static void write_free(struct pshm_conn *conn, struct pshm_coop_write *cw)
{
	list_remove(&cw->link);
	pool_put(&conn->wire->coop_writes, cw);
}

/* Notifies the peer that this side may not write to its memory: it need not invite us again. */
static void refuse(struct pshm_conn *conn)
{
	conn->put_refused = true;
	atomic_store_explicit(&conn->pair->no_coop_write[conn->side].value, 1,
			      memory_order_relaxed);
}

/*
 * Returns the entry of a slot, in conn->coop_writes, or NULL: out of memory. One of an earlier
 * generation may still be there, and serves the new one from now on.
 */
static struct pshm_coop_write *write_for(struct pshm_conn *conn, struct pshm_coop_copy *slot)
{
	struct pshm_coop_write *cw;

	list_for_each_entry(cw, &conn->coop_writes, link)
		if (cw->slot == slot)
			return cw;
	cw = pool_get(&conn->wire->coop_writes);
	if (!cw)
		return NULL;
	list_init(&cw->link);
	list_add_tail(&conn->coop_writes, &cw->link);
	return cw;
}

int pshm_coop_write_begin(struct pshm_conn *conn, const struct ring_line *line)
{
	enum pshm_side other = pshm_other(conn);
	struct pshm_coop_invite invite;
	struct pshm_coop_task task;
	struct pshm_coop_copy *slot;
	struct pshm_coop_write *cw;

	memcpy(&invite, line->header, sizeof(invite));
	if (invite.zero || invite.slot >= PSHM_COOP_COPIES)
		return -FI_EPROTO;
	slot = &conn->pair->coop_copies[other][invite.slot];
	/* Invalid contents belong to a copy that is over, or to a faulty peer: they are ignored. */
	if (!pshm_coop_copy_read(slot, &task) || conn->put_refused)
		return 0;
	if (!conn->process->pid) { /* without its number there is no writing to its memory */
		refuse(conn);
		return 0;
	}
	cw = write_for(conn, slot);
	if (!cw)
		return 0;
	cw->slot = slot;
	cw->gen = invite.gen;
	cw->ended = 0;
	cw->task = task;
	pshm_mark_work(conn);
	return 0;
}

/*
 * Writes one claimed chunk. Until this side reports that it has ended, the address of the write
 * guard means that guard, open or shut; without a claim it may be mapped to anything. A receiver
 * that is alive still has its process number; if it executes another program after that check, the
 * guard is not mapped there.
 */
static int chunk_write(struct pshm_conn *conn, const struct pshm_coop_write *cw, uint32_t chunk)
{
	struct iovec local[WIRE_IOV_MAX], remote[WIRE_IOV_MAX];
	size_t len, local_cnt, remote_cnt;
	uint64_t at = pshm_coop_task_chunk(&cw->task, chunk, &len);
	ssize_t n;

	local_cnt = engine_offered(&conn->base, cw->task.id, cw->task.skip + at, len, local);
	if (!local_cnt)
		return -FI_EINVAL;
	remote_cnt = iov_slice(cw->task.iov, cw->task.iov_cnt, at, len, remote);
	if (pshm_process_dead(conn->process))
		return -FI_ECONNRESET;
	n = sys_process_vm_write_guarded((pid_t)conn->process->pid,
					 (void *)(uintptr_t)cw->task.write_guard, local,
					 local_cnt, remote, remote_cnt);
	return n < 0 ? (int)n : 0;
}

/* Claims and writes one chunk. Returns false when there is nothing more to do for this copy. */
static bool write_move(struct pshm_conn *conn, struct pshm_coop_write *cw)
{
	uint32_t chunk;
	int err;

	if (pshm_coop_copy_claim(cw->slot, cw->gen, cw->task.chunk_cnt, &chunk) != PSHM_CLAIMED)
		return false;
	err = chunk_write(conn, cw, chunk);
	if (!err)
		conn->chunks_written++;
	else if (err == -FI_EPERM || err == -FI_EACCES || err == -FI_ENOSYS)
		refuse(conn);
	pshm_coop_copy_set_written(cw->slot, ++cw->ended, err ? chunk + 1 : 0);
	return !err;
}

int pshm_coop_writes_move(struct pshm_conn *conn)
{
	struct pshm_coop_write *cw;

	if (list_empty(&conn->coop_writes))
		return 0;
	cw = write_of(conn->coop_writes.next);
	if (!write_move(conn, cw)) {
		write_free(conn, cw);
		return 0;
	}
	return 1;
}

void pshm_coop_writes_drop(struct pshm_conn *conn)
{
	while (!list_empty(&conn->coop_writes))
		write_free(conn, write_of(conn->coop_writes.next));
}
