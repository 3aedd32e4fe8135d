/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Showing our arena, and mapping the peer's. */
#include <rdma/fi_errno.h>
#include "arena.h"
#include "provider.h"
#include "reader.h"
#include "peer_arena.h"

void pshm_arena_show(struct pshm_conn *conn)
{
	struct pshm_shown *shown = &conn->pair->shown[conn->side];
	struct arena *arena = arena_started();

	if (!arena || conn->wire->forked ||
	    atomic_load_explicit(&shown->arena_shown, memory_order_relaxed) ||
	    !arena_directory_at(arena, &shown->arena_fd, shown->arena_nonce))
		return;
	/* R:pshm_shown.arena  what is shown before it; pairs A:pshm_shown.arena */
	atomic_store_explicit(&shown->arena_shown, 1, memory_order_release);
}

void pshm_arena_show_all(struct pshm_wire *w)
{
	struct arena *arena = arena_started();
	uint8_t nonce[ARENA_NONCE];
	struct pshm_conn *conn;
	uint32_t fd;

	if (w->arena_shown || !arena || !arena_directory_at(arena, &fd, nonce))
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

/* A peer shows more than a process maps of another one, or what can't be mapped: it is served the slower way. */
static void say_beyond(const struct pshm_conn *conn)
{
	static _Atomic bool said;

	if (atomic_exchange_explicit(&said, true, memory_order_relaxed))
		return;
	FI_WARN(&pshm_provider, FI_LOG_EP_CTRL,
		"process %u shows more memory than is mapped of one, or than all together may have of "
		"vm.max_map_count and RLIMIT_AS: the rest is copied\n",
		conn->process->pid);
}

/* Begins to read the peer's arena. Returns false if it has none, or none that we may open. */
static bool peer_arena_open(struct pshm_conn *conn)
{
	const struct pshm_shown *theirs = &conn->pair->shown[pshm_other(conn)];
	struct arena_peer_id id = { .process = conn->process, .pid = conn->process->pid };
	struct arena_reader *arena;
	int err;

	if (!pshm_peer_shows_arena(conn))
		return false;
	id.fd = *(const volatile uint32_t *)&theirs->arena_fd;
	memcpy(id.nonce, theirs->arena_nonce, ARENA_NONCE);
	arena = platform_alloc(sizeof(*arena));
	if (!arena)
		return false;
	err = arena_reader_open(arena, &id);
	/* what was opened, now or before, is that process's if the process is still the same */
	if (!err && pshm_process_dead(conn->process)) {
		arena_reader_close(arena);
		err = -FI_ECONNRESET;
	}
	if (err) {
		platform_free(arena);
		conn->arena_refused = !pshm_is_shortage(err);
		if (err == -FI_E2BIG)
			say_beyond(conn);
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
		      struct pshm_peer_chunk *chunk)
{
	const struct arena_mapping *map;
	char *here;

	if (!conn->arena && !peer_arena_open(conn))
		return NULL;
	here = arena_reader_find(conn->arena, addr, len, store);
	if (!here)
		return NULL;
	map = &conn->arena->maps[conn->arena->last];
	*chunk = (struct pshm_peer_chunk){ .idx = conn->arena->last,
					   .number = map->number,
					   .writable = map->writable };
	return here;
}

bool pshm_peer_touch(const struct pshm_conn *conn, const struct pshm_peer_chunk *chunk,
		     const char *at, uint64_t len)
{
	return arena_reader_touch(conn->arena, chunk->idx, at, len);
}

bool pshm_peer_lets(const struct pshm_conn *conn, const struct pshm_peer_chunk *chunk)
{
	return arena_reader_valid(conn->arena, chunk->idx, chunk->number);
}

bool pshm_peer_stored(const struct pshm_conn *conn, const struct pshm_peer_chunk *chunk)
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

const void *pshm_peer_place(const struct pshm_conn *conn, const struct pshm_place *place,
			    uint64_t len)
{
	return conn->arena ? arena_reader_lent(conn->arena, place->chunk, place->serial,
					       place->offset, len)
			   : NULL;
}

void pshm_peer_tidy(struct pshm_conn *conn)
{
	if (conn->arena && list_empty(&conn->gets) && list_empty(&conn->directs))
		arena_reader_tidy(conn->arena);
}

void pshm_peer_map(struct pshm_conn *conn)
{
	const struct pshm_shown *theirs = &conn->pair->shown[pshm_other(conn)];
	_Atomic uint64_t *mapped = &conn->pair->inside[conn->side].mapped;
	uint64_t before = atomic_load_explicit(mapped, memory_order_relaxed), until;
	/* A:pshm_shown.wanted  before the entries of those chunks; pairs R:pshm_shown.wanted */
	uint64_t wanted = atomic_load_explicit(&theirs->arena_wanted, memory_order_acquire);

	pshm_peer_tidy(conn);
	if (conn->arena && unlikely(conn->arena->beyond))
		say_beyond(conn);
	if (likely(before >= wanted) || (!conn->arena && !peer_arena_open(conn)))
		return;
	until = arena_reader_map_until(conn->arena, wanted);
	if (until > before)
		/* R:pshm_inside.mapped  it is mapped before; pairs A:pshm_inside.mapped */
		atomic_store_explicit(mapped, until, memory_order_release);
}

bool pshm_arena_lends(struct pshm_conn *conn, const void *addr, size_t len,
		      struct pshm_place *out)
{
	struct pshm_shown *ours = &conn->pair->shown[conn->side];
	const struct arena *arena = arena_started();
	struct arena_place place;
	uint64_t serial;

	if (!arena_find(arena, addr, len, &place))
		return false;
	/* what is sent is LIVE, so that this stays the serial */
	serial = atomic_load_explicit(&arena->chunks[place.chunk].serial, memory_order_relaxed);
	/* A:pshm_inside.mapped  pairs R:pshm_inside.mapped */
	if (unlikely(atomic_load_explicit(&conn->pair->inside[pshm_other(conn)].mapped,
					  memory_order_acquire) < serial)) {
		if (atomic_load_explicit(&ours->arena_wanted, memory_order_relaxed) < serial)
			/* R:pshm_shown.wanted  the entry before it; pairs A:pshm_shown.wanted */
			atomic_store_explicit(&ours->arena_wanted, serial, memory_order_release);
		return false;
	}
	/* retired meanwhile: the peer may have skipped it */
	if (unlikely(!arena_find(arena, addr, len, &place)))
		return false;
	*out = (struct pshm_place){ place.chunk, (uint32_t)serial, place.offset };
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
