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

#include <rdma/providers/fi_log.h>
#include "mailbox.h"
#include "pool.h"
#include "process.h"
#include "service.h"
#include "wire.h"

#define PSHM_LINE_CNT  256u
#define PSHM_DATA_LEN  131072u
#define PSHM_CLAIM_MAX 16384u
#define PSHM_EAGER_MAX 65536u
#define PSHM_FRAGMENT  16384u	  /* of what sendv carries */
#define PSHM_GET_STEP  (1u << 20) /* read by one system call */
_Static_assert(sizeof(struct packet) == RING_HEADER, "a line's header is a packet");
_Static_assert(PSHM_CLAIM_MAX >= WIRE_REQUEST_MAX, "claim() has room for any request");
_Static_assert(PSHM_CLAIM_MAX <= PSHM_DATA_LEN / 2, "ring_data_max()");

/* What a line is: the kind in its note. */
enum pshm_kind {
	PSHM_PACKET, /* a packet with its payload */
	PSHM_FIRST,  /* a packet whose payload comes in fragments, with the first one */
	PSHM_NEXT,   /* another fragment of the same */
};

/* In the payload of lines of kind PSHM_FIRST and PSHM_NEXT. */
struct pshm_fragment {
	uint32_t len; /* bytes in the data area */
};

struct pshm_wire {
	struct wire base;
	struct pshm_conn **up; /* connections that may have something; NULL: ended meanwhile */
	uint32_t up_cnt, up_cap;
	uint32_t tick;	 /* polls so far */
	uint32_t knocks; /* as seen at the door */
	struct pshm_door *door;
	bool polling;
	bool holes;	  /* some of up[] are NULL */
	bool forked;	  /* we are a copy: everything belongs to the parent */
	bool starved;	  /* it has been said that descriptors or memory ran out */
	struct list work; /* connections with sendv or get under way */
	struct list connecting;
	struct list ended; /* to be freed at the end of poll() */
	struct pool transfers;
	struct pshm_region door_region;
	struct sys_shared *service; /* our name, or NULL */
	uint64_t host;		    /* 0: not known */
	uint32_t pid, pid_ns;
	uint32_t conn_cnt;
	uint64_t wait_ns;  /* last look after the processes of connecting[] */
	struct list all;   /* of the process, for fork */
	struct list conns; /* struct pshm_conn.all */
};

struct pshm_conn {
	struct wire_conn base;
	struct ring_tx tx;
	struct ring_rx rx;
	struct pshm_wire *wire;
	struct pshm_pair *pair;
	enum pshm_side side;
	uint32_t up_idx; /* in wire->up, while base.up */
	bool ended;
	bool receiving;	 /* fragments of a packet are arriving */
	bool door_shut;	 /* the peer's door could not be opened to see it poll */
	int get_refused; /* -FI_E* once the kernel said no */
	/* Packet whose fragments arrive. */
	struct wire_dest dest;
	uint32_t got, want;
	/* Ours under way. */
	struct list sends; /* struct pshm_transfer, in order */
	struct list gets;
	struct wire_op *done; /* finished, not told yet */
	struct wire_op **done_end;
	struct list work; /* wire->work, or a list of its own */
	struct list slow; /* wire->connecting, wire->ended, or a list of its own */
	struct list all;  /* wire->conns */
	struct pshm_process *process;
	struct pshm_region region;
	struct pshm_region door; /* of the peer: while connecting, and once get was asked for */
	struct pshm_ticket ticket;
	struct weft_addr addr; /* of the peer */
};

extern const struct wire_ops pshm_wire_ops;
extern struct fi_provider pshm_provider;

static inline struct pshm_conn *pshm_conn_of(struct wire_conn *conn)
{
	return (struct pshm_conn *)conn;
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
		line = ring_claim_data(&conn->tx, (uint32_t)len, payload);
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

	ring_publish(&pshm_conn_of(base)->tx, line, PSHM_PACKET);
}

/* From connect.c; open, close, connect, disconnect, check and local of wire_ops. */
int pshm_open(struct engine_ep *ep, const struct wire_attr *attr, struct weft_addr *addr,
	      struct wire **wire, char *why, size_t why_len);
void pshm_close(struct wire *wire);
int pshm_connect(struct wire *wire, struct engine_peer *peer, const struct weft_addr *addr,
		 const struct hello *hello, struct wire_conn **conn);
void pshm_disconnect(struct wire_conn *conn);
int pshm_check(struct wire_conn *conn);
void pshm_local(struct wire *wire, char *buf, size_t len);

/* pshm_accept - look at the requests in our mailbox; from poll(). Returns how many were looked at */
int pshm_accept(struct pshm_wire *wire);

/*
 * pshm_connecting - have connections of ours been answered; from poll()
 * @all: look also for those that never will be
 * Returns how many came up or went down.
 */
int pshm_connecting(struct pshm_wire *wire, bool all);

/*
 * pshm_conn_fail - end a connection and tell the engine; from poll()
 * @err: 0 for the peer's orderly close, or -FI_E*
 */
void pshm_conn_fail(struct pshm_conn *conn, int err);

/* pshm_conn_reap - free the connections that ended */
void pshm_conn_reap(struct pshm_wire *wire);

/* From transfer.c; sendv and get of wire_ops. */
int pshm_sendv(struct wire_conn *conn, const struct packet *hdr, const struct iovec *iov,
	       size_t iov_cnt, struct wire_op *op);
int pshm_get(struct wire_conn *conn, uint64_t addr, const struct iovec *iov, size_t iov_cnt,
	     struct wire_op *op);

/* pshm_transfers_init - what transfer.c keeps of an endpoint */
void pshm_transfers_init(struct pshm_wire *wire);

/* pshm_transfers_move - go on with all connections in wire->work; from poll(). Returns what was finished */
int pshm_transfers_move(struct pshm_wire *wire);

/* pshm_transfers_drop - forget what is under way on a connection */
void pshm_transfers_drop(struct pshm_conn *conn);

#endif
