/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The mailbox of an inbox: slots to which any process that may open the inbox writes a request to
 * its owner. No lock: each slot is a word that changes by compare and swap, so that a process that
 * dies in between blocks no other.
 *
 *	FREE -> CLAIMED	  a claimer, which then fills the slot
 *	CLAIMED -> READY  the claimer
 *	READY -> FREE	  the claimer: withdrawn
 *	READY -> TAKEN	  the owner, which then reads the offer
 *	TAKEN -> FREE	  the owner: the answer is in the pair itself
 *	TAKEN -> FAILED	  the owner: it could not open the pair, slot.error has the reason
 *	TAKEN -> ORPHAN	  the claimer: withdrawn meanwhile
 *	ORPHAN -> FREE	  the owner
 *	FAILED -> FREE	  the claimer
 *	any but READY -> CLAIMED  another claimer that finds no free slot, if this one's process is dead
 *	FAILED -> CLAIMED  the same, if it executes another program and no longer has what it offered
 *
 * A word has a generation that grows with each claim, so that a late claimer changes nothing. The
 * owner reads all requests, and so finds those whose claimer has died.
 */
#ifndef WEFT_SHM_MAILBOX_H
#define WEFT_SHM_MAILBOX_H

#include "region.h"

/* A request of this process in a peer's mailbox. */
struct pshm_ticket {
	/* NULL: none */
	struct pshm_slot *slot;
	/* as we wrote it last */
	uint64_t word;
};

/*
 * pshm_mailbox_claim - claim a slot for a request
 * @pid: this process
 * Returns 0 and the ticket, to be posted or dropped soon, or -FI_EAGAIN if all slots are in use.
 * That takes no system call while all of them are READY.
 */
int pshm_mailbox_claim(struct pshm_inbox *inbox, uint32_t pid, struct pshm_ticket *ticket);

/*
 * pshm_mailbox_post - leave a request in the slot that has been claimed
 * @offer: our process and the pair that it offers
 * Returns 0, or -FI_EAGAIN when the slot has been taken from us: the ticket is none then.
 */
int pshm_mailbox_post(struct pshm_inbox *inbox, const struct pshm_offer *offer,
		      struct pshm_ticket *ticket);

/*
 * pshm_mailbox_failed - check whether the owner failed to open the pair that the request offers
 * Returns 0, or the -FI_E* that the owner stored.
 */
int pshm_mailbox_failed(const struct pshm_ticket *ticket);

/* pshm_mailbox_drop - withdraw a request, in whatever state it is; the ticket becomes none */
void pshm_mailbox_drop(struct pshm_ticket *ticket);

/*
 * pshm_mailbox_take - owner: take the next request
 * @idx: in: first slot to check; out: slot that was taken
 * @word: out: argument for pshm_mailbox_finish()
 * Returns false if no slot from @idx on has a request.
 */
bool pshm_mailbox_take(struct pshm_inbox *inbox, uint32_t *idx, struct pshm_offer *offer,
		       uint64_t *word);

/*
 * pshm_mailbox_finish - owner: end a request that was taken
 * @err: 0, or the -FI_E* for which the pair could not be opened
 */
void pshm_mailbox_finish(struct pshm_inbox *inbox, uint32_t idx, uint64_t word, int err);

#endif
