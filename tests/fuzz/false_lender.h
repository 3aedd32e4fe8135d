/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The lender that a fuzz target plays for the library that borrows: it has a model's honest answers, which the target
 * changes. The library's connections lead to it, in programs that are linked with the wraps below. All is one thread: a
 * request is answered within packet_send(), the keeper runs when it is called, and whoever waits in vain lets time pass.
 *
 * Wrapped: packet_connect, door_connect, packet_send, packet_recv, poll, pthread_create, pthread_join, and those of fake_time.h.
 */
#ifndef WEFT_FUZZ_FALSE_LENDER_H
#define WEFT_FUZZ_FALSE_LENDER_H

#include "client.h"
#include "fake_lender.h"

/*
 * enum false_how - what becomes of an answer
 * FALSE_LATE: it comes before the next one; FALSE_FLOOD: instead of it come others, until something else is asked
 */
enum false_how { FALSE_SAYS, FALSE_SILENT, FALSE_LATE, FALSE_TWICE, FALSE_FLOOD, FALSE_ENDS };

/*
 * false_lender_begin - there is a lender, with a lease of nobody
 * @change: changes an answer that is the model's; its descriptors are the lender's, whichever they are then
 * @idle:   called where the library waits for something else than an answer; NULL: nothing happens then
 */
void false_lender_begin(enum false_how (*change)(struct fake_answer *answer),
			void (*idle)(void));

/* false_lender_end - all of its connections end, and the library's calls are no longer wrapped */
void false_lender_end(void);

/* false_lender_model - what it would say */
struct fake_lender *false_lender_model(void);

/*
 * false_lender_keep - have the keeper of a lender run until it has waited @rounds times
 * @event: called at each of them; sends events, if any, with false_lender_tell()
 */
void false_lender_keep(struct weft_lender *lender, uint32_t rounds, void (*event)(void));

/* false_lender_tell - send bytes over the connection that was opened last, or end it: @len 0 */
void false_lender_tell(const void *bytes, size_t len);

#endif
