/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A domain: everything of it is serialized by whoever holds it (guard.h).
 */
#ifndef WEFT_ENGINE_DOMAIN_H
#define WEFT_ENGINE_DOMAIN_H

#include <rdma/fi_domain.h>
#include "armed.h"
#include "auth.h"
#include "family.h"
#include "pool.h"
#include "task.h"

struct engine_domain;
struct engine_mrs;
struct engine_peer;

/* Which data call has the lock of a domain that is safe (guard.h). */
enum engine_lock_use {
	ENGINE_LOCK_NO_CALL,
	ENGINE_LOCK_CALL,
	ENGINE_LOCK_LATE, /* one that found the domain without a lock when it came */
};

/*
 * What progress is to the rooms below it: peers, messages and one-sided operations call it where they need a
 * round, or where an event of a peer concerns what they do not know. Constant, installed when the domain is opened.
 */
struct engine_domain_ops {
	/* A round of progress, in a call of the program. */
	void (*progress)(struct engine_domain *domain);
	/* Send what is queued for the peer, as far as it goes. */
	void (*flush)(struct engine_peer *peer);
	/* The peer's conns have ended: fail what was under way; @orderly: it closed them. */
	void (*lost)(struct engine_peer *peer, int err, bool orderly);
	/* The conn that was the peer's route is gone: the wire has forgotten what it carried. */
	void (*route_lost)(struct engine_peer *peer);
	/* Another address than before names the peer, and its endpoint shares its receives. */
	void (*renamed)(struct engine_peer *peer);
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
	bool tasks_running;  /* engine_tasks_run() is under way */
	struct list tasks;   /* struct engine_task that are due */
	struct pool rx_pool; /* struct engine_rx: of endpoints and of what they share */
	struct list
		works; /* struct engine_work that has not begun, in the order of the calls */
	struct pool work_pool;
	struct list not_enabled; /* endpoints that are not enabled, domain_link (ep_early.h) */
	struct engine_mrs *mr;	 /* memory regions (regions.h), owned */
	struct engine_eq
		*eq; /* of what has none of its own when it is enabled or opened; or NULL */
	const struct engine_domain_ops *ops;
	uint64_t tx_level; /* ENGINE_TX_LEVELS that it was opened with */
	_Atomic int refs;
};

#endif
