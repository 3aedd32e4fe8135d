/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For tests: time that passes when somebody sleeps, in programs that are linked with --wrap=nanosleep and
 * --wrap=clock_gettime. Whoever sleeps does what fake_time_idle() is told to do.
 */
#ifndef WEFT_DEVICES_FAKE_FAKE_TIME_H
#define WEFT_DEVICES_FAKE_FAKE_TIME_H

#include <stdint.h>

/* fake_time_idle - have @run be called in place of sleeping */
void fake_time_idle(void (*run)(void *arg), void *arg);

/* fake_time_ms - what the clocks say; fake_time_pass: let time pass */
uint64_t fake_time_ms(void);
void fake_time_pass(uint64_t ms);

#endif
