/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The key table of a peer, which its domain shows (share.c), and accesses by loads and stores to
 * regions that are in the peer's arena. Called by the engine.
 *
 * The table is not trusted: it can name no more than memory of the peer. A region that is written is
 * published in the pair (pshm_pair.inside), from before its key is looked up for the last time. The
 * owner invalidates the key and then reads that word, so that no byte is stored once it has closed
 * the region. What is loaded counts only if the key still resolves afterwards.
 */
#include <rdma/fi_errno.h>
#include "conn.h"
#include "peer_arena.h"
#include "peer_keys.h"
#include "peer_tables.h"

/* The table */

/* Begins to read the table. @theirs: its location, in a private copy. Returns 0 or -FI_E*. */
static int reading_open(struct pshm_conn *conn, const struct pshm_shown *theirs)
{
	struct pshm_reading *r = platform_alloc(sizeof(*r));
	const char *memory;
	int err;

	if (!r)
		return -FI_ENOMEM;
	r->remote_events = theirs->remote_events;
	r->write_guard = pshm_shown_guard(conn);
	err = pshm_peer_table_get(conn->process, theirs, &r->table);
	if (err)
		goto err_free;
	memory = (const char *)r->table->region.addr + PSHM_TABLE_HEAD;
	err = mr_reader_init(&r->reader, memory);
	if (err)
		goto err_put;
	for (uint32_t i = 1; i < PSHM_TABLE_SLABS; i++)
		mr_reader_attach(&r->reader, memory + mr_slab_offset(i));
	conn->reading = r;
	return 0;

err_put:
	pshm_peer_table_put(r->table);
err_free:
	platform_free(r);
	return err;
}

int pshm_reading_make(struct pshm_conn *conn)
{
	const struct pshm_shown *theirs = &conn->pair->shown[pshm_other(conn)];
	struct pshm_shown shown;
	int err;

	/* A:pshm_shown.shown  before what is shown; pairs R:pshm_shown.shown */
	if (!atomic_load_explicit(&theirs->shown, memory_order_acquire))
		return -FI_EOPNOTSUPP;
	memcpy(&shown, theirs, sizeof(shown));
	err = reading_open(conn, &shown);
	/* later tries would fail too, but for a table that is still being made when it is shown */
	if (err && err != -FI_EAGAIN && !pshm_is_shortage(err))
		conn->direct_refused[0] = conn->direct_refused[1] = err;
	return err;
}

void pshm_reading_close(struct pshm_conn *conn)
{
	if (!conn->reading)
		return;
	pshm_peer_table_put(conn->reading->table);
	platform_free(conn->reading);
	conn->reading = NULL;
}

/* Loads and stores */

/* Looks a key up, and where its region is mapped. Returns false if it does not resolve. */
static bool reached_find(struct pshm_conn *conn, uint64_t key, struct reached_region *found)
{
	struct mr_view *view = &found->view;

	if (mr_reader_find(&conn->reading->reader, key, view)) {
		*found = (struct reached_region){ .view.seq = 1 }; /* as no line that is still */
		return false;
	}
	/* Found once: a second look may find another chunk, and @chunk says of one whether it is there still. */
	found->here[0] = pshm_peer_range(conn, view->base, view->len, false, &found->chunk);
	found->here[1] = found->here[0] && found->chunk.writable ? found->here[0] : NULL;
	if (found->here[1])
		conn->base.access = conn->wire->conn_ops->access_reached;
	return true;
}

/*
 * Returns the region of a key, looked up before or now, or NULL. One that is mapped for stores may have
 * been closed since: store_begin() looks at that anyway.
 */
static struct reached_region *reached_region(struct pshm_conn *conn, uint64_t key, bool store)
{
	struct pshm_reading *r = conn->reading;
	struct reached_region *found = &r->reached[(key ^ key >> 24) % REACHED_CNT];

	if (likely(found->view.key == key &&
		   ((store && found->here[1]) || mr_reader_check(&r->reader, &found->view))))
		return found;
	return reached_find(conn, key, found) ? found : NULL;
}

void pshm_enter(struct pshm_conn *conn, uint32_t line)
{
	struct pshm_inside *inside = &conn->pair->inside[conn->side];

	atomic_store_explicit(&inside->entered, ++conn->entered, memory_order_relaxed);
	/* S:mr.check  we are inside before we look whether we may be; pairs S:mr.seq */
	atomic_store_explicit(&inside->line, line, memory_order_seq_cst);
}

void pshm_leave(struct pshm_conn *conn)
{
	/* R:pshm_pair.inside  what was moved before we are outside; pairs A:pshm_pair.inside */
	atomic_store_explicit(&conn->pair->inside[conn->side].line, 0, memory_order_release);
}

bool pshm_key_open(const struct pshm_conn *conn, const struct mr_view *view)
{
	/* S:pshm_pair.inside  our mark before it; pairs S:pshm_pair.ended */
	return mr_reader_check(&conn->reading->reader, view) &&
	       !atomic_load_explicit(&conn->pair->ended[pshm_other(conn)].value,
				     memory_order_seq_cst);
}

/* Marks the region as being written, and checks that it still may be; if not it is looked up again. */
static bool store_begin(struct pshm_conn *conn, struct reached_region *region)
{
	pshm_enter(conn, region->view.index | PSHM_INSIDE_MAPPED);
	if (likely(pshm_key_open(conn, &region->view) && pshm_peer_lets(conn, &region->chunk)))
		return true;
	pshm_leave(conn);
	region->here[1] = NULL;
	return false;
}

void *pshm_reach(struct wire_conn *base, const struct packet_target *target, uint64_t kind)
{
	struct pshm_conn *conn = pshm_conn_of(base);
	bool store = kind & FI_REMOTE_WRITE;
	struct reached_region *region;
	uint64_t at;

	if (unlikely(!conn->arena || conn->wire->forked) && !pshm_peer_shows_arena(conn))
		return NULL;
	if (unlikely(!conn->reading) && pshm_reading_make(conn))
		return NULL;
	if (conn->reading->remote_events & kind)
		return NULL;
	region = reached_region(conn, target->key, store);
	if (!region || !region->here[store] ||
	    mr_view_range(&region->view, target->addr, target->len, kind, &at))
		return NULL;
	if (store ? !store_begin(conn, region) : !pshm_peer_lets(conn, &region->chunk))
		return NULL;
	conn->reading->reaching = region;
	return region->here[store] + (at - region->view.base);
}

bool pshm_reached(struct wire_conn *base, uint64_t kind)
{
	struct pshm_conn *conn = pshm_conn_of(base);

	if (kind & FI_REMOTE_WRITE) {
		pshm_leave(conn);
		return pshm_peer_stored(conn, &conn->reading->reaching->chunk);
	}
	/* what was loaded is the region's if its key still resolves */
	return pshm_peer_copied(conn) &&
	       mr_reader_check(&conn->reading->reader, &conn->reading->reaching->view);
}
