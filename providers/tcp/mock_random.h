/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Random numbers of the tests. One sequence in a process, the same for the same seed; on the test's
 * thread.
 */
#ifndef WEFT_TCP_MOCK_RANDOM_H
#define WEFT_TCP_MOCK_RANDOM_H

#include <stdint.h>

/* rnd_begin - take the seed that WEFT_SEED names, or a new one, and print it */
void rnd_begin(void);

/* rnd - returns a number less than @below, which is not 0 */
uint32_t rnd(uint32_t below);

#endif
