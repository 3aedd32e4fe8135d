/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the two files of a real controller share: backend_vfio.c carries pieces out, backend_vfio_pairs.c has queue pairs
 * that trusted borrowers use without this process. The loop's thread alone.
 */
#ifndef WEFT_NVMED_BACKEND_VFIO_H
#define WEFT_NVMED_BACKEND_VFIO_H

#include "backend.h"
#include "card.h"

/*
 * struct request - a command under way
 * @since: when it was first seen to be; 0: not yet
 */
struct request {
	struct piece *piece;
	uint64_t since;
};

/*
 * struct hard
 * @free: numbers of requests that are free
 * @next_look: when those under way are looked at next
 * @now:       as the loop has told it last
 * @watchdog:  -1: there are no direct borrowers
 * @lost:      the controller has forgotten their pairs, and does not run yet
 */
struct hard {
	struct backend b;
	struct backend_ops ops;
	struct window_hooks hooks;
	struct backend_device device;
	struct backend_pairs pairs;
	struct window_hooks pairs_hooks;
	struct backend_memory memory;
	int watchdog;
	bool watchdog_lost;
	bool lost;
	struct card card;
	uint64_t now;
	uint64_t deadline_ns;
	uint64_t next_look;
	uint32_t free_cnt;
	uint16_t free[CARD_COMMANDS];
	struct request requests[CARD_COMMANDS];
};

/* pairs_open - have direct pairs. Returns 0 or a negative errno, with @why */
int pairs_open(struct hard *h, char *why);
void pairs_close(struct hard *h);

/* pairs_look - end what can't go on: the controller was reset, or nobody would end its borrowers */
void pairs_look(struct hard *h);

/* hard_window_go - as window_hooks has it */
bool hard_window_go(void *arg, struct window *w);

/*
 * hard_admin - carry out an admin command; a controller that does not answer is reset
 * @data: out: NVME_PAGE bytes that it returns; NULL: none
 *
 * Returns the NVMe status; NVME_SC_NOT_READY: there is no answer, and a later try makes sense.
 */
int hard_admin(struct hard *h, struct nvme_sqe *sqe, void *data);

/* hard_access - VFIO_READS, VFIO_WRITES of SLOT_DMA_* */
uint32_t hard_access(uint32_t access);

#endif
