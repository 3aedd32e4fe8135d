/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Threads that sleep over the fake wires: what the tests of sleeping have in common. Each thread has a
 * domain of its own unless a test says otherwise.
 *
 * The engine bounds its sleeps so that it finds out about deaths; a wake-up that is lost would be late
 * by that much alone. So the linker leads the sleeps and timers of the engine here, and long ones are
 * made longer than any test takes.
 */
#ifndef WEFT_SLEEPERS_H
#define WEFT_SLEEPERS_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include "fake_conn.h"
#include "fake_ends.h"
#include <cmocka.h>

#define LONG_NS 60000000000u /* of a sleep without a bound */
#define TIMEOUT 30000	     /* ms, of a call that must be woken */
#define TAG	7

extern _Atomic uint32_t sleeps; /* since open_ends(), that had something to wake by */

extern uint64_t seed; /* of everything */
extern struct fake_end ends[2];
extern fi_addr_t to[2]; /* of the other, in the vector of each */

/* seed_begin - from SLEEP_SEED, or from the time; printed */
void seed_begin(void);

/* dice - a number below @n from a thread's own sequence */
uint32_t dice(uint64_t *sequence, uint32_t n);
/* busy - at work: now for nothing, mostly for longer than the other looks before it sleeps, often just so long */
void busy(uint64_t *sequence);

/* What ends are opened with: FI_THREAD_SAFE over fake-a, FI_THREAD_DOMAIN over fake-b. */
extern const struct fake_end_attr safe, alone;

/* What wires are like. */
struct whims {
	const char *name;
	uint16_t deaf, fickle, spurious, move;
	bool no_bell, bare;
};
#define WHIMS 9
extern const struct whims whims[WHIMS];
#define NO_BELL 5 /* the one without bells */
#define BARE	6 /* the first one that has no descriptor, and rings from any context */
void knobs_of(struct fake_knobs *knobs, const struct whims *whims);

/* open_ends - two that know each other; @knobs: of all wires, or NULL */
void open_ends(const struct fake_end_attr *attr, const struct fake_knobs *knobs);
void close_ends(void);

/* A thread that waits for so many completions of one queue, by blocking reads. */
struct reader {
	struct fid_cq *cq;
	uint32_t cnt;
	uint32_t got;
	ssize_t failed;
	pthread_t thread;
};

void reader_start(struct reader *r, struct fid_cq *cq, uint32_t cnt);
/* reader_end - when it has them; it fails the test by being too late */
void reader_end(struct reader *r);

/* wait_asleep - until so many threads sleep in the domain of an end */
void wait_asleep(struct fake_end *end, uint32_t cnt);

#endif
