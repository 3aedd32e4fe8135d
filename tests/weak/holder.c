/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See holder.h. On the models' threads. */
#include "holder.h"
#include "views.h"
#include "weak.h"

#include <rdma/providers/fi_log.h>

bool holder_forbidden;

static const struct engine_family family = { 0 };
static _Atomic uint32_t lock_word;
static int waits[WEAK_THREADS]; /* 1: for the lock; each written by one thread */
static uint32_t clock_reads;

void holder_init(struct engine_domain *domain)
{
	memset(domain, 0, sizeof(*domain));
	memset(waits, 0, sizeof(waits));
	atomic_init(&lock_word, 0);
	holder_forbidden = false;
	clock_reads = 0;
	domain->family = &family;
	weak_name("domain.inside", &domain->inside, sizeof(domain->inside));
	weak_name("domain.claimed", &domain->claimed, sizeof(domain->claimed));
	weak_name("domain.lock", &lock_word, sizeof(lock_word));
}

void weak_relax(void)
{
	waits[weak_running()] = 1;
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	uint32_t is_free = 0;
	bool taken = atomic_compare_exchange_strong_explicit(
		&lock_word, &is_free, 1, memory_order_acquire, memory_order_relaxed);

	weak_assume(taken || !waits[weak_running()]);
	waits[weak_running()] = 0;
	return !taken;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	weak_assume(!pthread_mutex_trylock(mutex));
	return 0;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	atomic_store_explicit(&lock_word, 0, memory_order_release);
	return 0;
}

/* Once engine_guard_settle() has waited, from one reading to the next, what others have stored is visible. */
int clock_gettime(clockid_t id, struct timespec *now)
{
	*now = (struct timespec){ .tv_sec = clock_reads++ };
	if (clock_reads % 2)
		return 0;
	weak_fence_name("engine_guard_settle");
	weak_barrier();
	return 0;
}

void platform_yield(void)
{
	weak_assume(false);
}

int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level,
		   enum fi_log_subsys subsys)
{
	return 0;
}

void fi_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
	    const char *func, int line, const char *fmt, ...)
{
}

const char *fi_strerror(int err)
{
	return "";
}
