/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The controller: what its parts share. One thread, that of the loop, calls everything of this folder; what queue owners
 * write meanwhile is in doorbell pages and windows only.
 */
#ifndef WEFT_NVMED_H
#define WEFT_NVMED_H

#include <stdbool.h>
#include <stdint.h>

#include "backend.h"
#include "cmb.h"
#include "domain.h"
#include "doorbells.h"
#include "events.h"
#include "feature.h"
#include "leases.h"
#include "logs.h"
#include "queue.h"
#include "registers.h"
#include "remote.h"
#include "share.h"
#include "vector.h"

#define NVMED_QUEUES_MAX 1024u /* queue pairs beside the admin one */
#define NVMED_NSID	 1u
#define NVMED_MDTS	 8u /* 1 MiB */
#define NVMED_DATA_MAX	 ((uint64_t)NVME_PAGE << NVMED_MDTS)

/* Tags of the epoll set; a doorbell page has its queue's number behind this. */
enum nvmed_tag {
	NVMED_TAG_KICK,
	NVMED_TAG_SLOT,
	NVMED_TAG_BACKEND,
	NVMED_TAG_TIMER,
	NVMED_TAG_SIGNAL,
	NVMED_TAG_REMOTE,
};

/*
 * struct nvmed_config
 * @queue_cnt: queue pairs beside the admin one, 1 to NVMED_QUEUES_MAX
 * @block:     512 or 4096
 * @cmb_len:   bytes of controller memory, a multiple of @granule
 * @spin_ns:   how long nothing may happen before the loop sleeps
 */
struct nvmed_config {
	uint32_t queue_cnt;
	uint32_t block;
	uint64_t cmb_len;
	uint64_t granule;
	uint64_t spin_ns;
	bool read_only;
	char serial[21];
};

/* What SMART reports. Units are of bytes here. */
struct nvmed_stats {
	uint64_t read_bytes;
	uint64_t written_bytes;
	uint64_t reads;
	uint64_t writes;
	uint64_t media_errors;
	uint64_t unsafe_shutdowns;
};

/*
 * struct nvmed
 * @blocks:   of the namespace
 * @now:      CLOCK_BOOTTIME in nanoseconds, as the loop read it last
 * @chores:   something is to be ended that waits: nvmed_chores() is to be called
 * @hot:      submission queues that are looked at in every round; @cold: now and then
 * @hot_next: where the next round begins
 * @pieces:   of the backend, that are free; @piece: the one of a backend that takes none
 * @losses:   of the backend, that are dealt with
 * @remote:   serves borrowers of other hosts, borrowed; NULL: nothing does
 * @scratch:  what admin commands transfer
 */
struct nvmed {
	struct nvmed_config config;
	struct backend *backend;
	uint64_t blocks;
	uint64_t now;
	uint64_t started;
	int epoll;
	bool chores;
	struct registers regs;
	struct cmb cmb;
	struct vectors vectors;
	struct doorbells *bells;
	struct sq **sqs;
	struct cq **cqs;
	struct cq *unnotified;
	struct sq **hot;
	struct sq **cold;
	uint32_t hot_cnt;
	uint32_t hot_next;
	uint32_t cold_cnt;
	uint32_t cold_next;
	struct piece *pieces;
	struct piece *piece_pool;
	uint64_t piece_bytes;
	struct piece piece;
	struct leases leases;
	struct events events;
	struct features features;
	struct error_log errors;
	struct nvmed_stats stats;
	uint32_t losses;
	struct share share;
	struct remote *remote;
	uint8_t scratch[64 * 1024];
};

/*
 * nvmed_create - a controller that is not enabled
 * @config:  copied
 * @backend: takes
 * @c:       out: returns owned
 *
 * Returns 0 or a negative errno; the backend is then still the caller's.
 */
int nvmed_create(const struct nvmed_config *config, struct backend *backend, struct nvmed **c);

/* nvmed_destroy - end it; pieces under way are waited for */
void nvmed_destroy(struct nvmed *c);

/* nvmed_clock - read the clock into @c->now and return it */
uint64_t nvmed_clock(struct nvmed *c);

/* nvmed_due - what the backend does at its time. Returns when it is to be called next at the latest, or UINT64_MAX */
uint64_t nvmed_due(struct nvmed *c);

/* nvmed_chores - go on with what ends once nothing is under way in it: queues, leases, a reset */
void nvmed_chores(struct nvmed *c);

/* nvmed_reap - end the backend's pieces. Returns 0 if there were none, and nothing is to be tried again */
uint32_t nvmed_reap(struct nvmed *c);

#endif
