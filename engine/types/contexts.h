/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transmit and receive contexts: of an endpoint, shared, and of scalable endpoints.
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

/* A transmit context: the queue and the counters that report the end of its operations. */
struct engine_tx_ctx {
	struct engine_cq *cq;
	struct engine_cntr *cntr[ENGINE_TX_CNTRS];
	bool selective;
};

/*
 * Receives that wait for a message, and messages that wait for a receive, of one receive context
 * or of the endpoints that share one.
 */
struct engine_rxq {
	struct match *tagged, *msg;
	/* struct engine_held that FI_CLAIM has taken */
	struct list claimed;
	size_t min_multi_recv;
	/* Sources are identified by fi_addr_t, since each endpoint has peers of its own */
	bool shared;
};

/* A receive context: the queue of its receives, and the queue and counters that report their end. */
struct engine_rx_ctx {
	/* @own, or the queue of a shared receive context */
	struct engine_rxq *q;
	struct engine_cq *cq;
	struct engine_cntr *cntr[ENGINE_RX_CNTRS];
	/* Endpoint; NULL in a shared receive context */
	struct engine_ep *ep;
	bool selective;
	/*
	 * The connection of its endpoint has ended, and no other endpoint uses the queue: a receive
	 * that no message waits for ends with -FI_ECANCELED. Default flags have ENGINE_ENDED then
	 */
	bool ended;
	/* Index in ep->rxs */
	uint32_t idx;
	struct engine_rxq own;
};

/*
 * What groups (collective/) are to the rooms below: their messages have PACKET_GROUP, which makes
 * them those of one more receive context, ep->group_rx, that no program posts to. Constant,
 * installed when the endpoint is opened. Called with the domain held, from within sends, packets
 * and failures: they note what happened, and leave what follows from it to a task (task.h).
 */
struct engine_group_ops {
	/* ep->group_rx, made if there is none; NULL without memory. */
	struct engine_rx_ctx *(*rx)(struct engine_ep *ep);
	/*
	 * Returns true when a message that has met no receive is not to wait for one: it is
	 * dropped.
	 */
	bool (*stray)(struct engine_peer *peer, const struct packet *packet);
	/* A receive is over, with 0 or -FI_E*; takes @rx, which is linked nowhere. */
	void (*received)(struct engine_rx *rx, int status);
	/* The send with that context has left, or failed. */
	void (*sent)(void *context, int status);
	/*
	 * A peer's conns have ended, and with them what was under way; @died: it did not close
	 * them in order.
	 */
	void (*peer_lost)(struct engine_peer *peer, bool died);
};

/* Options of an endpoint or context (fi_setopt), besides those that are fields elsewhere. */
struct engine_options {
	size_t max_msg, max_tagged, max_rma, max_atomic;
	size_t inject_msg, inject_tagged, inject_rma, inject_atomic;
	/* Options of FI_BUFFERED_RECV, which is not offered: stored only */
	size_t buffered_min, buffered_limit;
};

/* What a program holds and calls: an endpoint, an alias of one, a context. */
struct engine_ctx {
	struct fid_ep fid;
	/* For an alias, the object that it is an alias of; else itself */
	struct engine_ctx *base;
	/* Its aliases, struct engine_ctx; in an alias, the link in that list */
	struct list aliases;
	bool enabled;
	/* This process is a fork of the one that enabled it: calls are refused */
	bool copied;
	struct platform_copy copy;
	struct engine_domain *domain;
	/* Endpoint; NULL in a shared receive context */
	struct engine_ep *ep;
	/* NULL: receives only */
	struct engine_tx_ctx *tx;
	/* NULL: sends only */
	struct engine_rx_ctx *rx;
	/*
	 * Flags of calls without flags. Data calls of other threads read them while a bind sets
	 * them.
	 */
	/* Flags as engine_tx_flags() translates them */
	_Atomic uint32_t tx_flags;
	/* Flags of fi_tsend and fi_tinject, with PACKET_TAGGED, and ENGINE_COUNTED if it applies */
	_Atomic uint32_t tsend_flags, tinject_flags;
	/* ENGINE_COMPLETE, ENGINE_MULTI */
	_Atomic uint32_t rx_flags;
	/* Flags of tagged receives: those of @rx_flags, PACKET_TAGGED, and ENGINE_ENDED */
	_Atomic uint32_t trx_flags;
	/* Operation flags as the program gave them: FI_COMPLETION, FI_INJECT, ... */
	uint64_t tx_op_flags, rx_op_flags;
	uint64_t tx_caps, rx_caps;
	/* FI_DIRECTED_RECV: the source of a receive is compared */
	bool directed_recv;
	struct engine_options options;
	/* Op tables of a context that lacks capabilities of the family, or has FI_TRIGGER */
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

/*
 * A shared receive context. After fi_close it lives until the last endpoint that uses it is
 * closed.
 */
struct engine_srx {
	struct engine_ctx ctx;
	/* The shared queue; its cq is the bound one, or that of the first endpoint */
	struct engine_rx_ctx rx;
	/* Bound completion queue, or NULL */
	struct engine_cq *cq;
	/* Endpoints that use it, by struct engine_ep.srx_link */
	struct list eps;
	/* Closed by the program: posting and binding are refused */
	bool closed;
};

/*
 * A shared transmit context. An endpoint without a completion level takes that of the context when
 * it is bound.
 */
struct engine_stx {
	struct fid_stx fid;
	struct engine_domain *domain;
	/* Completion level of its attributes (ENGINE_TX_LEVELS), or the domain's */
	uint64_t level;
	/* Endpoints that use it, by struct engine_ep.stx_link */
	struct list eps;
};

/* A context of a scalable endpoint, as the program holds it. */
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

/*
 * engine_tx_defaults, engine_tsend_flags, engine_tinject_flags, engine_rx_defaults,
 * engine_trx_defaults - the flags of a call without flags
 */
static inline uint32_t engine_tx_defaults(const struct engine_ctx *ctx)
{
	return atomic_load_explicit(&ctx->tx_flags, memory_order_relaxed);
}

static inline uint32_t engine_tsend_flags(const struct engine_ctx *ctx)
{
	return atomic_load_explicit(&ctx->tsend_flags, memory_order_relaxed);
}

static inline uint32_t engine_tinject_flags(const struct engine_ctx *ctx)
{
	return atomic_load_explicit(&ctx->tinject_flags, memory_order_relaxed);
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
