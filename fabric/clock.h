/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The time, in nanoseconds of CLOCK_MONOTONIC. Any thread. */
#ifndef WEFT_CLOCK_H
#define WEFT_CLOCK_H

#include <stdint.h>
#include <time.h>

/* clock_ns - nanoseconds since a point in the past that is the same in all processes of the host */
static inline uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
