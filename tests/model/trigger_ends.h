/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two ends for tests of operations that begin when a counter has reached a value: a, with two
 * counters in its domain, and b, with a region that a may access. Called by the tests, whose main
 * thread makes progress for both unless a test says otherwise.
 */
#ifndef WEFT_TRIGGER_ENDS_H
#define WEFT_TRIGGER_ENDS_H

#include <rdma/fi_trigger.h>
#include "ends.h"

#define REGION 65536
#define KEY    5
#define LARGE  20000 /* bytes: a rendezvous */
#define MANY   3000  /* more than a transmit queue holds */

extern const char *provider;
extern struct end a, b;
extern struct fid_mr *mr;	     /* of region, in b's domain; NULL: nothing is open */
extern struct fid_cntr *when, *done; /* of a's domain */
extern fi_addr_t to_b, to_a;
extern uint8_t region[REGION], buf[REGION], got[REGION];
extern struct fi_triggered_context2 contexts[16];
extern struct fi_cq_tagged_entry entry; /* of completes() */

/* trigger_attr - what both are opened with; trigger_offered - does the provider have that */
struct end_attr trigger_attr(void);
bool trigger_offered(const struct end_attr *attr);

/* trigger_open - open all; trigger_setup does it, trigger_teardown closes what is open */
void trigger_open(const struct end_attr *attr);
int trigger_setup(void **state);
int trigger_teardown(void **state);

/* turn - a round of progress of both. turns - so many */
void turn(void);
void turns(int cnt);

/* completes - the next completion of an end is this; fails - the next error is */
void completes(struct end *e, void *context, uint64_t flags);
void fails(struct end *e, void *context, int err);

/* nothing - an end has no completion, nor gets one soon */
void nothing(struct end *e);

/* trigger - context @i, for a call that waits until counter when has this value */
void *trigger(int i, uint64_t threshold);

/* tsend_when - a sends 8 bytes at buf + i with the tag i then. receives - b gets them */
ssize_t tsend_when(int i, uint64_t threshold, uint64_t flags);
void receives(int i);

#endif
