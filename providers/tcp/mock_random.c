/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Random numbers of the tests; mock_random.h has the contract. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>
#include "mock_random.h"
#include "platform.h"
#include "seeded.h"

static uint64_t seed;

void rnd_begin(void)
{
	const char *given = getenv("WEFT_SEED");

	seed = given ? strtoull(given, NULL, 0) : platform_now_ns();
	print_message("WEFT_SEED=%llu\n", (unsigned long long)seed);
}

uint32_t rnd(uint32_t below)
{
	return (uint32_t)seeded_below(&seed, below);
}
