/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cooperative copies: one read of the sender's memory that both sides carry out. The slots that
 * describe them are in the pair's memory; here is how chunks are claimed.
 *
 * The receiver reads the sender's memory, and divides the rest of a long read into chunks. The
 * sender, once it polls, writes some of them into the receiver's memory. Both claim chunks, in
 * order, by compare-and-swap on one word:
 *
 *	receiver				sender
 *
 *	fills a slot, opens its word
 *	line PSHM_COOP_COPY		->	copies the slot
 *	claims a chunk, reads it		claims a chunk, writes it, counts it
 *	nothing left to claim: waits until
 *	the count is what the sender claimed
 *
 * The word holds the slot's generation, so that a late sender claims nothing of another copy. It is
 * closed before any other field of the slot changes: a side that can still claim has read a
 * consistent slot. The receiver's memory is the program's again once the sender holds no chunk; the
 * sender's, later, once the receiver reports that everything has arrived.
 *
 * Either side may write anything here. Each field is loaded once and checked; a side that writes
 * wrong values spoils or delays its own transfer alone.
 *
 * Called on the threads that hold the domains of the two. tests/spin/coop_copy.pml is the model.
 */
#ifndef WEFT_SHM_COOP_COPY_H
#define WEFT_SHM_COOP_COPY_H

#include "platform.h"
#include "wire.h"

/* Cooperative copies of one direction at a time. */
#define PSHM_COOP_COPIES 4u

/* Bytes of a chunk that a sender accepts. */
#define PSHM_CHUNK_MIN 4096u
#define PSHM_CHUNK_MAX (1u << 20)

struct pshm_coop_piece {
	_Atomic uint64_t addr, len;
};

/* A slot of the table. */
struct pshm_coop_copy {
	/* generation << 32 | next chunk. Written by both sides. */
	_Atomic uint64_t word;
	uint8_t pad1[56];
	/*
	 * (failed chunk + 1, or 0) << 32 | chunks that the sender has ended. Written by the
	 * sender.
	 */
	_Atomic uint64_t written;
	uint8_t pad2[56];
	/* The rest is written by the receiver, while the word is closed. */
	/* wire_source.id */
	_Atomic uint64_t id;
	/* bytes of that source before the first chunk */
	_Atomic uint64_t skip;
	/* bytes of all chunks */
	_Atomic uint64_t len;
	/* address of the receiver's write guard: sys/write_guard.h */
	_Atomic uint64_t write_guard;
	_Atomic uint32_t chunk_len;
	_Atomic uint32_t piece_cnt;
	uint8_t pad3[24];
	/* of the receiver's memory */
	struct pshm_coop_piece pieces[WIRE_IOV_MAX];
};

_Static_assert(sizeof(struct pshm_coop_copy) == 5 * CACHE_LINE, "layout");
_Static_assert(offsetof(struct pshm_coop_copy, written) == CACHE_LINE,
	       "what each side writes is apart");
_Static_assert(offsetof(struct pshm_coop_copy, id) == 128, "layout");
_Static_assert(offsetof(struct pshm_coop_copy, chunk_len) == 160, "layout");
_Static_assert(offsetof(struct pshm_coop_copy, pieces) == 192, "layout");

/* A private copy of a slot. */
struct pshm_coop_task {
	uint64_t id, skip, len, write_guard;
	uint32_t chunk_len;
	uint32_t chunk_cnt;
	uint32_t iov_cnt;
	/* addresses in the receiver */
	struct iovec iov[WIRE_IOV_MAX];
};

/* pshm_coop_task_chunk - returns where chunk @chunk begins, bytes from skip; @len: out: its bytes */
static inline uint64_t pshm_coop_task_chunk(const struct pshm_coop_task *task, uint32_t chunk,
					    size_t *len)
{
	uint64_t at = (uint64_t)chunk * task->chunk_len, left = task->len - at;

	*len = left < task->chunk_len ? (size_t)left : task->chunk_len;
	return at;
}

/*
 * pshm_coop_copy_open - receiver: publish a task in a slot, and let chunks be claimed
 * @gen: differs from the slot's last one
 * @task: its chunk_cnt fits len and chunk_len
 * No chunk of the slot is claimed.
 */
void pshm_coop_copy_open(struct pshm_coop_copy *s, uint32_t gen,
			 const struct pshm_coop_task *task);

/*
 * pshm_coop_copy_read - sender: copy a slot, after a line has announced its generation
 * @task: out; consistent only if a claim of that generation succeeds afterwards
 * Returns false if the contents are invalid.
 */
bool pshm_coop_copy_read(const struct pshm_coop_copy *s, struct pshm_coop_task *task);

enum pshm_claim {
	PSHM_CLAIMED,
	PSHM_NONE_LEFT,
	PSHM_NOT_OURS, /* the word has another generation, or is closed */
};

/*
 * pshm_coop_copy_claim - both: claim the next chunk of that generation. @chunk: out, for
 * PSHM_CLAIMED
 */
enum pshm_claim pshm_coop_copy_claim(struct pshm_coop_copy *s, uint32_t gen, uint32_t chunk_cnt,
				     uint32_t *chunk);

/*
 * pshm_coop_copy_close - receiver: let no more chunks be claimed
 * Returns how many were claimed, by both sides.
 */
uint32_t pshm_coop_copy_close(struct pshm_coop_copy *s, uint32_t gen, uint32_t chunk_cnt);

/*
 * pshm_coop_copy_set_written - sender: report that it has finished all chunks that it claimed
 * @cnt: chunks that it has claimed so far
 * @failed: the one that it could not write + 1, or 0; after that it claims no more
 */
void pshm_coop_copy_set_written(struct pshm_coop_copy *s, uint32_t cnt, uint32_t failed);

/*
 * pshm_coop_copy_written - receiver: returns the count that the sender gave last; @failed: out,
 * likewise
 */
uint32_t pshm_coop_copy_written(const struct pshm_coop_copy *s, uint32_t *failed);

#endif
