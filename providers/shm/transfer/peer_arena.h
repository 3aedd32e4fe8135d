/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The peer's arena (mem/arena): memory of the peer that this process has mapped, so that bytes move by
 * loads and stores, in one copy and without a system call. Each side shows in the pair where the
 * directory of its arena is. On the thread that holds the domain.
 *
 * Which process may map it is the kernel's decision: its chunks are opened through /proc, which
 * requires the right to read the owner's memory. So no descriptor is ever handed to another user.
 */
#ifndef WEFT_SHM_PEER_ARENA_H
#define WEFT_SHM_PEER_ARENA_H

#include "conn.h"
#include "lines.h"

/* A chunk of the peer's arena as it is mapped: which one it is, and which mapping of it. */
struct pshm_peer_chunk {
	uint32_t idx;
	uint64_t number;
	/* we may store there too */
	bool writable;
};

/*
 * pshm_arena_show - show our arena to the peer of a connection that has its memory, once we have one
 * pshm_arena_show_all - show it to all peers of an endpoint, if that was not done; from sweeps
 */
void pshm_arena_show(struct pshm_conn *conn);
void pshm_arena_show_all(struct pshm_wire *wire);

/*
 * pshm_peer_memory - find memory of the peer by its addresses in the peer
 * @theirs, @cnt: not trusted
 * @store: bytes are to be stored there
 * @here: out: room for @cnt: where it is mapped here, as long as a get or direct access of the connection
 * is under way
 * Returns true if the peer lets us use all of it.
 */
bool pshm_peer_memory(struct pshm_conn *conn, const struct iovec *theirs, size_t cnt,
		      bool store, struct iovec *here);

/*
 * pshm_peer_place - the same for what the peer lends by its place; NULL: there is no such place
 * The peer lends only what pshm_arena_lends() allows it.
 */
const void *pshm_peer_place(const struct pshm_conn *conn, const struct pshm_place *place,
			    uint64_t len);

/*
 * pshm_peer_tidy - unmap chunks that are no more; from sweeps
 * pshm_peer_map - the same, and map the chunks that the peer would like to be mapped
 *
 * pshm_arena_lends - returns true if memory of ours is in a chunk that the peer has mapped
 * @place: out
 * Where the peer has not mapped the chunk, it is told that it should.
 */
void pshm_peer_tidy(struct pshm_conn *conn);
void pshm_peer_map(struct pshm_conn *conn);
bool pshm_arena_lends(struct pshm_conn *conn, const void *addr, size_t len,
		      struct pshm_place *place);

/* pshm_peer_shows_arena - returns true if the peer has an arena, which may be mapped */
bool pshm_peer_shows_arena(const struct pshm_conn *conn);

/*
 * pshm_peer_range - the same for a range of a region of the peer, by its address there
 * @chunk: out: of the peer's arena, as the range was found in it; the next look may find another one
 */
char *pshm_peer_range(struct pshm_conn *conn, uint64_t addr, uint64_t len, bool store,
		      struct pshm_peer_chunk *chunk);
/*
 * pshm_peer_touch - called before @len bytes at @at, part of a range of a chunk, are copied: what was not mapped yet
 * is mapped with few faults
 * Returns true if something was not.
 */
bool pshm_peer_touch(const struct pshm_conn *conn, const struct pshm_peer_chunk *chunk,
		     const char *at, uint64_t len);

/* pshm_peer_lets - returns true if the peer lets us use that chunk of its arena, and it is still mapped */
bool pshm_peer_lets(const struct pshm_conn *conn, const struct pshm_peer_chunk *chunk);

/*
 * pshm_peer_stored - called after bytes were stored into a chunk of the peer's arena
 * Returns false if the peer may have taken the chunk back meanwhile: then the bytes may be lost.
 */
bool pshm_peer_stored(const struct pshm_conn *conn, const struct pshm_peer_chunk *chunk);

/*
 * pshm_peer_copied - called after bytes were copied out of the peer's memory
 * Returns true if they were valid: the peer has not ended the connection since.
 */
bool pshm_peer_copied(const struct pshm_conn *conn);

/* pshm_peer_arena_close - unmap it; without effect on a connection that has used none */
void pshm_peer_arena_close(struct pshm_conn *conn);

#endif
