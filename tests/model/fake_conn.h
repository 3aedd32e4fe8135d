/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Inside the fake wires: what their files share. fake_wire.c has the tables of calls, fake_connect.c
 * opens and connects, fake_conn.c has the ends of conns, fake_send.c sends, fake_poll.c delivers, and
 * fake_raw.c has ends that are the test itself. All of it with the wires' lock.
 */
#ifndef WEFT_FAKE_CONN_H
#define WEFT_FAKE_CONN_H

#include <rdma/fi_errno.h>
#include "fake_wire.h"

enum fake_lane {
	FAKE_CLAIMED,
	FAKE_SENDV,
	FAKE_LANES,
};

/* A packet on its way. Linked in a lane of the end that will receive it, or in its flowing. */
struct fake_item {
	struct list link;
	struct packet packet;
	struct fake_conn *from;		/* conn whose operation completes on delivery */
	struct wire_op *op;		/* NULL: claimed, or completed already */
	struct iovec iov[WIRE_IOV_MAX]; /* borrowed from the sender */
	uint32_t iov_cnt;
	uint8_t *bytes; /* our copy, owned; NULL: borrowed */
	struct wire_dest dest;
	size_t written; /* of dest */
};

/* A get that works later. */
struct fake_get {
	struct list link;
	struct wire_op *op;
	struct wire_source from;
	struct iovec iov[WIRE_IOV_MAX];
	uint32_t iov_cnt;
	int status;
};

/* A hello on its way to a wire. */
struct fake_connreq {
	struct list link;
	struct fake_conn *from; /* NULL: has given up */
	struct hello hello;
};

struct fake_wire {
	struct wire wire;
	struct list link; /* fake_wires */
	enum fake_kind kind;
	struct list conns, grave; /* struct fake_conn; those in the grave are freed after poll */
	struct list connreqs;
	struct weft_addr address; /* nonce and what this wire added */
	uint32_t polling;
	int bell;	  /* eventfd; -1: not made yet */
	bool armed, deaf; /* deaf: a thread sleeps, for a bounded time, and no bell rings */
	bool bare;	  /* see struct fake_knobs */
	struct list ring; /* link in the list of the ringer (fake_ringer.c); with its lock */
};

/* One end. */
struct fake_conn {
	struct wire_conn conn;
	struct list link; /* wire->conns or wire->grave */
	struct fake_wire *wire;
	struct fake_conn *other; /* NULL: not answered, closed, or raw */
	struct fake_raw *raw;
	struct fake_connreq *connreq;  /* of this conn, not answered */
	struct list lanes[FAKE_LANES]; /* struct fake_item, to us */
	uint32_t still[FAKE_LANES];    /* polls that a lane does not move */
	struct list flowing;	       /* struct fake_item whose payload is being written */
	struct list gets;
	struct wire_op *done_first, **done_last; /* of this conn, to complete */
	struct fake_item *claimed;
	bool answered, ending, dead, stopped;
	bool known; /* the engine has taken it as up */
	struct hello answer;
	int answer_err, end_err;
	/* A request: */
	bool requested;	      /* the engine owns it: it has not answered */
	bool accepted;	      /* poll brings it up, or down if the requester has given up */
	struct hello request; /* hello of the requester */
};

struct fake_raw {
	struct fake_conn *conn; /* NULL: has ended */
	struct list out;	/* struct fake_item, from the endpoint */
	struct hello answer;	/* of the endpoint; of a refusal its data alone */
	int err;		/* -FI_E*: the endpoint has refused; 1: it has not answered */
};

extern struct list fake_wires;
extern struct fake_knobs fake_knobs[FAKE_KINDS];
extern struct wire_ops fake_ops[FAKE_KINDS];

static inline struct fake_wire *fake_wire_of(struct wire *wire)
{
	return container_of(wire, struct fake_wire, wire);
}

static inline struct fake_conn *fake_conn_of(struct wire_conn *conn)
{
	return container_of(conn, struct fake_conn, conn);
}

/* fake_chance - true that many times of 256 */
static inline bool fake_chance(uint32_t of_256)
{
	return fake_random(256) < of_256;
}

static inline struct fake_knobs *fake_knobs_of(struct fake_conn *c)
{
	return &fake_knobs[c->wire->kind];
}

static inline uint32_t fake_lane_cnt(const struct list *lane)
{
	uint32_t cnt = 0;

	for (const struct list *n = lane->next; n != lane; n = n->next)
		cnt++;
	return cnt;
}

void *fake_alloc(size_t len);
/* fake_ports_anew - the next port is the first one */
void fake_ports_anew(void);
struct fake_conn *fake_conn_new(struct fake_wire *wire, struct engine_peer *peer);
void fake_item_free(struct fake_item *item);
/* fake_op_done - complete the operation of @c, from its wire's next poll on */
void fake_op_done(struct fake_conn *c, struct wire_op *op, int status);
/*
 * fake_conn_part - report to the other end that this one has closed; @orderly: published packets
 * arrive
 */
void fake_conn_part(struct fake_conn *c, int err, bool orderly);
/* fake_conn_bury - forget everything of an end; freed now, or after its wire's poll */
void fake_conn_bury(struct fake_conn *c);
/* fake_conn_down - report to the engine that a conn is down, and free it at the end of poll */
void fake_conn_down(struct fake_conn *c, int err);
/* fake_conn_refused - the same, when the other side has refused it */
void fake_conn_refused(struct fake_conn *c, int err, const struct hello_data *data);
/* fake_request - pass a request to the engine, and report an immediate answer; from poll */
void fake_request(struct fake_conn *c, const struct hello *hello);
/* fake_accepted - a request was accepted: the conn comes up, or goes down; from poll */
void fake_accepted(struct fake_conn *c);
/* accept and refuse of wire_ops */
void fake_accept(struct wire_conn *conn, const struct hello *hello);
void fake_refuse(struct wire_conn *conn, int err, const struct hello_data *data);
void fake_wire_enter(struct fake_wire *wire);
void fake_wire_leave(struct fake_wire *wire);
/* fake_ring - there is something for the wire's poll */
void fake_ring(struct fake_wire *wire);
/*
 * fake_ringer_join - a wire without a descriptor is opened
 * fake_ringer_part - it is closed: no engine_wire_wake() is under way on return
 * fake_ringer_ring - have the ringer call engine_wire_wake() soon
 */
void fake_ringer_join(struct fake_wire *wire);
void fake_ringer_part(struct fake_wire *wire);
void fake_ringer_ring(struct fake_wire *wire);
/* fake_ops_get - the receiver may read the sender's memory, or may not */
void fake_ops_get(enum fake_kind kind, bool has_get);
/* fake_ops_bare - the wires of that kind have no descriptor, or have one */
void fake_ops_bare(enum fake_kind kind, bool bare);
/* fake_enter, fake_leave - hold all fake wires; nests */
void fake_enter(void);
void fake_leave(void);
/* fake_ready - returns true if poll would move something */
bool fake_ready(const struct fake_wire *wire);
/* fake_packet - the engine's answer to a header; fills item->dest when the rest is to follow */
int fake_packet(struct fake_conn *c, struct fake_item *item, size_t avail);
int fake_poll(struct wire *wire);
/* fake_pull - what a get does once it works */
void fake_pull(const struct wire_source *from, const struct iovec *iov, size_t iov_cnt);

/* fake_item_copy - take a copy of what an item borrows */
void fake_item_copy(struct fake_item *item);
/* fake_sender_gone - @c can't read the sender's memory any more, and reports nothing to it */
void fake_sender_gone(struct fake_conn *c, bool orderly);
/* of wire_ops */
int fake_a_open(struct engine_ep *ep, const struct wire_attr *attr, struct weft_addr *addr,
		struct wire **wire, char *why, size_t why_len);
int fake_b_open(struct engine_ep *ep, const struct wire_attr *attr, struct weft_addr *addr,
		struct wire **wire, char *why, size_t why_len);
void fake_close(struct wire *base);
int fake_connect(struct wire *base, struct engine_peer *peer, const struct weft_addr *addr,
		 const struct hello *hello, struct wire_conn **out);
void fake_disconnect(struct wire_conn *conn);
struct packet *fake_claim(struct wire_conn *conn, size_t len, void **payload);
void fake_publish(struct wire_conn *conn, struct packet *packet, bool more);
void fake_hold(struct wire_conn *conn, struct packet *packet);
int fake_sendv(struct wire_conn *conn, const struct packet *hdr, const struct iovec *iov,
	       size_t iov_cnt, struct wire_op *op);
int fake_get(struct wire_conn *conn, const struct wire_source *from, const struct iovec *iov,
	     size_t iov_cnt, struct wire_op *op);
int fake_check(struct wire_conn *conn);

#endif
