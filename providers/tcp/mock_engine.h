/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A test double of the engine for the TCP wire: sides that record the calls of the
 * wire. Any number in one process; single-threaded unless a test says otherwise.
 */
#ifndef WEFT_TCP_MOCK_ENGINE_H
#define WEFT_TCP_MOCK_ENGINE_H

#include "tcp.h"
#include "tcp_wire.h"

#define SIDE_CONN_MAX 16
#define SIDE_GOT_MAX  65536

/* A packet as it arrived; bytes owned. */
struct got {
	struct packet packet;
	struct wire_conn *conn;
	/* Room for the payload */
	uint8_t *bytes;
	/* The same once the payload is complete, else NULL */
	uint8_t *payload;
};

struct sent {
	struct wire_op op;
	int done, status;
};

/* Where the payload of incomplete packets goes, in place of a buffer of the side. */
struct scatter {
	struct iovec iov[WIRE_DEST_MAX];
	uint32_t cnt;
	bool active;
};

struct side {
	struct wire *wire;
	struct hello hello;
	struct weft_addr addr;
	/* -FI_E* by which requests are refused */
	int refuse;
	/* engine_conn_request() leaves requests unanswered; the last of them */
	bool later;
	struct wire_conn *request;
	/* Private data of the last hello or refusal of another side */
	struct hello_data peer_data;
	/* What engine_packet returns */
	int reject;
	/* engine_packet lets later payload wait until this many packets have arrived */
	uint32_t turn;
	/* A conn of the side that is disconnected before one is accepted */
	struct wire_conn *yield;
	/* Conns that came up */
	struct wire_conn *conns[SIDE_CONN_MAX];
	/* Number of conns that ever came up */
	int conn_cnt;
	int downs, last_err;
	/* What engine_conn_busy() and engine_conn_awaited() return of all conns */
	bool busy, awaits;
	int woken;
	struct wire_conn *last_down;
	/* Epoch of the last hello */
	uint64_t peer_epoch;
	struct scatter scatter;
	void (*on_packet)(struct side *side, struct wire_conn *conn,
			  const struct packet *packet);
	void (*on_down)(struct side *side, struct wire_conn *conn, int err);
	/* Payloads that arrived completely in the scatter list */
	int scattered;
	struct got *got;
	int got_cnt;
};

/* side_open - a wire that listens at loopback (or @bind). Fails the test when it can't */
struct side *side_open(const struct weft_addr *bind);

/*
 * side_open_in - the same in a domain, whose sides share what they can and are known by their
 * nonces
 */
struct side *side_open_in(const struct weft_addr *bind, const void *domain);
/* side_open_dialing - a wire that connects and listens nowhere; @bind: NULL: from anywhere */
struct side *side_open_dialing(const struct weft_addr *bind);
void side_close(struct side *side);
int side_poll(struct side *side);

/* side_accept - accept a request that waits in side->request */
void side_accept(struct side *side, struct wire_conn *conn);

/* side_connect - begin to connect. Returns the conn; fails the test when that can't begin */
struct wire_conn *side_connect(struct side *from, struct side *to);

/* pair_up - a conn from @a to @b, up on both sides */
void pair_up(struct side *a, struct side *b, struct wire_conn **a_conn,
	     struct wire_conn **b_conn);

/* pair_up_data - the same with both lanes up: @iov, more than TCP_CARRY_MAX, was sent to @b */
void pair_up_data(struct side *a, struct side *b, struct wire_conn **a_conn,
		  struct wire_conn **b_conn, struct iovec *iov);

/*
 * break_unheard - have a lane break at one end, of which the other one hears nothing
 * Returns the old socket, which stays open: the caller closes it.
 */
int break_unheard(struct tcp_conn *conn, struct tcp_lane *lane);

/*
 * publish - claim and publish one packet with a payload derived from @seq. Returns false without
 * room
 */
bool publish(struct wire_conn *conn, uint32_t seq, size_t len, bool more);

/* payload_right - returns true if the payload is what publish() and pattern() write for packet.seq */
bool payload_right(const struct got *got);
void pattern(uint8_t *bytes, size_t len, uint32_t seq);

void sent_done(struct wire_op *op, int status);

/* expired - returns true some seconds after start_clock() */
void start_clock(void);
bool expired(void);

/* Drive both sides until something holds; the test fails when it never does. */
#define DRIVE(a, b, condition)                                     \
	do {                                                       \
		start_clock();                                     \
		while (!(condition)) {                             \
			side_poll(a);                              \
			if ((struct side *)(b))                    \
				side_poll(b);                      \
			if (expired())                             \
				fail_msg("never: %s", #condition); \
		}                                                  \
	} while (0)

/* send_bulk - a packet of the data lane from these pieces; @sent is set when it is done */
int send_bulk(struct wire_conn *conn, uint32_t seq, struct iovec *iov, size_t cnt,
	      struct sent *sent);

#endif
