/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a controller and borrowers of another machine have in memory that both machines see: a BAR of either (ivshmem, or a
 * window of a non-transparent bridge). The machine of the controller owns it. It begins with a head; slices of it are
 * queue pairs, which a lender makes and has answered the borrower about with a struct bridge_place.
 *
 *	slice: a page of words, the submission queue, the completion queue, a page for the PRP list of each command, and
 *	pages for data; each begins a page
 *
 * The borrower fills entries and lists, and sees completions and data, by itself. What it can't reach are doorbells: they
 * are words in the slice, which the controller's process looks at and passes on. That is all that is relayed.
 *
 * Integers are little-endian. Neither side relies on what is there: the controller checks doorbells and entries as those of
 * any borrower, and the borrower takes a completion for a command that is under way only. Whoever can map the BAR in the
 * machine of the borrowers sees what is in all of its slices: they are one machine's.
 */
#ifndef WEFT_DEVICES_BRIDGE_H
#define WEFT_DEVICES_BRIDGE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "spec.h"

#define BRIDGE_MAGIC   0x6567646972627477ull /* "wtbridge" */
#define BRIDGE_VERSION 1u

/* Commands of a pair at most */
#define BRIDGE_DEPTH_MAX 1023u

/* Pages of data of a pair: each command under way has as many as it moves, 256 at most. */
#define BRIDGE_DATA_PAGES 512u

/* How often a controller counts up @beat, and without how many of these it is taken to be gone */
#define BRIDGE_BEAT_MS	 10u
#define BRIDGE_SILENT_MS 10000u

/*
 * struct bridge_head - the first page
 * @key:  of this run of the controller: a borrower whose pair is of another one has none
 * @beat: counts up while the controller's process goes its rounds
 */
struct bridge_head {
	uint64_t magic;
	uint32_t version;
	uint32_t rsvd12;
	uint64_t key;
	uint64_t rsvd24[5];
	uint64_t beat;
	uint64_t rsvd72[503];
};

static_assert(sizeof(struct bridge_head) == NVME_PAGE, "a page");
static_assert(offsetof(struct bridge_head, beat) == 64, "a cache line of its own");

/*
 * struct bridge_words - the page of a pair
 * @sq_tail, @cq_head: doorbells, by the borrower; the controller passes them on
 * @ping:  by the borrower; the controller stores it into @pong. What a relay takes is measured by it
 * @ended: by the controller: not 0: the queues have ended
 */
struct bridge_words {
	uint32_t sq_tail;
	uint32_t cq_head;
	uint32_t ping;
	uint32_t rsvd12[13];
	uint32_t pong;
	uint32_t ended;
	uint32_t rsvd72[1006];
};

static_assert(sizeof(struct bridge_words) == NVME_PAGE, "a page");
static_assert(offsetof(struct bridge_words, pong) == 64, "a cache line of its own");

/*
 * struct bridge_place - where a pair is, in the answer to REMOTE (slot.h)
 * @depth:  commands; each queue has one entry more
 * @key:    of the head of the BAR that is meant
 * @offset: of the slice in the BAR
 * @len:    bytes of it
 * @addr:   of it, for the device
 */
struct bridge_place {
	uint64_t magic;
	uint32_t version;
	uint32_t depth;
	uint64_t key;
	uint64_t offset;
	uint64_t len;
	uint64_t addr;
	uint32_t pages;
	uint32_t rsvd52[3];
};

static_assert(sizeof(struct bridge_place) == 64, "on a socket");

/* struct bridge_parts - where what is in a slice of so many commands */
struct bridge_parts {
	uint64_t sq;
	uint64_t cq;
	uint64_t lists;
	uint64_t data;
	uint64_t len;
};

static inline uint64_t bridge_pages(uint64_t len)
{
	return (len + NVME_PAGE - 1) & ~(uint64_t)(NVME_PAGE - 1);
}

static inline struct bridge_parts bridge_parts(uint32_t depth, uint32_t pages)
{
	struct bridge_parts p = { .sq = sizeof(struct bridge_words) };

	p.cq = p.sq + bridge_pages((depth + 1ull) * sizeof(struct nvme_sqe));
	p.lists = p.cq + bridge_pages((depth + 1ull) * sizeof(struct nvme_cqe));
	p.data = p.lists + (uint64_t)depth * NVME_PAGE;
	p.len = p.data + (uint64_t)pages * NVME_PAGE;
	return p;
}

#endif
