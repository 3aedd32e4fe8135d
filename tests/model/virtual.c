/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Repeatable time and randomness; see virtual.h. Called instead of clock_gettime(),
 * platform_random() and platform_yield() by everything that is linked into the test, on its one
 * thread.
 */
#include "virtual.h"

#define STEP_NS 20000u /* that reading the clock takes */

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_platform_random(void *buf, size_t len);
void __wrap_platform_yield(void);

static uint64_t now_ns = 1000000000u;
static uint64_t sequence = 1;

void virtual_begin(uint64_t seed)
{
	now_ns = 1000000000u;
	sequence = seed * 2 + 1;
}

void virtual_pass(uint64_t ns)
{
	now_ns += ns;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	now_ns += STEP_NS;
	t->tv_sec = (time_t)(now_ns / 1000000000u);
	t->tv_nsec = (long)(now_ns % 1000000000u);
	return 0;
}

int __wrap_platform_random(void *buf, size_t len)
{
	uint8_t *bytes = buf;

	for (size_t i = 0; i < len; i++) {
		sequence ^= sequence << 13;
		sequence ^= sequence >> 7;
		sequence ^= sequence << 17;
		bytes[i] = (uint8_t)(sequence >> 40);
	}
	return 0;
}

/*
 * There is no other thread to run. As time passes by being read, every yield seems to have let one
 * run, and the engine yields after every second idle round.
 */
void __wrap_platform_yield(void)
{
}
