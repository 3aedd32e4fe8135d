/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transfers that both ends copy: the table of them in a pair's memory, and who has which chunk.
 *
 * The receiver reads the sender's memory, and cuts what is left of a long transfer into chunks. The sender,
 * when it comes by, writes some of them into the receiver's memory. Both claim chunks, one after the
 * other, on one word by compare-and-swap:
 *
 *	receiver				sender
 *	fills a slot, opens its word
 *	line PSHM_JOIN			->	copies what the slot says
 *	claims a chunk, reads it		claims a chunk, writes it, counts it
 *	nothing left to claim: waits until
 *	the count is what the sender claimed
 *
 * The word has the slot's generation, so that a sender which comes late claims nothing of another
 * transfer. It is closed before anything of the slot changes: whoever can still claim has read a slot that
 * is whole. The receiver's memory is the program's again only once the sender holds no chunk; the
 * sender's when the receiver says that all has arrived, which is later.
 *
 * Either side may write anything here. Each field is loaded once and checked; what a liar gains is that
 * its own transfer is wrong or does not end.
 *
 * On the threads that hold the domains of the two; tests/spin/chunks.pml is the model.
 */
#ifndef WEFT_SHM_CHUNKS_H
#define WEFT_SHM_CHUNKS_H

#include "platform.h"
#include "wire.h"

#define PSHM_JOINT_CNT 4u /* transfers of one direction that may be joint at a time */

#define PSHM_CHUNK_MIN 4096u
#define PSHM_CHUNK_MAX (1u << 20)

struct pshm_joint_piece {
	_Atomic uint64_t addr, len;
};

/* A slot of the table. */
struct pshm_joint {
	_Atomic uint64_t word; /* generation << 32 | next chunk. Both sides */
	uint8_t pad1[56];
	_Atomic uint64_t helped; /* failed chunk + 1, or 0 << 32 | chunks ended. The sender's */
	uint8_t pad2[56];
	/* The receiver's, while the word is closed. */
	_Atomic uint64_t id;   /* wire_source.id */
	_Atomic uint64_t skip; /* where the first chunk begins in it */
	_Atomic uint64_t len;  /* bytes in all */
	_Atomic uint64_t write_guard; /* a byte that can be written as long as this is wanted */
	_Atomic uint32_t chunk_len;
	_Atomic uint32_t piece_cnt;
	uint8_t pad3[24];
	struct pshm_joint_piece pieces[WIRE_IOV_MAX]; /* of the receiver's memory */
};

_Static_assert(sizeof(struct pshm_joint) == 5 * CACHE_LINE, "layout");
_Static_assert(offsetof(struct pshm_joint, helped) == 64, "what each side writes is apart");
_Static_assert(offsetof(struct pshm_joint, id) == 128, "layout");
_Static_assert(offsetof(struct pshm_joint, chunk_len) == 160, "layout");
_Static_assert(offsetof(struct pshm_joint, pieces) == 192, "layout");

/* What a slot says: a private copy. */
struct pshm_task {
	uint64_t id, skip, len, write_guard;
	uint32_t chunk_len;
	uint32_t chunk_cnt;
	uint32_t iov_cnt;
	struct iovec iov[WIRE_IOV_MAX]; /* addresses in the receiver */
};

/* pshm_task_chunk - where chunk @chunk of it begins, and its bytes */
static inline uint64_t pshm_task_chunk(const struct pshm_task *task, uint32_t chunk,
				       size_t *len)
{
	uint64_t at = (uint64_t)chunk * task->chunk_len, left = task->len - at;

	*len = left < task->chunk_len ? (size_t)left : task->chunk_len;
	return at;
}

/*
 * pshm_joint_open - receiver: say what there is to copy, and let chunks be claimed
 * @gen:  another one than the slot had before
 * @task: chunk_cnt is to fit; nobody holds a chunk of the slot
 */
void pshm_joint_open(struct pshm_joint *s, uint32_t gen, const struct pshm_task *task);

/*
 * pshm_joint_read - sender: what the slot says, once it is told of the generation
 * What comes out is the receiver's word only if a claim succeeds afterwards.
 * Returns false when it can't be.
 */
bool pshm_joint_read(const struct pshm_joint *s, struct pshm_task *task);

enum pshm_claim {
	PSHM_CLAIMED,
	PSHM_NONE_LEFT,
	PSHM_NOT_OURS, /* another generation, or closed */
};

/* pshm_joint_claim - both: the next chunk, if any is left of that generation */
enum pshm_claim pshm_joint_claim(struct pshm_joint *s, uint32_t gen, uint32_t chunk_cnt,
				 uint32_t *chunk);

/*
 * pshm_joint_close - receiver: nothing is claimed from here on
 * Returns how many chunks were, by both.
 */
uint32_t pshm_joint_close(struct pshm_joint *s, uint32_t gen, uint32_t chunk_cnt);

/*
 * pshm_joint_ended - sender: of the chunks that it has claimed, it holds none
 * @cnt:    how many there were
 * @failed: chunk that it has not copied + 1, or 0; nothing is claimed after that
 */
void pshm_joint_ended(struct pshm_joint *s, uint32_t cnt, uint32_t failed);

/* pshm_joint_helped - receiver: what the sender said so. Returns the count */
uint32_t pshm_joint_helped(const struct pshm_joint *s, uint32_t *failed);

#endif
