/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of cooperative copies: contents of a slot, which side gets which chunk, and that the
 * memory is the receiver's again once no side holds a chunk. Run under ThreadSanitizer, the last
 * ones also show that the orderings are enough.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <unistd.h>
#include "coop_copy.h"
#include "seeded.h"

static struct pshm_coop_copy slot;

static int prepare(void **state)
{
	memset(&slot, 0, sizeof(slot));
	return 0;
}

static struct pshm_coop_task task_of(uint32_t cnt)
{
	struct pshm_coop_task task = {
		.id = 77,
		.skip = 1000,
		.len = (uint64_t)cnt * PSHM_CHUNK_MIN - 1,
		.write_guard = 1 << 20,
		.chunk_len = PSHM_CHUNK_MIN,
		.chunk_cnt = cnt,
		.iov_cnt = 2,
	};

	task.iov[0] = (struct iovec){ (void *)0x1000, 11 };
	task.iov[1] = (struct iovec){ (void *)0x9000, task.len - 11 };
	return task;
}

static void slot_says_what_was_put_there(void **state)
{
	struct pshm_coop_task task = task_of(3), got = { .id = 0 };
	size_t len;

	pshm_coop_copy_open(&slot, 1, &task);
	assert_true(pshm_coop_copy_read(&slot, &got));
	assert_int_equal(got.id, task.id);
	assert_int_equal(got.skip, task.skip);
	assert_int_equal(got.len, task.len);
	assert_int_equal(got.write_guard, task.write_guard);
	assert_int_equal(got.chunk_len, task.chunk_len);
	assert_int_equal(got.chunk_cnt, 3);
	assert_int_equal(got.iov_cnt, 2);
	assert_memory_equal(got.iov, task.iov, sizeof(got.iov));
	assert_int_equal(pshm_coop_task_chunk(&got, 1, &len), PSHM_CHUNK_MIN);
	assert_int_equal(len, PSHM_CHUNK_MIN);
	assert_int_equal(pshm_coop_task_chunk(&got, 2, &len), 2 * PSHM_CHUNK_MIN);
	assert_int_equal(len, PSHM_CHUNK_MIN - 1);
}

static void slot_that_cannot_be_is_refused(void **state)
{
	struct pshm_coop_task task = task_of(3), got;

	assert_false(pshm_coop_copy_read(&slot, &got));
#define REFUSED(field, value)                                   \
	do {                                                    \
		pshm_coop_copy_open(&slot, 1, &task);           \
		atomic_store(&slot.field, value);               \
		assert_false(pshm_coop_copy_read(&slot, &got)); \
	} while (0)
	REFUSED(len, 0);
	REFUSED(len, task.len + 1);
	REFUSED(skip, UINT64_MAX - 5);
	REFUSED(piece_cnt, WIRE_IOV_MAX + 1);
	REFUSED(piece_cnt, 1);
	REFUSED(chunk_len, 0);
	REFUSED(chunk_len, PSHM_CHUNK_MIN - 1);
	REFUSED(chunk_len, PSHM_CHUNK_MAX + 1);
	REFUSED(pieces[0].len, UINT64_MAX);
	REFUSED(pieces[1].addr, 0);
#undef REFUSED
}

static void each_chunk_is_claimed_once(void **state)
{
	struct pshm_coop_task task = task_of(3);
	uint32_t chunk;

	pshm_coop_copy_open(&slot, 5, &task);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(pshm_coop_copy_claim(&slot, 5, 3, &chunk), PSHM_CLAIMED);
		assert_int_equal(chunk, i);
	}
	assert_int_equal(pshm_coop_copy_claim(&slot, 5, 3, &chunk), PSHM_NONE_LEFT);
	assert_int_equal(pshm_coop_copy_close(&slot, 5, 3), 3);
	assert_int_equal(pshm_coop_copy_claim(&slot, 5, 3, &chunk), PSHM_NOT_OURS);
}

static void nothing_is_claimed_of_another_generation(void **state)
{
	struct pshm_coop_task task = task_of(3);
	uint32_t chunk;

	pshm_coop_copy_open(&slot, 5, &task);
	assert_int_equal(pshm_coop_copy_claim(&slot, 4, 3, &chunk), PSHM_NOT_OURS);
	assert_int_equal(pshm_coop_copy_claim(&slot, 6, 3, &chunk), PSHM_NOT_OURS);
	assert_int_equal(pshm_coop_copy_claim(&slot, 5, 3, &chunk), PSHM_CLAIMED);
	assert_int_equal(pshm_coop_copy_close(&slot, 5, 3), 1);
	assert_int_equal(pshm_coop_copy_claim(&slot, 5, 3, &chunk), PSHM_NOT_OURS);
	/* it wraps around */
	pshm_coop_copy_open(&slot, UINT32_MAX, &task);
	assert_int_equal(pshm_coop_copy_claim(&slot, UINT32_MAX, 3, &chunk), PSHM_CLAIMED);
	pshm_coop_copy_open(&slot, 0, &task);
	assert_int_equal(pshm_coop_copy_claim(&slot, 0, 3, &chunk), PSHM_CLAIMED);
	assert_int_equal(chunk, 0);
}

static void word_that_was_scribbled_over_counts_as_all_chunks(void **state)
{
	struct pshm_coop_task task = task_of(3);

	pshm_coop_copy_open(&slot, 5, &task);
	atomic_store(&slot.word, (uint64_t)5 << 32 | 4);
	assert_int_equal(pshm_coop_copy_close(&slot, 5, 3), 3);
	atomic_store(&slot.word, (uint64_t)6 << 32 | 1);
	assert_int_equal(pshm_coop_copy_close(&slot, 5, 3), 3);
}

static void what_the_sender_ended_is_heard(void **state)
{
	struct pshm_coop_task task = task_of(3);
	uint32_t failed;

	pshm_coop_copy_open(&slot, 1, &task);
	assert_int_equal(pshm_coop_copy_written(&slot, &failed), 0);
	pshm_coop_copy_set_written(&slot, 1, 0);
	pshm_coop_copy_set_written(&slot, 2, 3);
	assert_int_equal(pshm_coop_copy_written(&slot, &failed), 2);
	assert_int_equal(failed, 3);
	pshm_coop_copy_open(&slot, 2, &task);
	assert_int_equal(pshm_coop_copy_written(&slot, &failed), 0);
	assert_int_equal(failed, 0);
}

/* A receiver and a sender that copies into its memory; threads stand for processes. */
#define CHUNKS 40u
#define ROUNDS 3000u

static uint32_t memory[CHUNKS]; /* of the receiver: plain, so that a race is one */
static _Atomic uint32_t told;	/* generation in the line */
static _Atomic bool over;
static _Atomic uint32_t written;

#define SENDER_SEED   0x5eed2001u
#define RECEIVER_SEED 0x5eed2002u

static void *sender(void *arg)
{
	uint64_t seed = SENDER_SEED;
	uint32_t before = 0;

	while (!atomic_load_explicit(&over, memory_order_acquire)) {
		uint32_t gen = atomic_load_explicit(&told, memory_order_acquire), chunk;
		uint32_t ended = 0, most = seeded_random(&seed) % (2 * CHUNKS);
		struct pshm_coop_task task;

		if (gen == before) {
			sched_yield();
			continue;
		}
		before = gen;
		/* it may be over by now, and be another one while we read */
		if (!pshm_coop_copy_read(&slot, &task))
			continue;
		while (most-- && pshm_coop_copy_claim(&slot, gen, task.chunk_cnt, &chunk) ==
					 PSHM_CLAIMED) {
			/* a claim proves that what was read is of this generation */
			assert_int_equal(task.id, gen);
			assert_int_equal(memory[chunk], 0);
			memory[chunk] = gen;
			written++;
			pshm_coop_copy_set_written(&slot, ++ended, 0);
		}
	}
	return NULL;
}

/* The receiver's claims, until nothing is left or it gives up. Returns how many were its own. */
static uint32_t receive(uint32_t gen, uint32_t cnt, uint32_t most, uint32_t *claimed)
{
	uint32_t ours = 0, chunk;

	while (most--) {
		enum pshm_claim claim = pshm_coop_copy_claim(&slot, gen, cnt, &chunk);

		assert_int_not_equal(claim, PSHM_NOT_OURS);
		if (claim != PSHM_CLAIMED) {
			*claimed = cnt;
			return ours;
		}
		assert_int_equal(memory[chunk], 0);
		memory[chunk] = gen;
		ours++;
		if (most % 4 == 0)
			sched_yield();
	}
	*claimed = pshm_coop_copy_close(&slot, gen, cnt);
	return ours;
}

static void memory_is_the_receivers_again_once_no_chunk_is_held(void **state)
{
	uint64_t seed = RECEIVER_SEED;
	pthread_t thread;

	print_message("seeds %#x, %#x\n", SENDER_SEED, RECEIVER_SEED);
	atomic_store(&told, 0);
	atomic_store(&over, false);
	assert_int_equal(pthread_create(&thread, NULL, sender, NULL), 0);
	/* the sender may get no core for long: the alarm is the end */
	for (uint32_t gen = 1; gen <= ROUNDS || !written; gen++) {
		uint32_t cnt = 1 + seeded_random(&seed) % CHUNKS, claimed, ours, failed;
		uint32_t most = seeded_random(&seed) % 3 ? UINT32_MAX
							 : seeded_random(&seed) % cnt;
		struct pshm_coop_task task = task_of(cnt);

		task.id = gen;
		pshm_coop_copy_open(&slot, gen, &task);
		atomic_store_explicit(&told, gen, memory_order_release);
		if (seeded_random(&seed) % 2)
			sched_yield();
		ours = receive(gen, cnt, most, &claimed);
		while (pshm_coop_copy_written(&slot, &failed) < claimed - ours)
			sched_yield();
		/* the memory is the receiver's again: read it, and use it for something else */
		for (uint32_t i = 0; i < cnt; i++)
			assert_int_equal(memory[i], i < claimed ? gen : 0);
		memset(memory, 0, sizeof(memory));
	}
	atomic_store_explicit(&over, true, memory_order_release);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(slot_says_what_was_put_there, prepare),
		cmocka_unit_test_setup(slot_that_cannot_be_is_refused, prepare),
		cmocka_unit_test_setup(each_chunk_is_claimed_once, prepare),
		cmocka_unit_test_setup(nothing_is_claimed_of_another_generation, prepare),
		cmocka_unit_test_setup(word_that_was_scribbled_over_counts_as_all_chunks,
				       prepare),
		cmocka_unit_test_setup(what_the_sender_ended_is_heard, prepare),
		cmocka_unit_test_setup(memory_is_the_receivers_again_once_no_chunk_is_held,
				       prepare),
	};

	alarm(600);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
