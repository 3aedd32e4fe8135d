/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of barriers on other cores: Dekker's handshake with one side that has no fence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <cmocka.h>
#include "fault.h"
#include "membarrier.h"

#define ROUNDS 2000

static _Atomic bool inside, claimed, ending;
static uint64_t both[2]; /* written by whoever is alone */

/* The side without a fence. */
static void *enters(void *arg)
{
	while (!atomic_load_explicit(&ending, memory_order_relaxed)) {
		atomic_store_explicit(&inside, true, memory_order_relaxed);
		atomic_signal_fence(memory_order_seq_cst);
		if (!atomic_load_explicit(&claimed, memory_order_acquire)) {
			both[0]++;
			both[1]++;
		}
		atomic_store_explicit(&inside, false, memory_order_release);
	}
	return NULL;
}

static void who_claims_is_alone(void **state)
{
	pthread_t thread;

	assert_int_equal(sys_membarrier_open(), 0);
	assert_int_equal(sys_membarrier_open(), 0);
	assert_int_equal(pthread_create(&thread, NULL, enters, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		atomic_store_explicit(&claimed, true, memory_order_relaxed);
		assert_int_equal(sys_membarrier(), 0);
		while (atomic_load_explicit(&inside, memory_order_acquire))
			sched_yield();
		assert_int_equal(both[0], both[1]);
		both[0]++;
		sched_yield();
		both[1]++;
		atomic_store_explicit(&claimed, false, memory_order_release);
	}
	atomic_store_explicit(&ending, true, memory_order_relaxed);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(both[0], both[1]);
}

static void a_filter_may_forbid_it(void **state)
{
	sys_fault_set(SYS_CALL_MEMBARRIER, EPERM, 0, 1);
	assert_int_equal(sys_membarrier_open(), -EPERM);
	sys_fault_clear();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_claims_is_alone),
		cmocka_unit_test(a_filter_may_forbid_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
