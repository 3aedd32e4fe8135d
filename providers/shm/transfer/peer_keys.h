/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The key table of a peer, and accesses by it. On the thread that holds the domain. */
#ifndef WEFT_SHM_PEER_KEYS_H
#define WEFT_SHM_PEER_KEYS_H

#include "conn.h"
#include "peer_arena.h"

struct pshm_peer_table;

/* Regions of a peer that were used last, by key. */
#define REACHED_CNT 16u

/* A region of the peer, as its key resolves, and where it is mapped here. */
struct reached_region {
	struct mr_view view;
	/* NULL: it is not, or not for that kind of access */
	char *here[2];
	struct pshm_peer_chunk chunk;
};

/* The peer's key table, as a connection reads it. */
struct pshm_reading {
	/* with a reference; others of this process may use it too */
	struct pshm_peer_table *table;
	struct mr_reader reader;
	uint64_t remote_events;
	/* its address in the peer; 0: nothing may be written */
	uint64_t write_guard;
	struct reached_region reached[REACHED_CNT];
	/* of the access between reach and reached */
	const struct reached_region *reaching;
};

/*
 * pshm_reading_make - begin to read the table that the peer shows (peer_tables.h)
 * Returns 0, -FI_EOPNOTSUPP while it shows nothing, or -FI_E*.
 */
int pshm_reading_make(struct pshm_conn *conn);
/* pshm_shown_guard - the address of the write guard that the peer shows now */
static inline uint64_t pshm_shown_guard(const struct pshm_conn *conn)
{
	return atomic_load_explicit(&conn->pair->shown[pshm_other(conn)].write_guard,
				    memory_order_relaxed);
}

/* pshm_reading_close - let go of it; without effect on a connection that has none */
void pshm_reading_close(struct pshm_conn *conn);

/*
 * pshm_enter - publish in the pair which line of the peer's key table is accessed from now on, with
 * PSHM_INSIDE_MAPPED if that is by loads and stores
 * pshm_key_open - after that: returns true if the key still resolves and the connection has not ended,
 * so that the access may go on
 * pshm_leave - the access is over
 */
void pshm_enter(struct pshm_conn *conn, uint32_t line);
bool pshm_key_open(const struct pshm_conn *conn, const struct mr_view *view);
void pshm_leave(struct pshm_conn *conn);

/* reach and reached of wire_ops */
void *pshm_reach(struct wire_conn *conn, const struct packet_target *target, uint64_t kind);
bool pshm_reached(struct wire_conn *conn, uint64_t kind);

#endif
