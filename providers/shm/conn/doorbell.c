/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Waking a peer that sleeps, by its bell: a pipe that is opened through /proc, or, of a peer that is held by a
 * socket, a message there. On the thread that holds the domain.
 */
#include <limits.h>
#include "conn.h"
#include "doorbell.h"

/* The last one that was rung is kept open: two endpoints that wake each other pay for it once. */
static int ringer(struct pshm_wire *w, const struct pshm_conn *conn, uint32_t number,
		  const struct sys_fifo_id *id)
{
	int fd;

	if (w->rung >= 0 && w->rung_id.ino == id->ino && w->rung_id.dev == id->dev)
		return w->rung;
	fd = sys_fifo_open((pid_t)conn->process->pid, (int)number, id);
	if (fd < 0)
		return fd;
	if (w->rung >= 0)
		sys_fifo_close(w->rung);
	w->rung = fd;
	w->rung_id = *id;
	return fd;
}

void pshm_ring(struct pshm_conn *conn)
{
	struct pshm_inbox *inbox = conn->inbox.addr;
	struct sys_fifo_id id;
	uint32_t number;
	int fd;

	if (!pshm_inbox_bell_due(inbox))
		return;
	/* A:pshm_inbox.bell  its number before what it is; pairs R:pshm_inbox.bell */
	number = atomic_load_explicit(&inbox->bell, memory_order_acquire);
	if (!number || number > INT_MAX)
		return;
	if (conn->process->ring) {
		conn->process->ring(conn->process, conn->addr.nonce);
		return;
	}
	id = (struct sys_fifo_id){ inbox->bell_dev, inbox->bell_ino };
	fd = ringer(conn->wire, conn, number, &id);
	pshm_mute(conn, fd < 0);
	if (fd >= 0)
		sys_fifo_ring(fd);
	else /* it wakes after a while; who calls next tries again */
		atomic_store_explicit(&inbox->armed, 1, memory_order_relaxed);
}

void pshm_mute(struct pshm_conn *conn, bool mute)
{
	if (conn->mute == mute || !conn->pair)
		return;
	conn->mute = mute;
	atomic_store_explicit(&conn->pair->mute[conn->side].value, mute, memory_order_relaxed);
}
