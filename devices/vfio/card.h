/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An NVMe controller that this process drives by VFIO: bringing it up, its admin commands, one pair of I/O queues, and
 * the reset of one that does not go on. Admin commands are waited for; I/O commands and a reset are not. One thread.
 *
 * What the controller writes is checked as what a borrower writes is: an entry is loaded once, and names a command that
 * is under way or none.
 *
 * Source: NVMe 1.4, sections 3.1, 4.1, 4.6, 7.3 and 7.6.
 */
#ifndef WEFT_DEVICES_VFIO_CARD_H
#define WEFT_DEVICES_VFIO_CARD_H

#include <stdbool.h>
#include <stdint.h>

#include "addresses.h"
#include "spec.h"
#include "vfio.h"

#define CARD_COMMANDS 128u /* I/O commands under way at most */
#define CARD_QID      1u   /* the I/O pair that is its own */

/*
 * enum card_state
 * CARD_STOPS:  it was told to stop, and may still access memory
 * CARD_STARTS: it accesses nothing, and is told to begin anew
 * CARD_FAILED: it accesses nothing, and does not begin; it is tried again, after a while
 * CARD_GONE:   it is not there any more, or was asked back
 */
enum card_state {
	CARD_RUNS,
	CARD_STOPS,
	CARD_STARTS,
	CARD_FAILED,
	CARD_GONE,
};

/*
 * struct card_ring - a pair of queues
 * @rung: the tail that the controller knows; @taken: there are completions that it does not know to be taken
 */
struct card_ring {
	struct nvme_sqe *sq;
	struct nvme_cqe *cq;
	uint32_t sq_size;
	uint32_t cq_size;
	uint32_t tail;
	uint32_t rung;
	uint32_t head;
	uint16_t phase;
	uint16_t qid;
	bool taken;
};

struct card_pages;

/*
 * struct card_memory - its controller memory (CMB), where it has some that data can be in
 * @base: @len bytes, mapped here; NULL: there is none
 * @addr: where it is for the controller, which keeps such addresses to itself
 */
struct card_memory {
	uint8_t *base;
	uint64_t len;
	uint64_t addr;
};

/*
 * struct card
 * @pages:    what it reads and writes for us, at @addr
 * @bell:     bytes from a doorbell to the next
 * @ready_ns: how long becoming ready takes at most (CAP.TO)
 * @pairs:    I/O queue pairs that it has given
 * @vectors:  of the function, that can be used
 * @irq:      an eventfd that is written when an I/O command has ended; vector 0 of the function
 * @until:    of @state: then it is late
 * @seen:     when its registers were last there
 * @was_reset: the function was reset since it has stopped going on
 */
struct card {
	struct vfio vfio;
	struct addresses addresses;
	struct card_pages *pages;
	uint64_t addr;
	uint32_t bell;
	uint64_t ready_ns;
	uint32_t entries_max;
	uint32_t pairs;
	uint32_t vectors;
	int irq;
	enum card_state state;
	uint64_t until;
	uint64_t seen;
	bool was_reset;
	uint16_t admin_cid;
	struct card_ring admin;
	struct card_ring io;
	struct card_memory memory;
	struct nvme_id_ctrl ctrl;
	struct nvme_id_ns ns;
};

/*
 * card_open - have a controller and its namespace 1, up and running
 * @vectors: how many of its vectors may be used at most; the first one is the I/O pair's
 * @why: out, on error: VFIO_WHY_MAX bytes, as vfio_open() has it
 *
 * Returns 0 or a negative errno.
 */
int card_open(struct card *card, const char *address, uint32_t vectors, char *why);

/* card_close - shut it down, and let it go */
void card_close(struct card *card);

/*
 * card_admin - carry out an admin command, which takes a controller that runs microseconds
 * @sqe:    its id is set here, and prp1 where there is @data
 * @data:   out: NVME_PAGE bytes that it returns; NULL: none
 * @result: out: dword 0; NULL: of no matter
 *
 * Returns the NVMe status, or -ETIMEDOUT: it does not answer, and card_fail() is due; -ENODEV: it does not run.
 */
int card_admin(struct card *card, struct nvme_sqe *sqe, void *data, uint32_t *result);

/*
 * card_memory_open - have its controller memory, from its next start on
 *
 * It begins anew by that. Returns 0, also where it has none; or a negative errno: it does not begin any more.
 */
int card_memory_open(struct card *card);

/* card_list - a page for the PRP list, or the data, of I/O command @id, and its address for the controller */
uint64_t *card_list(struct card *card, uint32_t id, uint64_t *addr);

/* card_bell - where in the registers a doorbell is */
size_t card_bell(const struct card *card, uint16_t qid, bool completion);

/* card_put - an I/O command; its cid is below CARD_COMMANDS. card_ring() tells the controller of all that were put */
void card_put(struct card *card, const struct nvme_sqe *sqe);
void card_ring(struct card *card);

/* card_take - the next completion, if there is one; card_ring() tells the controller that they were taken */
bool card_take(struct card *card, struct nvme_cqe *cqe);

/* card_fail - it does not go on: have it reset, and begin anew; @why: for the log */
void card_fail(struct card *card, uint64_t now, const char *why);

/* card_look - whether it is still there and as it was, by its registers and the alarm */
void card_look(struct card *card, uint64_t now);

/* card_advance - go on with a reset. Returns when to look again, or UINT64_MAX */
uint64_t card_advance(struct card *card, uint64_t now);

/* card_is_quiet - whether it accesses no memory: no command put before will have an effect on that */
static inline bool card_is_quiet(const struct card *card)
{
	return card->state != CARD_RUNS && card->state != CARD_STOPS;
}

/*
 * card_map, card_map_at, card_unmap - memory for it, at an address that is chosen here, or by the caller
 * Return 0 or a negative errno, as vfio_map() and addresses_claim().
 */
int card_map(struct card *card, void *mem, uint64_t len, uint32_t access, uint64_t *addr);
int card_map_at(struct card *card, void *mem, uint64_t len, uint32_t access, uint64_t addr);
int card_unmap(struct card *card, uint64_t addr, uint64_t len);

#endif
