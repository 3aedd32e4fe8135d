/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Round trips of messages of the same provider, between the borrower's host and the device's: what an I/O of a device of
 * another host is compared with. One thread.
 */
#ifndef WEFT_BENCH_REMOTE_TRIP_H
#define WEFT_BENCH_REMOTE_TRIP_H

#include <stddef.h>

struct trip;

/* trip_echo - answer whoever asks first, for ever: each message says how long the answer to it is to be */
void trip_echo(const char *host, const char *service);

/* trip_open - reach an echo. Ends the program if there is none; returns owned until the end of the program */
struct trip *trip_open(const char *host, const char *service);

/* trip_go - send @there bytes, and wait for @back of them, both at most TRIP_MAX and at least 4 */
#define TRIP_MAX (256u << 10)
void trip_go(struct trip *trip, size_t there, size_t back);

#endif
