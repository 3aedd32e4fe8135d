/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The endpoint engine: the objects behind the fids of shm, tcp and link, and what a
 * provider tells the engine about itself. Everything here belongs to one domain and is
 * serialized by whoever holds it (see wire.h).
 */
#ifndef WEFT_ENGINE_H
#define WEFT_ENGINE_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
#include "auth.h"
#include "av.h"
#include "cq.h"
#include "eq.h"
#include "list.h"
#include "match.h"
#include "pool.h"
#include "wire.h"

#define ENGINE_IOV_MAX	  WIRE_IOV_MAX
#define ENGINE_INJECT_MAX 4096u
#define ENGINE_FREE_MAX	  256u /* payload of a message that takes no credit, bytes */
#define ENGINE_WIRE_MAX	  4u
#define ENGINE_TX_SIZE	  1024u /* default of tx_attr.size; more are bounded by memory alone */
#define ENGINE_ASKED_MAX  1024u /* requests under way at one peer */
#define ENGINE_RX_SIZE	  1024u /* rx_attr.size answered; posting is bounded by memory alone */
#define ENGINE_OBJECT_CNT \
	65536u /* queues, endpoints, counters, regions answered: memory bounds them */
#define ENGINE_TAG_FORMAT   0xaaaaaaaaaaaaaaaaull /* all bits are the program's to use */
#define ENGINE_BUDGET	    (64u << 20)		  /* default of the parameter below, bytes */
#define ENGINE_PARAM_BUDGET "rx_budget"		  /* FI_<PROVIDER>_RX_BUDGET */
#define ENGINE_CTX_CNT \
	1024u /* contexts of a domain, and sharers of one, as answered: memory bounds them */
#define ENGINE_MIN_MULTI_RECV 4096u /* default of FI_OPT_MIN_MULTI_RECV */
/* What every provider over the engine offers for its contexts (offer.c). */
#define ENGINE_TX_CAPS                                                                 \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_COLLECTIVE | FI_SEND | FI_READ | \
	 FI_WRITE | FI_NAMED_RX_CTX | FI_FENCE | FI_TRIGGER | FI_RMA_PMEM)
#define ENGINE_RX_CAPS                                                                        \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_COLLECTIVE | FI_RECV | FI_REMOTE_READ | \
	 FI_REMOTE_WRITE | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV |                     \
	 FI_TAGGED_MULTI_RECV | FI_RMA_EVENT | FI_TRIGGER | FI_RMA_PMEM)
#define ENGINE_CAPS (ENGINE_TX_CAPS | ENGINE_RX_CAPS)
#define ENGINE_TX_OP_FLAGS                                                       \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
	 FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE | FI_TRIGGER)
/* When a send is complete. */
#define ENGINE_TX_LEVELS                                                    \
	(FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | \
	 FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE)
/* How a send completes means nothing to a receive, and programs set it there too. */
#define ENGINE_RX_OP_FLAGS                                                             \
	(FI_COMPLETION | FI_MULTI_RECV | FI_TRIGGER | FI_INJECT | FI_INJECT_COMPLETE | \
	 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_COMMIT_COMPLETE)
#define ENGINE_DOMAIN_CAPS (FI_SHARED_AV | FI_AV_USER_ID | FI_PEER) /* beside whom it reaches */
#define ENGINE_SIDE_CAPS   (FI_LOCAL_COMM | FI_REMOTE_COMM | ENGINE_DOMAIN_CAPS)
#define ENGINE_MSG_ORDER                                                                \
	(FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_RAS | FI_ORDER_WAR | FI_ORDER_WAW |     \
	 FI_ORDER_WAS | FI_ORDER_SAR | FI_ORDER_SAW | FI_ORDER_SAS | FI_ORDER_RMA_RAR | \
	 FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | \
	 FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)
/* Bytes up to which one-sided operations keep their order unasked; beyond, by waiting for one another. */
#define ENGINE_ORDER_MAX 4096u

struct weft_route;

/*
 * What a provider is to the engine: a name, a way to write addresses, and the wires that its
 * endpoints use. Constant, one per provider.
 */
struct engine_family {
	struct fi_provider *provider;	    /* for log lines and names */
	const char *wires[ENGINE_WIRE_MAX]; /* in order of preference, NULL ends */
	uint32_t
		addr_format; /* FI_ADDR_STR: printable, without spaces, with a NUL (ep_names.h) */
	size_t addr_len; /* bytes of an address in that format; of a string at most, with its NUL */
	bool by_nonce; /* it has the nonce, by which peers know the endpoint */
	/*
	 * addr_read - one address of the caller's format
	 * @len: bytes that are there: engine_name_len(); 0 where a string should be and is not
	 * Returns 0, or -FI_EINVAL and one sentence in @why for bytes that are none.
	 */
	int (*addr_read)(const void *addr, size_t len, struct weft_addr *out, char *why,
			 size_t why_len);
	/*
	 * bind_read - where an endpoint is asked to listen: like addr_read, but port 0 and the address
	 * of any interface are allowed. NULL: the provider can't be told.
	 */
	int (*bind_read)(const void *addr, size_t len, struct weft_addr *out, char *why,
			 size_t why_len);
	/* addr_write - the same back; returns its bytes, of a string with the NUL: at most addr_len */
	size_t (*addr_write)(const struct weft_addr *addr, void *out);
	/*
	 * addr_str - printable form, as fi_av_straddr wants it
	 * @len: as for addr_read
	 * Returns the length it needs with its NUL.
	 */
	size_t (*addr_str)(const void *addr, size_t len, char *buf, size_t buf_len);
	/* resolve - node and service to an address. Returns 0 or -FI_E* */
	int (*resolve)(const char *node, const char *service, uint64_t flags,
		       struct weft_addr *out);
	/*
	 * The op tables of an endpoint, for callers that serialize (FI_THREAD_DOMAIN); those of
	 * FI_THREAD_SAFE take the lock around these.
	 */
	struct fi_ops_msg *msg;
	struct fi_ops_tagged *tagged;
	/* closing - NULL, or called with what went over an enabled endpoint's wires before it ends */
	void (*closing)(struct fi_provider *provider, const struct weft_route *routes,
			size_t cnt);
};

struct engine_fabric {
	struct fid_fabric fid;
	const struct engine_family *family;
	_Atomic int refs; /* the program's, until it closes it, and of what is open in it */
};

struct engine_mrs;

/*
 * Whose users sleep until it has something, while the wires of its domain are armed (bell.c): a queue,
 * a counter, an event queue, the domain's thread.
 */
struct engine_armed {
	struct list link; /* domain->armed */
	/* ring - make its descriptor readable; the caller holds the domain. NULL: it has none */
	void (*ring)(struct engine_armed *armed);
	/* watch - call engine_armed_wake() when it gets something, from now on, or not any more; or NULL */
	void (*watch)(struct engine_armed *armed, bool on);
	uint32_t threads; /* that sleep in a call of ours */
	bool descriptor;  /* somebody may sleep on its descriptor */
	bool came;	  /* they have been woken: it leaves the list at the end of a round */
};

/* Progress that a domain makes without the program (auto.c). */
struct engine_auto {
	bool asked; /* from the first endpoint on */
	struct platform_thread thread;
	_Atomic bool
		rings; /* descriptors that nothing else rings rely on it; stays in the child of a fork */
	_Atomic bool eager; /* somebody sleeps on such a one: look at once */
	struct engine_armed armed;
	bool listed; /* counts as one who sleeps there; the domain's */
	/* the thread's own */
	bool asleep;	  /* this nap ends when the domain has something */
	uint32_t seen;	  /* domain->rounds at the last look */
	uint64_t nap_ns;  /* between rounds of its own */
	uint64_t away_ns; /* between looks at a program that makes rounds itself */
};

/* How long it is worth while to look again and again before one sleeps (sleep.c). */
struct engine_patience {
	_Atomic uint32_t spin_ns; /* 0: not known yet */
	_Atomic uint32_t vain;	  /* times in a row that it was for nothing */
};

/*
 * What those who block in a domain sleep on (waiter.c). Nothing is opened before somebody does. What
 * is not protected by its lock belongs to the domain.
 */
struct engine_waiter {
	bool open;	   /* there are these descriptors, owned: */
	int nest;	   /* holds the bells of all wires */
	int bell;	   /* wakes threads that sleep in calls */
	int timer;	   /* wakes programs that sleep on descriptors */
	uint32_t forks;	   /* the process that opened them */
	bool armed;	   /* the wires are, or some of them */
	bool parted;	   /* nest: none of the bells, until something is armed */
	uint32_t nested;   /* objects whose descriptors hold the nest */
	uint64_t timer_ns; /* when the timer rings */
	struct engine_patience patience;
	struct platform_lock lock; /* asleep, rung; rank 3 */
	uint32_t asleep;	   /* threads that have not said that they are awake */
	bool rung;		   /* the bell */
};

/* Which data call has the lock of a domain that is safe (guard.h). */
enum engine_lock_use {
	ENGINE_LOCK_NO_CALL,
	ENGINE_LOCK_CALL,
	ENGINE_LOCK_LATE, /* one that found the domain without a lock when it came */
};

struct engine_domain {
	struct fid_domain fid;
	struct engine_fabric *fabric;
	const struct engine_family *family;
	struct engine_auth auth; /* key of endpoints that have none of their own */
	struct platform_lock
		lock; /* everything of the domain, when safe, else control calls (guard.h); rank 1 */
	_Atomic bool
		safe; /* FI_THREAD_SAFE, whatever is not FI_THREAD_DOMAIN, and what has a thread */
	bool unified; /* not safe, and control calls come one at a time with data calls */
	_Atomic bool inside; /* not safe: a data call is under way */
	_Atomic bool
		claimed; /* a control call holds or wants the domain; stays when it gets its lock late */
	_Atomic uint8_t lock_use; /* enum engine_lock_use */
	_Atomic uint32_t wanted;  /* calls that wait for who has the domain */
	bool gathered;		  /* a wire has sent that wants to be polled after it */
	bool untold;		  /* it was said that an endpoint has nobody to tell of ends */
	uint32_t idle;		  /* rounds of progress in a row that moved nothing */
	uint32_t yield_after; /* so many of them before others may have the core (yield.h) */
	struct list eps;      /* enabled endpoints, struct engine_ep.domain_link */
	struct list due;      /* struct engine_cntr with work whose time has come */
	bool running;	      /* such work */
	uint32_t due_round;   /* how often it was run */
	struct list armed;    /* struct engine_armed */
	struct engine_waiter waiter;
	_Atomic uint32_t rounds; /* of progress that the program made */
	struct engine_auto progress;
	bool coll_running;   /* rounds of collectives */
	struct list colls;   /* struct engine_coll with something that may go on */
	struct pool rx_pool; /* struct engine_rx: of endpoints and of what they share */
	struct list
		works; /* struct engine_work that has not begun, in the order of the calls */
	struct pool work_pool;
	struct list early;     /* endpoints that are not enabled, domain_link (ep_early.h) */
	struct engine_mrs *mr; /* memory regions (mr_fid.h), owned */
	struct engine_eq
		*eq; /* of what has none of its own when it is enabled or opened; or NULL */
	uint64_t tx_level; /* ENGINE_TX_LEVELS that it was opened with */
	_Atomic int refs;
};

/* What one sleeps on for objects of several domains: a nest of waiters and a bell. */
struct engine_nest {
	bool open; /* these are, owned: */
	int nest;
	int bell;	/* in the nest */
	uint32_t forks; /* the process that opened them */
};

struct engine_waitset {
	struct fid_wait fid;
	struct engine_fabric *fabric;
	enum fi_wait_obj obj;
	struct engine_nest nest;
	bool given; /* the program has the nest's number, and may sleep on it between its calls */
	struct engine_patience patience;
	struct platform_lock lock; /* members, nest, given; rank 0 */
	uint32_t asleep;	   /* threads in fi_wait() */
	struct list members;	   /* struct engine_wait.member */
	struct list eqs;	   /* struct engine_eq.member */
	_Atomic int refs;	   /* the program's, until it closes it, and its members' */
};

/* How to wait for a queue or counter, and who does (wait.h). */
struct engine_wait {
	struct fid *fid; /* of the queue or counter */
	struct engine_domain *domain;
	enum fi_wait_obj obj;
	/* FI_WAIT_FD, and FI_WAIT_UNSPEC once the program asks for it: owned; else -1. Written with the domain held */
	_Atomic int descriptor;
	bool nested; /* that is a nest over the domain's waiter; else a bell that the domain's thread rings */
	uint32_t forks;		    /* the process that opened it */
	struct engine_waitset *set; /* FI_WAIT_SET */
	struct list member;	    /* set->members */
	struct engine_armed armed;
	struct list polled; /* struct poll_member of the poll sets that it is in */
};

struct engine_av {
	struct fid_av fid;
	struct engine_domain *domain;
	struct av_table table;
	uint32_t
		rx_ctx_bits; /* of an address that say which receive context of a scalable endpoint */
	struct list eps;		/* bound endpoints, struct engine_ep.av_link */
	struct list sets;		/* struct engine_av_set */
	uint64_t set_cnt;		/* ever made */
	uint64_t flags;			/* of fi_av_open: FI_EVENT, FI_READ, FI_AV_USER_ID */
	struct engine_eq *eq;		/* FI_EVENT: where insertions end; NULL until bound */
	struct platform_shared *shared; /* one with a name: what processes share, */
	struct av_view *view;		/* and our view of it; else NULL */
};

struct engine_cq {
	struct fid_cq fid;
	struct engine_domain *domain;
	struct cq queue;
	enum fi_cq_format format;
	enum fi_cq_wait_cond cond;
	struct engine_wait wait;
	_Atomic uint32_t signals,
		obeyed; /* fi_cq_signal: how often, as of which sreads have returned, */
	uint32_t tried; /* and as of which fi_trywait has told */
	uint32_t found; /* reads that find something until one looks at the clock */
	uint32_t found_step, looks;
	uint32_t found_rounds; /* of the domain, at the last look */
	uint64_t found_ns;     /* the last look */
	_Atomic int refs;
};

struct engine_eq {
	struct fid_eq fid;
	struct engine_fabric *fabric;
	struct platform_lock lock; /* queue; rank 2 */
	struct eq queue;
	enum fi_wait_obj wait;
	bool rung;		    /* the nest's bell; it is while there is something */
	struct engine_waitset *set; /* FI_WAIT_SET */
	struct list member;	    /* set->eqs */
	struct engine_nest nest;    /* opened and closed with both locks held */
	struct engine_patience patience;
	struct platform_lock
		watch_lock; /* watched, asleep; rank 0, after a wait set's, held while those make progress */
	_Atomic bool given;  /* as in a wait set; written with watch_lock */
	struct list watched; /* domains with objects that are bound here */
	_Atomic int refs;    /* the program's, until it closes it, and those domains' */
	bool closed;	     /* with lock: nobody reads any more */
	uint32_t asleep;     /* threads in fi_eq_sread() */
};

struct engine_cntr;
struct engine_coll;

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
	/* The tables of one that can't do all that the family can. */
	struct fi_ops_msg msg;
	struct fi_ops_tagged tagged;
	struct fi_ops_rma rma;
	struct fi_ops_atomic atomic;
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

/* Message flags inside the engine; the low bits are enum packet_flag. */
enum engine_flag {
	ENGINE_INJECT = 1 << 8, /* the buffer is the caller's again on return; no completion */
	ENGINE_COMPLETE = 1 << 9, /* success writes a completion */
	ENGINE_MORE = 1 << 10,	  /* FI_MORE */
	ENGINE_ASKED = 1 << 11,	  /* a receive that has asked its sender for the payload */
	ENGINE_MULTI = 1 << 24, /* a receive whose buffer takes messages until it is used up */
	ENGINE_PART = 1 << 25,	/* a message in such a buffer */
	ENGINE_FENCE = 1 << 12, /* FI_FENCE: not before everything to this peer has ended */
	ENGINE_FINISHED =
		1
		<< 13, /* a send whose receiver is done while the wire still has its payload */
	ENGINE_DEFERRED = 1 << 26,  /* deferred work: a counter of its own tells of its end, */
	ENGINE_TOLD = 1 << 27,	    /* and its endpoint tells of it too */
	ENGINE_BY_PACKET = 1 << 28, /* an access that the wire can't do without the target */
	/* A one-sided operation that ends when the target says so, */
	ENGINE_DELIVERED = 1 << 29, /* ... always: FI_DELIVERY_COMPLETE */
	ENGINE_ARRIVED =
		1 << 30, /* ... unless the wire alone is enough: FI_TRANSMIT_COMPLETE */
};

/* Flags of a send that ends later than it leaves, or must not leave yet. */
#define ENGINE_SLOW (PACKET_DELIVERY | PACKET_ACKED | ENGINE_FENCE)

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
	uint32_t rx_idx;	  /* receive context of the peer */
	uint32_t seq;		  /* once sent */
	int error;		  /* NAK came before ACK */
	struct engine_cntr *also; /* ENGINE_DEFERRED: counts it; held; or NULL */
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

struct engine_mr;

/* Where the payload of a large write goes. */
struct engine_landing {
	struct pool_object pool;
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
	struct engine_rx *whole;  /* ENGINE_PART: the buffer that it is in */
	struct engine_cntr *also; /* ENGINE_DEFERRED: counts it; held; or NULL */
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
	struct list link;	 /* HELD_EARLY: peer->early; HELD_CLAIMED: rxq->claimed */
	struct list arriving;	 /* peer->arriving while the payload is not whole */
	struct engine_peer *peer;
	struct engine_rx_ctx *ctx; /* that it is for */
	struct packet packet;	   /* EAGER or RTS; a request that waits for its turn */
	struct packet_rts rts;
	struct engine_rx *rx; /* HELD_MATCHED: receive, or NULL: to be dropped when whole */
	void *claim;	      /* HELD_CLAIMED: context of that receive */
	enum engine_held_state {
		HELD_EARLY,   /* waits for messages before it */
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
		told; /* what completions say: its place in the AV or an id of the program's */
	uint32_t ready;	    /* up, and nothing is queued before a new message */
	uint32_t rx_seq;    /* of the next message expected */
	uint32_t credit;    /* eager payload that we may send, bytes */
	uint32_t owed;	    /* eager payload freed here and not granted again yet, bytes */
	uint32_t early_cnt; /* messages that wait for their turn */
	uint16_t tx_epoch;  /* PACKET_EPOCH() of ours */
	uint16_t rx_epoch;  /* ... and of its */
	struct engine_ep *ep;

	struct wire_conn *conns[ENGINE_WIRE_MAX]; /* by wire: ours or accepted */
	uint32_t ours;				  /* bit per wire: conns[] was begun by us */
	uint32_t up;				  /* bit per wire: conns[] is up */
	uint32_t unreachable;			  /* bit per wire: does not lead there */
	uint32_t life; /* of our conns to it: our hello says so; grows when they are given up */
	uint32_t held_cnt;    /* messages of it that are held */
	uint32_t slots;	      /* of ep->peers that lead here */
	uint32_t peer_life;   /* of its last hello */
	uint8_t state;	      /* enum engine_peer_state */
	bool self;	      /* this endpoint */
	bool gone;	      /* its process is proven to have ended */
	uint8_t ack_due;      /* enum engine_ack_when */
	uint32_t acked;	      /* everything of ours before that seq has arrived */
	uint32_t early_large; /* of what waits for its turn, requests above ENGINE_EARLY_MAX */
	uint64_t request_cnt; /* of tx_seq, one-sided requests; the others are messages */
	uint64_t settled_cnt; /* of those messages, it has taken so many at least (direct.c) */
	uint32_t naks_told;   /* refusals by seq that were sent in this life */
	uint64_t ack_tx_seq;  /* tx_seq when it was last sent an ACK */
	uint32_t ack_told;    /* what that said */
	uint32_t asks_seq;    /* tx_seq when it was last asked for one */
	uint32_t naks_heard;  /* ... and that have come */
	uint32_t ack_seq, ack_naks; /* of an ACK that has overtaken refusals, */
	bool ack_waits;		    /* if there is one */
	bool several;		    /* more than one conn has led here in this life */
	bool after_large; /* the last one-sided operation keeps order by waiting: the next one too */
	uint32_t asked_cnt; /* requests of ours that it has to answer before they end */
	/* Requests that were complete when they left (quiet.h): */
	uint32_t quiet_cnt;		 /* without an answer yet, at most; */
	uint32_t quiet_seq;		 /* behind the last one, */
	uint32_t quiet_told_seq;	 /* and behind the last one that was not injected */
	struct engine_tx_ctx *quiet_ctx; /* that it was of */
	uint32_t quiet_errors;		 /* of this life: the log has the first one */
	uint32_t lane_seq;    /* ... before that seq may be overtaken by requests until then */
	uint32_t leaving_cnt; /* of ours, with payload that the wire has not sent yet */
	uint32_t checked;     /* ep->checks, if it has been since */
	bool greeted; /* the window of this life was said in a hello, which may be said again */
	uint32_t window;     /* granted to it, bytes */
	uint32_t credit_max; /* granted to us by its hello, bytes: more is never free */
	uint32_t allowed;    /* eager payload that it may still send, bytes */
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
	struct list early;    /* struct engine_held by seq */
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

struct engine_wire {
	struct wire *wire; /* NULL: could not be opened */
	const struct wire_ops *ops;
	uint32_t idle; /* polls in a row that moved nothing */
	uint32_t
		wait; /* rounds to leave it out before the next poll, from ep->others_full on */
	bool nested;  /* its bell is in the domain's waiter: */
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
	bool unmet_told;       /* the log has a peer that nobody is at yet */
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
	uint32_t life;	      /* times that a peer's conns were given up */
	uint32_t peer_cnt[2]; /* in all, by kind of address: nonce, service */
	uint64_t budget;      /* eager payload not granted to any peer yet, bytes */
	size_t tx_size;	      /* sends that may wait for a connection or for room */
	size_t queued_cnt;    /* that do */
	size_t access_cnt;    /* one-sided operations under way: at most tx_size */
	size_t at_once; /* tx_size for small writes and atomics that look at nothing else; 0: there are none */
	size_t order_max; /* bytes up to which order is asked for; 0: no more than is kept anyway */
	uint64_t caps;
	struct engine_coll *coll; /* owned; NULL until a collective is used */
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

static inline struct engine_ctx *engine_ctx_of(struct fid_ep *fid)
{
	return container_of(fid, struct engine_ctx, fid);
}

/* engine_source_id - what the matcher of @q knows this peer by */
static inline uint64_t engine_source_id(const struct engine_rxq *q,
					const struct engine_peer *peer)
{
	if (likely(!q->shared))
		return (uintptr_t)peer;
	return peer->addr == FI_ADDR_NOTAVAIL ? UINT64_MAX : peer->addr + 1;
}

/*
 * Entry points for providers: fi_provider.fabric, and what a provider's getinfo offers in common.
 * engine_fabric_open - @family is the provider's, constant
 */
int engine_fabric_open(const struct engine_family *family, struct fi_fabric_attr *attr,
		       struct fid_fabric **fabric, void *context);

/* What providers offer of sending and receiving (offer.c). Constant, though fi_info's pointers are not */
extern struct fi_tx_attr engine_tx_offer;
extern struct fi_rx_attr engine_rx_offer;

/* engine_define_params - declare the engine's parameters for a provider; from its entry point */
void engine_define_params(const struct fi_provider *provider);

/* Op tables that look up the peer's route and call its wire's send: link, tcp. */
extern struct fi_ops_msg engine_routed_msg_ops;
extern struct fi_ops_tagged engine_routed_tagged_ops;

#endif
