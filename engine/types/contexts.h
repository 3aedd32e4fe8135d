/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transmit and receive contexts, alone, shared, and of scalable endpoints; what a program holds of them.
 */
#ifndef WEFT_ENGINE_CONTEXTS_H
#define WEFT_ENGINE_CONTEXTS_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include "match.h"
#include "queues.h"

struct engine_peer;
struct engine_rx;
struct packet;

/* Which operations a counter of a transmit context counts. */
enum engine_tx_cntr { ENGINE_CNTR_SEND, ENGINE_CNTR_READ, ENGINE_CNTR_WRITE, ENGINE_TX_CNTRS };

/* Which events a counter of a receive context counts. */
enum engine_rx_cntr {
	ENGINE_CNTR_RECV,
	ENGINE_CNTR_REMOTE_READ,
	ENGINE_CNTR_REMOTE_WRITE,
	ENGINE_RX_CNTRS
};

/* A transmit context: where the end of its operations is told. */
struct engine_tx_ctx {
	struct engine_cq *cq;
	struct engine_cntr *cntr[ENGINE_TX_CNTRS];
	bool selective;
};

/*
 * Receives that wait for a message, and messages that wait for a receive: those of one receive
 * context, or of the several that share them.
 */
struct engine_rxq {
	struct match *tagged, *msg;
	struct list posted;  /* struct engine_rx, post order */
	struct list claimed; /* struct engine_held */
	size_t min_multi_recv;
	bool shared; /* sources are told apart by fi_addr_t, since each endpoint has peers of its own */
};

/* A receive context of an endpoint: where its messages go, and where their end is told. */
struct engine_rx_ctx {
	struct engine_rxq *q; /* own, or shared */
	struct engine_cq *cq;
	struct engine_cntr *cntr[ENGINE_RX_CNTRS];
	struct engine_ep *ep; /* NULL: of a shared receive context itself */
	bool selective;
	uint32_t idx; /* in ep->rxs */
	struct engine_rxq own;
};

/*
 * What groups (collective/) are to the rooms below: their messages have PACKET_GROUP, which makes them those
 * of one more receive context, ep->group_rx, that no program posts to. Constant, installed when the endpoint is
 * opened. Called with the domain held, from within sends, packets and failures: they note what happened, and
 * leave what follows from it to a task (task.h).
 */
struct engine_group_ops {
	/* ep->group_rx, made if there is none; NULL without memory. */
	struct engine_rx_ctx *(*rx)(struct engine_ep *ep);
	/* Returns true when a message that has met no receive is not to wait for one: it is dropped. */
	bool (*stray)(struct engine_peer *peer, const struct packet *packet);
	/* A receive is over, with 0 or -FI_E*; takes @rx, which is linked nowhere. */
	void (*received)(struct engine_rx *rx, int status);
	/* The send with that context has left, or failed. */
	void (*sent)(void *context, int status);
	/* A peer's conns have ended, and with them what was under way; @died: it did not close them in order. */
	void (*peer_lost)(struct engine_peer *peer, bool died);
};

/* Options of an endpoint or context (fi_setopt), besides those that are fields elsewhere. */
struct engine_options {
	size_t max_msg, max_tagged, max_rma, max_atomic;
	size_t inject_msg, inject_tagged, inject_rma, inject_atomic;
	size_t buffered_min, buffered_limit; /* of FI_BUFFERED_RECV, which nobody has: kept */
};

/* What a program holds and calls: an endpoint, an alias of one, a context. */
struct engine_ctx {
	struct fid_ep fid;
	struct engine_ctx *base; /* of an alias: what it is one of; else itself */
	struct list aliases;	 /* struct engine_ctx of those; of an alias: its place there */
	bool enabled;
	bool copied; /* this process is a fork of the one that enabled it, and has none of its calls */
	struct platform_copy copy;
	struct engine_domain *domain;
	struct engine_ep *ep;	  /* NULL: a shared receive context */
	struct engine_tx_ctx *tx; /* NULL: receives only */
	struct engine_rx_ctx *rx; /* NULL: sends only */
	/* Flags of calls without flags. Data calls of other threads read them while a bind sets them. */
	_Atomic uint32_t tx_flags;	   /* as engine_tx_flags() has them */
	_Atomic uint32_t rx_flags;	   /* ENGINE_COMPLETE, ENGINE_MULTI */
	_Atomic uint32_t trx_flags;	   /* of tagged receives: PACKET_TAGGED too */
	uint64_t tx_op_flags, rx_op_flags; /* as given: FI_COMPLETION, FI_INJECT, ... */
	uint64_t tx_caps, rx_caps;
	bool directed_recv; /* the source of a receive counts */
	struct engine_options options;
	/* The tables of one that can't do all that the family can, or has calls that wait for a counter. */
	struct fi_ops_msg msg;
	struct fi_ops_tagged tagged;
	struct fi_ops_rma rma;
	struct fi_ops_atomic atomic;
	/* The tables that calls go on in which could wait for a counter, and do not. */
	struct {
		_Atomic(const struct fi_ops_msg *) msg;
		_Atomic(const struct fi_ops_tagged *) tagged;
		_Atomic(const struct fi_ops_rma *) rma;
		_Atomic(const struct fi_ops_atomic *) atomic;
	} plain;
};

/* A receive context that endpoints share. Closed by the program it goes with the last of them. */
struct engine_srx {
	struct engine_ctx ctx;
	struct engine_rx_ctx
		rx; /* its queue is everybody's; cq: its own, or the first endpoint's */
	struct engine_cq *cq; /* bound to it, or NULL */
	struct list eps;      /* struct engine_ep.srx_link */
	bool closed;	      /* nothing can be posted any more, and no endpoint be bound */
};

/*
 * A transmit context that endpoints share: they send as if it was their own. An endpoint without a
 * completion level has the context's from then on.
 */
struct engine_stx {
	struct fid_stx fid;
	struct engine_domain *domain;
	uint64_t level;	 /* ENGINE_TX_LEVELS of its attributes; without them, the domain's */
	struct list eps; /* struct engine_ep.stx_link */
};

/* One of the contexts of a scalable endpoint: what the program holds of it. */
struct engine_sep_ctx {
	struct engine_ctx ctx;
	bool open;
};

struct engine_sep_tx {
	struct engine_sep_ctx of;
	struct engine_tx_ctx tx;
};

struct engine_sep_rx {
	struct engine_sep_ctx of;
	struct engine_rx_ctx rx;
};

static inline struct engine_ctx *engine_ctx_of(struct fid_ep *fid)
{
	return container_of(fid, struct engine_ctx, fid);
}

static inline struct engine_ctx *engine_ctx_at(struct fid *fid)
{
	return container_of(fid, struct engine_ctx, fid.fid);
}

/* engine_tx_defaults, engine_rx_defaults, engine_trx_defaults - the flags of a call without flags */
static inline uint32_t engine_tx_defaults(const struct engine_ctx *ctx)
{
	return atomic_load_explicit(&ctx->tx_flags, memory_order_relaxed);
}

static inline uint32_t engine_rx_defaults(const struct engine_ctx *ctx)
{
	return atomic_load_explicit(&ctx->rx_flags, memory_order_relaxed);
}

static inline uint32_t engine_trx_defaults(const struct engine_ctx *ctx)
{
	return atomic_load_explicit(&ctx->trx_flags, memory_order_relaxed);
}

#endif
