/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests under way: sends, one-sided operations, receives, replies, and packets that are held
 * until a receive matches them or their turn comes.
 */
#ifndef WEFT_ENGINE_REQUESTS_H
#define WEFT_ENGINE_REQUESTS_H

#include "contexts.h"
#include "packet.h"
#include "pool.h"

/* One message to send, as the op tables express it; lives on the caller's stack. */
struct engine_msg {
	/* Payload, if iov_cnt is 0 */
	const void *buf;
	/* Length of the whole payload, bytes */
	size_t len;
	uint64_t tag;
	uint64_t data;
	void *context;
	const struct iovec *iov;
	/* Entries of @iov, at most ENGINE_IOV_MAX; 0: the payload is @buf */
	uint32_t iov_cnt;
	/* enum engine_flag, PACKET_TAGGED, PACKET_CQ_DATA */
	uint32_t flags;
	/* Index of the peer's receive context */
	uint32_t rx_idx;
	struct engine_tx_ctx *tx;
};

/* What an atomic operation does, and where its results go. */
struct engine_update {
	/* enum atomics_kind */
	uint8_t kind;
	uint8_t datatype;
	uint8_t op;
	/* Number of elements */
	uint32_t cnt;
	uint32_t compare_cnt, result_cnt;
	/* Borrowed until the request is sent */
	struct iovec compare[ENGINE_IOV_MAX];
	struct iovec result[ENGINE_IOV_MAX];
};

/* A send or a one-sided operation that did not finish within its call. */
struct engine_tx {
	/* Its id is sent over the wire */
	struct pool_object pool;
	/* Link in peer->queued, started, pushing or unacked */
	struct list link;
	/* ENGINE_ORDERED: link in peer->tx_order */
	struct list order;
	struct wire_op op;
	struct engine_peer *peer;
	struct engine_tx_ctx *ctx;
	void *context;
	/* First byte, for the completion */
	const void *buf;
	uint64_t tag, data;
	/* Length of the message, of what is written or read, or of the operands, bytes */
	size_t len;
	/* Bytes that the receiver asked for, after CTS; bytes of a response */
	size_t want;
	/* Of @want, bytes that were sent; bytes of a response that have begun to arrive */
	size_t sent;
	/* Bytes that the wire is sending; pieces of a response that it is writing */
	size_t chunk;
	/* Id of the receiver's operation, after CTS */
	uint64_t peer_id;
	uint32_t flags;
	uint32_t iov_cnt;
	/* Index of the peer's receive context */
	uint32_t rx_idx;
	/* Sequence number, once sent */
	uint32_t seq;
	/* Error of a NAK that arrived before the ACK */
	int error;
	/* ENGINE_DEFERRED: counter of the deferred work, referenced; or NULL */
	struct engine_cntr *work_cntr;
	/* PACKET_EAGER for a message; PACKET_WRITE, PACKET_READ, PACKET_ATOMIC */
	uint8_t kind;
	enum engine_tx_state {
		TX_QUEUED,   /* nothing was sent */
		TX_DIRECT,   /* first of peer->queued: the wire accesses the target's memory */
		TX_EAGER,    /* the wire sends it whole */
		TX_RTS,	     /* the RTS was sent */
		TX_DATA,     /* the receiver has asked for the payload */
		TX_FIN,	     /* all was sent; the receiver reports when it is done */
		TX_ACK,	     /* in peer->unacked */
		TX_RESPONSE, /* a READ or ATOMIC that waits for its response */
		TX_ENDED,    /* ENGINE_ORDERED: it completes in its turn */
	} state;
	/* ENGINE_INJECT: copy of the payload, owned */
	void *copy;
	/* Source; destination of a READ; operands of an ATOMIC */
	struct iovec iov[ENGINE_IOV_MAX];
	uint32_t target_cnt;
	struct packet_target targets[PACKET_TARGET_MAX];
	/* PACKET_ATOMIC */
	struct engine_update update;
};

struct engine_ep;
struct engine_landing;
struct engine_mr;
struct engine_rx;

/* How a large write ends, whose payload arrives like that of a receive; installed by onesided/. */
struct engine_landing_ops {
	/* arrived - the payload is whole; takes @rx, linked nowhere */
	void (*arrived)(struct engine_rx *rx);
	/* drop - the write of @peer is given up; takes @landing */
	void (*drop)(struct engine_peer *peer, struct engine_landing *landing);
};

/* Memory that the payload of a large write goes to, or that a large read is sent from. */
struct engine_landing {
	struct pool_object pool;
	/* Operations of a write; NULL for the source of a read */
	const struct engine_landing_ops *ops;
	struct engine_mr *mr[PACKET_TARGET_MAX];
	/* Bytes in each region */
	uint64_t len[PACKET_TARGET_MAX];
	uint32_t mr_cnt;
	uint32_t iov_cnt;
	struct iovec iov[WIRE_DEST_MAX];
};

/* The data of a read, while they are sent to the initiator. */
struct engine_reply {
	struct pool_object pool;
	/* Link in peer->replies until the wire has all of it, then in peer->replying */
	struct list link;
	struct wire_op op;
	struct engine_peer *peer;
	/* Id of the peer's operation */
	uint64_t id;
	size_t len, sent, chunk;
	/* Small: copy of what was read in its turn, owned */
	void *copy;
	/* Large: memory that is read while it is sent */
	struct engine_landing *source;
};

/* A receive, from posting to completion. */
struct engine_rx {
	/* Its id is sent over the wire */
	struct pool_object pool;
	/* Entry in the matcher while posted */
	struct match_recv match;
	/* Link in peer->receiving after a match with RTS */
	struct list link;
	/* Link in peer->filling, beside peer->receiving */
	struct list filling;
	/* ENGINE_ORDERED: link in peer->rx_order */
	struct list order;
	struct wire_op op;
	/* Context that it was posted to; once matched, that of the message */
	struct engine_rx_ctx *ctx;
	/* Sender, once matched */
	struct engine_peer *peer;
	void *context;
	uint64_t tag, data;
	/* Room in @iov, bytes */
	size_t cap;
	/* Length of the message, bytes */
	size_t len;
	/* Bytes that have begun to arrive, of min(cap, len) */
	size_t got;
	/* Bytes that the wire is writing; pieces of a rendezvous */
	size_t incoming;
	/* Id of the sender's operation, in a rendezvous */
	uint64_t peer_id;
	/*
	 * PACKET_TAGGED selects the matcher; PACKET_CQ_DATA, PACKET_DELIVERY, ENGINE_COMPLETE
	 */
	uint32_t flags;
	uint32_t iov_cnt;
	struct iovec iov[ENGINE_IOV_MAX];
	/* ENGINE_PART: the multi-receive buffer that it is part of */
	struct engine_rx *whole;
	/* ENGINE_DEFERRED: counter of the deferred work, referenced; or NULL */
	struct engine_cntr *work_cntr;
	/*
	 * The fields below are used by ENGINE_MULTI: a buffer that stays in the matcher until
	 * it is spent
	 */
	/* Bytes given to messages */
	size_t used;
	/* It is spent when fewer bytes are left */
	size_t min_free;
	/* Source address that its last completion reports */
	fi_addr_t src;
	/* Messages in it that are not complete */
	uint32_t parts_cnt;
	/* It takes no more messages, and is released with the last one */
	bool spent;
	/* -FI_E* that it ends with, or 0 */
	int err;
	/* Set if this is a large write of the peer instead of a receive */
	struct engine_landing *landing;
	/* Pieces in the sender's memory, while they are read */
	struct packet_piece pieces[PACKET_PIECE_CNT];
};

/*
 * A message that arrived before its receive, or before its turn.
 */
struct engine_held {
	/* Valid if @pooled */
	struct pool_object pool;
	/* Entry in the matcher while HELD_STORED */
	struct match_msg match;
	/* Link in a bin of peer->reorder (HELD_REORDER) or in rxq->claimed (HELD_CLAIMED) */
	struct list link;
	/* Link in peer->arriving until the payload is whole */
	struct list arriving;
	struct engine_peer *peer;
	/* Receive context that it is for */
	struct engine_rx_ctx *ctx;
	/* EAGER, RTS, or a request that waits for its turn */
	struct packet packet;
	struct packet_rts rts;
	/* HELD_MATCHED: its receive; NULL: to be dropped once whole */
	struct engine_rx *rx;
	/* HELD_CLAIMED: context of the receive that claimed it */
	void *claim;
	enum engine_held_state {
		HELD_REORDER, /* waits for packets before it */
		HELD_STORED,  /* in the matcher */
		HELD_CLAIMED, /* claimed by FI_PEEK | FI_CLAIM */
		HELD_MATCHED, /* matched, or a request: waits for the rest of its payload */
	} state;
	/* The whole payload has arrived */
	bool whole;
	/* Allocated from held_pool */
	bool pooled;
	/* RTS of a sender that is lost */
	bool lost;
	/* Its payload uses credit until it is freed */
	bool counted;
	/* Eager payload */
	uint8_t bytes[];
};

#define ENGINE_HELD_SMALL 64u /* payload room of one from held_pool */

/* A control packet that waits for room. */
struct engine_ctl {
	struct pool_object pool;
	/* Link in peer->ctl */
	struct list link;
	/* Operation, tag and data */
	struct packet packet;
	struct packet_cts cts;
	bool with_cts;
};

#endif
