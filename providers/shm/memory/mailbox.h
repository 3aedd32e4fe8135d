/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The mailbox of an inbox: slots in which any process that may open the inbox leaves a request
 * to its owner. No lock: each slot is a word that moves by compare and swap, so that
 * nobody who dies in between can hold anything up.
 *
 *	FREE -> CLAIMED	  a claimer, which then fills the slot
 *	CLAIMED -> READY  the claimer
 *	READY -> FREE	  the claimer: withdrawn
 *	READY -> TAKEN	  the owner, which then looks at what is offered
 *	TAKEN -> FREE	  the owner: the answer stands in the pair itself
 *	TAKEN -> FAILED	  the owner: it could not open the pair, slot.error says why
 *	TAKEN -> ORPHAN	  the claimer: withdrawn meanwhile
 *	ORPHAN -> FREE	  the owner
 *	FAILED -> FREE	  the claimer
 *	any but READY -> CLAIMED  another claimer that finds no free slot, when this one's process is dead
 *	FAILED -> CLAIMED  the same, when it has begun another program and does not have what it offered
 *
 * A word has a generation that grows with each claim: who comes back late moves nothing. A request
 * whose claimer has died is the owner's to find, who comes by all of them.
 */
#ifndef WEFT_SHM_MAILBOX_H
#define WEFT_SHM_MAILBOX_H

#include "region.h"

/* A request of ours in somebody's mailbox. */
struct pshm_ticket {
	struct pshm_slot *slot; /* NULL: none */
	uint64_t word;		/* as the claimer wrote it last */
};

/*
 * pshm_mailbox_claim - have a slot for a request
 * @pid: our process
 * Returns 0 and the ticket, to be posted or dropped soon, or -FI_EAGAIN when all slots are taken: that
 * costs no system call while what is in them are requests.
 */
int pshm_mailbox_claim(struct pshm_inbox *inbox, uint32_t pid, struct pshm_ticket *ticket);

/*
 * pshm_mailbox_post - leave a request in the slot that has been claimed
 * @offer: our process and the pair that it offers
 * Returns 0, or -FI_EAGAIN when somebody took us for dead, or scribbles: the ticket is none then.
 */
int pshm_mailbox_post(struct pshm_inbox *inbox, const struct pshm_offer *offer,
		      struct pshm_ticket *ticket);

/*
 * pshm_mailbox_failed - has the owner given our request up
 * Returns 0, or the -FI_E* that it left.
 */
int pshm_mailbox_failed(const struct pshm_ticket *ticket);

/* pshm_mailbox_drop - nothing more is expected of a request, in whatever state; ticket becomes none */
void pshm_mailbox_drop(struct pshm_ticket *ticket);

/*
 * pshm_mailbox_take - the owner's next request
 * @idx: in: slot to look at first; out: slot that was taken
 * @word: out: to be given back to pshm_mailbox_finish()
 * Returns false when no slot from @idx on has one.
 */
bool pshm_mailbox_take(struct pshm_inbox *inbox, uint32_t *idx, struct pshm_offer *offer,
		       uint64_t *word);

/*
 * pshm_mailbox_finish - the owner is done with a request
 * @err: 0, or the -FI_E* for which the pair could not be opened
 */
void pshm_mailbox_finish(struct pshm_inbox *inbox, uint32_t idx, uint64_t word, int err);

#endif
