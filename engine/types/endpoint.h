/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An endpoint: one address, its wires and its peers.
 */
#ifndef WEFT_ENGINE_ENDPOINT_H
#define WEFT_ENGINE_ENDPOINT_H

#include "auth.h"
#include "peers.h"

struct engine_coll;

struct engine_wire {
	struct wire *wire; /* NULL: could not be opened */
	const struct wire_ops *ops;
	uint32_t idle; /* polls in a row that moved nothing */
	uint32_t
		wait; /* rounds to leave it out before the next poll, from ep->others_full on */
	bool bell_polled; /* its bell is in the domain's waiter: */
	int bell;
	uint64_t tx_msgs, tx_bytes, rx_msgs, rx_bytes; /* of conns that are gone */
	char why[96];				       /* why it is not open */
};

/*
 * An endpoint: one address, its wires and its peers. A scalable one has several contexts of each
 * kind, any other one of each, which are part of it.
 */
struct engine_ep {
	struct engine_ctx ctx;
	struct engine_domain *domain;
	const struct engine_family *family;
	struct engine_av *av;
	bool enabled;
	struct engine_peer **peers; /* by fi_addr_t; NULL until first used */
	size_t peer_cap;
	struct engine_rx_ctx *rx0;  /* == rxs[0] */
	struct engine_rx_ctx **rxs; /* by index; of a plain endpoint: &rx0 */
	uint32_t rx_cnt;
	const struct engine_group_ops *group_ops;
	struct engine_rx_ctx *group_rx; /* of PACKET_GROUP; NULL until a group is used */
	struct engine_tx_ctx tx;
	struct engine_rx_ctx rx;
	struct engine_srx *srx;	       /* whose queue rx has, or NULL */
	struct engine_stx *stx;	       /* NULL: none, or it is closed */
	struct list stx_link;	       /* stx->eps */
	struct list srx_link;	       /* srx->eps */
	struct engine_sep_tx *sep_txs; /* of a scalable one: tx_cnt and rx_cnt of them */
	struct engine_sep_rx *sep_rxs;
	uint32_t tx_cnt;
	size_t max_msg_size;
	bool no_shared_memory; /* FI_OPT_SHARED_MEMORY_PERMITTED */
	bool unmet_logged;     /* the log has a peer that nobody is at yet */
	struct pool tx_pool, ctl_pool, held_pool;
	struct pool reply_pool, landing_pool;
	struct list blocked; /* struct engine_peer */
	struct list
		acks; /* struct engine_peer that are to be told what has arrived, in this round */
	struct list acks_later; /* ... once in a while: nobody waits for it */
	uint64_t acks_ns;	/* when those were last told */
	struct list all;	/* struct engine_peer */
	struct list domain_link, av_link;
	uint32_t wire_cnt; /* the last one is the loop */
	struct engine_wire wires[ENGINE_WIRE_MAX];
	uint32_t due_stuck;   /* domain->due_round in which work of it found no room */
	uint32_t tick;	      /* rounds of progress */
	uint32_t others_wait; /* rounds in which none of the wires but the first is polled */
	uint32_t others_full; /* where that count began */
	bool slow;	      /* they come seldom */
	uint64_t clock_ns;    /* last look at the clock */
	uint64_t check_ns;    /* last liveness check */
	uint32_t checks;      /* times that all peers without work pending were checked */
	uint32_t checks_left; /* of all, peers to be looked at until each has been once more, */
	bool checks_skipped;  /* ... of which some had no turn */
	uint64_t epoch;	      /* random, of this fi_enable */
	uint32_t incarnation; /* times that a peer's conns were given up */
	uint32_t peer_cnt[2]; /* in all, by kind of address: nonce, service */
	uint64_t budget;      /* eager payload not granted to any peer yet, bytes */
	size_t tx_size;	      /* sends that may wait for a connection or for room */
	size_t queued_cnt;    /* that do */
	size_t access_cnt;    /* one-sided operations under way: at most tx_size */
	size_t at_once; /* tx_size for small writes and atomics that look at nothing else; 0: there are none */
	size_t order_max; /* bytes up to which order is asked for; 0: no more than is kept anyway */
	uint64_t caps;
	struct engine_coll *coll; /* owned; NULL until a group is used */
	struct engine_eq *eq;	  /* bound, or NULL */
	struct engine_auth auth;  /* its own or its domain's key */
	struct weft_addr bind;	  /* where to listen: fi_info.src_addr, fi_setname */
	struct weft_addr address; /* full, after fi_enable */
};

/* engine_expect - something may come over this wire: poll it in every round again */
static inline void engine_expect(struct engine_ep *ep, uint32_t wire_idx)
{
	struct engine_wire *w = &ep->wires[wire_idx];

	w->idle = w->wait = 0;
	if (wire_idx)
		ep->others_wait = 0;
}

#endif
