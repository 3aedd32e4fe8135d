/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An endpoint: one address, its wires and its peers.
 */
#ifndef WEFT_ENGINE_ENDPOINT_H
#define WEFT_ENGINE_ENDPOINT_H

#include "auth.h"
#include "peers.h"

struct engine_cm;
struct engine_coll;
struct hello;
struct hello_data;

/* How an endpoint meets peers. */
enum engine_ep_kind {
	ENGINE_EP_RDM,
	/* FI_EP_MSG: it connects to one peer, or accepts one request */
	ENGINE_EP_MSG,
	/* It listens for a passive endpoint, which has the requests */
	ENGINE_EP_PASSIVE,
};

/*
 * What connections are to the rooms below: the program asks for each, and is told of its end.
 * Constant, installed when a MSG endpoint is opened. Called with the domain held, from poll() of a
 * wire.
 */
struct engine_cm_ops {
	/*
	 * The request of the peer, on that conn, is about to be answered: it is connected once it
	 * reads the answer. up() or lost() follows.
	 */
	void (*answering)(struct engine_peer *peer, struct wire_conn *conn);
	/* The peer is connected. Returns 0, or -FI_E* that ends the connection. @hello: borrowed */
	int (*up)(struct engine_peer *peer, const struct hello *hello);
	/* The peer has refused; lost() follows. @data: borrowed */
	void (*refused)(struct engine_peer *peer, int err, const struct hello_data *data);
	/*
	 * The connection has ended, or none could be made; operations under way have ended.
	 * @err: -FI_E*
	 */
	void (*lost)(struct engine_peer *peer, int err);
};

struct engine_wire {
	/* NULL: it could not be opened */
	struct wire *wire;
	const struct wire_ops *ops;
	/* Consecutive polls that found nothing */
	uint32_t idle;
	/* Rounds until the next poll, counted from ep->others_full */
	uint32_t wait;
	/* True while @bell is in the poll set of the domain's channel */
	bool bell_polled;
	int bell;
	/* Traffic of the conns that have ended */
	uint64_t tx_msgs, tx_bytes, rx_msgs, rx_bytes;
	/* Reason why it is not open */
	char why[96];
	/* and the error of open(), where there is no wire */
	int err;
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
	/* By fi_addr_t; an entry is NULL until it is first used */
	struct engine_peer **peers;
	size_t peer_cap;
	/* Equals rxs[0] */
	struct engine_rx_ctx *rx0;
	/* Receive contexts by index; &rx0 for a plain endpoint */
	struct engine_rx_ctx **rxs;
	uint32_t rx_cnt;
	const struct engine_group_ops *group_ops;
	/* Receive context of PACKET_GROUP; NULL until a group is used */
	struct engine_rx_ctx *group_rx;
	struct engine_tx_ctx tx;
	struct engine_rx_ctx rx;
	/* Shared receive context whose queue @rx uses, or NULL */
	struct engine_srx *srx;
	/* Shared transmit context; NULL: none, or it is closed */
	struct engine_stx *stx;
	/* Link in stx->eps */
	struct list stx_link;
	/* Link in srx->eps */
	struct list srx_link;
	/* Contexts of a scalable endpoint: tx_cnt and rx_cnt of them */
	struct engine_sep_tx *sep_txs;
	struct engine_sep_rx *sep_rxs;
	uint32_t tx_cnt;
	size_t max_msg_size;
	/* FI_OPT_SHARED_MEMORY_PERMITTED */
	bool no_shared_memory;
	/* It was logged that no process listens at the address of a peer */
	bool unmet_logged;
	struct pool tx_pool, ctl_pool, held_pool;
	struct pool reply_pool, landing_pool;
	/* struct engine_peer that have something queued, or a conn to be made */
	struct list blocked;
	/* struct engine_peer to which an ACK is sent at the end of this round */
	struct list acks;
	/* struct engine_peer whose ACK is not urgent */
	struct list acks_later;
	/* Time at which those ACKs were last sent */
	uint64_t acks_ns;
	/* All struct engine_peer of the endpoint */
	struct list all;
	struct list domain_link, av_link;
	/* Number of @wires; the last one is the loop */
	uint32_t wire_cnt;
	struct engine_wire wires[ENGINE_WIRE_MAX];
	/* Value of domain->due_round when triggered work of the endpoint last found no room */
	uint32_t due_stuck;
	/* Rounds until engine_ep_look(), counted down from @look_full */
	uint32_t look_wait;
	uint32_t look_full;
	/* The first wire has moved something in them */
	bool busy;
	/* Rounds that the other wires were left out for that, since they were polled */
	uint32_t busy_rounds;
	/* Rounds until the next look at the clock, as of the last engine_ep_look() */
	uint32_t clock_wait;
	/* Rounds in which only the first wire is polled, likewise, and where that count began */
	uint32_t others_wait;
	uint32_t others_full;
	/* Rounds of progress are far apart in time */
	bool slow;
	/* Time at which the clock was last read */
	uint64_t clock_ns;
	/* Time of the last liveness check */
	uint64_t check_ns;
	/* Passes over all peers without work pending */
	uint32_t checks;
	/* Peers left in the pass under way */
	uint32_t checks_left;
	/* True if the pass has left out some of them */
	bool checks_skipped;
	/* Random; each fi_enable draws a new one */
	uint64_t epoch;
	/* Number of times that the conns of a peer were given up */
	uint32_t incarnation;
	/* Peers by kind of address: nonce, service */
	uint32_t peer_cnt[2];
	/* struct engine_held of all peers, and how many there may be: PLATFORM_HELD_MAX */
	uint32_t held_cnt, held_max;
	/* Receive budget that is not granted to any peer, bytes */
	uint64_t budget;
	/* Bound of @queued_cnt and @access_cnt */
	size_t tx_size;
	/* Of a scalable endpoint: FI_OPT_MIN_MULTI_RECV of receive contexts that are opened */
	size_t min_multi_recv;
	/* Sends that wait for a conn or for room */
	size_t queued_cnt;
	/* One-sided operations under way */
	size_t access_cnt;
	/* Bound of small writes and atomics that take the short path; 0: none may take it */
	size_t at_once;
	/* Bytes up to which the program asked for order; 0: no more than is kept in any case */
	size_t order_max;
	uint64_t caps;
	/* Owned; NULL until a group is used */
	struct engine_coll *coll;
	/* Bound event queue, or NULL */
	struct engine_eq *eq;
	/* Key of the endpoint, or of its domain */
	struct engine_auth auth;
	/* Where to listen: fi_info.src_addr or fi_setname */
	struct weft_addr bind;
	/* Complete from fi_enable on */
	struct weft_addr address;
	/*
	 * Receives a connection request, and owns it until engine_conn_accept() or
	 * engine_conn_refuse(), within this call or later. Bounds the number that it keeps: each
	 * holds memory of its wire, and a descriptor over tcp. @hello: borrowed
	 */
	void (*requested)(struct wire_conn *conn, const struct hello *hello);
	/* enum engine_ep_kind */
	uint8_t kind;
	/* ENGINE_EP_MSG: it was opened with a request, and waits for what else its peer connects */
	bool accepts;
	/* ENGINE_EP_MSG: data calls go to @only, whatever address they name */
	bool connected;
	/* ENGINE_EP_MSG: its one peer, from fi_connect or fi_accept on */
	struct engine_peer *only;
	/* NULL for the other kinds */
	const struct engine_cm_ops *cm_ops;
	/* Owned; the state of its connection */
	struct engine_cm *cm;
};

/* engine_ep_look_next - look in the next round: a wire but the first is to be polled */
static inline void engine_ep_look_next(struct engine_ep *ep)
{
	ep->look_full -= ep->look_wait - 1;
	ep->look_wait = 1;
}

/* engine_expect - something may arrive over this wire: poll it in every round again */
static inline void engine_expect(struct engine_ep *ep, uint32_t wire_idx)
{
	struct engine_wire *w = &ep->wires[wire_idx];

	w->idle = w->wait = 0;
	if (wire_idx) {
		ep->others_wait = 0;
		engine_ep_look_next(ep);
	}
}

#endif
