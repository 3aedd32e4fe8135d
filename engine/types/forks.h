/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a fork holds (domain/forked.h): domains, and the locks of event queues and wait sets.
 */
#ifndef WEFT_ENGINE_FORKS_H
#define WEFT_ENGINE_FORKS_H

#include "family.h"
#include "platform.h"

/* In the order in which calls take them. */
enum engine_hold_rank {
	/* A wait set, whose calls ask its members */
	ENGINE_HOLD_SET,
	/* The domains of an event queue, which its readers drive */
	ENGINE_HOLD_WATCH,
	ENGINE_HOLD_DOMAIN,
	/* The events of an event queue, which a domain's thread writes too */
	ENGINE_HOLD_EVENTS = PLATFORM_HOLD_INNER,
};

/* A lock that forks hold, and the fabric of its object. */
struct engine_fork_lock {
	struct platform_hold hold;
	struct platform_lock *lock;
	struct engine_fabric *fabric;
	/* From hold to release */
	bool held;
	/* A fork waits for it */
	_Atomic bool wanted;
};

#endif
