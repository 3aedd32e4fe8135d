/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Clocks of tests that go faster; fake_pace.h has the contract. All clocks are ahead by the same time.
 */
#include "fake_pace.h"

#include <poll.h>
#include <pthread.h>
#include <time.h>

#define NS_PER_S 1000000000ull

int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __real_poll(struct pollfd *fds, nfds_t cnt, int ms);
int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  const struct timespec *until);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_poll(struct pollfd *fds, nfds_t cnt, int ms);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  const struct timespec *until);

/* Protects what follows; no function is called while it is held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t pace_now = 1;
/* Since when the pace is that, by a real clock, and by how much ours was ahead of it then */
static uint64_t since_ns, ahead_ns;

static uint64_t real_ns(clockid_t clock)
{
	struct timespec t;

	__real_clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S) };
}

/* Returns by how much our clocks are ahead of the real ones. @pace: out */
static uint64_t ahead(uint32_t *pace)
{
	uint64_t now = real_ns(CLOCK_MONOTONIC), ns;

	pthread_mutex_lock(&lock);
	*pace = pace_now;
	ns = ahead_ns;
	if (now > since_ns)
		ns += (now - since_ns) * (pace_now - 1);
	pthread_mutex_unlock(&lock);
	return ns;
}

void fake_pace(uint32_t pace)
{
	uint64_t now = real_ns(CLOCK_MONOTONIC);

	pthread_mutex_lock(&lock);
	ahead_ns += (now - since_ns) * (pace_now - 1);
	since_ns = now;
	pace_now = pace;
	pthread_mutex_unlock(&lock);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	uint32_t pace;

	*t = timespec_of(real_ns(clock) + ahead(&pace));
	return 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t cnt, int ms)
{
	uint32_t pace;

	ahead(&pace);
	return __real_poll(fds, cnt, ms > 0 ? (int)(((uint32_t)ms + pace - 1) / pace) : ms);
}

/* The condition has the monotonic clock. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *until)
{
	uint64_t end = (uint64_t)until->tv_sec * NS_PER_S + (uint64_t)until->tv_nsec;
	uint64_t real = real_ns(CLOCK_MONOTONIC), now;
	struct timespec t;
	uint32_t pace;

	now = real + ahead(&pace);
	t = timespec_of(real + (end > now ? (end - now + pace - 1) / pace : 0));
	return __real_pthread_cond_timedwait(cond, mutex, &t);
}
