/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The clock of the tools: monotonic nanoseconds. Any thread.
 */
#ifndef WEFT_TOOLS_CLOCK_H
#define WEFT_TOOLS_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

#endif
