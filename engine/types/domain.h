/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A domain. Its holder serializes everything in it (guard.h).
 */
#ifndef WEFT_ENGINE_DOMAIN_H
#define WEFT_ENGINE_DOMAIN_H

#include <rdma/fi_domain.h>
#include "auth.h"
#include "family.h"
#include "pool.h"
#include "task.h"
#include "waits.h"

struct engine_domain;
struct engine_mrs;
struct engine_peer;

/* Which kind of data call has the lock of a domain with @safe set (guard.h). */
enum engine_lock_use {
	ENGINE_LOCK_NO_CALL,
	ENGINE_LOCK_CALL,
	ENGINE_LOCK_LATE, /* a call that entered before the domain had a lock */
};

/*
 * Calls into progress/ by the rooms below it. Constant, installed when the domain is opened.
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

/* The thread of a domain with automatic progress (auto.c). */
struct engine_auto {
	/* Set from the first endpoint on */
	bool asked;
	struct platform_thread thread;
	/*
	 * Descriptors rely on the thread because nothing else rings them; kept in the child of
	 * a fork
	 */
	_Atomic bool rings;
	/* The program sleeps on such a descriptor: look at once */
	_Atomic bool eager;
	struct engine_wait wait;
	/* The thread is counted in @wait; protected by the domain */
	bool listed;
	/* The fields below belong to the thread */
	/* True if the nap ends when the domain has something */
	bool asleep;
	/* Value of domain->rounds at the last look */
	uint32_t seen;
	/* Time between rounds that the thread makes */
	uint64_t nap_ns;
	/* Time between looks at a program that makes progress itself */
	uint64_t away_ns;
};

struct engine_domain {
	struct fid_domain fid;
	struct engine_fabric *fabric;
	const struct engine_family *family;
	/* Authorization key of endpoints without one of their own */
	struct engine_auth auth;
	/*
	 * Protects the whole domain while @safe, else serializes control calls (guard.h); rank
	 * 1
	 */
	struct platform_lock lock;
	/*
	 * Data calls take the lock: any model but FI_THREAD_DOMAIN, and domains with a thread
	 */
	_Atomic bool safe;
	/* Not @safe, and the program serializes control calls with data calls */
	bool unified;
	/* Not @safe: a data call is under way */
	_Atomic bool inside;
	/* A control call holds or wants the domain; stays set if it gets the lock late */
	_Atomic bool claimed;
	/* enum engine_lock_use */
	_Atomic uint8_t lock_use;
	/* Calls that wait for the holder of the domain */
	_Atomic uint32_t wanted;
	/* Set if @due, @tasks, @armed, or @acks or @blocked of an endpoint, may not be empty */
	bool pending;
	/* A wire that has to be polled after a send has sent */
	bool gathered;
	/* It was logged that an endpoint has neither a queue nor a counter */
	bool warned_unbound;
	/* Consecutive rounds of progress that moved nothing */
	uint32_t idle;
	/* Value of @idle from which on the core is yielded (yield.h) */
	uint32_t yield_after;
	/* Yields in which a peer seems to have run */
	uint32_t yield_cnt;
	/* Enabled endpoints, by struct engine_ep.domain_link */
	struct list eps;
	/* The only one of @eps; NULL: there are none, or several */
	struct engine_ep *single;
	/* struct engine_cntr whose triggered work is due */
	struct list due;
	/* True while triggered work runs */
	bool running;
	/* Number of times that it was run */
	uint32_t due_round;
	/* struct engine_wait of the objects that threads or programs sleep on */
	struct list armed;
	/* What its threads sleep on; the wires ring it while they are armed (arming.c) */
	struct engine_channel channel;
	/* Some or all of the wires are armed */
	bool wires_armed;
	/* The channel holds no bell of a wire until one is armed */
	bool bells_parted;
	/* Open channels of kind ENGINE_CHANNEL_QUEUE over @channel */
	uint32_t queue_channels;
	/* Rounds of progress that the program made */
	_Atomic uint32_t rounds;
	struct engine_auto progress;
	/* True while engine_tasks_run() runs */
	bool tasks_running;
	/* struct engine_task that are due */
	struct list tasks;
	/* struct engine_rx of all endpoints and shared receive contexts */
	struct pool rx_pool;
	/* struct engine_work that have not begun, in the order of the calls */
	struct list works;
	struct pool work_pool;
	/* Endpoints that are not enabled, by struct engine_ep.domain_link (ep_early.h) */
	struct list not_enabled;
	/* Memory regions (regions.h), owned */
	struct engine_mrs *mr;
	/* Event queue of objects without one of their own, or NULL */
	struct engine_eq *eq;
	const struct engine_domain_ops *ops;
	/* It was opened for MSG endpoints, whose receives name no source */
	bool connects;
	/* Completion level (ENGINE_TX_LEVELS) that it was opened with */
	uint64_t tx_level;
	/* Objects that are open, but for regions, which mr->pool counts */
	_Atomic int refs;
	/* Forks (forked.c): @held from hold to release; @left: this is a child that lacks who was in the domain */
	struct platform_hold hold;
	bool held, left;
};

#endif
