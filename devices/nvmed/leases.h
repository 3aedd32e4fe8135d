/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Leases as the controller keeps them: begun and prolonged by its owner, ended by it or by the clock alone, in the order
 * of nvme/lease.h. The owner itself is lease 0, which has no end. The loop's thread alone.
 */
#ifndef WEFT_NVMED_LEASES_H
#define WEFT_NVMED_LEASES_H

#include <stdbool.h>
#include <stdint.h>

#include "domain.h"
#include "nvme/lease.h"

struct nvmed;
struct command;

enum lease_state {
	LEASE_NONE,
	LEASE_RUNS,
	LEASE_ENDS, /* its queues are stopped; what is under way is waited for */
};

/*
 * struct lease
 * @generation: the last one that began
 * @deadline:   CLOCK_BOOTTIME in nanoseconds
 * @told:       its end is an event
 */
struct lease {
	struct domain domain;
	enum lease_state state;
	uint32_t generation;
	uint32_t sq_cnt;
	uint32_t cq_cnt;
	bool told;
	uint64_t deadline;
	uint64_t commands;
	uint64_t bytes;
};

/*
 * struct leases
 * @next:   the earliest deadline, or UINT64_MAX
 * @budget: of the windows of all of them, and not of the owner's
 */
struct leases {
	struct lease each[NVME_LEASES + 1];
	struct budget budget;
	uint64_t next;
	uint32_t ending;
};

/*
 * leases_init - none
 * @owner_hooks, @hooks: of the windows of the owner, and of all others, or NULL
 * @kept: descriptors and mappings that windows can't have
 */
void leases_init(struct leases *l, const struct window_hooks *owner_hooks,
		 const struct window_hooks *hooks, uint64_t kept);

/*
 * lease_get - a lease that queues can be created in, or memory mapped
 * @index: from outside; 0 is the owner
 *
 * Returns NULL if there is none that runs.
 */
struct lease *lease_get(struct nvmed *c, uint32_t index);

/* lease_index - its number */
uint32_t lease_index(const struct nvmed *c, const struct lease *lease);

/* lease_arm - carry out NVME_ADMIN_LEASE_ARM. Returns an NVMe status */
int lease_arm(struct nvmed *c, const struct command *cmd);

/* lease_end - carry out NVME_ADMIN_LEASE_END. @result: out: dword 0. Returns an NVMe status */
int lease_end(struct nvmed *c, const struct command *cmd, uint32_t *result);

/* leases_due - end those whose time has run out */
void leases_due(struct nvmed *c);

/* leases_lost - end all of them, which is told: the device has lost their queues */
void leases_lost(struct nvmed *c);

/* leases_reset - end all of them: the controller is reset */
void leases_reset(struct nvmed *c);

/* leases_advance - go on with those that end. Returns whether some still do */
bool leases_advance(struct nvmed *c);

#endif
