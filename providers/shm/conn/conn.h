/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The shm wire's objects, its endpoint (struct pshm_wire) and a connection (struct pshm_conn), and how
 * a connection begins and ends. All on the thread that holds the domain.
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
#include "fifo.h"
#include "mailbox.h"
#include "pool.h"
#include "process.h"
#include "region.h"
#include "socket_state.h"
#include "wire.h"

#define PSHM_LINE_CNT 128u
#define PSHM_DATA_LEN 16384u /* of a ring at first: a pair takes under 64 KiB */
#define PSHM_AREA_LEN \
	(1u << 20) /* ... and once it has grown: about the size of a second-level cache */
#define PSHM_AREAS_MAX \
	(32u << 20) /* of all rings of an endpoint that have grown, unless the user says */
#define PSHM_CLAIM_MAX 8192u
#define PSHM_EAGER_MAX 65536u
#define PSHM_CHUNK_LEN 65536u		    /* read or written by one system call */
#define PSHM_COOP_COPY_MIN (2 * PSHM_CHUNK_LEN) /* left of a get from which on both ends copy */
#define PSHM_DIRECT_MIN \
	(WIRE_REQUEST_MAX + 1u) /* what is longer goes with no header: it takes answers */

_Static_assert(PSHM_CLAIM_MAX >= WIRE_REQUEST_MAX, "claim() has room for any request");
_Static_assert(PSHM_CLAIM_MAX <= PSHM_DATA_LEN / 2, "ring_data_max()");

/* How far our ring has come: grow.c */
enum pshm_growing {
	PSHM_SMALL,
	PSHM_OFFERED, /* the peer has not answered yet */
	PSHM_LARGE,
};

/* What can't be done for want of descriptors or memory. */
enum pshm_lack {
	PSHM_LACKS_CONNECT,
	PSHM_LACKS_ACCEPT,
	PSHM_LACKS_PEER, /* it is the peer that lacks them */
	PSHM_LACKS,
};

#define PSHM_SCARCES 3u /* errors of pshm_scarce() */

struct pshm_conn;

/*
 * What a connection has of the rooms above: endpoint.c's.
 *
 * attached - it has its memory: show in it what its peer may access
 * ended - forget what is under way on it; @wait as pshm_conn_end()
 * freed - it is in no list any more. Returns whether somebody keeps its region, its process and itself
 */
struct pshm_conn_ops {
	void (*attached)(struct pshm_conn *conn);
	void (*ended)(struct pshm_conn *conn, bool wait);
	bool (*freed)(struct pshm_conn *conn);
};

struct pshm_wire {
	struct wire base;
	struct pshm_conn **up; /* connections, the hot ones first; NULL: ended meanwhile */
	uint32_t hot_cnt;      /* of up[]: polled every time */
	uint32_t up_cnt, up_cap;
	uint32_t sweeps;
	uint32_t cold_next; /* of up[]: to be looked at in the next sweep */
	uint32_t tick;	    /* polls so far */
	uint32_t
		requests_seen; /* count of the inbox's request doorbell up to which all were looked at */
	struct pshm_inbox *inbox;
	bool in_poll;
	bool busy;     /* there is something in work, connecting or ended, or we are a copy */
	bool holes;    /* some of up[] are NULL */
	bool forked;   /* we are a copy: everything belongs to the parent */
	bool barriers; /* we can make barriers in other processes, and take part in theirs */
	bool armed;    /* somebody sleeps, or is about to */
	struct list work; /* connections with sendv or get under way */
	struct list connecting;
	struct list ended; /* to be freed at the end of poll() */
	struct pool transfers, reads, coop_writes;
	void *write_guard; /* by which peers write into our memory, or NULL */
	struct pshm_own_inbox own_inbox;
	struct sys_shared *service; /* our name, or NULL */
	uint32_t pid, place;	    /* of its address */
	bool host_known;	    /* another place at which everything agrees is ours */
	uint8_t nonce[PSHM_NONCE];
	struct pshm_socket_state sockets;
	uint32_t conn_cnt;
	uint64_t wait_ns; /* last look after the processes of connecting[] */
	int bell;	  /* our pipe, by which peers wake us, or -1 */
	int wake_fd;	  /* pipe of the endpoint that was woken last, or -1 */
	struct sys_fifo_id wake_id;
	uint32_t doorbell_next; /* that the next connection is given */
	struct pshm_conn
		*doorbell_conns[PSHM_DOORBELLS]; /* by doorbell, linked by next_on_doorbell */
	uint64_t lacks_ns
		[PSHM_LACKS]
		[PSHM_SCARCES];	  /* when it was said that there is such a lack; 0: not yet */
	size_t area_max;	  /* bytes of areas that we may make */
	size_t area_len;	  /* bytes of those that there are */
	struct list all;	  /* of the process, for fork */
	struct list conns;	  /* struct pshm_conn.all */
	struct wire_share *share; /* of the domain, or NULL */
	struct list share_link;	  /* of the share's */
	uint64_t remote_events;	  /* wire_attr.told */
	uint32_t direct_tick;	  /* tick of the last direct access, */
	size_t direct_len;	  /* and bytes that were moved in it */
	const struct pshm_conn_ops *conn_ops;
};

/* Payload from WIRE_FILL_MIN bytes on is filled with whichever stores are faster. */
#define PSHM_PROBE_MIN 1024u /* payload of which that can be measured */
#define PSHM_GROW_MIN  2048u /* ... and whose lines should not be those of the last few */

/* Which stores carry our payload: stores.c */
enum pshm_store {
	PSHM_PLAIN,
	PSHM_STREAMING, /* bypass the caches */
	PSHM_WHOLE,	/* that fetch no line which they write whole */
	PSHM_STORES,
};

struct pshm_stores {
	enum pshm_store kind;
	bool probing;		    /* the consumer has not answered yet */
	enum pshm_store probe_kind; /* what is measured */
	uint32_t until;		    /* payloads to the next probe */
	uint32_t probe_cnt;
	uint32_t fill_ns;	       /* per KiB, of the probe under way */
	uint32_t cost[PSHM_STORES][2]; /* ns to fill and read a KiB, the last two */
	uint32_t least[PSHM_STORES];   /* of those */
};

/* What was seen of the peer's polls, and when: key_access.c. */
struct pshm_peer_polling {
	uint32_t moves;
	uint64_t ns;	    /* 0: never */
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
	struct pshm_polling *polling;	  /* of our ring, by the peer */
	uint32_t up_idx;		  /* in wire->up, while base.up */
	uint32_t swept_tail;		  /* rx.tail at the last sweep */
	uint32_t idle_sweeps;		  /* sweeps that found it there */
	uint32_t doorbell;		  /* of ours, that the peer rings */
	struct pshm_conn *next_on_doorbell; /* with the same doorbell */
	bool ended;
	bool cooling; /* the peer has been told to ring its doorbell; polled until the next sweep */
	bool receiving;	 /* fragments of a packet are arriving */
	bool inbox_unreachable; /* the peer's inbox could not be opened to see it poll */
	bool by_socket;	 /* while we wait to ask: by a socket */
	bool no_wake;	 /* we have told the peer that we can't wake it */
	int get_refused; /* -FI_E* once the kernel said no */
	/* Packet whose fragments arrive. */
	struct wire_dest dest;
	uint32_t got, want;
	/* Ours under way. */
	struct list sends;    /* struct pshm_transfer, in order */
	struct list gets;     /* struct pshm_read */
	struct list coop_writes; /* struct pshm_coop_write */
	struct list directs;  /* struct pshm_direct, in order */
	struct wire_op *done; /* finished, not told yet */
	struct wire_op **done_end;
	struct list work; /* wire->work, or a list of its own */
	struct list slow; /* wire->connecting, wire->ended, or a list of its own */
	struct list all;  /* wire->conns */
	struct pshm_process *process;
	struct pshm_region region;
	struct pshm_sizes sizes;	     /* of region */
	struct pshm_region tx_area, rx_area; /* of rings that have grown, or are about to */
	uint32_t coop_slots;		     /* bit i: slot i of ours is in use */
	uint32_t coop_gens[PSHM_COOP_COPIES];
	bool put_refused;	 /* we may not write to the peer's memory: coop_write.c */
	uint64_t chunks_written; /* into it */
	enum pshm_growing growing;
	bool rx_moved;
	struct pshm_stores stores;
	uint32_t grow_bytes;	      /* of payload that would have liked a larger area */
	size_t grow_done;	      /* of tx_area, made before it is offered */
	uint32_t grow_tick;	      /* wire->tick of the last try, if it failed */
	bool grow_refused;	      /* it did */
	struct pshm_region inbox;     /* of the peer */
	struct pshm_reading *reading; /* the peer's key table; NULL until it was wanted */
	int direct_refused[2];	   /* -FI_E* once the kernel said no to reading, to writing */
	struct pshm_peer_polling peer_polling; /* does the peer poll */
	struct pshm_ticket ticket; /* one of the two, while we ask; none: we wait for a slot */
	struct pshm_ask ask;
	struct hello hello;    /* with which we ask */
	struct weft_addr addr; /* of the peer */
};

/* pshm_other - the side that the peer is */
static inline enum pshm_side pshm_other(const struct pshm_conn *conn)
{
	return conn->side == PSHM_ASKED ? PSHM_ANSWERED : PSHM_ASKED;
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

/* pshm_mark_work - poll() has something to do for this connection */
static inline void pshm_mark_work(struct pshm_conn *conn)
{
	if (!list_empty(&conn->work))
		return;
	list_push(&conn->wire->work, &conn->work);
	conn->wire->busy = true;
	pshm_wake(conn->wire);
}

/* disconnect and check of wire_ops */
void pshm_disconnect(struct wire_conn *conn);
int pshm_check(struct wire_conn *conn);

/*
 * pshm_conn_new - a connection without a process and memory, or NULL
 * pshm_conn_free - release one that is not up
 * pshm_conn_attach - takes @region: both ends of this side over it
 * pshm_up_reserve - room for all connections and one more, so that coming up can't fail. 0 or -FI_ENOMEM
 * pshm_conn_up - it is: tell the engine; from poll()
 * pshm_conn_end - take it out of everything but wire->ended, and tell the other side; @wait: until the
 *	peer writes to our memory no more, for up to a second
 * pshm_conn_fail - end it and tell the engine; from poll(). @err: 0 for the peer's orderly close, or -FI_E*
 * pshm_conn_reap - free those that ended
 * pshm_starved - descriptors or memory are wanting: say so once a minute for each lack and error, and anew
 *	once a connection is made. The engine tries again for as long as it takes: nothing else would
 *	tell why sends wait
 */
struct pshm_conn *pshm_conn_new(struct pshm_wire *wire, struct engine_peer *peer,
				enum pshm_side side);
void pshm_conn_free(struct pshm_conn *conn);
void pshm_conn_attach(struct pshm_conn *conn, const struct pshm_region *region,
		      const struct pshm_sizes *sizes);
int pshm_up_reserve(struct pshm_wire *wire);
void pshm_conn_up(struct pshm_conn *conn, const struct hello *hello);
void pshm_conn_end(struct pshm_conn *conn, enum pshm_end how, bool wait);
void pshm_conn_fail(struct pshm_conn *conn, int err);
void pshm_conn_reap(struct pshm_wire *wire);
void pshm_starved(struct pshm_wire *wire, enum pshm_lack lack, int err);

#endif
