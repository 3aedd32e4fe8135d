/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Random numbers of the tests; mock_random.h has the contract. Source: Marsaglia's xorshift. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>
#include "mock_random.h"
#include "platform.h"

static uint64_t seed;

void rnd_begin(void)
{
	const char *given = getenv("WEFT_SEED");

	seed = (given ? strtoull(given, NULL, 0) : platform_now_ns()) | 1;
	print_message("WEFT_SEED=%llu\n", (unsigned long long)seed);
}

uint32_t rnd(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 20) % below;
}
