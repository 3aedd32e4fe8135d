/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections as objects: made and released, up and down. Called by the engine, by poll(), and by
 * the room connect; on the thread that holds the domain.
 */
#include <stdio.h>
#include <rdma/fi_errno.h>
#include "polling.h"
#include "conn.h"
#include "grow.h"
#include "lists.h"
#include "provider.h"

/* Between two log lines of one shortage and error. */
#define LOG_INTERVAL_NS 60000000000u

void pshm_log_shortage(struct pshm_wire *w, enum pshm_shortage shortage, int err)
{
	static const char *const names[PSHM_SHORTAGE_CNT] = {
		[PSHM_SHORTAGE_CONNECT] = "connect to a peer",
		[PSHM_SHORTAGE_ACCEPT] = "accept a peer's connection",
		[PSHM_SHORTAGE_PEER] = "connect to a peer that has no descriptors or memory left",
	};
	size_t error = err == -FI_ENOMEM ? 0 : err == -FI_EMFILE ? 1 : 2;
	uint64_t *logged = &w->shortage_logged_ns[shortage][error];
	uint64_t now = platform_now_ns();

	if (*logged && now - *logged < LOG_INTERVAL_NS)
		return;
	*logged = now;
	FI_WARN(&pshm_provider, FI_LOG_EP_CTRL,
		"can't %s: %s; messages wait until more are available (raise 'ulimit -n')\n",
		names[shortage], strerror(-err));
}

struct pshm_conn *pshm_conn_new(struct pshm_wire *w, struct engine_peer *peer,
				enum pshm_side side)
{
	struct pshm_conn *conn;

	/* allocated now, so that a connection that is up never waits for memory to send */
	if (pool_ready(&w->transfers))
		return NULL;
	conn = platform_alloc(sizeof(*conn));
	if (!conn)
		return NULL;
	conn->base.wire = &w->base;
	conn->base.peer = peer;
	conn->wire = w;
	conn->side = side;
	conn->done_end = &conn->done;
	conn->region.fd = conn->inbox.fd = -1;
	conn->tx_area.fd = conn->rx_area.fd = -1;
	conn->ask.inbox.fd = -1;
	list_init(&conn->ask.link);
	list_init(&conn->sends);
	list_init(&conn->lent);
	list_init(&conn->gets);
	list_init(&conn->coop_writes);
	list_init(&conn->directs);
	list_init(&conn->work);
	list_init(&conn->slow);
	pshm_conns_change(w);
	pshm_lists_lock();
	list_add_tail(&w->conns, &conn->all);
	pshm_lists_unlock();
	w->conn_cnt++;
	return conn;
}

void pshm_conn_free(struct pshm_conn *conn)
{
	list_remove(&conn->slow);
	pshm_conns_change(conn->wire);
	pshm_lists_lock();
	list_remove(&conn->all);
	pshm_lists_unlock();
	conn->wire->conn_cnt--;
	pshm_grow_drop(conn);
	pshm_region_close(&conn->inbox);
	if (conn->wire->conn_ops->freed(conn))
		return;
	pshm_region_close(&conn->region);
	if (conn->process)
		pshm_process_put(conn->process);
	platform_free(conn);
}

void pshm_conn_attach(struct pshm_conn *conn, const struct pshm_region *region,
		      const struct pshm_sizes *sizes)
{
	enum pshm_side other = pshm_other(conn);
	uint32_t line_cnt = sizes->line_cnt, data_len = sizes->data_len;

	pshm_conns_change(conn->wire);
	conn->region = *region;
	conn->sizes = *sizes;
	conn->pair = region->addr;
	conn->polling = &conn->pair->polling[conn->side];
	conn->wire->conn_ops->attached(conn);
	atomic_store_explicit(&conn->pair->barriers[conn->side].value, conn->wire->barriers,
			      memory_order_relaxed);
	ring_tx_init(&conn->tx, pshm_pair_ring(region, conn->side, sizes), line_cnt, data_len);
	ring_rx_init(&conn->rx, pshm_pair_ring(region, other, sizes), line_cnt, data_len);
}

int pshm_up_reserve(struct pshm_wire *w)
{
	uint32_t cap = w->up_cap ? 2 * w->up_cap : 16;
	struct pshm_conn **up;

	if (w->up_cap > w->conn_cnt)
		return 0;
	up = platform_alloc(cap * sizeof(struct pshm_conn *));
	if (!up)
		return -FI_ENOMEM;
	if (w->up_cnt)
		memcpy(up, w->up, w->up_cnt * sizeof(struct pshm_conn *));
	platform_free(w->up);
	w->up = up;
	w->up_cap = cap;
	return 0;
}

void pshm_conn_up(struct pshm_conn *conn, const struct hello *hello)
{
	struct pshm_wire *w = conn->wire;

	assert(w->up_cnt < w->up_cap);
	pshm_polling_begin(conn);
	memset(w->shortage_logged_ns, 0, sizeof(w->shortage_logged_ns));
	conn->base.up = true;
	engine_conn_up(&conn->base, hello);
}

void pshm_answer_put(struct pshm_pair *pair, enum pshm_answer answer, int err)
{
	/* R:pshm_pair.answer  the hello before the answer; pairs A:pshm_pair.answer */
	atomic_store_explicit(&pair->answer, (uint32_t)answer | (uint32_t)-err << 8,
			      memory_order_release);
}

/* Refuses a request that has no answer yet. The data of an acceptance that was given is dropped. */
static void refuse_unanswered(struct pshm_conn *conn, int err)
{
	conn->pair->hello_data_len[PSHM_ACCEPTOR] = 0;
	pshm_answer_put(conn->pair, PSHM_REFUSED, err);
}

/*
 * Notifies the other side, which may not be polling, or may not have accepted the connection yet.
 */
static void end_notify(struct pshm_conn *conn, enum pshm_end how)
{
	if (!conn->pair)
		return;
	/*
	 * R:pshm_pair.ended  everything published before; pairs A:pshm_pair.ended
	 * S:pshm_pair.ended  before reading whether the peer accesses this side's memory; pairs
	 * S:pshm_pair.inside
	 */
	atomic_store_explicit(&conn->pair->ended[conn->side].value, how, memory_order_seq_cst);
	/*
	 * F:pshm_pair.lent  before what the program stores in memory that was lent; pairs
	 * F:pshm_pair.lent
	 */
	platform_fence_release();
	if (conn->side == PSHM_ACCEPTOR && !conn->base.up)
		refuse_unanswered(conn, how == PSHM_CLOSED ? -FI_ECONNREFUSED : -FI_ECONNRESET);
	if (conn->base.up &&
	    atomic_load_explicit(&conn->polling->mode, memory_order_relaxed) != PSHM_POLLED)
		pshm_doorbell_ring(conn);
}

void pshm_conn_end(struct pshm_conn *conn, enum pshm_end how, bool wait)
{
	struct pshm_wire *w = conn->wire;

	w->conn_ops->ended(conn, wait && !w->forked);
	pshm_mailbox_drop(&conn->ticket);
	if (!w->forked)
		end_notify(conn, how);
	if (conn->base.up) {
		pshm_polling_end(conn);
		conn->base.up = false;
	}
	conn->ended = true;
	list_remove(&conn->slow);
	list_add_tail(&w->ended, &conn->slow);
	w->busy = true;
}

struct pshm_conn *pshm_conn_copy(const struct pshm_wire *w)
{
	const struct list *node;

	for (node = w->conns.next; node != &w->conns; node = node->next) {
		struct pshm_conn *conn = container_of(node, struct pshm_conn, all);

		if (!conn->ended && !conn->requested)
			return conn;
	}
	return NULL;
}

void pshm_conn_reap(struct pshm_wire *w)
{
	uint32_t kept = 0, hot = 0;

	if (w->holes) {
		for (uint32_t i = 0; i < w->up_cnt; i++) {
			struct pshm_conn *conn = w->up[i];

			if (!conn)
				continue;
			hot += i < w->hot_cnt;
			conn->up_idx = kept;
			w->up[kept++] = conn;
		}
		w->up_cnt = kept;
		w->hot_cnt = hot;
		w->holes = false;
	}
	while (!list_empty(&w->ended))
		pshm_conn_free(container_of(w->ended.next, struct pshm_conn, slow));
}

void pshm_disconnect(struct wire_conn *base)
{
	struct pshm_conn *conn = pshm_conn_of(base);
	struct pshm_wire *w = conn->wire;

	pshm_conn_end(conn, PSHM_CLOSED, true);
	if (!w->in_poll)
		pshm_conn_reap(w);
}

void pshm_conn_fail(struct pshm_conn *conn, int err)
{
	/* the report of a peer that breaks the protocol is not trusted */
	bool lies = err == -FI_EPROTO || err == -FI_EINVAL;

	pshm_conn_end(conn, err ? PSHM_BROKEN : PSHM_CLOSED, !lies);
	engine_conn_down(&conn->base, err);
}

int pshm_check(struct wire_conn *base)
{
	struct pshm_conn *conn = pshm_conn_of(base);
	enum pshm_side other = pshm_other(conn);
	uint32_t note;

	if (conn->wire->forked)
		return -FI_EOPBADSTATE;
	if (!pshm_process_dead(conn->process))
		return 0;
	if (!conn->base.up)
		return 0; /* poll() finds it, and whether it had answered */
	/* what it left is delivered first, and an orderly close reported as such: by poll() */
	if (ring_next(&conn->rx, &note) ||
	    atomic_load_explicit(&conn->pair->ended[other].value, memory_order_relaxed))
		return 0;
	return -FI_ECONNRESET;
}
