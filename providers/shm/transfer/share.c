/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The key table of a domain's registered memory, in memory that peers map for reading, so that
 * they read and write the regions by themselves (key_access.c).
 *
 * The memory is made with the first region that peers may access, and shown in every pair of the
 * domain's endpoints. Where it can't be made the table is private, and peers ask by packet, as they
 * do for regions beyond those that it has room for.
 *
 * With the table the address of a write guard is shown (sys/write_guard.h), which stays open as
 * long as the domain: every write passes it, so that nothing is written to another program that
 * has begun in this process meanwhile.
 *
 * A peer that accesses a region marks that in the pair (pshm_pair.inside). Closing a region
 * invalidates its key and then waits for the mark (mr_invalidate()). The pair of a connection that
 * ends while the peer is inside stays mapped until the peer has left, or is dead. On the thread
 * that holds the domain, but for pshm_share_marked().
 */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "arena.h"
#include "conn.h"
#include "write_guard.h"
#include "lists.h"
#include "memfd.h"
#include "moved.h"
#include "share.h"
#include "shown.h"

/* ns for which a peer may still be in a call that passed the write guard before it was shut */
#define CALL_NS 1000000000u
/* Ended connections to one process whose pairs stay mapped. */
#define GUESTS_MAX 16u

struct wire_share {
	/* in the list of the process's shares, for fork */
	struct list all;
	/* endpoints of the domain: struct pshm_wire.share_link */
	struct list wires;
	/* connections that ended while their peers were inside: struct pshm_conn.slow */
	struct list guests;
	/* its addr is NULL while nothing is shown */
	struct pshm_region table;
	/* NULL: there is none, and peers ask by packet to write */
	void *write_guard;
	/* this is the child of a fork */
	bool forked;
	/* of the domain */
	const _Atomic uint32_t *regions;
	/* what pshm_share_counts() has returned last */
	struct pshm_share_counts told;
};

/* All shares of the process. Protected by the lock of lists.c. */
static struct list shares = { &shares, &shares };

/*
 * Returns pshm_inside.line of the peer of a connection if it accesses region @index of ours, or any,
 * with @index 0; else 0.
 */
static uint32_t peer_inside(const struct pshm_conn *conn, uint32_t index)
{
	const struct pshm_inside *theirs = &conn->pair->inside[pshm_other(conn)];
	/*
	 * S:pshm_pair.inside  after the key was invalidated, or the connection ended; pairs
	 * S:mr.check
	 * A:pshm_pair.inside  what the peer did before it left; pairs R:pshm_pair.inside
	 */
	uint32_t line = atomic_load_explicit(&theirs->line, memory_order_seq_cst);

	if (!line || (index && (line & ~PSHM_INSIDE_MAPPED) != index))
		return 0;
	/* one that was cut off stores to memory that is not ours any more, or not at all */
	if (conn->cut &&
	    conn->cut_entered == atomic_load_explicit(&theirs->entered, memory_order_relaxed))
		return 0;
	return pshm_process_dead(conn->process) ? 0 : line;
}

static void guest_free(struct pshm_conn *conn)
{
	list_remove(&conn->slow);
	pshm_region_close(&conn->region);
	pshm_process_put(conn->process);
	platform_free(conn);
}

/* Releases the connections whose peers have left. */
static void guests_leave(struct wire_share *share)
{
	struct pshm_conn *conn;

	list_for_each_entry(conn, &share->guests, slow) {
		if (!peer_inside(conn, 0))
			guest_free(conn);
	}
}

/*
 * Makes room for one more connection to that process. An honest peer is inside few at a time; a
 * hostile one that only says that it is takes no more of our memory than GUESTS_MAX pairs.
 */
static void guests_limit(struct wire_share *share, const struct pshm_process *process)
{
	struct pshm_conn *oldest = NULL;
	struct pshm_conn *conn;
	uint32_t cnt = 0;

	list_for_each_entry(conn, &share->guests, slow) {
		if (conn->process->pid != process->pid)
			continue;
		oldest = oldest ? oldest : conn;
		cnt++;
	}
	if (cnt >= GUESTS_MAX)
		guest_free(oldest);
}

bool pshm_share_keep(struct pshm_conn *conn)
{
	struct wire_share *share = conn->wire->share;

	if (!share || conn->wire->forked || !conn->region.addr || !conn->process ||
	    !peer_inside(conn, 0))
		return false;
	guests_limit(share, conn->process);
	pshm_region_close_fd(&conn->region);
	list_add_tail(&share->guests, &conn->slow);
	return true;
}

/* Calls @each for every connection whose peer is inside region @index, until it returns false. */
static bool insiders(struct wire_share *share, uint32_t index,
		     bool (*each)(struct pshm_conn *conn, uint32_t line))
{
	struct pshm_conn *conn;
	struct pshm_wire *w;
	uint32_t line;

	list_for_each_entry(conn, &share->guests, slow) {
		line = peer_inside(conn, index);
		if (line && !each(conn, line))
			return false;
	}
	list_for_each_entry(w, &share->wires, share_link) {
		list_for_each_entry(conn, &w->conns, all) {
			line = conn->pair && conn->process ? peer_inside(conn, index) : 0;
			if (line && !each(conn, line))
				return false;
		}
	}
	return true;
}

static bool not_inside(struct pshm_conn *conn, uint32_t line)
{
	return false;
}

static bool by_mapping(struct pshm_conn *conn, uint32_t line)
{
	return line & PSHM_INSIDE_MAPPED;
}

static bool by_call(struct pshm_conn *conn, uint32_t line)
{
	return !(line & PSHM_INSIDE_MAPPED);
}

static bool cut_off(struct pshm_conn *conn, uint32_t line)
{
	conn->cut_entered = atomic_load_explicit(&conn->pair->inside[pshm_other(conn)].entered,
						 memory_order_relaxed);
	conn->cut = true;
	return true;
}

bool pshm_share_used(struct wire_share *share, uint32_t index)
{
	if (share->forked)
		return false;
	guests_leave(share);
	return !insiders(share, index, not_inside);
}

/* Returns true if the peer of a connection has marked that region. Reads nothing else of it. */
static bool peer_marked(const struct pshm_conn *conn, uint32_t index)
{
	const struct pshm_inside *theirs = &conn->pair->inside[pshm_other(conn)];
	/* S:pshm_pair.inside, A:pshm_pair.inside  as in peer_inside() */
	uint32_t line = atomic_load_explicit(&theirs->line, memory_order_seq_cst);

	return (line & ~PSHM_INSIDE_MAPPED) == index;
}

bool pshm_share_marked(const struct wire_share *share, uint32_t index)
{
	const struct pshm_conn *conn;
	const struct pshm_wire *w;

	if (share->forked)
		return false;
	list_for_each_entry(conn, &share->guests, slow) {
		if (peer_marked(conn, index))
			return true;
	}
	list_for_each_entry(w, &share->wires, share_link) {
		list_for_each_entry(conn, &w->conns, all) {
			if (conn->pair && peer_marked(conn, index))
				return true;
		}
	}
	return false;
}

const struct pshm_region *pshm_share_table(const struct wire_share *share)
{
	return &share->table;
}

void pshm_share_show(struct pshm_conn *conn)
{
	const struct wire_share *share = conn->wire->share;
	struct pshm_shown *shown = &conn->pair->shown[conn->side];
	const struct pshm_table *table;

	if (!share || !share->table.addr || conn->wire->forked)
		return;
	table = share->table.addr;
	shown->fd = (uint32_t)share->table.fd;
	memcpy(shown->nonce, table->nonce, PSHM_NONCE);
	shown->remote_events = (uint32_t)conn->wire->remote_events;
	atomic_store_explicit(&shown->write_guard, (uintptr_t)share->write_guard,
			      memory_order_relaxed);
	/* R:pshm_shown.shown  what is shown before it; pairs A:pshm_shown.shown */
	atomic_store_explicit(&shown->shown, 1, memory_order_release);
}

/* Shows it in all connections; later ones show it when they are attached. */
static void show_all(struct wire_share *share)
{
	struct pshm_wire *w;
	struct pshm_conn *conn;

	list_for_each_entry(w, &share->wires, share_link) {
		list_for_each_entry(conn, &w->conns, all) {
			if (conn->pair && !conn->ended)
				pshm_share_show(conn);
		}
	}
}

/*
 * Has every write by a call that begins from now on fail, and shows another write guard to those who write
 * afterwards. A peer that was stopped before its call never makes it; what it reads is not used, since its key
 * has ended. One that is in its call is not stopped there, and is waited for. Returns false if that is not
 * possible.
 */
static bool calls_end(struct wire_share *share, uint32_t index)
{
	uint64_t end = platform_now_ns() + CALL_NS;

	if (share->write_guard && sys_write_guard_shut(share->write_guard))
		return false;
	if (sys_write_guard_open(&share->write_guard))
		share->write_guard = NULL;
	show_all(share);
	while (!insiders(share, index, by_mapping) && platform_now_ns() < end)
		platform_yield();
	return true;
}

bool pshm_share_cut(struct wire_share *share, uint32_t index, const void *addr, size_t len)
{
	struct arena *arena = arena_started();

	/* without an arena there is nothing that a peer could store to by a mapping, whatever it has marked */
	if (!insiders(share, index, by_call) && arena && arena_cut(arena, addr, len))
		return false;
	if (!insiders(share, index, by_mapping) && !calls_end(share, index))
		return false;
	return insiders(share, index, cut_off);
}

/* struct mr_memory: slabs stand in the table's memory; those that it has no room for are private. */

static void *slab_alloc(void *arg, uint32_t slab)
{
	struct wire_share *share = arg;
	void *memory;

	if (!slab && (share->forked || pshm_table_create(&share->table)))
		share->table.addr = NULL;
	if (!slab && share->table.addr && sys_write_guard_open(&share->write_guard))
		share->write_guard = NULL;
	if (share->table.addr && slab < PSHM_TABLE_SLABS) {
		memory = (char *)share->table.addr + PSHM_TABLE_HEAD + mr_slab_offset(slab);
		if (!slab)
			show_all(share);
		return memory;
	}
	memory = aligned_alloc(CACHE_LINE, mr_slab_len(slab));
	if (memory)
		memset(memory, 0, mr_slab_len(slab));
	return memory;
}

static void slab_free(void *arg, uint32_t slab, void *memory)
{
	struct wire_share *share = arg;

	if (!share->table.addr || slab >= PSHM_TABLE_SLABS)
		free(memory);
}

/* The child of a fork has a table of zeros, of its own: peers of the parent map the shared one. */
static void shares_forked(void)
{
	struct wire_share *share;

	list_for_each_entry(share, &shares, all) {
		share->forked = true;
		if (share->table.addr)
			sys_memfd_forget(share->table.addr, share->table.len);
	}
}

int pshm_share_open(struct wire_share **out, struct mr_memory *memory,
		    const _Atomic uint32_t *regions)
{
	struct wire_share *share = platform_alloc(sizeof(*share));

	if (!share)
		return -FI_ENOMEM;
	share->regions = regions;
	share->table.fd = -1;
	list_init(&share->wires);
	list_init(&share->guests);
	mem_shown_start();
	pshm_fork_watch();
	pshm_fork_also(shares_forked);
	pshm_lists_lock();
	list_add_tail(&shares, &share->all);
	pshm_lists_unlock();
	*memory = (struct mr_memory){ .alloc = slab_alloc, .free = slab_free, .arg = share };
	*out = share;
	return 0;
}

void pshm_share_close(struct wire_share *share)
{
	assert(list_empty(&share->wires));
	pshm_lists_lock();
	list_remove(&share->all);
	pshm_lists_unlock();
	/* no peer is inside a region by now: none was closed with a peer inside */
	while (!list_empty(&share->guests))
		guest_free(container_of(share->guests.next, struct pshm_conn, slow));
	if (!share->forked)
		pshm_moved_share_end(&share->told);
	pshm_region_close(&share->table);
	sys_write_guard_close(share->write_guard);
	platform_free(share);
}

struct pshm_share_counts pshm_share_counts(struct wire_share *share,
					   struct pshm_share_counts *before)
{
	const struct mr_header *header;

	*before = share ? share->told : (struct pshm_share_counts){ 0 };
	if (!share || share->forked)
		return *before;
	share->told.regions = atomic_load_explicit(share->regions, memory_order_relaxed);
	if (!share->table.addr)
		return share->told;
	header = (const struct mr_header *)((const char *)share->table.addr + PSHM_TABLE_HEAD);
	share->told.keys = atomic_load_explicit(&header->cnt, memory_order_relaxed);
	return share->told;
}

void pshm_share_join(struct pshm_wire *w, const struct wire_attr *attr)
{
	w->share = attr->share;
	w->remote_events = attr->remote_events;
	list_init(&w->share_link);
	pshm_conns_change(w);
	if (w->share)
		list_add_tail(&w->share->wires, &w->share_link);
}

bool pshm_stored(struct wire *base)
{
	struct pshm_wire *w = container_of(base, struct pshm_wire, base);
	bool stored = false;

	if (w->forked)
		return false;
	for (uint32_t i = 0; i < w->hot_cnt; i++) {
		struct pshm_conn *conn = w->up[i];
		uint64_t entered;

		if (!conn)
			continue;
		entered = atomic_load_explicit(&conn->pair->inside[pshm_other(conn)].entered,
					       memory_order_relaxed);
		stored |= entered != conn->seen_entered;
		conn->seen_entered = entered;
	}
	return stored;
}
