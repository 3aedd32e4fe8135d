/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Waking a peer that sleeps, by its bell: a pipe that is opened through /proc, or, for a peer that
 * is held by a socket, a message on that socket. On the thread that holds the domain.
 */
#include <limits.h>
#include "conn.h"
#include "wake.h"

/*
 * Returns the peer's pipe, or -FI_E*. The last one stays open: two endpoints that wake each other
 * open it once.
 */
static int wake_fd_open(struct pshm_wire *w, const struct pshm_conn *conn, uint32_t number,
			const struct sys_fifo_id *id)
{
	int fd;

	if (w->wake_fd >= 0 && w->wake_id.ino == id->ino && w->wake_id.dev == id->dev)
		return w->wake_fd;
	fd = sys_fifo_open((pid_t)conn->process->pid, (int)number, id);
	if (fd < 0)
		return fd;
	if (w->wake_fd >= 0)
		sys_fifo_close(w->wake_fd);
	w->wake_fd = fd;
	w->wake_id = *id;
	return fd;
}

void pshm_peer_wake(struct pshm_conn *conn)
{
	struct pshm_inbox *inbox = conn->inbox.addr;
	struct sys_fifo_id id;
	uint32_t number;
	int fd;

	if (!pshm_inbox_wake_due(inbox))
		return;
	/* A:pshm_inbox.bell  its number before what it is; pairs R:pshm_inbox.bell */
	number = atomic_load_explicit(&inbox->bell, memory_order_acquire);
	if (!number || number > INT_MAX)
		return;
	if (conn->process->wake) {
		conn->process->wake(conn->process, conn->addr.nonce);
		return;
	}
	id = (struct sys_fifo_id){ inbox->bell_dev, inbox->bell_ino };
	fd = wake_fd_open(conn->wire, conn, number, &id);
	pshm_peer_set_no_wake(conn, fd < 0);
	if (fd >= 0)
		sys_fifo_ring(fd);
	else /* it wakes after a while; the next publication tries again */
		atomic_store_explicit(&inbox->armed, 1, memory_order_relaxed);
}

void pshm_peer_set_no_wake(struct pshm_conn *conn, bool no_wake)
{
	if (conn->no_wake == no_wake || !conn->pair)
		return;
	conn->no_wake = no_wake;
	atomic_store_explicit(&conn->pair->no_wake[conn->side].value, no_wake,
			      memory_order_relaxed);
}
