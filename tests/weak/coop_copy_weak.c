/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The chunks of cooperative copies (providers/shm/memory/coop_copy.c) in all executions that C11
 * allows: each chunk is written by one side, into memory that is open, and the receiver's memory is
 * the program's again once the sender holds no chunk of it.
 *
 * The claims themselves need no order: the sender reads the generation from a line, and
 * modifications of the word have one order. The orderings of the line and of the count are all
 * there are.
 */
#include "coop_copy.h"
#include "weak.h"

#define CHUNKS 2u
#define LEN    ((size_t)CHUNKS * PSHM_CHUNK_MIN)

static struct pshm_coop_copy slot;
static unsigned char memory[2][LEN]; /* of two copies, in turn, of the receiver's program */
static _Atomic uint32_t line;	     /* PSHM_COOP_COPY: the announced generation */
static uint32_t written_cnt;	     /* by the sender */

static struct pshm_coop_task task_of(uint32_t gen)
{
	return (struct pshm_coop_task){
		.id = 10 + gen,
		.skip = 20 + gen,
		.len = LEN,
		.write_guard = 30 + gen,
		.chunk_len = PSHM_CHUNK_MIN,
		.chunk_cnt = CHUNKS,
		.iov_cnt = 1,
		.iov = { { memory[gen % 2], LEN } },
	};
}

static void open_copy(uint32_t gen)
{
	struct pshm_coop_task task = task_of(gen);

	pshm_coop_copy_open(&slot, gen, &task);
	atomic_store_explicit(&line, gen, memory_order_release);
}

static void set_up(void)
{
	memset(&slot, 0, sizeof(slot));
	memset(memory, 0, sizeof(memory));
	atomic_init(&line, 0);
	written_cnt = 0;
	weak_name("pshm_coop_copy.word", &slot.word, sizeof(slot.word));
	weak_name("pshm_coop_copy.written", &slot.written, sizeof(slot.written));
	weak_name("ring_line.word", &line, sizeof(line));
}

/* Whoever writes or reads a chunk that the other side is not done with is in a data race. */
static void put_chunk(const struct pshm_coop_task *task, uint32_t chunk)
{
	size_t len, at = (size_t)pshm_coop_task_chunk(task, chunk, &len);

	((unsigned char *)task->iov[0].iov_base)[at] = (unsigned char)(chunk + 1);
}

/* Claims and writes chunks, as coop_write.c does, after a line has announced the generation. */
static void sender(void)
{
	uint32_t gen = atomic_load_explicit(&line, memory_order_acquire), chunk;
	struct pshm_coop_task task;

	weak_assume(gen);
	weak_require(pshm_coop_copy_read(&slot, &task));
	while (pshm_coop_copy_claim(&slot, gen, task.chunk_cnt, &chunk) == PSHM_CLAIMED) {
		put_chunk(&task, chunk);
		written_cnt++;
	}
	pshm_coop_copy_set_written(&slot, written_cnt, 0);
}

/* Writes at least one chunk, waits for the sender's, and gives the memory back. */
static void receiver(void)
{
	struct pshm_coop_task task = task_of(1);
	uint32_t chunk, own = 0, failed;

	memory[1][0] = 100; /* by the program, before it was given for the copy */
	open_copy(1);
	if (pshm_coop_copy_claim(&slot, 1, CHUNKS, &chunk) == PSHM_CLAIMED) {
		put_chunk(&task, chunk);
		own++;
	}
	own = pshm_coop_copy_close(&slot, 1, CHUNKS) - own;
	weak_assume(pshm_coop_copy_written(&slot, &failed) == own);
	weak_require(!failed);
	for (chunk = 0; chunk < own; chunk++)
		memory[1][chunk * PSHM_CHUNK_MIN] = 0;
}

static const struct weak_test chunks_pass = {
	"each chunk is written by one side", set_up, { receiver, sender }, NULL
};

/* The slot, open for a copy, is closed and opened for the next one while the sender reads it. */
static void set_up_open(void)
{
	set_up();
	open_copy(1);
}

static void opener(void)
{
	pshm_coop_copy_close(&slot, 1, CHUNKS);
	open_copy(2);
}

/* What a side has read is whole where it can claim a chunk of that generation. */
static void reader(void)
{
	uint32_t gen = atomic_load_explicit(&line, memory_order_acquire), chunk;
	struct pshm_coop_task task, whole = task_of(gen);

	if (!pshm_coop_copy_read(&slot, &task) ||
	    pshm_coop_copy_claim(&slot, gen, task.chunk_cnt, &chunk) != PSHM_CLAIMED)
		return;
	weak_require(task.id == whole.id && task.skip == whole.skip && task.len == whole.len);
	weak_require(task.write_guard == whole.write_guard);
	weak_require(task.iov[0].iov_base == whole.iov[0].iov_base);
}

static const struct weak_test slots_are_used_again = {
	"a claim is of what was read", set_up_open, { opener, reader }, NULL
};

void weak_relax(void)
{
}

int main(void)
{
	static const struct weak_test *const tests[] = { &chunks_pass, &slots_are_used_again,
							 NULL };
	static const struct weak_ordering orderings[] = {
		{ "R:pshm_coop_copy.written", &chunks_pass },
		{ "A:pshm_coop_copy.written", &chunks_pass },
		{ "R:ring_line.word", &chunks_pass },
		{ "A:ring_line.word", &chunks_pass },
		{ NULL, NULL },
	};

	return weak_main(tests, orderings);
}
