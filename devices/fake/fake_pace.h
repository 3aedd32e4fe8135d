/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For tests: time that passes faster than it does, for who waits until it has, in programs that are linked with
 * --wrap of clock_gettime, poll and pthread_cond_timedwait. Any thread.
 */
#ifndef WEFT_DEVICES_FAKE_FAKE_PACE_H
#define WEFT_DEVICES_FAKE_FAKE_PACE_H

#include <stdint.h>

/*
 * fake_pace - have clocks go @pace times as fast from now on; 1: as they do
 * Their time never goes back. Waits end by the pace that they have begun with.
 */
void fake_pace(uint32_t pace);

#endif
