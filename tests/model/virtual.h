/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Time and randomness of the engine under test, so that a run is the same each time it is
 * repeated: the linker leads the calls of the engine's clock, of platform_random() and of
 * platform_yield() here (--wrap). Time passes by being read. One thread.
 */
#ifndef WEFT_VIRTUAL_H
#define WEFT_VIRTUAL_H

#include "platform.h"

/* virtual_begin - time starts at one second, randomness at @seed */
void virtual_begin(uint64_t seed);

/* virtual_pass - let time go by */
void virtual_pass(uint64_t ns);

#endif
