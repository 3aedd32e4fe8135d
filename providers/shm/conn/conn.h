/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The shm wire's objects, its endpoint (struct pshm_wire) and a connection (struct pshm_conn), and
 * how a connection begins and ends. All on the thread that holds the domain.
 *
 * Names begin with pshm_: POSIX owns shm_.
 *
 * A connection ends in two steps, since the engine may end any connection from within a call
 * that poll() makes: pshm_conn_end() takes it out of every list but the last, and the end of
 * poll() releases its memory.
 */
#ifndef WEFT_SHM_CONN_H
#define WEFT_SHM_CONN_H

#include "coop_copy.h"
#include "copying.h"
#include "lending.h"
#include "fifo.h"
#include "mailbox.h"
#include "pool.h"
#include "process.h"
#include "region.h"
#include "socket_state.h"
#include "wire.h"

#define PSHM_LINE_CNT 128u
#define PSHM_DATA_LEN 16384u /* data area of a new ring, bytes: a pair is smaller than 64 KiB */
#define PSHM_AREA_LEN \
	(1u << 20) /* ... and once it has grown: about the size of a second-level cache */
#define PSHM_AREAS_MAX	   (32u << 20) /* default bound of all grown rings of an endpoint, bytes */
#define PSHM_CLAIM_MAX	   8192u
#define PSHM_LENDS_MIN	   2048u /* payload from which on memory is lent to a peer */
#define PSHM_EAGER_MAX	   65536u
#define PSHM_CHUNK_LEN	   65536u		/* read or written by one system call */
#define PSHM_COOP_COPY_MIN (2 * PSHM_CHUNK_LEN) /* left of a get from which on both ends copy */
#define PSHM_DIRECT_MIN \
	(WIRE_REQUEST_MAX + 1u) /* what is longer goes with no header: it takes answers */

_Static_assert(PSHM_CLAIM_MAX >= WIRE_REQUEST_MAX, "claim() has room for any request");
_Static_assert(PSHM_CLAIM_MAX <= PSHM_DATA_LEN / 2, "ring_data_max()");

/* Whether the ring on which we send has grown: grow.c. */
enum pshm_growing {
	PSHM_SMALL,
	/* a larger area is offered; the peer has not answered */
	PSHM_OFFERED,
	PSHM_LARGE,
};

/* What fails when descriptors or memory are exhausted. */
enum pshm_shortage {
	PSHM_SHORTAGE_CONNECT,
	PSHM_SHORTAGE_ACCEPT,
	/* the peer has none */
	PSHM_SHORTAGE_PEER,
	PSHM_SHORTAGE_CNT,
};

#define PSHM_SHORTAGE_ERRORS 3u /* errors of pshm_is_shortage() */

struct pshm_conn;

/*
 * Calls into the rooms above, which endpoint.c installs.
 *
 * attached - the connection has its memory: publish in it what the peer may access
 * ended - give up the operations under way on it; @wait as in pshm_conn_end()
 * access_reached - wire_conn.access once regions of the peer are mapped
 * freed - it is in no list any more. Returns true if the share keeps the conn with its region and
 * its process
 */
struct pshm_conn_ops {
	void (*attached)(struct pshm_conn *conn);
	void (*ended)(struct pshm_conn *conn, bool wait);
	bool (*freed)(struct pshm_conn *conn);
	bool (*access_reached)(struct engine_ctx *ctx, struct engine_peer *peer,
			       const struct engine_access *access);
};

/* What an endpoint has moved by memory of arenas since it has told tools of it (moved.h). */
struct pshm_moved {
	/* messages that were lent to peers, and those that were read from peers' memory */
	uint64_t lent, lent_bytes;
	uint64_t read, read_bytes;
};

struct pshm_wire {
	struct wire base;
	/* connections that are up, the hot ones first; NULL: one that has ended */
	struct pshm_conn **up;
	/* entries of up[] whose rings are polled in each call of poll() */
	uint32_t hot_cnt;
	/* entries of up[] in use, and allocated */
	uint32_t up_cnt, up_cap;
	/* sweeps so far */
	uint32_t sweeps;
	/* index in up[] of the cold ring that the next sweep polls */
	uint32_t cold_next;
	/* the same of the cold connection whose mappings are looked at next */
	uint32_t cold_tidied;
	/* polls so far */
	uint32_t tick;
	/* pshm_inbox_requests() up to which all requests and answers were handled */
	uint64_t requests_seen;
	struct pshm_inbox *inbox;
	/* poll() is running */
	bool in_poll;
	/* work, connecting, accepted or ended is not empty, or forked is set */
	bool busy;
	/* some entries of up[] are NULL */
	bool holes;
	/* this is the child of a fork: everything belongs to the parent */
	bool forked;
	/* this process can execute barriers in other processes, and takes part in theirs */
	bool barriers;
	/* a thread sleeps for this endpoint, or is about to */
	bool armed;
	/* connections with operations under way: struct pshm_conn.work */
	struct list work;
	/* connections that wait for an answer: struct pshm_conn.slow */
	struct list connecting;
	/* accepted requests that poll() has not reported yet: struct pshm_conn.slow */
	struct list accepted;
	/* connections to be freed at the end of poll(): struct pshm_conn.slow */
	struct list ended;
	/* struct pshm_transfer, pshm_read and pshm_coop_write */
	struct pool transfers, reads, coop_writes;
	/* passed by peers that write to our memory, or NULL: sys/write_guard.h */
	void *write_guard;
	struct pshm_own_inbox own_inbox;
	/* the service that we are found by, or NULL */
	struct sys_shared *service;
	/* of our address */
	uint32_t pid, ns_hash;
	/* @ns_hash covers the host: an equal hash is the same host and pid namespace */
	bool host_known;
	/* of our address */
	uint8_t nonce[PSHM_NONCE];
	struct pshm_socket_state sockets;
	uint32_t conn_cnt;
	/* when the processes of connecting were checked last */
	uint64_t wait_ns;
	/* our pipe, by which peers wake us, or -1 */
	int bell;
	/* pipe of the peer that was woken last, or -1; which pipe that is */
	int wake_fd;
	struct sys_fifo_id wake_id;
	/* given to the next connection */
	uint32_t doorbell_next;
	/* connections by doorbell, linked by next_on_doorbell */
	struct pshm_conn *doorbell_conns[PSHM_DOORBELLS];
	/* time at which a shortage was logged last, by shortage and by error; 0: never */
	uint64_t shortage_logged_ns[PSHM_SHORTAGE_CNT][PSHM_SHORTAGE_ERRORS];
	/* limit on the bytes of all areas that we have made */
	size_t area_max;
	/* bytes of the areas that exist */
	size_t area_len;
	/* in the list of the process's endpoints: lists.c */
	struct list all;
	/* all connections: struct pshm_conn.all */
	struct list conns;
	struct pshm_moved moved;
	/* what the domain shows to peers, or NULL */
	struct wire_share *share;
	/* wire_share.wires */
	struct list share_link;
	/* wire_attr.remote_events */
	uint64_t remote_events;
	/* our arena is shown in all pairs */
	bool arena_shown;
	/* tick of the last direct access, */
	uint32_t direct_tick;
	/* and bytes that were moved in that tick */
	size_t direct_len;
	const struct pshm_conn_ops *conn_ops;
};

/* Payload from WIRE_FILL_MIN bytes on is filled with whichever stores are faster. */
#define PSHM_PROBE_MIN 1024u /* payload of which that can be measured */
#define PSHM_GROW_MIN  2048u /* ... and whose lines should not be those of the last few */

/* Which stores carry our payload: stores.c */
enum pshm_store {
	PSHM_PLAIN,
	/* bypass the caches */
	PSHM_STREAMING,
	/* that fetch no line which they write whole */
	PSHM_WHOLE,
	PSHM_STORES,
};

struct pshm_stores {
	/* the kind in use */
	enum pshm_store kind;
	/* a probe is under way: the consumer has not answered */
	bool probing;
	/* the kind that it measures */
	enum pshm_store probe_kind;
	/* payloads before the next probe */
	uint32_t until;
	uint32_t probe_cnt;
	/* probes since the choice, or the time that it takes, has changed */
	uint32_t steady;
	/* ns to fill a KiB, by the probe under way */
	uint32_t fill_ns;
	/* ns to fill and read a KiB: the last two probes of each kind */
	uint32_t cost[PSHM_STORES][2];
	/* the smaller of those two */
	uint32_t least[PSHM_STORES];
};

/* What was seen of the peer's polls, and when: key_access.c. */
struct pshm_peer_polling {
	/* polls of the peer and packets from it, when they were last read */
	uint32_t moves;
	/* when that was; 0: never */
	uint64_t ns;
	/* when it was last seen to poll; 0: never */
	uint64_t seen_ns;
};

struct pshm_conn {
	struct wire_conn base;
	struct ring_tx tx;
	struct ring_rx rx;
	struct pshm_wire *wire;
	struct pshm_pair *pair;
	enum pshm_side side;
	/* how the peer polls the ring on which we send; the peer writes it */
	struct pshm_polling *polling;
	/* index in wire->up, while base.up */
	uint32_t up_idx;
	/* rx.tail at the last sweep that found it moved */
	uint32_t swept_tail;
	/* sweeps since then */
	uint32_t idle_sweeps;
	/* the doorbell of our inbox that the peer rings */
	uint32_t doorbell;
	/* next connection with the same doorbell */
	struct pshm_conn *next_on_doorbell;
	bool ended;
	/* a request that the engine owns: it has not answered */
	bool requested;
	/* the peer was asked to ring its doorbell; its ring is polled until the next sweep */
	bool cooling;
	/* fragments of a packet are arriving */
	bool receiving;
	/* the peer's inbox could not be mapped */
	bool inbox_unreachable;
	/* the request to the peer is sent over a socket, once one has room */
	bool by_socket;
	/* the peer was informed that this side can't wake it */
	bool no_wake;
	/* -FI_E* once the kernel has refused to read the peer's memory, else 0 */
	int get_refused;
	/* destination of a payload that arrives in fragments; bytes of it received, and in all */
	struct wire_dest dest;
	uint32_t got, want;
	/* sendv under way: struct pshm_transfer, in order */
	struct list sends;
	/* sendv whose memory the peer has not read yet: struct pshm_transfer, in order */
	struct list lent;
	/* get under way: struct pshm_read */
	struct list gets;
	/* copies that the peer invited us to: struct pshm_coop_write */
	struct list coop_writes;
	/* direct accesses under way: struct pshm_direct, in order */
	struct list directs;
	/* operations that have ended, and whose done() was not called yet */
	struct wire_op *done;
	struct wire_op **done_end;
	/* in wire->work, or in no list */
	struct list work;
	/* in wire->connecting, wire->accepted, wire->ended or wire_share.guests, or in no list */
	struct list slow;
	/* in wire->conns */
	struct list all;
	/* the peer's, held */
	struct pshm_process *process;
	/* the pair's memory, and its sizes */
	struct pshm_region region;
	struct pshm_sizes sizes;
	/* data areas of rings that have grown, or are about to */
	struct pshm_region tx_area, rx_area;
	/* bit i: this side's slot i in pair->coop_copies is in use */
	uint32_t coop_slots;
	/* last generation of each of our slots */
	uint32_t coop_gens[PSHM_COOP_COPIES];
	/* the kernel has refused to write chunks to the peer's memory */
	bool put_refused;
	/* chunks that were written there */
	uint64_t chunks_written;
	/* of the ring on which we send */
	enum pshm_growing growing;
	/* the peer's ring uses rx_area */
	bool rx_moved;
	struct pshm_stores stores;
	/* copies out of the peer's memory */
	struct pshm_copying copying;
	/* which of our payload is lent */
	struct pshm_lending lending;
	/* bytes of payload that fit, and would do better in a larger area */
	uint32_t grow_bytes;
	/* bytes of tx_area that are populated before it is offered */
	size_t grow_done;
	/* the last try to grow failed, at that tick of the wire */
	uint32_t grow_tick;
	bool grow_refused;
	/* the peer's */
	struct pshm_region inbox;
	/* the peer's arena; NULL until it is needed */
	struct arena_reader *arena;
	/* it can't be mapped */
	bool arena_refused;
	/* our pshm_inside.entered, and the peer's when it was cut off in the middle of an access */
	uint64_t entered, cut_entered;
	/* the peer's at the last pshm_stored() */
	uint64_t seen_entered;
	bool cut;
	/* the peer's key table; NULL until it is needed */
	struct pshm_reading *reading;
	/* -FI_E* once the kernel has refused [0] direct reads, [1] direct writes, else 0 */
	int direct_refused[2];
	struct pshm_peer_polling peer_polling;
	/*
	 * while connecting: the request in the peer's mailbox, or over a socket; none: a free slot
	 * is waited for
	 */
	struct pshm_ticket ticket;
	struct pshm_ask ask;
	/* hello of PSHM_REQUESTER, until the connection is up */
	struct hello hello;
	/* the peer's */
	struct weft_addr addr;
};

/* pshm_other - the side that the peer is */
static inline enum pshm_side pshm_other(const struct pshm_conn *conn)
{
	return conn->side == PSHM_REQUESTER ? PSHM_ACCEPTOR : PSHM_REQUESTER;
}

static inline struct pshm_conn *pshm_conn_of(struct wire_conn *conn)
{
	return (struct pshm_conn *)conn;
}

/* pshm_wake - poll() has something to do: wake a thread that sleeps for this endpoint */
static inline void pshm_wake(struct pshm_wire *wire)
{
	if (wire->armed && !wire->in_poll)
		engine_wire_wake(&wire->base);
}

/*
 * pshm_conns_change - the conns of a wire, or the memory of their pairs, are about to change: no
 * other thread looks at them (pshm_share_marked()) until this one gives up the domain
 */
static inline void pshm_conns_change(struct pshm_wire *wire)
{
	if (wire->share)
		engine_conns_change(&wire->base);
}

/* pshm_mark_work - poll() has something to do for this connection */
static inline void pshm_mark_work(struct pshm_conn *conn)
{
	if (!list_empty(&conn->work))
		return;
	list_add_tail(&conn->wire->work, &conn->work);
	conn->wire->busy = true;
	pshm_wake(conn->wire);
}

/* disconnect and check of wire_ops */
void pshm_disconnect(struct wire_conn *conn);
int pshm_check(struct wire_conn *conn);

/*
 * pshm_conn_new - returns a connection without a process and memory, or NULL
 * pshm_conn_free - free one that is not up
 * pshm_conn_attach - takes @region: set up both rings of this side in it
 * pshm_up_reserve - make room for all connections and one more, so that coming up can't fail.
 * Returns 0 or -FI_ENOMEM
 * pshm_conn_up - a connection is accepted: begin to poll it, and report it to the engine; from
 * poll()
 * pshm_answer_put - write the answer to a request into its pair; @err: -FI_E* of a refusal, else 0
 * pshm_conn_end - take it out of every list but wire->ended, and notify the other side; @wait:
 * until the peer no longer writes to this side's memory, for up to a second
 * pshm_conn_fail - end it and report that to the engine; from poll(). @err: 0 for the peer's
 * orderly close, or -FI_E*
 * pshm_conn_copy - in the child of a fork: returns a connection that poll() has to end, or NULL
 * pshm_conn_reap - free those that ended
 * pshm_log_shortage - descriptors or memory are exhausted: log it once a minute for each shortage
 * and error, and again once a connection was made. The engine tries again for as long as it takes,
 * so this line is all that says why sends wait
 */
struct pshm_conn *pshm_conn_new(struct pshm_wire *wire, struct engine_peer *peer,
				enum pshm_side side);
void pshm_conn_free(struct pshm_conn *conn);
void pshm_conn_attach(struct pshm_conn *conn, const struct pshm_region *region,
		      const struct pshm_sizes *sizes);
int pshm_up_reserve(struct pshm_wire *wire);
void pshm_conn_up(struct pshm_conn *conn, const struct hello *hello);
void pshm_answer_put(struct pshm_pair *pair, enum pshm_answer answer, int err);
void pshm_conn_end(struct pshm_conn *conn, enum pshm_end how, bool wait);
void pshm_conn_fail(struct pshm_conn *conn, int err);
struct pshm_conn *pshm_conn_copy(const struct pshm_wire *wire);
void pshm_conn_reap(struct pshm_wire *wire);
void pshm_log_shortage(struct pshm_wire *wire, enum pshm_shortage shortage, int err);

#endif
