/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Conns over RDS: a socket each, and what is under way on it. Called by the engine and by the wire's poll with the
 * domain held, which protects all of it but struct rds_beat.
 */
#ifndef WEFT_RDS_CONN_H
#define WEFT_RDS_CONN_H

#include "address.h"
#include "datagram.h"
#include "net_socket.h"
#include "protocol.h"
#include "wire.h"

/* Payload that is sent with its packet, bytes */
#define RDS_CLAIM_MAX WIRE_REQUEST_MAX
/* sendv()s of a conn that are under way */
#define RDS_PUSHES 8u
/* Datagrams of a socket that one poll takes */
#define RDS_BURST 32
/* Conns whose other ends have not proven that they get what is sent to them, at most: others are not heard */
#define RDS_UNPROVEN_MAX 256u
/* Time until a hello is said again, the first time and at most */
#define RDS_HELLO_NS	 20000000u
#define RDS_HELLO_MAX_NS 200000000u
/* Time until what found no room is tried again */
#define RDS_ROOM_NS 1000000u

enum rds_state {
	/* Connects: a hello was said */
	RDS_ASKING,
	/* The peer's hello has come: the engine has the request */
	RDS_REQUESTED,
	/* Accepted: the answer is to be sent */
	RDS_ACCEPTED,
	RDS_UP,
};

/* What tells the peer, at times, that this side lives (beat.c). */
struct rds_beat {
	/* in a list of all; points to itself: not there */
	struct list node;
	int fd;
	union ip_sockaddr to;
	uint64_t id;
};

/* A datagram with a packet, as it is sent */
struct rds_out {
	struct rds_head head;
	struct packet packet;
	uint8_t payload[RDS_CLAIM_MAX];
};

/* A sendv() whose payload is longer than a datagram. */
struct rds_push {
	struct packet packet;
	struct iovec iov[WIRE_IOV_MAX];
	size_t iov_cnt;
	/* Bytes of the payload that were sent */
	uint64_t sent;
	struct wire_op *op;
};

struct rds_wire {
	struct wire wire;
	/* At which it is known, and its socket */
	union ip_sockaddr where;
	int fd;
	/* All sockets */
	int set;
	/* struct rds_conn: all, those that have something to do, and those that are freed when poll() ends */
	struct list conns, busy, grave;
	uint32_t unproven;
	bool polling;
	/* A thread sleeps, and is woken when poll() has something */
	bool armed;
	/* platform_forks() of the process that opened it. In a child all of it is the parent's */
	uint32_t forks;
	/* RDS_DATAGRAM_MAX bytes that are received */
	uint8_t *in;
};

struct rds_conn {
	struct wire_conn conn;
	/* in wire->conns, or in its grave; in wire->busy, or empty */
	struct list node, busy;
	struct rds_wire *wire;
	enum rds_state state;
	/* -1: none, of a request */
	int fd;
	/* Where the other end is, and of a request that is answered: its socket of the conn */
	union ip_sockaddr peer;
	/* Of this end, and of the other one */
	uint64_t id, peer_id;
	/* Of the next datagram that is sent, and that comes */
	uint32_t out_number, in_number;
	/* The other end has not shown that it knows this end's id */
	bool unproven;
	bool buried;
	/* It can't go on: poll() tells the engine */
	bool ended;
	int err;
	/* When something came; asking: when to ask again, and after which time then */
	uint64_t heard_ns, again_ns, wait_ns;
	/* The peer's; what this side says */
	struct hello hello, mine;
	struct rds_beat beat;

	/* A packet; @out_len bytes of it found no room, 0: none */
	struct rds_out *out;
	uint32_t out_len;
	/* sendv()s in a ring, and those that are done */
	struct rds_push pushes[RDS_PUSHES];
	uint32_t push_first, push_cnt;
	struct wire_ended sent;
	/* Payload that is arriving: where it goes, and how much is missing */
	struct wire_dest dest;
	uint64_t dest_at, missing;
};

static inline struct rds_wire *rds_wire_of(struct wire *wire)
{
	return container_of(wire, struct rds_wire, wire);
}

/*
 * rds_forked - returns true in the child of a fork that has a copy of the wire: datagrams that it took or sent would be
 * the parent's, and its set too. It may only close the descriptors.
 */
static inline bool rds_forked(const struct rds_wire *wire)
{
	return unlikely(wire->forks != platform_forks());
}

static inline struct rds_conn *rds_conn_of(struct wire_conn *conn)
{
	return container_of(conn, struct rds_conn, conn);
}

/* conn.c */

/* rds_conn_new - a conn without a socket; NULL without memory */
struct rds_conn *rds_conn_new(struct rds_wire *wire, enum rds_state state);
/* rds_conn_up - both sides have said hello: tell the engine, in poll() */
void rds_conn_up(struct rds_conn *c);
/* rds_conn_proven - the other end knows this one's id */
void rds_conn_proven(struct rds_conn *c);
/* rds_conn_busy - have poll() look at it */
void rds_conn_busy(struct rds_conn *c);
/* rds_conn_bury - close its socket, and free it now or when poll() ends; the engine is not told */
void rds_conn_bury(struct rds_conn *c);
void rds_conn_free(struct rds_conn *c);
/* rds_conn_fail - the same, and the engine is told, in poll(). @err: why; 0: an orderly end */
void rds_conn_fail(struct rds_conn *c, int err, const struct hello_data *data);
/* rds_conn_broken - have poll() tell it. From any call */
void rds_conn_broken(struct rds_conn *c, int err);
/* rds_conn_turn - what a busy conn waits for, in poll(). Returns how much has moved */
int rds_conn_turn(struct rds_conn *c);
/* rds_conn_say_end - the peer hears of the end. Returns as rds_say() */
int rds_conn_say_end(struct rds_conn *c, int err);

/* as in struct wire_ops */
int rds_connect(struct wire *wire, struct engine_peer *peer, const struct weft_addr *addr,
		const struct hello *hello, struct wire_conn **conn);
void rds_disconnect(struct wire_conn *conn);
void rds_accept(struct wire_conn *conn, const struct hello *hello);
void rds_refuse(struct wire_conn *conn, int err, const struct hello_data *data);
int rds_check(struct wire_conn *conn);

/* take.c */

/* rds_wire_take, rds_conn_take - datagrams of the wire's own socket, and of a conn's. In poll(). Return how many */
int rds_wire_take(struct rds_wire *wire);
int rds_conn_take(struct rds_conn *c);

/* moves.c */

/*
 * rds_say - send a datagram
 * @op:   what follows the head: @cnt pieces
 * Returns 0, -FI_EAGAIN or another -FI_E*.
 */
int rds_say(struct rds_conn *c, enum rds_op op, const struct iovec *iov, size_t cnt);
/* rds_refusal_say - to an end that has no conn here; it asks again where there is no room */
void rds_refusal_say(struct rds_wire *wire, const union ip_sockaddr *to, uint64_t id, int err,
		     const struct hello_data *data);
/* rds_moves_go - what found no room. Returns 0, -FI_EAGAIN: there is still none, or another -FI_E* */
int rds_moves_go(struct rds_conn *c);
/* rds_sent_report - ends of sendv()s, in poll(). Returns how many */
int rds_sent_report(struct rds_conn *c);

/* as in struct wire_ops */
struct packet *rds_claim(struct wire_conn *conn, size_t len, void **payload);
void rds_publish(struct wire_conn *conn, struct packet *packet, bool more);
int rds_sendv(struct wire_conn *conn, const struct packet *hdr, const struct iovec *iov,
	      size_t iov_cnt, struct wire_op *op);

/* beat.c */

/*
 * rds_beat_begin - what it has is filled in, but for the list. Returns 0 or -FI_E*
 * rds_beat_end - it is not used any more; does nothing for one that has not begun
 */
int rds_beat_begin(struct rds_beat *beat);
void rds_beat_end(struct rds_beat *beat);

#endif
