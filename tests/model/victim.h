/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An endpoint over the fake wires that is lied to, and the liar: what the tests of packets that no
 * peer sends have in common. One thread.
 */
#ifndef WEFT_VICTIM_H
#define WEFT_VICTIM_H

#include <setjmp.h>
#include <stdarg.h>
#include <rdma/fi_errno.h>
#include "fake_ends.h"
#include <cmocka.h>

#define FIRST_ID (1ull << 32) /* of the first object of a pool */

/* Info of the endpoint under test; an honest peer is opened with the same. */
extern const struct fake_end_attr victim_attr;

extern struct fake_end victim, honest; /* honest: only if the test has opened it */
extern struct fake_raw *liar;
extern struct hello lie, reply; /* of the raw peer, and of the answer to it */
extern fi_addr_t to_liar;
extern struct fi_context2 contexts[8];
extern struct fi_cq_tagged_entry entry; /* of next() */
extern struct fi_cq_err_entry error;

/*
 * victim_open - open the endpoint under test, which has the raw peer's address, and to which the
 * raw peer has sent its hello
 */
void victim_open(void);

/* meet_liar - the liar says hello, and is let in */
void meet_liar(void);

/* go - so many rounds of progress */
void go(uint32_t rounds);

/* next - the next completion, as fi_cq_read returns it; with -FI_EAVAIL the error is read too */
ssize_t next(struct fid_cq *cq);

#endif
