/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The holder of a domain (engine/domain/guard.h, guard.c) in all executions that C11 allows: data
 * calls without a lock, control calls, and the domain's thread hold it one after the other, also if
 * membarrier(2) is forbidden at some time. The barrier, time and the lock are the system's; here
 * they are weak_barrier(), a clock that makes one, and an atomic word. A thread that would wait for
 * another one ends the execution: there is one in which the other thread was first.
 */
#include "guard.h"
#include "views.h"
#include "weak.h"

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>

static struct engine_domain domain;
static const struct engine_family family = { 0 };
static _Atomic uint32_t lock_word;
static int waits[WEAK_THREADS]; /* 1: for the lock; each written by one thread */
static bool forbidden;		/* membarrier(2) */
static uint32_t clock_reads;
static uint32_t visits;		 /* belongs to the domain */
static uint32_t idle_visits;	 /* by the domain's thread */
static uint32_t expected_visits; /* by the others */

/* The system */

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

int platform_membarrier(void)
{
	if (forbidden)
		return -FI_EPERM;
	weak_fence_name("engine_enter");
	weak_barrier();
	return 0;
}

/* Once engine_guard_settle() has waited, what others have stored is visible. */
int clock_gettime(clockid_t id, struct timespec *now)
{
	*now = (struct timespec){ .tv_sec = clock_reads++ };
	if (clock_reads < 2)
		return 0;
	weak_fence_name("engine_guard_settle");
	weak_barrier();
	return 0;
}

void platform_yield(void)
{
	weak_assume(false);
}

/* The log is not needed. */

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

static void set_up(uint32_t expected)
{
	memset(&domain, 0, sizeof(domain));
	memset(waits, 0, sizeof(waits));
	atomic_init(&lock_word, 0);
	forbidden = false;
	clock_reads = 0;
	visits = 0;
	idle_visits = 0;
	expected_visits = expected;
	domain.family = &family;
	weak_name("domain.inside", &domain.inside, sizeof(domain.inside));
	weak_name("domain.claimed", &domain.claimed, sizeof(domain.claimed));
	weak_name("domain.lock", &lock_word, sizeof(lock_word));
}

static void set_up_two(void)
{
	set_up(2);
}

static void set_up_three(void)
{
	set_up(3);
}

static void set_up_forbidden(void)
{
	set_up(3);
	forbidden = true;
}

static void set_up_forbidden_idle(void)
{
	set_up(2);
	forbidden = true;
}

/* Bytes are accessed together with the atomic access before them; a barrier may stand in between. */
static void visit(void)
{
	weak_step(VIEWS_LOAD, &visits, false);
	visits++;
}

/* By the op table of a domain without a lock. */
static void data_call(void)
{
	engine_guard_enter(&domain);
	visit();
	engine_guard_leave(&domain);
}

static void two_data_calls(void)
{
	data_call();
	data_call();
}

/* The second one by the op table of whatever the domain is by then. */
static void data_calls(void)
{
	data_call();
	engine_use(&domain);
	visit();
	engine_unuse(&domain);
}

static void control_call(void)
{
	engine_enter(&domain);
	visit();
	engine_leave(&domain);
}

static void idle_thread(void)
{
	if (!engine_enter_idle(&domain))
		return;
	visit();
	idle_visits = 1;
	engine_leave(&domain);
}

static void all_were_in(void)
{
	weak_require(visits == expected_visits + idle_visits);
}

static const struct weak_test control = { "a control call is in alone",
					  set_up_three,
					  { control_call, two_data_calls },
					  all_were_in };

static const struct weak_test idle = {
	"so is the domain's thread", set_up_two, { idle_thread, two_data_calls }, all_were_in
};

static const struct weak_test three = {
	"so are both", set_up_two, { idle_thread, control_call, data_call }, all_were_in
};

static const struct weak_test late = { "so is a control call after which the domain has a lock",
				       set_up_forbidden,
				       { control_call, data_calls },
				       all_were_in };

static const struct weak_test late_idle = { "so is the domain's thread then",
					    set_up_forbidden_idle,
					    { idle_thread, data_calls },
					    all_were_in };

int main(void)
{
	static const struct weak_test *const tests[] = { &control, &idle,      &three,
							 &late,	   &late_idle, NULL };
	static const struct weak_ordering orderings[] = {
		{ "F:engine_enter", &control },
		{ "R:domain.inside", &control },
		{ "A:domain.inside", &control },
		{ "R:domain.claimed", &control },
		{ "A:domain.claimed", &control },
		{ "F:engine_enter", &idle },
		{ "R:domain.inside", &idle },
		{ "A:domain.inside", &idle },
		{ "R:domain.claimed", &idle },
		{ "A:domain.claimed", &idle },
		{ "R:domain.lock", &three },
		{ "A:domain.lock", &three },
		{ "F:engine_guard_settle", &late },
		{ "R:domain.inside", &late },
		{ "A:domain.inside", &late },
		{ "R:domain.lock", &late },
		{ "A:domain.lock", &late },
		{ "F:engine_guard_settle", &late_idle },
		{ NULL, NULL },
	};

	return weak_main(tests, orderings);
}
