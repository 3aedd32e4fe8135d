/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How an endpoint begins to sleep so that no publication is missed. An endpoint that polls costs
 * its peers nothing: after each publication they read a word in their cache, the mode of the ring.
 * An endpoint that is about to sleep
 *
 *	makes all its peers ring their doorbells,	pair.polling
 *	publishes that it has to be woken,		inbox.armed
 *	executes a barrier in their processes,		membarrier(2)
 *	and checks all its rings and its inbox once more.
 *
 * A peer's publication before the barrier is found by that check; a peer that publishes after it
 * reads that it has to ring its doorbell, and then that it has to wake the endpoint. Where the
 * kernel has no such barrier, or the peer takes no part in it, the peer executes one of its own
 * after each publication (PSHM_UNSURE). tests/spin has this protocol as a model.
 *
 * The bell is a pipe, which peers open through /proc like the inbox; its inode proves that it is
 * the right one. Peers that are connected by a socket send a note over it, which wakes one endpoint
 * of this process (watcher.h), and that one writes to the pipe. On the thread that holds the
 * domain.
 */
#include <rdma/fi_errno.h>
#include "polling.h"
#include "conn.h"
#include "membarrier.h"
#include "shm_endpoint.h"
#include "socket.h"

/* Longest sleep while payload moves: room in a ring rings no doorbell. */
#define WORK_NS	   50000u
#define CONNECT_NS 1000000u /* ... while connections are made, or a peer can't wake us */

int pshm_bell(struct wire *base, int poll_set)
{
	struct pshm_wire *w = (struct pshm_wire *)base;
	struct sys_fifo_id id;
	int fd;

	if (w->forked)
		return -FI_EOPBADSTATE;
	if (w->bell >= 0) {
		pshm_sockets_bell(w, w->bell, poll_set);
		return w->bell;
	}
	fd = sys_fifo_create(&id);
	if (fd < 0)
		return fd;
	w->bell = fd;
	w->inbox->bell_dev = id.dev;
	w->inbox->bell_ino = id.ino;
	/* R:pshm_inbox.bell  what it is before its number; pairs A:pshm_inbox.bell */
	atomic_store_explicit(&w->inbox->bell, (uint32_t)fd, memory_order_release);
	pshm_sockets_bell(w, fd, poll_set);
	return fd;
}

/* Returns true if poll() has something to find. @no_wake: out, if not: a peer can't wake us */
static bool something_there(struct pshm_wire *w, bool *no_wake)
{
	*no_wake = false;
	if (pshm_inbox_rung(w->inbox, w->requests_seen) || !list_empty(&w->accepted))
		return true;
	for (uint32_t i = 0; i < w->up_cnt; i++) {
		struct pshm_conn *conn = w->up[i];

		if (!conn)
			continue;
		if (pshm_polling_pending(conn)) {
			pshm_polling_heat(conn);
			return true;
		}
		*no_wake |= atomic_load_explicit(&conn->pair->no_wake[pshm_other(conn)].value,
						 memory_order_relaxed);
	}
	return false;
}

/* Sets armed, and the modes of the hot rings by it. */
static void set_armed(struct pshm_wire *w, bool armed)
{
	w->armed = armed;
	for (uint32_t i = 0; i < w->hot_cnt; i++) {
		if (!w->up[i])
			continue;
		w->up[i]->cooling = false;
		pshm_polling_set_mode(w->up[i], pshm_polling_hot_mode(w->up[i]));
	}
}

uint64_t pshm_arm(struct wire *base)
{
	struct pshm_wire *w = (struct pshm_wire *)base;
	bool blind, no_wake;

	if (w->forked)
		return pshm_conn_copy(w) ? 0 : UINT64_MAX; /* poll() ends it */
	/* before the bell is cleared, which this may ring */
	pshm_sockets_look();
	if (!w->armed)
		set_armed(w, true);
	/*
	 * The bell rings for what has been found already. It is cleared only before we are armed:
	 * afterwards a producer may ring it for a doorbell that we have taken, and the next one
	 * relies on that.
	 */
	if (w->bell >= 0 && !atomic_load_explicit(&w->inbox->armed, memory_order_relaxed))
		sys_fifo_clear(w->bell);
	/*
	 * R:pshm_inbox.armed  the bell before it; pairs A:pshm_inbox.armed
	 * F:pshm_inbox.armed  before reading the inbox; pairs F:pshm_inbox.doorbell_words,
	 * F:pshm_inbox.request_doorbell
	 */
	atomic_store_explicit(&w->inbox->armed, 1, memory_order_seq_cst);
	/* F:pshm_arm  the modes of the rings before reading the rings; pairs F:pshm_polling.mode */
	platform_fence();
	/*
	 * where membarrier(2) has been forbidden meanwhile, what is missed is found after a short
	 * sleep
	 */
	blind = w->barriers && sys_membarrier_all();
	if (something_there(w, &no_wake)) {
		pshm_disarm(base);
		return 0;
	}
	if (!list_empty(&w->work))
		return WORK_NS;
	if (blind || no_wake || !list_empty(&w->connecting))
		return CONNECT_NS;
	return pshm_sockets_sleep(w);
}

void pshm_disarm(struct wire *base)
{
	struct pshm_wire *w = (struct pshm_wire *)base;

	if (!w->armed || w->forked)
		return;
	set_armed(w, false);
	pshm_sockets_woken(w);
	/* A peer has taken armed: the bell is readable, or is about to be. */
	if (!atomic_exchange_explicit(&w->inbox->armed, 0, memory_order_relaxed) && w->bell >= 0)
		sys_fifo_clear(w->bell);
}

void pshm_bells_close(struct pshm_wire *w)
{
	if (w->bell >= 0) {
		if (!w->forked)
			atomic_store_explicit(&w->inbox->bell, 0, memory_order_relaxed);
		sys_fifo_close(w->bell);
	}
	if (w->wake_fd >= 0)
		sys_fifo_close(w->wake_fd);
}
