/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sender's part in transfers that both ends copy (chunks.h): while the receiver reads our memory, we
 * write chunks into its memory. Called by poll(): one chunk in each, so that messages pass in between.
 *
 * What the receiver says is taken for what it is: the bytes that it names are written only if they are of a
 * send that this peer was offered, and where it says that its memory is concerns nobody but itself.
 */
#include <rdma/fi_errno.h>
#include "conn.h"
#include "copy.h"
#include "help.h"
#include "lines.h"
#include "process_vm.h"

_Static_assert(WIRE_IOV_MAX <= SYS_WRITE_GUARDED_MAX, "a chunk is one call");

/* A transfer that we were asked to help with. */
struct pshm_help {
	struct pool_object pool;
	struct list link; /* conn->helps */
	struct pshm_joint *slot;
	uint32_t gen;
	uint32_t ended; /* chunks of ours */
	struct pshm_task task;
};

void pshm_helps_init(struct pshm_wire *wire)
{
	pool_init(&wire->helps, sizeof(struct pshm_help), 0);
}

static struct pshm_help *help_of(struct list *node)
{
	return container_of(node, struct pshm_help, link);
}

static void help_free(struct pshm_conn *conn, struct pshm_help *h)
{
	list_remove(&h->link);
	pool_put(&conn->wire->helps, h);
}

/* We may not write to this peer, as far as we know now; it need not ask again. */
static void refuse(struct pshm_conn *conn)
{
	conn->put_refused = true;
	atomic_store_explicit(&conn->pair->no_help[conn->side].value, 1, memory_order_relaxed);
}

/* The slot of a generation before may still be in our list: it is that of this one from here on. */
static struct pshm_help *help_for(struct pshm_conn *conn, struct pshm_joint *slot)
{
	struct list *node, *after;
	struct pshm_help *h;

	list_for_each(node, after, &conn->helps)
		if (help_of(node)->slot == slot)
			return help_of(node);
	h = pool_get(&conn->wire->helps);
	if (!h)
		return NULL;
	list_init(&h->link);
	list_push(&conn->helps, &h->link);
	return h;
}

int pshm_help_take(struct pshm_conn *conn, const struct ring_line *line)
{
	enum pshm_side other = pshm_other(conn);
	struct pshm_join join;
	struct pshm_task task;
	struct pshm_joint *slot;
	struct pshm_help *h;

	memcpy(&join, line->header, sizeof(join));
	if (join.zero || join.slot >= PSHM_JOINT_CNT)
		return -FI_EPROTO;
	slot = &conn->pair->joint[other][join.slot];
	/* What can't be is of a transfer that is over, or a lie: nothing is lost by leaving it alone. */
	if (!pshm_joint_read(slot, &task) || conn->put_refused)
		return 0;
	if (!conn->process->pid) { /* nobody can be asked to write to its memory */
		refuse(conn);
		return 0;
	}
	h = help_for(conn, slot);
	if (!h)
		return 0;
	h->slot = slot;
	h->gen = join.gen;
	h->ended = 0;
	h->task = task;
	pshm_mark_work(conn);
	return 0;
}

/*
 * Writes one chunk that we have claimed: until we say that it has ended the write guard is there, or shut. Without
 * a claim its address may mean anything by now. The receiver lives: its number is still its own. If it begins
 * another program after that, there is no write guard.
 */
static int chunk_write(struct pshm_conn *conn, const struct pshm_help *h, uint32_t chunk)
{
	struct iovec local[WIRE_IOV_MAX], remote[WIRE_IOV_MAX];
	size_t len, local_cnt, remote_cnt;
	uint64_t at = pshm_task_chunk(&h->task, chunk, &len);
	ssize_t n;

	local_cnt = engine_offered(&conn->base, h->task.id, h->task.skip + at, len, local);
	if (!local_cnt)
		return -FI_EINVAL;
	remote_cnt = iov_slice(h->task.iov, h->task.iov_cnt, at, len, remote);
	if (pshm_process_dead(conn->process))
		return -FI_ECONNRESET;
	n = sys_process_vm_write_guarded((pid_t)conn->process->pid,
					 (void *)(uintptr_t)h->task.write_guard, local,
					 local_cnt, remote, remote_cnt);
	return n < 0 ? (int)n : 0;
}

/* Returns false when there is nothing more to do for it. */
static bool help_move(struct pshm_conn *conn, struct pshm_help *h)
{
	uint32_t chunk;
	int err;

	if (pshm_joint_claim(h->slot, h->gen, h->task.chunk_cnt, &chunk) != PSHM_CLAIMED)
		return false;
	err = chunk_write(conn, h, chunk);
	if (!err)
		conn->chunks_written++;
	else if (err == -FI_EPERM || err == -FI_EACCES || err == -FI_ENOSYS)
		refuse(conn);
	pshm_joint_ended(h->slot, ++h->ended, err ? chunk + 1 : 0);
	return !err;
}

int pshm_helps_move(struct pshm_conn *conn)
{
	struct pshm_help *h;

	if (list_empty(&conn->helps))
		return 0;
	h = help_of(conn->helps.next);
	if (!help_move(conn, h)) {
		help_free(conn, h);
		return 0;
	}
	return 1;
}

void pshm_helps_drop(struct pshm_conn *conn)
{
	while (!list_empty(&conn->helps))
		help_free(conn, help_of(conn->helps.next));
}
