/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer: its conns, its order, its credit, and what is under way with it.
 */
#ifndef WEFT_ENGINE_PEERS_H
#define WEFT_ENGINE_PEERS_H

#include "requests.h"
#include "vector.h"

/* When an ACK is sent to a peer. */
enum engine_ack_when {
	ACK_NONE,  /* nothing has arrived since the last one */
	ACK_LATER, /* the peer does not wait for it */
	ACK_NOW,
};

enum engine_peer_state {
	PEER_IDLE,	 /* no route */
	PEER_CONNECTING, /* a conn is being made, or the next try waits for its time */
	PEER_UP,
};

/* Packets before their turn: message/reorder.h. */
struct engine_reorder {
	/* struct engine_held; NULL: there were none yet */
	struct list *bins;
	/* The bin of a packet is in the top bits of its sequence number times this odd number */
	uint64_t mult;
	uint32_t shift;
};

/*
 * A peer of an endpoint. A small send or receive touches the first cache line alone.
 */
struct engine_peer {
	/* Route for sending; NULL unless state is PEER_UP */
	struct wire_conn *conn;
	/* Operations of the route's wire */
	const struct wire_ops *wire;
	/* Sequence number of the next message to send; packets carry the low 32 bits */
	uint64_t tx_seq;
	/* Source address that completions report: index in the AV, or the program's user id */
	fi_addr_t cq_addr;
	/*
	 * Nonzero if a new message can be sent at once: the route is up, nothing is queued, and no
	 * send completes before it
	 */
	uint32_t ready;
	/* Sequence number of the next message expected */
	uint32_t rx_seq;
	/* Credit: eager payload that may be sent to the peer, bytes */
	uint32_t credit;
	/* Eager payload that was freed here and is to be granted to the peer again, bytes */
	uint32_t credit_due;
	/*
	 * packet_head() of a plain message of the peer, without flags; while @reorder or @rx_order
	 * has any, PEER_NO_HEAD
	 */
	uint32_t rx_head;
	/* PACKET_EPOCH() of packets to the peer */
	uint16_t tx_epoch;
	/* PACKET_EPOCH() of packets from the peer */
	uint16_t rx_epoch;
	struct engine_ep *ep;

	/* Entries of @reorder */
	uint32_t reorder_cnt;
	/*
	 * struct wire_conn, connected or accepted: those of more preferred wires first, and of one
	 * wire in the order in which they were linked. At most one for each wire and rail
	 */
	struct list conns;
	/* Entries of @conns that have joined: packets may come from them */
	uint32_t up_cnt;
	/* Bit per wire: the wire does not reach the peer */
	uint32_t unreachable;
	/*
	 * Incarnation of this side towards the peer, sent in each hello; grows when the conns
	 * are given up
	 */
	uint32_t incarnation;
	/* Unexpected messages of the peer that are held */
	uint32_t held_cnt;
	/* Entries of ep->peers that lead to this peer */
	uint32_t slots;
	/* Incarnation of the peer, from its last hello */
	uint32_t peer_incarnation;
	/* enum engine_peer_state */
	uint8_t state;
	/* True for the peer that is the endpoint itself */
	bool self;
	/* True if the process of the peer is known to have ended */
	bool dead;
	/* enum engine_ack_when */
	uint8_t ack_due;
	/* The peer has everything that was sent before this sequence number */
	uint32_t acked;
	/* Requests in @reorder that are larger than ENGINE_REORDER_MAX */
	uint32_t reorder_large;
	/* One-sided requests among the tx_seq packets sent; the others are messages */
	uint64_t request_cnt;
	/* The peer is known to have carried out everything that was sent before this tx_seq (reach.h) */
	uint64_t reach_seq;
	/* Messages that the peer is known to have taken, at least (direct.c) */
	uint64_t settled_cnt;
	/* NAKs that were sent in this incarnation */
	uint32_t naks_sent;
	/* tx_seq when the last ACK was sent */
	uint64_t ack_tx_seq;
	/* Sequence number that the last ACK carried */
	uint32_t ack_sent;
	/* tx_seq when the peer was last asked for an ACK */
	uint32_t ack_request_seq;
	/* NAKs that were received in this incarnation */
	uint32_t naks_received;
	/*
	 * An ACK that has overtaken NAKs, while @ack_waits: its sequence number and its count
	 * of NAKs
	 */
	uint32_t ack_seq, ack_naks;
	/* True if @ack_seq and @ack_naks are set */
	bool ack_waits;
	/* More than one conn has reached the peer in this incarnation */
	bool multi_conn;
	/*
	 * The last one-sided operation keeps its order by waiting, so the next one has to wait
	 * too
	 */
	bool after_large;
	/* Requests sent to the peer that end with its answer */
	uint32_t outstanding_cnt;
	/* Requests that completed when they were sent (quiet.h) */
	/* Upper bound of those without an answer */
	uint32_t quiet_cnt;
	/* Sequence number behind the last one */
	uint32_t quiet_seq;
	/* Transmit context of the last one */
	struct engine_tx_ctx *quiet_ctx;
	/* Errors of such requests in this incarnation; the first one is logged */
	uint32_t quiet_errors;
	/* Requests may overtake payload that was sent before this sequence number */
	uint32_t lane_seq;
	/* Operations whose payload the wire has not sent yet */
	uint32_t leaving_cnt;
	/* Value of ep->checks at the last liveness check */
	uint32_t checked;
	/* A hello of this incarnation has carried the window */
	bool greeted;
	/* An injected operation waits in the program until the peer is connected (conns.h) */
	bool wanted;
	/* The last attempts to connect were in vain */
	bool unreached;
	/* Receive window granted to the peer, bytes */
	uint32_t window;
	/* Window that the peer's hello granted: the upper bound of @credit, bytes */
	uint32_t credit_max;
	/* Part of @window that the peer may still use, bytes */
	uint32_t rx_window;
	/* Epoch of the peer's last hello; 0: no hello yet */
	uint64_t epoch;
	/* PEER_CONNECTING without a conn: time of the next try */
	uint64_t retry_ns;
	/* Time at which connecting began */
	uint64_t since_ns;
	/* Index in the AV, or FI_ADDR_NOTAVAIL */
	fi_addr_t addr;
	struct weft_addr address;
	/* Link in ep->all */
	struct list all;
	/* Link in ep->blocked, while something is queued or a conn is to be made */
	struct list blocked;
	/* struct engine_tx that have not started, in order */
	struct list queued;
	/* struct engine_tx that wait for the wire or for the receiver */
	struct list started;
	/* struct engine_tx that wait for room to send payload */
	struct list pushing;
	/* struct engine_tx and struct engine_rx with ENGINE_ORDERED, in the order of their completions */
	struct list tx_order, rx_order;
	/* struct engine_rx that are matched, while their payload arrives */
	struct list receiving;
	/* struct engine_held whose payload is not whole */
	struct list arriving;
	/* struct engine_rx whose payload follows its header, in order */
	struct list filling;
	/* Packets that arrived before their turn */
	struct engine_reorder reorder;
	/* struct engine_ctl: control packets that wait for room */
	struct list ctl;
	/* NAKs in @ctl */
	uint32_t nak_cnt;
	/* struct engine_tx by sequence number, until they are acknowledged */
	struct list unacked;
	/* struct engine_reply that wait for room */
	struct list replies;
	/* struct engine_reply that the wire is sending */
	struct list replying;
	/* Entries of @replies and @replying */
	uint32_t reply_cnt;
	/* Large writes of the peer among @receiving */
	uint32_t landing_cnt;
	/* Link in ep->acks or ep->acks_later */
	struct list ack_link;
};

_Static_assert(offsetof(struct engine_peer, ep) <= 64,
	       "the fast paths touch one line of a peer");

/* engine_conn_linked - returns true if the conn is in peer->conns */
static inline bool engine_conn_linked(const struct wire_conn *conn)
{
	return conn->link.next && !list_empty(&conn->link);
}

/* Value of rx_head that no packet matches: it has flags, and those of a packet are not compared */
#define PEER_NO_HEAD UINT32_MAX

/* engine_rx_head_set - rx_epoch, reorder_cnt or rx_order has changed */
static inline void engine_rx_head_set(struct engine_peer *peer)
{
	const struct packet plain = { .op = PACKET_EAGER, .epoch = peer->rx_epoch };

	peer->rx_head = peer->reorder_cnt || !list_empty(&peer->rx_order) ? PEER_NO_HEAD
									  : packet_head(&plain);
}

/* engine_source_id - the id of this peer in the matcher of @q */
static inline uint64_t engine_source_id(const struct engine_rxq *q,
					const struct engine_peer *peer)
{
	if (likely(!q->shared))
		return (uintptr_t)peer;
	return peer->addr == FI_ADDR_NOTAVAIL ? UINT64_MAX : peer->addr + 1;
}

/*
 * engine_requests_full - returns true if no request may be sent until the peer answers one
 * The bound is the target's: it keeps a record of each request until it has answered (target.c).
 * Further requests wait at the initiator.
 */
static inline bool engine_requests_full(const struct engine_peer *peer)
{
	return peer->quiet_cnt + peer->outstanding_cnt >= ENGINE_REQUESTS_MAX;
}

/*
 * engine_quiet_open - returns true if a request that completed when it was sent is not known to be
 * done
 */
static inline bool engine_quiet_open(const struct engine_peer *peer)
{
	return (int32_t)(peer->quiet_seq - peer->acked) > 0;
}

/* engine_work_pending - returns true if something under way needs a conn of the peer */
static inline bool engine_work_pending(const struct engine_peer *peer)
{
	return !list_empty(&peer->queued) || !list_empty(&peer->started) ||
	       !list_empty(&peer->pushing) || !list_empty(&peer->receiving) ||
	       !list_empty(&peer->ctl) || !list_empty(&peer->unacked) ||
	       !list_empty(&peer->replies) || !list_empty(&peer->replying) || peer->wanted ||
	       engine_quiet_open(peer);
}

#endif
