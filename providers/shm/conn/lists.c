/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The endpoints of the process and their lists of connections, consistent in the child of a fork.
 * Any thread.
 */
#include "conn.h"
#include "lists.h"
#include "peer_maps.h"
#include "shared_name.h"

/*
 * Protects the list of endpoints and their lists of connections, for forks. Rank 3, nothing is
 * called under it.
 */
static struct platform_lock wires_lock = { PTHREAD_MUTEX_INITIALIZER };
static struct list wires = { &wires, &wires };

/*
 * The inbox of the wires of a forked child: no doorbell is ever rung there. Polls counted in the
 * parent's inbox would be taken for the parent's.
 */
static struct pshm_inbox copied;

/* What the room above does in the child: share.c. */
static void (*also)(void);

void pshm_lists_lock(void)
{
	platform_lock(&wires_lock);
}

void pshm_lists_unlock(void)
{
	platform_unlock(&wires_lock);
}

/*
 * The child has the parent's rings mapped: a packet that it took or sent would be lost or doubled
 * for the parent. Nothing can be claimed any more, and poll() ends the connections.
 */
static void fork_child(void)
{
	struct pshm_wire *w;
	struct pshm_conn *conn;

	list_for_each_entry(w, &wires, all) {
		w->forked = w->busy = true;
		w->up_cnt = w->hot_cnt = 0;
		w->inbox = &copied;
		if (w->service)
			sys_shared_forked(w->service);
		list_for_each_entry(conn, &w->conns, all) {
			ring_tx_shut(&conn->tx);
			conn->ticket.slot = NULL;
		}
	}
	if (also)
		also();
	pshm_lists_unlock();
}

static struct platform_fork fork_watcher = {
	.prepare = pshm_lists_lock,
	.parent = pshm_lists_unlock,
	.child = fork_child,
};

void pshm_fork_watch(void)
{
	pshm_process_watch();
	pshm_inboxes_watch();
	arena_peers_watch();
	platform_fork_watch(&fork_watcher);
}

void pshm_fork_also(void (*forked)(void))
{
	pshm_lists_lock();
	also = forked;
	pshm_lists_unlock();
}

void pshm_lists_join(struct pshm_wire *w)
{
	pshm_lists_lock();
	list_add_tail(&wires, &w->all);
	pshm_lists_unlock();
}

void pshm_lists_leave(struct pshm_wire *w)
{
	pshm_lists_lock();
	list_remove(&w->all);
	pshm_lists_unlock();
}
