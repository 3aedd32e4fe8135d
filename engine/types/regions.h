/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory regions, and the table of those that peers may access.
 */
#ifndef WEFT_ENGINE_REGIONS_H
#define WEFT_ENGINE_REGIONS_H

#include <rdma/fi_domain.h>
#include "bounds.h"
#include "mr.h"
#include "mr_ops.h"
#include "pool.h"
#include "queues.h"

struct engine_ep;

/* Threads that may become the registrar of a domain, one after the other */
#define ENGINE_REGISTRARS 8u

/* The thread that registers without holding the domain (registrar.h). */
struct engine_registrar {
	/* platform_thread_self() of it, plus its turn; UINTPTR_MAX: there is none */
	_Atomic uintptr_t who;
	/* It is inside; by turns, each written by one thread */
	_Atomic bool inside[ENGINE_REGISTRARS];
	/* What follows belongs to the domain: its holder that has looked, with no other registrar since */
	uintptr_t looked;
	/* Turns that there have been */
	uint32_t turns;
	/* Registrations in a row of a thread that is none yet, and which thread that is */
	uint32_t streak;
	uintptr_t candidate;
	/* Value of @who to go back to after a fork, or UINTPTR_MAX */
	uintptr_t paused;
};

/* The regions of a domain. They belong to its registrar, or to its holder (registrar.h) */
struct engine_mrs {
	struct engine_registrar registrar;
	/* Regions with remote access; its objects are struct engine_mr */
	struct mr_table table;
	/* struct engine_mr */
	struct pool pool;
	/* those that are registered; any thread reads it, for tools */
	_Atomic uint32_t cnt;
	/* mr_mode of the domain, with FI_MR_BASIC expanded */
	int mode;
	/* Regions bound to an endpoint, by struct engine_mr.ep_link */
	struct list bound;
	/* Peers have to report each access to a region of this domain */
	bool remote_events;
	/* Operations of the wire over which peers read the table, or NULL */
	const struct wire_ops *shows;
	/* What that wire keeps for this domain */
	struct wire_share *share;
	/* Devices of the wires that pin: every region is registered with each */
	uint32_t device_cnt;
	struct {
		const struct mr_ops *ops;
		struct mr_device *device;
	} devices[ENGINE_WIRE_MAX];
};

/* What is known of the memory of a region, by accesses of peers to it (onesided/checked.h). */
struct engine_mr_checks {
	/* Accesses that looked here */
	uint32_t cnt;
	/* A refusal was logged */
	bool told;
	/* Pages that were found to allow loads [0], and stores [1] */
	struct platform_range found[2];
};

struct engine_mr {
	struct pool_object object;
	struct fid_mr fid;
	struct engine_domain *domain;
	/* FI_MR_ENDPOINT: the endpoint that it serves; NULL: none yet, or all */
	struct engine_ep *ep;
	/* Region that it is part of (fi_mr_attr.base_mr), or NULL */
	struct engine_mr *base;
	/* Link in mrs->bound while @ep is set */
	struct list ep_link;
	/* Index in the table; 0: no remote access and no key */
	uint32_t index;
	/* Transfers under way */
	uint32_t refs;
	/* Regions that are part of it */
	uint32_t subs;
	/* What counts reads and writes of peers */
	struct cntr_region reads, writes;
	bool enabled;
	/* Fork count of the process a thread of which waits to close it, and 1; 0: none does */
	uint32_t closing;
	/* Zero while no peer has accessed it by packet */
	struct engine_mr_checks checks;
	size_t iov_cnt;
	struct iovec iov[MR_IOV_MAX];
	/* Registrations with the devices of mrs: of the first piece with each, of the next, ... */
	struct mr_pin pins[];
};

#endif
