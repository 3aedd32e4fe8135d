/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer: its conns, its order, its credit, and what is under way with it.
 */
#ifndef WEFT_ENGINE_PEERS_H
#define WEFT_ENGINE_PEERS_H

#include "requests.h"
#include "vector.h"

/* When a peer is to be told what has arrived of it. */
enum engine_ack_when {
	ACK_NONE,  /* it knows */
	ACK_LATER, /* it does not wait for that */
	ACK_NOW,
};

enum engine_peer_state {
	PEER_IDLE,	 /* no conn for sending */
	PEER_CONNECTING, /* one is being made, or a retry waits for its time */
	PEER_UP,
};

/*
 * What an endpoint knows of another one. The first line is all that a small send or receive
 * touches of it.
 */
struct engine_peer {
	struct wire_conn *conn;	     /* route for sending; set while up */
	const struct wire_ops *wire; /* its ops */
	uint64_t tx_seq;	     /* of the next message; packets carry the low 32 bits */
	fi_addr_t
		cq_addr; /* what completions say: its place in the AV or an id of the program's */
	uint32_t ready;	      /* up, and nothing is queued before a new message */
	uint32_t rx_seq;      /* of the next message expected */
	uint32_t credit;      /* eager payload that we may send, bytes */
	uint32_t credit_due;  /* eager payload freed here and not granted again yet, bytes */
	uint32_t reorder_cnt; /* messages that wait for their turn */
	uint16_t tx_epoch;    /* PACKET_EPOCH() of ours */
	uint16_t rx_epoch;    /* ... and of its */
	struct engine_ep *ep;

	struct wire_conn *conns[ENGINE_WIRE_MAX]; /* by wire: ours or accepted */
	uint32_t ours;				  /* bit per wire: conns[] was begun by us */
	uint32_t up;				  /* bit per wire: conns[] is up */
	uint32_t unreachable;			  /* bit per wire: does not lead there */
	uint32_t
		incarnation; /* of our conns to it: our hello says so; grows when they are given up */
	uint32_t held_cnt;	   /* messages of it that are held */
	uint32_t slots;		   /* of ep->peers that lead here */
	uint32_t peer_incarnation; /* of its last hello */
	uint8_t state;		   /* enum engine_peer_state */
	bool self;		   /* this endpoint */
	bool gone;		   /* its process is proven to have ended */
	uint8_t ack_due;	   /* enum engine_ack_when */
	uint32_t acked;		   /* everything of ours before that seq has arrived */
	uint32_t
		reorder_large; /* of what waits for its turn, requests above ENGINE_REORDER_MAX */
	uint64_t request_cnt; /* of tx_seq, one-sided requests; the others are messages */
	uint64_t settled_cnt; /* of those messages, it has taken so many at least (direct.c) */
	uint32_t naks_sent;   /* refusals by seq that were sent in this incarnation */
	uint64_t ack_tx_seq;  /* tx_seq when it was last sent an ACK */
	uint32_t ack_sent;    /* what that said */
	uint32_t asks_seq;    /* tx_seq when it was last asked for one */
	uint32_t naks_heard;  /* ... and that have come */
	uint32_t ack_seq, ack_naks; /* of an ACK that has overtaken refusals, */
	bool ack_waits;		    /* if there is one */
	bool several;		    /* more than one conn has led here in this incarnation */
	bool after_large; /* the last one-sided operation keeps order by waiting: the next one too */
	uint32_t asked_cnt; /* requests of ours that it has to answer before they end */
	/* Requests that were complete when they left (quiet.h): */
	uint32_t quiet_cnt;		 /* without an answer yet, at most; */
	uint32_t quiet_seq;		 /* behind the last one, */
	uint32_t quiet_reported_seq;	 /* and behind the last one that was not injected */
	struct engine_tx_ctx *quiet_ctx; /* that it was of */
	uint32_t quiet_errors;		 /* of this incarnation: the log has the first one */
	uint32_t lane_seq;    /* ... before that seq may be overtaken by requests until then */
	uint32_t leaving_cnt; /* of ours, with payload that the wire has not sent yet */
	uint32_t checked;     /* ep->checks, if it has been since */
	bool greeted; /* the window of this incarnation was said in a hello, which may be said again */
	uint32_t window;     /* granted to it, bytes */
	uint32_t credit_max; /* granted to us by its hello, bytes: more is never free */
	uint32_t rx_window;  /* eager payload that it may still send, bytes */
	uint64_t epoch;	     /* of its last hello; 0: never met */
	uint64_t retry_ns;   /* PEER_CONNECTING without a conn: when to try again */
	uint64_t since_ns;   /* when connecting began */
	fi_addr_t addr;	     /* in the AV, or FI_ADDR_NOTAVAIL */
	struct weft_addr address;
	struct list all; /* ep->all */
	struct list
		blocked; /* ep->blocked: something is queued, or a connection is to be made */
	struct list queued;    /* struct engine_tx not started, in order */
	struct list started;   /* struct engine_tx that wait for the wire or the receiver */
	struct list pushing;   /* struct engine_tx that wait for room to send payload */
	struct list receiving; /* struct engine_rx matched, payload under way */
	struct list arriving;  /* struct engine_held whose payload is not whole */
	struct list
		filling; /* struct engine_rx whose payload comes behind its header, in its turn */
	struct list reorder;  /* struct engine_held by seq */
	struct list ctl;      /* struct engine_ctl */
	uint32_t nak_cnt;     /* NAKs among them */
	struct list unacked;  /* struct engine_tx by seq, until ACK */
	struct list replies;  /* struct engine_reply that wait for room */
	struct list replying; /* struct engine_reply that the wire has */
	uint32_t reply_cnt;   /* of both */
	struct list ack_link; /* ep->acks or ep->acks_later */
};

_Static_assert(offsetof(struct engine_peer, ep) <= 64,
	       "the fast paths touch one line of a peer");

/* engine_source_id - what the matcher of @q knows this peer by */
static inline uint64_t engine_source_id(const struct engine_rxq *q,
					const struct engine_peer *peer)
{
	if (likely(!q->shared))
		return (uintptr_t)peer;
	return peer->addr == FI_ADDR_NOTAVAIL ? UINT64_MAX : peer->addr + 1;
}

/*
 * engine_asked_full - may no further request be sent until the peer answers one?
 * However many a program may have under way, a peer has this many of them: what it keeps to answer is
 * bounded by that (target.c). The others wait here.
 */
static inline bool engine_asked_full(const struct engine_peer *peer)
{
	return peer->quiet_cnt + peer->asked_cnt >= ENGINE_ASKED_MAX;
}

/* engine_quiet_open - has any not been carried out yet, as far as is known? */
static inline bool engine_quiet_open(const struct engine_peer *peer)
{
	return (int32_t)(peer->quiet_seq - peer->acked) > 0;
}

/* engine_work_pending - is anything under way with this peer that needs its connection */
static inline bool engine_work_pending(const struct engine_peer *peer)
{
	return !list_empty(&peer->queued) || !list_empty(&peer->started) ||
	       !list_empty(&peer->pushing) || !list_empty(&peer->receiving) ||
	       !list_empty(&peer->ctl) || !list_empty(&peer->unacked) ||
	       !list_empty(&peer->replies) || !list_empty(&peer->replying) ||
	       engine_quiet_open(peer);
}

#endif
