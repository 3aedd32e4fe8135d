/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A borrower's connection, at the lender: its requests (lease/message.h), one after the other, on a thread of its own.
 */
#ifndef WEFT_DEVICES_LENDER_SESSION_H
#define WEFT_DEVICES_LENDER_SESSION_H

#include "lent.h"

/*
 * struct lender - what sessions serve
 * @devices:  for as long as there are sessions
 * @connections: of each user, with those of watchers
 * @watchers: connections that hear of events (watch.c)
 * @exports:  segments that others may have (exports.c)
 * @door:     for borrowers of other hosts; NULL: it is closed
 */
struct lender {
	uint64_t node;
	struct lent **devices;
	uint32_t device_cnt;
	struct connections *connections;
	struct watchers *watchers;
	struct exports *exports;
	struct door *door;
};

/* lender_tell - tell all who watch of an event */
void lender_tell(struct lender *lender, uint32_t kind, uint64_t device, uint32_t lease);

struct lease_message;

/*
 * session_answer_remote - answer a request of a borrower elsewhere
 * @msg:  from outside, @data_len of which is checked; out: the answer
 * @data: LEASE_DATA_MAX bytes; in and out
 * @by:   who asks, as it says
 * @complained: kinds of requests of which a refusal was logged for this borrower, as bits; in and out
 * Returns 0, or -EPROTO: it is no request.
 */
int session_answer_remote(struct lender *lender, const struct lent_borrower *by,
			  struct lease_message *msg, void *data, uint32_t *complained);

/* session_serve - serve a connection until it ends; takes @fd. Called as the function of a thread. */
void session_serve(struct lender *lender, int fd);

#endif
