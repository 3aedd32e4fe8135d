/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the files of a remote queue pair share; remote.h is what others see.
 */
#ifndef WEFT_DEVICES_CLIENT_REMOTE_PAIR_H
#define WEFT_DEVICES_CLIENT_REMOTE_PAIR_H

#include "door.h"
#include "nvme.h"
#include "port.h"
#include "remote.h"
#include "wire.h"

#define SENDS	     16u
#define RECEIVES_MAX 64u

/* struct region - a span that is registered; @addr: the span's */
struct region {
	uint64_t addr;
	struct fid_mr *mr;
	uint64_t key;
};

/* struct ended - a command that has */
struct ended {
	uint16_t cid;
	uint16_t nvme;
};

/*
 * struct remote_pair - what a queue pair has beside struct weft_nvme
 * @lock:    of the endpoint, @port and @regions
 * @place:   the session, as the lender has said
 * @mr:      of @memory, if the provider wants that; @queues: of queues near the borrower, which are behind
 * @ranges:  by command, of queues near the borrower: what is to be deallocated
 * @memory:  of receives and sends, each @place.message_max from @sends_at on
 * @send_lens: bytes of each send
 * @free_sends: not in use; @unsent: full, and not the provider's yet, the oldest first
 * @doorbell_due: the tail of a queue near the borrower is to be said
 * @forged:  remote CQ data that was not the session's
 * @ended:   a ring of what has ended and was not taken: @ended_cnt from @ended_at on
 * @lost:    0, or why nothing comes any more
 * @sleep_fd: of a pair that blocks: readable when the provider's descriptor is, or the lease has ended; else -1
 * @heard_ms: when something last came, or was looked for
 */
struct remote_pair {
	pthread_mutex_t lock;
	struct port port;
	struct fid_ep *ep;
	struct fid_mr *mr, *queues;
	fi_addr_t peer;
	struct remote_place place;
	uint8_t *memory;
	struct nvme_dsm_range *ranges;
	size_t sends_at;
	uint32_t receive_cnt;
	uint32_t free_sends[SENDS], free_send_cnt;
	uint32_t unsent[SENDS], unsent_cnt;
	uint32_t send_lens[SENDS];
	struct fi_context2 receive_contexts[RECEIVES_MAX];
	struct fi_context2 send_contexts[SENDS];
	bool connected;
	bool doorbell_due;
	uint32_t forged;
	struct region *regions;
	uint32_t region_cnt, region_room;
	struct ended *ended;
	uint32_t ended_at, ended_cnt;
	int lost;
	int sleep_fd;
	uint64_t heard_ms;
};

/* pair_listen - post a receive. Returns 0 or -FI_E* */
int pair_listen(struct remote_pair *r, uint32_t idx);

/* pair_say - send a small message of ours. Returns 0 or -FI_E* */
int pair_say(struct remote_pair *r, const void *message, size_t len);

/* pair_progress - take what has come, and send what has waited. Takes the lock */
void pair_progress(struct weft_nvme *qp);

/* pair_region - the key of a span's memory, which is registered if it is not. Takes the lock. Returns 0 or -FI_E* */
int pair_region(struct remote_pair *r, const struct span *span, uint64_t *key);

/* pair_forget - let the registration of a span go, if there is one; pair_forget_all: all. Under the lock. 0 or -FI_E* */
int pair_forget(struct remote_pair *r, uint64_t addr);
void pair_forget_all(struct remote_pair *r);

#endif
