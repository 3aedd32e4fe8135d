/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The shm wire's objects: its endpoint (struct pshm_wire), a connection (struct pshm_conn), and
 * what the files of this folder do for one another. All on the thread that holds the domain.
 *
 * Names begin with pshm_: POSIX owns shm_.
 *
 * A connection ends in two steps, since the engine may end any connection from within a call
 * that poll() makes: pshm_conn_end() takes it out of every list but the last, and the end of
 * poll() releases its memory.
 */
#ifndef WEFT_SHM_CONN_H
#define WEFT_SHM_CONN_H

#include "chunks.h"
#include "fifo.h"
#include "lines.h"
#include "mailbox.h"
#include "pool.h"
#include "process.h"
#include "provider.h"
#include "service.h"
#include "socket.h"
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
#define PSHM_JOINT_MIN (2 * PSHM_CHUNK_LEN) /* left of a get from which on both ends copy */
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
	uint32_t knocks;    /* as seen at the door */
	struct pshm_door *door;
	bool polling;
	bool busy;     /* there is something in work, connecting or ended, or we are a copy */
	bool holes;    /* some of up[] are NULL */
	bool forked;   /* we are a copy: everything belongs to the parent */
	bool barriers; /* we can make barriers in other processes, and take part in theirs */
	bool armed;    /* somebody sleeps, or is about to */
	struct list work; /* connections with sendv or get under way */
	struct list connecting;
	struct list ended; /* to be freed at the end of poll() */
	struct pool transfers, reads, helps;
	void *gate; /* by which peers write into our memory, or NULL */
	struct pshm_own_door own_door;
	struct sys_shared *service; /* our name, or NULL */
	uint32_t pid, place;	    /* of its address */
	bool host_known;	    /* another place at which everything agrees is ours */
	uint8_t nonce[PSHM_NONCE];
	struct pshm_listed listed;
	uint32_t conn_cnt;
	uint64_t wait_ns; /* last look after the processes of connecting[] */
	int bell;	  /* pipe that is rung when we sleep, or -1 */
	int rung;	  /* the one of another endpoint that was rung last, or -1 */
	struct sys_fifo_id rung_id;
	uint32_t call_next;		       /* to be given to a connection */
	struct pshm_conn *callers[PSHM_CALLS]; /* by call, linked by next_caller */
	uint64_t lacks_ns
		[PSHM_LACKS]
		[PSHM_SCARCES];	  /* when it was said that there is such a lack; 0: not yet */
	size_t area_max;	  /* bytes of areas that we may make */
	size_t area_len;	  /* bytes of those that there are */
	struct list all;	  /* of the process, for fork */
	struct list conns;	  /* struct pshm_conn.all */
	struct wire_share *share; /* of the domain, or NULL */
	struct list share_link;	  /* of the share's */
	uint64_t told;		  /* wire_attr.told */
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
	PSHM_STRING,	/* the processor's string instruction */
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

/* When we looked at how much the peer does, and what we saw: direct.c. */
struct pshm_heed {
	uint32_t moves;
	uint64_t ns;	    /* 0: never */
	uint64_t lively_ns; /* when it was last seen to attend to its endpoint; 0: never */
};

struct pshm_conn {
	struct wire_conn base;
	struct ring_tx tx;
	struct ring_rx rx;
	struct pshm_wire *wire;
	struct pshm_pair *pair;
	enum pshm_side side;
	struct pshm_attention *attention; /* of our ring, by the peer */
	uint32_t up_idx;		  /* in wire->up, while base.up */
	uint32_t swept;			  /* rx.tail at the last sweep */
	uint32_t still;			  /* sweeps that found it there */
	uint32_t call;			  /* by which the peer calls us */
	struct pshm_conn *next_caller;	  /* with the same call */
	bool ended;
	bool cooling;	 /* the peer has been told to call, from the next sweep on or since */
	bool receiving;	 /* fragments of a packet are arriving */
	bool door_shut;	 /* the peer's door could not be opened to see it poll */
	bool by_socket;	 /* while we wait to ask: by a socket */
	bool mute;	 /* we have told the peer that we can't ring */
	int get_refused; /* -FI_E* once the kernel said no */
	/* Packet whose fragments arrive. */
	struct wire_dest dest;
	uint32_t got, want;
	/* Ours under way. */
	struct list sends;    /* struct pshm_transfer, in order */
	struct list gets;     /* struct pshm_read */
	struct list helps;    /* struct pshm_help */
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
	uint32_t slots;			     /* bit i: slot i of ours is in use */
	uint32_t slot_gens[PSHM_JOINT_CNT];
	bool put_refused;	 /* we may not write to the peer's memory: help.c */
	uint64_t chunks_written; /* into it */
	enum pshm_growing growing;
	bool rx_moved;
	struct pshm_stores stores;
	uint32_t grow_bytes;	      /* of payload that would have liked a larger area */
	size_t grow_done;	      /* of tx_area, made before it is offered */
	uint32_t grow_tick;	      /* wire->tick of the last try, if it failed */
	bool grow_refused;	      /* it did */
	struct pshm_region door;      /* of the peer */
	struct pshm_reading *reading; /* the peer's key table; NULL until it was wanted */
	int direct_refused[2];	   /* -FI_E* once the kernel said no to reading, to writing */
	struct pshm_heed heed;	   /* does the peer poll */
	struct pshm_ticket ticket; /* one of the two, while we ask; none: we wait for a slot */
	struct pshm_ask ask;
	struct hello hello;    /* with which we ask */
	struct weft_addr addr; /* of the peer */
};

extern const struct wire_ops pshm_wire_ops;

/* pshm_stores_far - do the two cores share no cache? Plain stores have been seen to take twice as long then */
static inline bool pshm_stores_far(const struct pshm_conn *conn)
{
	const struct pshm_stores *s = &conn->stores;

	return s->kind != PSHM_PLAIN && s->least[PSHM_PLAIN] > 2 * s->least[s->kind];
}

/* pshm_other - the side that the peer is */
static inline enum pshm_side pshm_other(const struct pshm_conn *conn)
{
	return conn->side == PSHM_ASKED ? PSHM_ANSWERED : PSHM_ASKED;
}

static inline struct pshm_conn *pshm_conn_of(struct wire_conn *conn)
{
	return (struct pshm_conn *)conn;
}

/*
 * From grow.c: a ring starts small, and gets a larger data area when it is wanted.
 *
 * pshm_grow_by_use - it is to carry @len bytes, PSHM_GROW_MIN or more: it grows when that were many
 * pshm_grow - our ring has not the room that it should have: offer an area, unless that is done
 * pshm_grow_step - has the peer answered? Then move; from poll() while conn->growing is PSHM_OFFERED
 * pshm_grow_take - a line of kind PSHM_GROW: map the area. 0 or -FI_EPROTO
 * pshm_grow_move - a line of kind PSHM_MOVE, which is released. 0 or -FI_EPROTO
 * pshm_grow_drop - release the areas of a connection that ends
 */
void pshm_grow_by_use(struct pshm_conn *conn, uint32_t len);
void pshm_grow(struct pshm_conn *conn);
void pshm_grow_step(struct pshm_conn *conn);
int pshm_grow_take(struct pshm_conn *conn, const struct ring_line *line);
int pshm_grow_move(struct pshm_conn *conn);
void pshm_grow_drop(struct pshm_conn *conn);

/*
 * From stores.c
 *
 * pshm_claim_data - a line with @len bytes of payload in the data area, for pshm_claim(). NULL: no room
 * pshm_fill - wire_ops.fill
 * pshm_fill_from - the same, beginning @skip bytes into the iov; of a claimed line that is not published
 * pshm_probe_read - a line with PSHM_PROBE, whose data stand at @data: PSHM_PROBE_MIN bytes or more
 */
struct ring_line *pshm_claim_data(struct pshm_conn *conn, uint32_t len, void **payload);
void pshm_fill(struct wire_conn *conn, void *to, const struct iovec *iov, size_t cnt,
	       size_t len);
void pshm_fill_from(struct pshm_conn *conn, void *to, const struct iovec *iov, size_t cnt,
		    size_t skip, size_t len);
void pshm_probe_read(struct pshm_conn *conn, const void *data);

/*
 * From attention.c: which rings are polled, and how who uses the others is heard.
 *
 * pshm_attend - a connection is up: poll its ring
 * pshm_ignore - it ends: forget its call
 * pshm_warm - poll its ring every time from now on
 * pshm_answer_calls - poll the rings of those that called; from poll()
 * pshm_sweep - let rings cool that nothing comes from, and look at some of the cold ones; from poll().
 *	Returns how many were found to have something
 * pshm_has_something - is there something for poll(): a line, or the end?
 * pshm_call - we have published something, and the peer may not be polling
 * pshm_knock - make the owner of the peer's door look at what it has asked for
 * pshm_peer_door - the peer's door, mapped; NULL when it can't be
 */
void pshm_attend(struct pshm_conn *conn);
void pshm_ignore(struct pshm_conn *conn);
void pshm_warm(struct pshm_conn *conn);
void pshm_answer_calls(struct pshm_wire *wire);
int pshm_sweep(struct pshm_wire *wire);
bool pshm_has_something(const struct pshm_conn *conn);
void pshm_call(struct pshm_conn *conn);
void pshm_knock(struct pshm_conn *conn);
struct pshm_door *pshm_peer_door(struct pshm_conn *conn);

/* pshm_attend_how - what the peer has to do once it has published something */
static inline void pshm_attend_how(struct pshm_conn *conn, enum pshm_how how)
{
	enum pshm_side other = pshm_other(conn);

	atomic_store_explicit(&conn->pair->attention[other].how, how, memory_order_relaxed);
}

/* pshm_hot_how - what the peer whose ring is hot has to do: nothing, if it can be so, and nobody sleeps */
static inline enum pshm_how pshm_hot_how(const struct pshm_conn *conn)
{
	enum pshm_side other = pshm_other(conn);

	if (conn->wire->armed)
		return PSHM_CALL;
	return conn->wire->barriers && atomic_load_explicit(&conn->pair->barriers[other].value,
							    memory_order_relaxed)
		       ? PSHM_POLLED
		       : PSHM_UNSURE;
}

/* pshm_line_publish - ring_publish(), and see to it that the peer looks */
static inline void pshm_line_publish(struct pshm_conn *conn, struct ring_line *line,
				     enum pshm_kind kind)
{
	ring_publish(&conn->tx, line, kind);
	/* The barrier between the two is the consumer's: arm.c. */
	if (unlikely(atomic_load_explicit(&conn->attention->how, memory_order_relaxed) !=
		     PSHM_POLLED))
		pshm_call(conn);
}

/* From arm.c; bell, arm and disarm of wire_ops. */
int pshm_bell(struct wire *wire, int nest);
uint64_t pshm_arm(struct wire *wire);
void pshm_disarm(struct wire *wire);

/* pshm_ring - the owner of that conn's door may sleep: wake it */
void pshm_ring(struct pshm_conn *conn);
/* pshm_mute - tell the peer whether we can't wake it: then it does not sleep for long */
void pshm_mute(struct pshm_conn *conn, bool mute);
/* pshm_bells_close - release the descriptors of this file */
void pshm_bells_close(struct pshm_wire *wire);

/* pshm_rouse - poll() has something to do: who sleeps, in another thread, must not go on with it */
static inline void pshm_rouse(struct pshm_wire *wire)
{
	if (wire->armed && !wire->polling)
		engine_wire_rouse(&wire->base);
}

/* pshm_mark_work - poll() has something to do for this connection */
static inline void pshm_mark_work(struct pshm_conn *conn)
{
	if (!list_empty(&conn->work))
		return;
	list_push(&conn->wire->work, &conn->work);
	conn->wire->busy = true;
	pshm_rouse(conn->wire);
}

/* wire_ops.claim; inlined into the send slots */
static inline struct packet *pshm_claim(struct wire_conn *base, size_t len, void **payload)
{
	struct pshm_conn *conn = pshm_conn_of(base);
	struct ring_line *line;

	if (likely(len <= RING_INLINE)) {
		line = ring_claim(&conn->tx);
		if (unlikely(!line))
			return NULL;
		*payload = line->payload;
	} else {
		line = pshm_claim_data(conn, (uint32_t)len, payload);
		if (unlikely(!line))
			return NULL;
	}
	return (struct packet *)line->header;
}

/* wire_ops.publish; inlined into the send slots. What is published is on its way: @more changes nothing */
static inline void pshm_publish(struct wire_conn *base, struct packet *packet, bool more)
{
	struct ring_line *line = (struct ring_line *)((char *)packet -
						      offsetof(struct ring_line, header));

	pshm_line_publish(pshm_conn_of(base), line, PSHM_PACKET);
}

/* From endpoint.c; open, close and local of wire_ops. */
int pshm_open(struct engine_ep *ep, const struct wire_attr *attr, struct weft_addr *addr,
	      struct wire **wire, char *why, size_t why_len);
void pshm_close(struct wire *wire);
void pshm_local(struct wire *wire, char *buf, size_t len);

/* pshm_lists_lock, pshm_lists_unlock - around changes to what a fork has to find whole: wire->conns */
void pshm_lists_lock(void);
void pshm_lists_unlock(void);
/* pshm_fork_watch - from now on the child of a fork leaves alone what is in those lists */
void pshm_fork_watch(void);
/* pshm_fork_also - and then calls @forked, with the lists locked */
void pshm_fork_also(void (*forked)(void));
/* pshm_lists_join, pshm_lists_leave - an endpoint of the process, and not any more */
void pshm_lists_join(struct pshm_wire *wire);
void pshm_lists_leave(struct pshm_wire *wire);

/* From conn.c; disconnect and check of wire_ops. */
void pshm_disconnect(struct wire_conn *conn);
int pshm_check(struct wire_conn *conn);

/*
 * pshm_conn_new - a connection without a process and memory, or NULL
 * pshm_conn_free - release one that is not up
 * pshm_conn_attach - takes @region: both ends of this side over it
 * pshm_up_reserve - room for all connections and one more, so that coming up can't fail. 0 or -FI_ENOMEM
 * pshm_conn_up - it is: tell the engine; from poll()
 * pshm_conn_end - take it out of everything but wire->ended, and tell the other side; @wait as
 *	pshm_transfers_drop()
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

/* From connect.c; connect of wire_ops. */
int pshm_connect(struct wire *wire, struct engine_peer *peer, const struct weft_addr *addr,
		 const struct hello *hello, struct wire_conn **conn);

/*
 * pshm_connecting - have connections of ours been answered; from poll()
 * @all: look also for those that never will be
 * Returns how many came up or went down.
 */
int pshm_connecting(struct pshm_wire *wire, bool all);

/* pshm_connecting_yield - the endpoint with that nonce asks us: if it can't know yet that we ask it, we don't */
void pshm_connecting_yield(struct pshm_wire *wire, const uint8_t nonce[PSHM_NONCE]);

/* pshm_small_pair - what a pair has that was asked for through /proc */
extern const struct pshm_sizes pshm_small_pair;

/* From accept.c: pshm_accept - look at the requests; from poll(). Returns how many were looked at */
int pshm_accept(struct pshm_wire *wire);

/* From transfer.c; sendv of wire_ops. */
int pshm_sendv(struct wire_conn *conn, const struct packet *hdr, const struct iovec *iov,
	       size_t iov_cnt, struct wire_op *op);

/* pshm_sends_begun - are the headers of all that sendv was given in the ring? */
bool pshm_sends_begun(const struct pshm_conn *conn);

/* pshm_transfers_init, pshm_transfers_fini - what that, get.c and help.c keep of an endpoint */
void pshm_transfers_init(struct pshm_wire *wire);
void pshm_transfers_fini(struct pshm_wire *wire);

/* pshm_transfers_move - go on with all connections in wire->work; from poll(). Returns what was finished */
int pshm_transfers_move(struct pshm_wire *wire);

/*
 * pshm_transfers_drop - forget what is under way on a connection
 * @wait: until the peer writes to our memory no more, for up to a second
 */
void pshm_transfers_drop(struct pshm_conn *conn, bool wait);

/* pshm_op_done - an operation is over; poll() tells the engine */
void pshm_op_done(struct pshm_conn *conn, struct wire_op *op, int status);

/*
 * From get.c; get of wire_ops.
 *
 * pshm_gets_move - one step of those of a connection; from poll(). Returns how many were made
 * pshm_gets_drop - forget them; @wait as above
 */
int pshm_get(struct wire_conn *conn, const struct wire_source *from, const struct iovec *iov,
	     size_t iov_cnt, struct wire_op *op);
void pshm_gets_init(struct pshm_wire *wire);
int pshm_gets_move(struct pshm_conn *conn);
void pshm_gets_drop(struct pshm_conn *conn, bool wait);

/*
 * From help.c
 *
 * pshm_help_take - a line of kind PSHM_JOIN: the peer reads our memory. 0 or -FI_EPROTO
 * pshm_helps_move - write a chunk, if there is any left; from poll(). Returns how many
 * pshm_helps_drop - leave the rest to the peer
 */
void pshm_helps_init(struct pshm_wire *wire);
int pshm_help_take(struct pshm_conn *conn, const struct ring_line *line);
int pshm_helps_move(struct pshm_conn *conn);
void pshm_helps_drop(struct pshm_conn *conn);

/*
 * From direct.c; taken and direct of wire_ops, and
 *
 * pshm_direct_move - go on with what is under way on a connection; from poll(). Returns how many steps were made
 * pshm_direct_drop - forget it
 */
bool pshm_taken(struct wire_conn *conn);
int pshm_direct(struct wire_conn *conn, const struct wire_access *access, struct wire_op *op);
int pshm_direct_move(struct pshm_conn *conn);
void pshm_direct_drop(struct pshm_conn *conn);

/*
 * From share.c; share_open, share_close and share_used of wire_ops, and
 *
 * pshm_share_join - an endpoint of a domain that may show its regions
 * pshm_share_show - show them to the peer of a connection that has its memory, if there are any
 * pshm_share_keep - a connection that is to be freed, and has ended: is its peer inside our memory?
 *	Then the share takes the conn with its region and process, and nothing else of it
 * pshm_share_table - the memory that is shown, borrowed; its addr is NULL while there is none
 */
int pshm_share_open(struct wire_share **share, struct mr_memory *memory);
void pshm_share_close(struct wire_share *share);
bool pshm_share_used(struct wire_share *share, uint32_t index);
void pshm_share_join(struct pshm_wire *wire, const struct wire_attr *attr);
void pshm_share_show(struct pshm_conn *conn);
bool pshm_share_keep(struct pshm_conn *conn);
const struct pshm_region *pshm_share_table(const struct wire_share *share);

#endif
