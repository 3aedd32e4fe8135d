/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The mutex of the models whose threads do not try locks: see mutex.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include "mutex.h"
#include "weak.h"

static _Atomic uint32_t lock_word;

void mutex_init(void)
{
	atomic_init(&lock_word, 0);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	uint32_t is_free = 0;

	weak_assume(atomic_compare_exchange_strong_explicit(
		&lock_word, &is_free, 1, memory_order_acquire, memory_order_relaxed));
	return 0;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	atomic_store_explicit(&lock_word, 0, memory_order_release);
	return 0;
}
