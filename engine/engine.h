/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The endpoint engine: the objects behind the fids of shm, tcp and link, and what a
 * provider tells the engine about itself. Everything here belongs to one domain and is
 * serialized by whoever holds it (see wire.h).
 */
#ifndef WEFT_ENGINE_H
#define WEFT_ENGINE_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
#include "av.h"
#include "cq.h"
#include "eq.h"
#include "list.h"
#include "match.h"
#include "pool.h"
#include "wire.h"

#define ENGINE_IOV_MAX WIRE_IOV_MAX
#define ENGINE_INJECT_MAX 256u
#define ENGINE_WIRE_MAX 4u
#define ENGINE_TX_SIZE 1024u /* default and largest tx_attr.size */
#define ENGINE_RX_SIZE 1024u /* rx_attr.size answered; posting is bounded by memory alone */
#define ENGINE_BUDGET (64u << 20) /* default of the parameter below, bytes */
#define ENGINE_PARAM_BUDGET "rx_budget" /* FI_<PROVIDER>_RX_BUDGET */
#define ENGINE_CAPS (FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_DIRECTED_RECV | FI_SOURCE)

struct weft_route;

/*
 * What a provider is to the engine: a name, a way to write addresses, and the wires that its
 * endpoints use. Constant, one per provider.
 */
struct engine_family {
	struct fi_provider *provider; /* for log lines and names */
	const char *wires[ENGINE_WIRE_MAX]; /* in order of preference, NULL ends */
	uint32_t addr_format;
	size_t addr_len; /* bytes of an address in that format, as fi_getname gives it */
	/*
	 * addr_read - one address of the caller's format
	 * Returns 0, or -FI_EINVAL and one sentence in @why for bytes that are none.
	 */
	int (*addr_read)(const void *addr, struct weft_addr *out, char *why, size_t why_len);
	/*
	 * bind_read - where an endpoint is asked to listen: like addr_read, but port 0 and the address
	 * of any interface are allowed. NULL: the provider can't be told.
	 */
	int (*bind_read)(const void *addr, struct weft_addr *out, char *why, size_t why_len);
	/* addr_write - the same back, addr_len bytes */
	void (*addr_write)(const struct weft_addr *addr, void *out);
	/* addr_str - printable form, as fi_av_straddr wants it; returns the length it needs with its NUL */
	size_t (*addr_str)(const void *addr, char *buf, size_t len);
	/* resolve - node and service to an address. Returns 0 or -FI_E* */
	int (*resolve)(const char *node, const char *service, uint64_t flags, struct weft_addr *out);
	/*
	 * The op tables of an endpoint, for callers that serialize (FI_THREAD_DOMAIN); those of
	 * FI_THREAD_SAFE take the lock around these.
	 */
	struct fi_ops_msg *msg;
	struct fi_ops_tagged *tagged;
	/* closing - NULL, or called with what went over an enabled endpoint's wires before it ends */
	void (*closing)(const struct weft_route *routes, size_t cnt);
};

struct engine_fabric {
	struct fid_fabric fid;
	const struct engine_family *family;
	_Atomic int refs;
};

struct engine_domain {
	struct fid_domain fid;
	struct engine_fabric *fabric;
	const struct engine_family *family;
	struct platform_lock lock; /* everything of the domain, when safe; rank 1, the only one */
	bool safe;		   /* FI_THREAD_SAFE and whatever is not FI_THREAD_DOMAIN */
	bool gathered;		   /* a wire has sent that wants to be polled after it */
	struct list eps;	   /* enabled endpoints, struct engine_ep.domain_link */
	_Atomic int refs;
};

struct engine_av {
	struct fid_av fid;
	struct engine_domain *domain;
	struct av_table table;
	struct list eps; /* bound endpoints, struct engine_ep.av_link */
};

struct engine_cq {
	struct fid_cq fid;
	struct engine_domain *domain;
	struct cq queue;
	enum fi_cq_format format;
	_Atomic bool signaled; /* fi_cq_signal: the next sread returns */
	_Atomic int refs;
};

struct engine_eq {
	struct fid_eq fid;
	struct engine_fabric *fabric;
	struct platform_lock lock; /* queue; rank 2 */
	struct eq queue;
};

/* Message flags inside the engine; the low bits are enum packet_flag. */
enum engine_flag {
	ENGINE_INJECT = 1 << 8,	  /* the buffer is the caller's again on return; no completion */
	ENGINE_COMPLETE = 1 << 9, /* success writes a completion */
	ENGINE_MORE = 1 << 10,	  /* FI_MORE */
	ENGINE_ASKED = 1 << 11,	  /* a receive that has asked its sender for the payload */
};

/* One message to send, as the op tables express it; lives on the caller's stack. */
struct engine_msg {
	const void *buf; /* iov_cnt == 0 */
	size_t len;	 /* bytes in all */
	uint64_t tag;
	uint64_t data;
	void *context;
	const struct iovec *iov;
	uint32_t iov_cnt; /* 0: buf and len say it all; at most ENGINE_IOV_MAX */
	uint32_t flags;	  /* enum engine_flag, PACKET_TAGGED, PACKET_CQ_DATA */
};

/* A send under way that was not finished at once. */
struct engine_tx {
	struct pool_object pool; /* its id goes over the wire */
	struct list link;	 /* peer->queued or peer->started */
	struct wire_op op;
	struct engine_peer *peer;
	void *context;
	const void *buf; /* first byte: for the completion */
	uint64_t tag, data;
	size_t len;	/* of the message */
	size_t want;	/* bytes that the receiver asked for, after CTS */
	size_t sent;	/* of those, gone */
	size_t chunk;	/* in the hands of the wire */
	uint64_t peer_id; /* receiver's operation, after CTS */
	uint32_t flags;
	uint32_t iov_cnt;
	enum engine_tx_state {
		TX_QUEUED, /* nothing was sent */
		TX_EAGER,  /* the wire sends it whole */
		TX_RTS,	   /* the receiver knows of it */
		TX_DATA,   /* the receiver asked for the payload */
	} state;
	void *copy; /* ENGINE_INJECT: our copy, owned */
	struct iovec iov[ENGINE_IOV_MAX];
};

/* A posted receive, until its completion. */
struct engine_rx {
	struct pool_object pool; /* its id goes over the wire */
	struct match_recv match; /* while posted */
	struct list link;	 /* ep->posted while posted, peer->receiving after a match with RTS */
	struct wire_op op;
	struct engine_peer *peer; /* sender, once matched */
	void *context;
	uint64_t tag, data;
	size_t cap;	/* bytes of iov */
	size_t len;	/* of the message */
	size_t got;	/* bytes that have arrived, of min(cap, len) */
	size_t incoming; /* bytes that the wire is writing */
	uint64_t peer_id; /* sender's operation, of a rendezvous */
	uint32_t flags;	  /* PACKET_TAGGED: which queue; PACKET_CQ_DATA; ENGINE_COMPLETE */
	uint32_t iov_cnt;
	struct iovec iov[ENGINE_IOV_MAX];
};

/*
 * A message that arrived before its receive, or before its turn.
 */
struct engine_held {
	struct pool_object pool; /* when it is from held_pool */
	struct match_msg match;	 /* HELD_STORED */
	struct list link;	 /* HELD_EARLY: peer->early; HELD_CLAIMED: ep->claimed */
	struct list arriving;	 /* peer->arriving while the payload is not whole */
	struct engine_peer *peer;
	struct packet packet;	 /* EAGER or RTS */
	struct packet_rts rts;
	struct engine_rx *rx;	 /* HELD_MATCHED: receive, or NULL: to be dropped when whole */
	void *claim;		 /* HELD_CLAIMED: context of that receive */
	enum engine_held_state {
		HELD_EARLY,   /* waits for messages before it */
		HELD_STORED,  /* in the matcher */
		HELD_CLAIMED, /* taken by FI_PEEK | FI_CLAIM */
		HELD_MATCHED, /* waits for the rest of its payload */
	} state;
	bool whole;	/* the payload has arrived */
	bool pooled;	/* from held_pool */
	bool lost;	/* RTS of a sender that is gone */
	bool counted;	/* its payload is part of what the peer may send before it is freed */
	uint8_t bytes[]; /* eager payload */
};

#define ENGINE_HELD_SMALL 64u /* payload room of one from held_pool */

/* A control packet that found no room. */
struct engine_ctl {
	struct pool_object pool;
	struct list link; /* peer->ctl */
	struct packet packet; /* op, tag and data */
	struct packet_cts cts;
	bool with_cts;
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
	fi_addr_t addr;		     /* in the AV, or FI_ADDR_NOTAVAIL */
	uint32_t ready;		     /* up, and nothing is queued before a new message */
	uint32_t rx_seq;	     /* of the next message expected */
	uint32_t credit;	     /* eager payload that we may send, bytes */
	uint32_t owed;		     /* eager payload freed here and not granted again yet, bytes */
	uint32_t early_cnt;	     /* messages that wait for their turn */
	uint16_t tx_epoch;	     /* low bits of our epoch */
	uint16_t rx_epoch;	     /* low bits of its epoch */
	struct engine_ep *ep;

	struct wire_conn *conns[ENGINE_WIRE_MAX]; /* by wire: ours or accepted */
	uint32_t ours;	      /* bit per wire: conns[] was begun by us */
	uint32_t up;	      /* bit per wire: conns[] is up */
	uint32_t unreachable; /* bit per wire: does not lead there */
	uint32_t life;	      /* of our conns to it: our hello says so; grows when they are given up */
	uint32_t held_cnt;    /* messages of it that are held */
	uint32_t slots;	      /* of ep->peers that lead here */
	uint32_t peer_life;   /* of its last hello */
	uint8_t state;	      /* enum engine_peer_state */
	bool self;	      /* this endpoint */
	bool gone;	      /* its process is proven to have ended */
	bool greeted;	      /* the window of this life was said in a hello, which may be said again */
	uint32_t window;      /* granted to it, bytes */
	uint32_t credit_max;  /* granted to us by its hello, bytes: more is never free */
	uint32_t allowed;     /* eager payload that it may still send, bytes */
	uint64_t epoch;	      /* of its last hello; 0: never met */
	uint64_t retry_ns;    /* PEER_CONNECTING without a conn: when to try again */
	uint64_t since_ns;    /* when connecting began */
	struct weft_addr address;
	struct list all;       /* ep->all */
	struct list blocked;   /* ep->blocked: something is queued, or a connection is to be made */
	struct list queued;    /* struct engine_tx not started, in order */
	struct list started;   /* struct engine_tx that wait for the wire or the receiver */
	struct list pushing;   /* struct engine_tx that wait for room to send payload */
	struct list receiving; /* struct engine_rx matched, payload under way */
	struct list arriving;  /* struct engine_held whose payload is not whole */
	struct list early;     /* struct engine_held by seq */
	struct list ctl;       /* struct engine_ctl */
};

_Static_assert(offsetof(struct engine_peer, ep) <= 64, "the fast paths touch one line of a peer");

struct engine_wire {
	struct wire *wire; /* NULL: could not be opened */
	const struct wire_ops *ops;
	uint32_t idle;	   /* polls in a row that moved nothing */
	uint32_t wait;	   /* rounds to leave it out before the next poll */
	uint64_t tx_msgs, tx_bytes, rx_msgs, rx_bytes; /* of conns that are gone */
	char why[96];	   /* why it is not open */
};

/* engine_expect - something may come over this wire: poll it in every round again */
static inline void engine_expect(struct engine_wire *w)
{
	w->idle = w->wait = 0;
}

struct engine_ep {
	struct fid_ep fid;
	struct engine_domain *domain;
	const struct engine_family *family;
	struct engine_av *av;
	struct engine_cq *tx_cq, *rx_cq;
	uint32_t tx_flags; /* of calls without flags: ENGINE_COMPLETE, ENGINE_INJECT */
	uint32_t rx_flags; /* of calls without flags: ENGINE_COMPLETE */
	bool tx_selective, rx_selective;
	bool enabled;
	bool directed_recv; /* fi_recv's source counts */
	struct engine_peer **peers; /* by fi_addr_t; NULL until first used */
	size_t peer_cap;
	struct match *tagged, *msg;
	struct pool tx_pool, rx_pool, ctl_pool, held_pool;
	struct list posted;  /* struct engine_rx, post order */
	struct list claimed; /* struct engine_held */
	struct list blocked; /* struct engine_peer */
	struct list all;     /* struct engine_peer */
	struct list domain_link, av_link;
	uint32_t wire_cnt; /* the last one is the loop */
	struct engine_wire wires[ENGINE_WIRE_MAX];
	uint32_t tick;	     /* rounds of progress */
	bool slow;	     /* they come seldom */
	uint64_t clock_ns;   /* last look at the clock */
	uint64_t check_ns;   /* last liveness check */
	uint64_t epoch;	     /* random, of this fi_enable */
	uint32_t life;	     /* times that a peer's conns were given up */
	uint32_t peer_cnt[2]; /* in all, by kind of address: nonce, service */
	uint64_t budget;     /* eager payload not granted to any peer yet, bytes */
	size_t tx_size;	     /* sends that may wait for a connection or for room */
	size_t queued_cnt;   /* that do */
	size_t min_multi_recv;
	uint64_t caps;
	struct weft_addr bind;	  /* where to listen: fi_info.src_addr, fi_setname */
	struct weft_addr address; /* full, after fi_enable */
};

/*
 * Entry points for providers: fi_provider.fabric, and what a provider's getinfo offers in common.
 * engine_fabric_open - @family is the provider's, constant
 */
int engine_fabric_open(const struct engine_family *family, struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		       void *context);

/* engine_define_params - declare the engine's parameters for a provider; from its entry point */
void engine_define_params(const struct fi_provider *provider);

/* Op tables that look up the peer's route and call its wire's send: link, tcp. */
extern struct fi_ops_msg engine_routed_msg_ops;
extern struct fi_ops_tagged engine_routed_tagged_ops;

#endif
