/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The slots of cooperative copies. Called by the receiver (get.c) and by the sender
 * (coop_write.c), on the threads that hold the domains of the two.
 */
#include "copy.h"
#include "coop_copy.h"

/* As the next chunk in the word: none can be claimed. */
#define CLOSED UINT32_MAX

static uint64_t word_of(uint32_t gen, uint32_t next)
{
	return (uint64_t)gen << 32 | next;
}

/*
 * The slot's fields are stored with release and loaded with acquire: a side that sees a new one
 * also sees that the word was closed before.
 */
static void put(_Atomic uint64_t *field, uint64_t value)
{
	/* R:pshm_coop_copy.fields  the word closed before; pairs A:pshm_coop_copy.fields */
	atomic_store_explicit(field, value, memory_order_release);
}

static uint64_t take(const _Atomic uint64_t *field)
{
	/* A:pshm_coop_copy.fields  them before the claim; pairs R:pshm_coop_copy.fields */
	return atomic_load_explicit(field, memory_order_acquire);
}

void pshm_coop_copy_open(struct pshm_coop_copy *s, uint32_t gen,
			 const struct pshm_coop_task *task)
{
	assert(task->chunk_cnt < CLOSED && task->iov_cnt <= WIRE_IOV_MAX);
	atomic_store_explicit(&s->word, word_of(gen - 1, CLOSED), memory_order_relaxed);
	put(&s->id, task->id);
	put(&s->skip, task->skip);
	put(&s->len, task->len);
	put(&s->write_guard, task->write_guard);
	atomic_store_explicit(&s->chunk_len, task->chunk_len, memory_order_release);
	atomic_store_explicit(&s->piece_cnt, task->iov_cnt, memory_order_release);
	for (uint32_t i = 0; i < task->iov_cnt; i++) {
		put(&s->pieces[i].addr, (uintptr_t)task->iov[i].iov_base);
		put(&s->pieces[i].len, task->iov[i].iov_len);
	}
	/* The sender holds no chunk, so it counts none. */
	atomic_store_explicit(&s->written, 0, memory_order_relaxed);
	/* R:pshm_coop_copy.word  the slot before it is open; pairs A:pshm_coop_copy.word */
	atomic_store_explicit(&s->word, word_of(gen, 0), memory_order_release);
}

bool pshm_coop_copy_read(const struct pshm_coop_copy *s, struct pshm_coop_task *task)
{
	uint64_t end, cnt;
	size_t len;
	bool ok;

	task->id = take(&s->id);
	task->skip = take(&s->skip);
	task->len = take(&s->len);
	task->write_guard = take(&s->write_guard);
	task->chunk_len = atomic_load_explicit(&s->chunk_len, memory_order_acquire);
	task->iov_cnt = atomic_load_explicit(&s->piece_cnt, memory_order_acquire);
	if (!task->len || task->iov_cnt > WIRE_IOV_MAX || task->chunk_len < PSHM_CHUNK_MIN ||
	    task->chunk_len > PSHM_CHUNK_MAX ||
	    __builtin_add_overflow(task->skip, task->len, &end))
		return false;
	for (uint32_t i = 0; i < task->iov_cnt; i++) {
		task->iov[i].iov_base = (void *)(uintptr_t)take(&s->pieces[i].addr);
		task->iov[i].iov_len = take(&s->pieces[i].len);
	}
	len = iov_len(task->iov, task->iov_cnt, &ok);
	cnt = task->len / task->chunk_len + !!(task->len % task->chunk_len);
	if (!ok || len != task->len || cnt >= CLOSED)
		return false;
	task->chunk_cnt = (uint32_t)cnt;
	return true;
}

enum pshm_claim pshm_coop_copy_claim(struct pshm_coop_copy *s, uint32_t gen, uint32_t chunk_cnt,
				     uint32_t *chunk)
{
	uint64_t word = atomic_load_explicit(&s->word, memory_order_relaxed);

	do {
		if (word >> 32 != gen || (uint32_t)word == CLOSED)
			return PSHM_NOT_OURS;
		if ((uint32_t)word >= chunk_cnt)
			return PSHM_NONE_LEFT;
		/*
		 * A:pshm_coop_copy.word  open before its memory is written; pairs
		 * R:pshm_coop_copy.word
		 */
	} while (!atomic_compare_exchange_weak_explicit(
		&s->word, &word, word + 1, memory_order_acquire, memory_order_relaxed));
	*chunk = (uint32_t)word;
	return PSHM_CLAIMED;
}

uint32_t pshm_coop_copy_close(struct pshm_coop_copy *s, uint32_t gen, uint32_t chunk_cnt)
{
	/*
	 * The claims before this exchange are all there are: modifications of one word have one
	 * order.
	 */
	uint64_t word = atomic_exchange_explicit(&s->word, word_of(gen, CLOSED),
						 memory_order_relaxed);
	uint32_t next = (uint32_t)word;

	return word >> 32 == gen && next < chunk_cnt ? next : chunk_cnt;
}

void pshm_coop_copy_set_written(struct pshm_coop_copy *s, uint32_t cnt, uint32_t failed)
{
	/* R:pshm_coop_copy.written  what was written before; pairs A:pshm_coop_copy.written */
	atomic_store_explicit(&s->written, (uint64_t)failed << 32 | cnt, memory_order_release);
}

uint32_t pshm_coop_copy_written(const struct pshm_coop_copy *s, uint32_t *failed)
{
	/* A:pshm_coop_copy.written  before the bytes are anyone's; pairs R:pshm_coop_copy.written */
	uint64_t written = atomic_load_explicit(&s->written, memory_order_acquire);

	*failed = (uint32_t)(written >> 32);
	return (uint32_t)written;
}
