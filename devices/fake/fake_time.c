/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Time of tests; fake_time.h has the contract. All clocks say the same, but those that count processor time.
 */
#include "fake_time.h"

#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#define NS_PER_S 1000000000ULL

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_nanosleep(const struct timespec *length, struct timespec *left);

/* Behind 2001: a clock of seconds has a value that one of a real one is above. */
static _Atomic uint64_t now_ns = 1000000000ULL * NS_PER_S;
static void (*idle)(void *arg);
static void *idle_arg;

void fake_time_idle(void (*run)(void *arg), void *arg)
{
	idle = run;
	idle_arg = arg;
}

uint64_t fake_time_ms(void)
{
	return atomic_load(&now_ns) / 1000000;
}

void fake_time_pass(uint64_t ms)
{
	atomic_fetch_add(&now_ns, ms * 1000000);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	uint64_t ns = atomic_load(&now_ns);

	t->tv_sec = (time_t)(ns / NS_PER_S);
	t->tv_nsec = (long)(ns % NS_PER_S);
	return 0;
}

int __wrap_nanosleep(const struct timespec *length, struct timespec *left)
{
	atomic_fetch_add(&now_ns,
			 (uint64_t)length->tv_sec * NS_PER_S + (uint64_t)length->tv_nsec);
	if (idle)
		idle(idle_arg);
	return 0;
}
