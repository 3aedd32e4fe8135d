/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is under way: messages, one-sided operations, receives, and what is kept of a peer until somebody
 * wants it.
 */
#ifndef WEFT_ENGINE_REQUESTS_H
#define WEFT_ENGINE_REQUESTS_H

#include "contexts.h"
#include "packet.h"
#include "pool.h"

/* One message to send, as the op tables express it; lives on the caller's stack. */
struct engine_msg {
	const void *buf; /* iov_cnt == 0 */
	size_t len;	 /* bytes in all */
	uint64_t tag;
	uint64_t data;
	void *context;
	struct engine_tx_ctx *tx;
	const struct iovec *iov;
	uint32_t iov_cnt; /* 0: buf and len say it all; at most ENGINE_IOV_MAX */
	uint32_t flags;	  /* enum engine_flag, PACKET_TAGGED, PACKET_CQ_DATA */
	uint32_t rx_idx;  /* receive context of the peer */
};

/* What an atomic operation does, and to where its results go. */
struct engine_update {
	uint8_t kind; /* enum atomics_kind */
	uint8_t datatype;
	uint8_t op;
	uint32_t cnt; /* elements */
	uint32_t compare_cnt, result_cnt;
	struct iovec compare[ENGINE_IOV_MAX]; /* borrowed until the request is sent */
	struct iovec result[ENGINE_IOV_MAX];
};

/* A send or a one-sided operation under way that was not finished at once. */
struct engine_tx {
	struct pool_object pool; /* its id goes over the wire */
	struct list link;	 /* peer->queued, started, pushing or unacked */
	struct wire_op op;
	struct engine_peer *peer;
	struct engine_tx_ctx *ctx;
	void *context;
	const void *buf; /* first byte: for the completion */
	uint64_t tag, data;
	size_t len;   /* of the message; of what is written or read; of the operands */
	size_t want;  /* bytes that the receiver asked for, after CTS; bytes of a response */
	size_t sent;  /* of those, gone; of a response, those that have begun to arrive */
	size_t chunk; /* bytes in the hands of the wire; of a response, pieces */
	uint64_t peer_id; /* receiver's operation, after CTS */
	uint32_t flags;
	uint32_t iov_cnt;
	uint32_t rx_idx;	       /* receive context of the peer */
	uint32_t seq;		       /* once sent */
	int error;		       /* NAK came before ACK */
	struct engine_cntr *work_cntr; /* ENGINE_DEFERRED: counts it; held; or NULL */
	uint8_t kind; /* PACKET_EAGER: a message; PACKET_WRITE, PACKET_READ, PACKET_ATOMIC */
	enum engine_tx_state {
		TX_QUEUED,   /* nothing was sent */
		TX_DIRECT,   /* first of peer->queued: the wire accesses the target's memory */
		TX_EAGER,    /* the wire sends it whole */
		TX_RTS,	     /* the receiver knows of it */
		TX_DATA,     /* the receiver asked for the payload */
		TX_FIN,	     /* all is sent; the receiver tells when it is done */
		TX_ACK,	     /* in peer->unacked */
		TX_RESPONSE, /* a READ or ATOMIC that waits for what it reads */
	} state;
	void *copy; /* ENGINE_INJECT: our copy, owned */
	struct iovec iov
		[ENGINE_IOV_MAX]; /* source; of a READ: destination; of an ATOMIC: operands */
	uint32_t target_cnt;
	struct packet_target targets[PACKET_TARGET_MAX];
	struct engine_update update; /* PACKET_ATOMIC */
};

struct engine_ep;
struct engine_landing;
struct engine_mr;
struct engine_rx;

/* What becomes of a large write whose payload comes like that of a receive: onesided/ sets it. */
struct engine_landing_ops {
	/* arrived - all of it is there; takes @rx, linked nowhere */
	void (*arrived)(struct engine_rx *rx);
	/* drop - give it up; takes @landing */
	void (*drop)(struct engine_ep *ep, struct engine_landing *landing);
};

/* Where the payload of a large write goes, or what a large read is sent from. */
struct engine_landing {
	struct pool_object pool;
	const struct engine_landing_ops *ops; /* of a write */
	struct engine_mr *mr[PACKET_TARGET_MAX];
	uint64_t len[PACKET_TARGET_MAX]; /* bytes in each */
	uint32_t mr_cnt;
	uint32_t iov_cnt;
	struct iovec iov[WIRE_DEST_MAX];
};

/* What a peer has read, on its way to it. */
struct engine_reply {
	struct pool_object pool;
	struct list link; /* peer->replies until the wire has all of it, then peer->replying */
	struct wire_op op;
	struct engine_peer *peer;
	uint64_t id; /* peer's operation */
	size_t len, sent, chunk;
	void *copy;		       /* small: what was read in its turn, owned */
	struct engine_landing *source; /* large: memory that is read as it is sent */
};

/* A posted receive, until its completion. */
struct engine_rx {
	struct pool_object pool; /* its id goes over the wire */
	struct match_recv match; /* while posted */
	struct list link; /* rxq->posted while posted, peer->receiving after a match with RTS */
	struct list filling; /* peer->filling, and in peer->receiving too */
	struct wire_op op;
	struct engine_rx_ctx
		*ctx;		  /* that it was posted to; once matched, that of the message */
	struct engine_peer *peer; /* sender, once matched */
	void *context;
	uint64_t tag, data;
	size_t cap;	  /* bytes of iov */
	size_t len;	  /* of the message */
	size_t got;	  /* bytes that have begun to arrive, of min(cap, len) */
	size_t incoming;  /* bytes that the wire is writing; of a rendezvous, pieces */
	uint64_t peer_id; /* sender's operation, of a rendezvous */
	uint32_t
		flags; /* PACKET_TAGGED: which queue; PACKET_CQ_DATA; PACKET_DELIVERY; ENGINE_COMPLETE */
	uint32_t iov_cnt;
	struct iovec iov[ENGINE_IOV_MAX];
	struct engine_rx *whole;       /* ENGINE_PART: the buffer that it is in */
	struct engine_cntr *work_cntr; /* ENGINE_DEFERRED: counts it; held; or NULL */
	/* ENGINE_MULTI; in the matcher until it is spent */
	size_t used;	    /* bytes given to messages */
	size_t min_free;    /* with fewer left it is spent */
	fi_addr_t src;	    /* of what it ends with */
	uint32_t parts_cnt; /* messages in it that are not complete */
	bool spent;	    /* takes no more, and is released with the last of them */
	int err;	    /* -FI_E* that it ends with */
	struct engine_landing *landing; /* a large write of the peer instead of a receive */
	struct packet_piece pieces[PACKET_PIECE_CNT]; /* in the sender, while they are read */
};

/*
 * A message that arrived before its receive, or before its turn.
 */
struct engine_held {
	struct pool_object pool; /* when it is from held_pool */
	struct match_msg match;	 /* HELD_STORED */
	struct list link;	 /* HELD_REORDER: peer->reorder; HELD_CLAIMED: rxq->claimed */
	struct list arriving;	 /* peer->arriving while the payload is not whole */
	struct engine_peer *peer;
	struct engine_rx_ctx *ctx; /* that it is for */
	struct packet packet;	   /* EAGER or RTS; a request that waits for its turn */
	struct packet_rts rts;
	struct engine_rx *rx; /* HELD_MATCHED: receive, or NULL: to be dropped when whole */
	void *claim;	      /* HELD_CLAIMED: context of that receive */
	enum engine_held_state {
		HELD_REORDER, /* waits for messages before it */
		HELD_STORED,  /* in the matcher */
		HELD_CLAIMED, /* taken by FI_PEEK | FI_CLAIM */
		HELD_MATCHED, /* has a receive, or is a request: waits for the rest of its payload */
	} state;
	bool whole;	 /* the payload has arrived */
	bool pooled;	 /* from held_pool */
	bool lost;	 /* RTS of a sender that is gone */
	bool counted;	 /* its payload is part of what the peer may send before it is freed */
	uint8_t bytes[]; /* eager payload */
};

#define ENGINE_HELD_SMALL 64u /* payload room of one from held_pool */

/* A control packet that found no room. */
struct engine_ctl {
	struct pool_object pool;
	struct list link;     /* peer->ctl */
	struct packet packet; /* op, tag and data */
	struct packet_cts cts;
	bool with_cts;
};

#endif
