/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The mailbox of an inbox. Claimers run in any process, on the thread that connects; the owner's
 * functions in the process of the inbox, on the thread that polls.
 */
#include <limits.h>
#include <rdma/fi_errno.h>
#include "descriptor.h"
#include "mailbox.h"
#include "memfd.h"
#include "process.h"

/* Low byte of a slot's word; then 24 bits of generation, then the claimer's pid. */
enum slot_phase {
	SLOT_FREE,
	SLOT_CLAIMED,
	SLOT_READY,
	SLOT_TAKEN,
	SLOT_FAILED,
	SLOT_ORPHAN,
};

#define PHASE_MASK	0xffu
#define GENERATION	0x100u
#define GENERATION_MASK 0xffffff00u

static enum slot_phase slot_phase(uint64_t word)
{
	return (enum slot_phase)(word & PHASE_MASK);
}

static uint32_t slot_pid(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

static uint64_t with_phase(uint64_t word, enum slot_phase phase)
{
	return (word & ~(uint64_t)PHASE_MASK) | phase;
}

/* Moves @slot from @from to @to. Returns false if its word is not @from any more. */
static bool slot_move(struct pshm_slot *slot, uint64_t from, uint64_t to)
{
	/*
	 * R:pshm_slot.word  the contents of the slot before the phase; pairs A:pshm_slot.word
	 * A:pshm_slot.word  fill the slot after it was free; pairs R:pshm_slot.word
	 */
	return atomic_compare_exchange_strong_explicit(
		&slot->word, &from, to, memory_order_acq_rel, memory_order_relaxed);
}

/* Claims @slot if its word is still @seen. @word: out: its new word. */
static bool slot_claim(struct pshm_slot *slot, uint64_t seen, uint32_t pid, uint64_t *word)
{
	uint64_t generation = (seen + GENERATION) & GENERATION_MASK;

	*word = (uint64_t)pid << 32 | generation | SLOT_CLAIMED;
	return slot_move(slot, seen, *word);
}

/*
 * Returns true if the claimer of a failed request has closed the pair that it offered. A claimer
 * frees the slot before it closes the pair, so this one has executed another program, which does
 * not know the slot.
 */
static bool claim_left(const struct pshm_slot *slot, uint64_t seen)
{
	uint32_t pid = slot_pid(seen), number = slot->fd;
	int fd;

	if (slot_phase(seen) != SLOT_FAILED || pid > INT_MAX || number > INT_MAX)
		return false;
	fd = sys_memfd_open((pid_t)pid, (int)number, false);
	if (fd >= 0)
		sys_descriptor_close(fd);
	return fd == -FI_ENOENT || fd == -FI_EINVAL;
}

/*
 * Claims a slot that is free or, if there is none, one whose claimer is dead. Hundreds of claimers
 * may find no free slot at a time, again and again: for slots that are READY no process is looked
 * up.
 */
static struct pshm_slot *claim_any(struct pshm_inbox *inbox, uint32_t pid, uint64_t *word)
{
	/* claimers that were looked up last */
	uint32_t dead = 0, alive = 0;

	for (uint32_t i = 0; i < PSHM_SLOTS; i++) {
		uint64_t seen = atomic_load_explicit(&inbox->slots[i].word,
						     memory_order_relaxed);

		if (slot_phase(seen) == SLOT_FREE &&
		    slot_claim(&inbox->slots[i], seen, pid, word))
			return &inbox->slots[i];
	}
	for (uint32_t i = 0; i < PSHM_SLOTS; i++) {
		/* A:pshm_slot.word  phase before the contents; pairs R:pshm_slot.word */
		uint64_t seen = atomic_load_explicit(&inbox->slots[i].word,
						     memory_order_acquire);
		uint32_t claimer = slot_pid(seen);

		if (slot_phase(seen) == SLOT_READY)
			continue;
		if (claim_left(&inbox->slots[i], seen) &&
		    slot_claim(&inbox->slots[i], seen, pid, word))
			return &inbox->slots[i];
		if (claimer == alive || claimer == pid)
			continue;
		if (claimer != dead && !pshm_process_gone(claimer)) {
			alive = claimer;
			continue;
		}
		dead = claimer;
		if (slot_claim(&inbox->slots[i], seen, pid, word))
			return &inbox->slots[i];
	}
	return NULL;
}

int pshm_mailbox_claim(struct pshm_inbox *inbox, uint32_t pid, struct pshm_ticket *ticket)
{
	struct pshm_slot *slot;
	uint64_t word;

	slot = claim_any(inbox, pid, &word);
	if (!slot)
		return -FI_EAGAIN;
	*ticket = (struct pshm_ticket){ .slot = slot, .word = word };
	return 0;
}

int pshm_mailbox_post(struct pshm_inbox *inbox, const struct pshm_offer *offer,
		      struct pshm_ticket *ticket)
{
	struct pshm_slot *slot = ticket->slot;
	uint64_t ready = with_phase(ticket->word, SLOT_READY);

	slot->fd = offer->fd;
	memcpy(slot->nonce, offer->nonce, PSHM_NONCE);
	atomic_store_explicit(&slot->error, 0, memory_order_relaxed);
	if (!slot_move(slot, ticket->word, ready)) {
		ticket->slot = NULL;
		return -FI_EAGAIN;
	}
	ticket->word = ready;
	pshm_inbox_notify(inbox);
	return 0;
}

int pshm_mailbox_failed(const struct pshm_ticket *ticket)
{
	/* A:pshm_slot.word  phase before the error; pairs R:pshm_slot.word */
	uint64_t word = atomic_load_explicit(&ticket->slot->word, memory_order_acquire);
	int32_t error;

	if (word != with_phase(ticket->word, SLOT_FAILED))
		return 0;
	error = atomic_load_explicit(&ticket->slot->error, memory_order_relaxed);
	return error > 0 && error < FI_ERRNO_OFFSET ? -error : -FI_EPROTO;
}

void pshm_mailbox_drop(struct pshm_ticket *ticket)
{
	struct pshm_slot *slot = ticket->slot;
	uint64_t word = ticket->word;

	ticket->slot = NULL;
	if (!slot || slot_move(slot, word, with_phase(word, SLOT_FREE)) ||
	    slot_move(slot, with_phase(word, SLOT_TAKEN), with_phase(word, SLOT_ORPHAN)))
		return;
	slot_move(slot, with_phase(word, SLOT_FAILED), with_phase(word, SLOT_FREE));
}

bool pshm_mailbox_take(struct pshm_inbox *inbox, uint32_t *idx, struct pshm_offer *offer,
		       uint64_t *word)
{
	for (uint32_t i = *idx; i < PSHM_SLOTS; i++) {
		struct pshm_slot *slot = &inbox->slots[i];
		uint64_t seen = atomic_load_explicit(&slot->word, memory_order_relaxed);

		if (slot_phase(seen) != SLOT_READY ||
		    !slot_move(slot, seen, with_phase(seen, SLOT_TAKEN)))
			continue;
		*word = with_phase(seen, SLOT_TAKEN);
		*idx = i;
		offer->pid = slot_pid(seen);
		offer->fd = slot->fd;
		memcpy(offer->nonce, slot->nonce, PSHM_NONCE);
		return true;
	}
	return false;
}

void pshm_mailbox_finish(struct pshm_inbox *inbox, uint32_t idx, uint64_t word, int err)
{
	struct pshm_slot *slot = &inbox->slots[idx];

	atomic_store_explicit(&slot->error, -err, memory_order_relaxed);
	if (!slot_move(slot, word, with_phase(word, err ? SLOT_FAILED : SLOT_FREE)))
		slot_move(slot, with_phase(word, SLOT_ORPHAN), with_phase(word, SLOT_FREE));
}
