/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Showing our arena, and mapping the peer's. */
#include <rdma/fi_errno.h>
#include "arena.h"
#include "reader.h"
#include "peer_arena.h"

void pshm_arena_show(struct pshm_conn *conn)
{
	struct pshm_shown *shown = &conn->pair->shown[conn->side];
	const struct arena *arena = arena_started();

	if (!arena || arena->forked || conn->wire->forked ||
	    atomic_load_explicit(&shown->arena_shown, memory_order_relaxed))
		return;
	shown->arena_fd = (uint32_t)arena->directory_fd;
	memcpy(shown->arena_nonce, arena->directory->head.nonce, sizeof(shown->arena_nonce));
	/* R:pshm_shown.arena  what is shown before it; pairs A:pshm_shown.arena */
	atomic_store_explicit(&shown->arena_shown, 1, memory_order_release);
}

void pshm_arena_show_all(struct pshm_wire *w)
{
	struct pshm_conn *conn;

	if (w->arena_shown || !arena_started())
		return;
	w->arena_shown = true;
	list_for_each_entry(conn, &w->conns, all) {
		if (conn->pair && !conn->ended)
			pshm_arena_show(conn);
	}
}

bool pshm_peer_shows_arena(const struct pshm_conn *conn)
{
	/* A:pshm_shown.arena  before what is shown; pairs R:pshm_shown.arena */
	return !conn->arena_refused && conn->process->pid && !conn->wire->forked &&
	       atomic_load_explicit(&conn->pair->shown[pshm_other(conn)].arena_shown,
				    memory_order_acquire);
}

/* Maps the peer's directory. Returns false if it has none, or none that we may open. */
static bool peer_arena_open(struct pshm_conn *conn)
{
	const struct pshm_shown *theirs = &conn->pair->shown[pshm_other(conn)];
	struct pshm_shown shown;
	struct arena_reader *arena;
	int err;

	if (!pshm_peer_shows_arena(conn))
		return false;
	memcpy(&shown, theirs, sizeof(shown));
	arena = platform_alloc(sizeof(*arena));
	if (!arena)
		return false;
	err = arena_reader_open(arena, conn->process->pid, shown.arena_fd, shown.arena_nonce);
	/* what was opened is that process's if the process is still the same */
	if (!err && pshm_process_dead(conn->process)) {
		arena_reader_close(arena);
		err = -FI_ECONNRESET;
	}
	if (err) {
		platform_free(arena);
		conn->arena_refused = !pshm_is_shortage(err);
		return false;
	}
	conn->arena = arena;
	return true;
}

bool pshm_peer_memory(struct pshm_conn *conn, const struct iovec *theirs, size_t cnt,
		      bool store, struct iovec *here)
{
	if (!conn->arena && !peer_arena_open(conn))
		return false;
	for (size_t i = 0; i < cnt; i++) {
		here[i].iov_len = theirs[i].iov_len;
		here[i].iov_base = arena_reader_find(conn->arena, (uintptr_t)theirs[i].iov_base,
						     theirs[i].iov_len, store);
		if (!here[i].iov_base)
			return false;
	}
	return true;
}

char *pshm_peer_range(struct pshm_conn *conn, uint64_t addr, uint64_t len, bool store,
		      uint32_t *chunk)
{
	char *here;

	if (!conn->arena && !peer_arena_open(conn))
		return NULL;
	here = arena_reader_find(conn->arena, addr, len, store);
	*chunk = conn->arena->last;
	return here;
}

bool pshm_peer_lets(const struct pshm_conn *conn, uint32_t chunk)
{
	return arena_reader_valid(conn->arena, chunk);
}

bool pshm_peer_stored(const struct pshm_conn *conn, uint32_t chunk)
{
	enum pshm_side other = pshm_other(conn);

	/*
	 * B:arena.stored  the stores before the load. An owner that has retired a chunk makes a barrier
	 * on every core that runs a process which takes part, before it looks at the pages.
	 */
	if (likely(conn->wire->barriers &&
		   atomic_load_explicit(&conn->pair->barriers[other].value,
					memory_order_relaxed)))
		atomic_signal_fence(memory_order_seq_cst);
	else
		platform_fence();
	return pshm_peer_lets(conn, chunk);
}

const void *pshm_peer_place(struct pshm_conn *conn, uint32_t chunk, uint64_t offset,
			    uint64_t len)
{
	const struct arena_mapping *map;

	if (!conn->arena || chunk >= conn->arena->cnt)
		return NULL;
	/* also of a chunk that was retired since: it was lent before */
	map = &conn->arena->maps[chunk];
	return map->addr && offset <= map->len && len <= map->len - offset ? map->addr + offset
									   : NULL;
}

void pshm_peer_map(struct pshm_conn *conn)
{
	const struct pshm_shown *theirs = &conn->pair->shown[pshm_other(conn)];
	_Atomic uint32_t *mapped = &conn->pair->inside[conn->side].mapped;
	uint32_t next = atomic_load_explicit(mapped, memory_order_relaxed);

	if (likely(next >= atomic_load_explicit(&theirs->arena_wanted, memory_order_relaxed)) ||
	    next >= ARENA_CHUNKS || (!conn->arena && !peer_arena_open(conn)))
		return;
	/* a chunk that has been retired keeps no other one waiting: nothing of it will be lent */
	if (!arena_reader_at(conn->arena, next, 0, 0, false) &&
	    arena_reader_valid(conn->arena, next))
		return;
	/* R:pshm_inside.mapped  it is mapped before; pairs A:pshm_inside.mapped */
	atomic_store_explicit(mapped, next + 1, memory_order_release);
}

bool pshm_arena_lends(struct pshm_conn *conn, const void *addr, size_t len,
		      struct pshm_place *out)
{
	struct pshm_shown *ours = &conn->pair->shown[conn->side];
	const struct arena *arena = arena_started();
	struct arena_place place;

	if (!arena_find(arena, addr, len, &place))
		return false;
	/* A:pshm_inside.mapped  pairs R:pshm_inside.mapped */
	if (unlikely(atomic_load_explicit(&conn->pair->inside[pshm_other(conn)].mapped,
					  memory_order_acquire) <= place.chunk)) {
		if (atomic_load_explicit(&ours->arena_wanted, memory_order_relaxed) <=
		    place.chunk)
			atomic_store_explicit(&ours->arena_wanted, place.chunk + 1,
					      memory_order_relaxed);
		return false;
	}
	/* retired meanwhile: the peer may have skipped it */
	if (unlikely(atomic_load_explicit(&arena->chunks[place.chunk].retired,
					  memory_order_relaxed)))
		return false;
	*out = (struct pshm_place){ .chunk = place.chunk, .offset = place.offset };
	return true;
}

bool pshm_peer_copied(const struct pshm_conn *conn)
{
	/* F:pshm_pair.lent  the copy before reading whether it has ended; pairs F:pshm_pair.lent */
	platform_fence_acquire();
	return !atomic_load_explicit(&conn->pair->ended[pshm_other(conn)].value,
				     memory_order_relaxed);
}

void pshm_peer_arena_close(struct pshm_conn *conn)
{
	if (!conn->arena)
		return;
	arena_reader_close(conn->arena);
	platform_free(conn->arena);
	conn->arena = NULL;
}
