/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A queue pair at its owner; weft/nvme.h is what programs see.
 */
#ifndef WEFT_DEVICES_CLIENT_NVME_H
#define WEFT_DEVICES_CLIENT_NVME_H

#include "client.h"
#include "slot.h"
#include "spec.h"

struct bridge_pair;
struct remote_pair;

/* struct command - a command under way; its number is its id */
struct command {
	void *arg;
	bool busy;
};

/*
 * struct weft_nvme - a queue pair
 * @entries:   of each queue: one more than are used, so that a full one is not an empty one, and the completion queue
 *	       is never full
 * @bells:     where the doorbells are mapped, for @bells_len bytes; @sq_bell, @cq_bell: these
 * @doorbells: the page of the pair, with words about who sleeps; NULL: the doorbells are a device's, which has none
 * @page:      the file of the doorbells; -1: it is not kept
 * @kick:      wakes the controller, or -1; @vector: it interrupts, or -1
 * @free:      ids that are not in use
 * @spans:     a copy of the device's, of @spans_version; @hits: those that were used last,
 *	       to read from and to write to
 * @namespaces: of which the properties are known here, by number
 * @wait_ns:   how long completions have taken of late
 * @asleep:    interrupts are asked for
 * @ended:     0, or why nothing is submitted any more
 * @silent_ms: 0, or until when a controller is waited for that does not say that it has ended the pair
 * @remote:    of a device of another host: the pair is at the controller, or the controller comes to its queues here;
 *	       doorbells, lists and the kick are not used then, and nothing but the end of the lease counts in @vector.
 *	       Else NULL
 * @bridge:    of a device of another host whose queues are in memory that both hosts have: the doorbells are words
 *	       there, and data passes through it. Else NULL
 */
struct weft_nvme {
	struct nvme_sqe *sq;
	struct nvme_cqe *cq;
	uint8_t *bells;
	size_t bells_len;
	uint32_t *sq_bell;
	uint32_t *cq_bell;
	struct slot_doorbells *doorbells;
	struct command *commands;
	uint16_t *free;
	uint32_t free_cnt;
	uint32_t entries;
	uint32_t depth;
	uint32_t sq_tail;
	uint32_t cq_head;
	uint16_t phase;
	uint16_t qid;
	int ended;
	uint64_t silent_ms;
	bool blocking;
	bool asleep;
	struct span hits[2];
	struct span *spans;
	uint32_t span_cnt;
	uint32_t spans_version;
	uint32_t idle;
	uint64_t wait_ns;
	uint64_t (*lists)[NVME_PAGE / 8];
	uint64_t lists_addr;
	struct namespace namespaces[DEVICE_NAMESPACES + 1];
	struct weft_device *dev;
	struct weft_nvme *next;
	struct weft_segment *memory, *near;
	struct weft_window *window, *near_window;
	struct remote_pair *remote;
	struct bridge_pair *bridge;
	int kick;
	int page;
	int vector;
};

/*
 * nvme_describe - the entry of a command, without its data pointers
 * @len:    out: bytes of data; @access: out: what the device does to them, WEFT_WINDOW_*
 * Returns 0 or a negative errno, as weft_nvme_submit().
 */
int nvme_describe(struct weft_nvme *qp, struct nvme_sqe *sqe, uint16_t cid,
		  const struct weft_nvme_command *command, size_t *len, uint32_t *access);

/* nvme_span - the span that memory is in as a whole; NULL: @err says why there is none */
const struct span *nvme_span(struct weft_nvme *qp, const void *buf, size_t len, uint32_t access,
			     int *err);

/* nvme_wake - have who sleeps on the pair's descriptor look at it; any thread, under the lock of its device */
void nvme_wake(struct weft_nvme *qp);

/*
 * nvme_outlast - of a lease that has ended: wait until the controller no longer accesses this process's memory, which ends as
 * for weft_nvme_poll() after 10 s of silence
 */
void nvme_outlast(struct weft_nvme *qp);

/* nvme_completion - of a command that the device has ended so */
struct weft_nvme_completion nvme_completion(void *arg, uint32_t nvme);

#endif
