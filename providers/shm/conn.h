/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The shm wire's objects: its endpoint (struct shm_wire), a connection (struct shm_conn), and
 * what the files of this folder do for one another. All on the thread that holds the domain.
 *
 * A connection ends in two steps, since the engine may end any connection from within a call
 * that poll() makes: shm_conn_end() takes it out of every list but the last, and the end of
 * poll() releases its memory.
 */
#ifndef WEFT_SHM_CONN_H
#define WEFT_SHM_CONN_H

#include "mailbox.h"
#include "pool.h"
#include "process.h"
#include "wire.h"

#define SHM_LINE_CNT 256u
#define SHM_DATA_LEN 65536u
#define SHM_CLAIM_MAX 16384u
#define SHM_FRAGMENT 8192u /* of what sendv carries */
#define SHM_GET_STEP (1u << 20)

_Static_assert(sizeof(struct packet) == RING_HEADER, "a line's header is a packet");
_Static_assert(SHM_CLAIM_MAX <= SHM_DATA_LEN / 2, "ring_data_max()");

/* What a line is: the kind in its note. */
enum shm_kind {
	SHM_PACKET, /* a packet with its payload */
	SHM_FIRST,  /* a packet whose payload comes in fragments, with the first one */
	SHM_NEXT,   /* another fragment of the same */
};

/* In the payload of lines of kind SHM_FIRST and SHM_NEXT. */
struct shm_fragment {
	uint32_t len; /* bytes in the data area */
};

struct shm_wire {
	struct wire base;
	struct shm_conn **up; /* connections that may have something; NULL: ended meanwhile */
	uint32_t up_cnt, up_cap;
	uint32_t tick;	      /* polls so far */
	uint32_t knocks;      /* as seen at the door */
	struct shm_door *door;
	bool polling;
	bool holes;	      /* some of up[] are NULL */
	bool forked;	      /* we are a copy: everything belongs to the parent */
	struct list work;     /* connections with sendv or get under way */
	struct list connecting;
	struct list ended;    /* to be freed at the end of poll() */
	struct pool transfers;
	struct shm_region door_region;
	uint32_t pid, pid_ns;
	uint32_t conn_cnt;
	uint64_t wait_ns;     /* last look after the processes of connecting[] */
	struct list all;      /* of the process, for fork */
	struct list conns;    /* struct shm_conn.all */
};

struct shm_conn {
	struct wire_conn base;
	struct ring_tx tx;
	struct ring_rx rx;
	struct shm_wire *wire;
	struct shm_pair *pair;
	enum shm_side side;
	uint32_t up_idx;      /* in wire->up, while base.up */
	bool ended;
	bool receiving;	      /* fragments of a packet are arriving */
	int get_refused;      /* -FI_E* once the kernel said no */
	int down;	      /* what the next poll() tells the engine */
	/* Packet whose fragments arrive. */
	struct wire_dest dest;
	uint32_t got, want;
	/* Ours under way. */
	struct list sends;    /* struct shm_transfer, in order */
	struct list gets;
	struct wire_op *done; /* finished, not told yet */
	struct wire_op **done_end;
	struct list work;     /* wire->work, or a list of its own */
	struct list slow;     /* wire->connecting, wire->ended, or a list of its own */
	struct list all;      /* wire->conns */
	struct shm_process *process;
	struct shm_region region;
	struct shm_region door; /* of the peer, while connecting */
	struct shm_ticket ticket;
	uint8_t nonce[SHM_NONCE]; /* of the peer's address, while connecting */
};

extern const struct wire_ops shm_wire_ops;

static inline struct shm_conn *shm_conn_of(struct wire_conn *conn)
{
	return (struct shm_conn *)conn;
}

/* wire_ops.claim; inlined into the send slots */
static inline struct packet *shm_claim(struct wire_conn *base, size_t len, void **payload)
{
	struct shm_conn *conn = shm_conn_of(base);
	struct ring_line *line;

	if (likely(len <= RING_INLINE)) {
		line = ring_claim(&conn->tx);
		if (unlikely(!line))
			return NULL;
		*payload = line->payload;
	} else {
		line = ring_claim_data(&conn->tx, (uint32_t)len, payload);
		if (unlikely(!line))
			return NULL;
	}
	return (struct packet *)line->header;
}

/* wire_ops.publish; inlined into the send slots. What is published is on its way: @more changes nothing */
static inline void shm_publish(struct wire_conn *base, struct packet *packet, bool more)
{
	struct ring_line *line = (struct ring_line *)((char *)packet - offsetof(struct ring_line, header));

	ring_publish(&shm_conn_of(base)->tx, line, SHM_PACKET);
}

/* From connect.c; open, close, connect, disconnect, check and local of wire_ops. */
int shm_open(struct engine_ep *ep, const struct wire_attr *attr, struct weft_addr *addr, struct wire **wire,
	     char *why, size_t why_len);
void shm_close(struct wire *wire);
int shm_connect(struct wire *wire, struct engine_peer *peer, const struct weft_addr *addr,
		const struct hello *hello, struct wire_conn **conn);
void shm_disconnect(struct wire_conn *conn);
int shm_check(struct wire_conn *conn);
void shm_local(struct wire *wire, char *buf, size_t len);

/* shm_accept - look at the requests in our mailbox; from poll(). Returns how many were looked at */
int shm_accept(struct shm_wire *wire);

/*
 * shm_connecting - have connections of ours been answered; from poll()
 * @all: look also for those that never will be
 * Returns how many came up or went down.
 */
int shm_connecting(struct shm_wire *wire, bool all);

/*
 * shm_conn_fail - end a connection and tell the engine; from poll()
 * @err: 0 for the peer's orderly close, or -FI_E*
 */
void shm_conn_fail(struct shm_conn *conn, int err);

/* shm_conn_reap - free the connections that ended */
void shm_conn_reap(struct shm_wire *wire);

/* From transfer.c; sendv and get of wire_ops. */
int shm_sendv(struct wire_conn *conn, const struct packet *hdr, const struct iovec *iov, size_t iov_cnt,
	      struct wire_op *op);
int shm_get(struct wire_conn *conn, uint64_t addr, const struct iovec *iov, size_t iov_cnt, struct wire_op *op);

/* shm_transfers_init - what transfer.c keeps of an endpoint */
void shm_transfers_init(struct shm_wire *wire);

/* shm_transfers_move - go on with all connections in wire->work; from poll(). Returns what was finished */
int shm_transfers_move(struct shm_wire *wire);

/* shm_transfers_drop - forget what is under way on a connection */
void shm_transfers_drop(struct shm_conn *conn);

/* shm_transfers_half_done - has a packet of ours been begun whose end is not in the ring */
bool shm_transfers_half_done(const struct shm_conn *conn);

#endif
